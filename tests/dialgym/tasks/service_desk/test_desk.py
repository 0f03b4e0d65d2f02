"""Views and batches, settings, texts, tools and users of a service desk."""

import json
from itertools import product

import numpy as np
import pytest

import dialgym
from dialgym.language import allows
from dialgym.tasks.hidden import HiddenStateError
from dialgym.tasks.service_desk import ServiceDesk
from dialgym.tasks.service_desk.domains import NONE
from dialgym.tasks.service_desk.tracking import tracked
from dialgym.tasks.service_desk.types import GET, DeskAct
from dialgym.testing import check_batch, check_returns, check_task, check_views
from dialgym.views.act_env import ActEnv
from dialgym.views.act_vector_env import ActVectorEnv
from tests.support.by_day import by_day
from tests.support.desk_dialogues import (
    ENGLISH,
    PHONE,
    RNG,
    SHOP,
    allowed_change,
    first_goal,
    serve,
)

KINDS = by_day(
    product(("shop", "phone"), ("words", "english")), ("shop", "words"), ("phone", "english")
)


@pytest.mark.parametrize(("domain", "language"), KINDS)
def test_all_views_and_batches_are_the_rules(domain, language):
    task = ServiceDesk(domain, language=language, turns=8)
    check_task(task, 2)
    check_views(task, 1)
    check_batch(task, num_envs=3, steps=40)
    check_returns(task, policies=["careful", "random"])


def test_what_a_desk_knows_is_all_that_its_words_may_say():
    """Masks of words as those of acts, and records that say which changes are allowed."""
    task = ServiceDesk(constraint="known", eligibility=True, turns=8)
    check_task(task, 1)
    check_views(task, 1)
    check_batch(task, num_envs=2, steps=20)
    state, acts = task.initial(RNG, {"goal": 0}), task.acts["system"]
    user, desk = task.speaker_named("user", "agenda"), task.speaker_named("system", "careful")
    while not state.over:
        if not state.waiting:
            constraint, mask = task.constraint(state, "system"), acts.mask(state)
            texts = [acts.text(state, code, RNG) for code in range(len(mask))]
            assert all(allows(constraint, text) for text, ok in zip(texts, mask) if ok)
            assert len(constraint.words) == mask.sum()
        speaker = user if state.waiting else desk
        task.speak(state, speaker.reply(task, state, RNG), RNG)


@pytest.mark.parametrize("language", ["words", "english"])
@pytest.mark.parametrize("domain", ["shop", "phone"])
def test_a_record_that_is_read_says_which_changes_are_allowed(domain, language):
    task = ServiceDesk(domain, language=language, eligibility=True)
    assert serve(task, "careful")[1] > 0.5
    for number in range(30):
        state = task.initial(RNG, {"goal": number})
        for place, record in enumerate(state.records):
            read = DeskAct(GET, number=record[0])
            text = task.texts.answer(state, read, place)
            told = text.partition("allowed")[2]
            for at, write in enumerate(task.domain.writes):
                assert (write.tool in told) is task.domain.allows(state.policy, at, record)
            assert len(text) <= task.facts.ordinary["tools"]
            assert "allowed" not in ServiceDesk(domain).texts.answer(state, read, place)


@pytest.mark.parametrize("domain", ["shop", "phone"])
def test_a_delexicalised_goal_is_the_same_but_for_the_numbers_of_records(domain):
    plain, task = ServiceDesk(domain), ServiceDesk(domain, delexicalised=True)
    for number in range(60):
        before, after = plain.initial(RNG, {"goal": number}), task.initial(RNG, {"goal": number})
        renamed = {record[0]: place for place, record in enumerate(before.records)}
        assert [record[0] for record in after.records] == [0, 1, 2, 3, 4]
        for one, other in zip(before.goal.requests, after.goal.requests):
            assert other == one._replace(number=renamed.get(one.number, NONE))
        for kind in ("records", "end"):
            pairs = zip(getattr(before.goal, kind), getattr(after.goal, kind))
            assert all(one[1:] == other[1:] for one, other in pairs)
        one, paid = serve(plain, "handcrafted", goal=number)
        other, also = serve(task, "handcrafted", goal=number)
        assert (paid, one.told, one.faults) == (also, other.told, other.faults)
        lines = zip(one.desk_lines, other.desk_lines, strict=True)
        assert all(a.speaker == b.speaker for a, b in lines)


@pytest.mark.parametrize(("domain", "language"), KINDS)
def test_a_desk_is_told_what_the_act_view_sees_of_the_record_that_is_meant(domain, language):
    settings = {"language": language, "eligibility": True, "turns": 8}
    task = ServiceDesk(domain, **settings, tracked=True)
    check_task(task, 1)
    check_views(task, 1)
    check_batch(task, num_envs=2, steps=20)
    plain = ServiceDesk(domain, **settings)
    acts, wished = task.acts["system"], 0
    desk, user = task.speaker_named("system", "handcrafted"), task.speaker_named("user", "agenda")
    for number in range(20):
        state = task.initial(RNG, {"goal": number})
        while not state.over:
            if not state.waiting and task._has_record_to_track(state):
                wished += 1
                told = [line.text for line in state.desk_lines if line.speaker == "tools"][-1]
                meant = acts.meant(state)
                expected = tracked(task.texts, state, meant)
                assert told.endswith(expected.removeprefix("{"))
                assert ("nothing" in expected.partition("read")[0]) is (meant == NONE)
                if meant != NONE:
                    assert ("yes" in expected) is bool(state.read >> meant & 1)
            speaker = user if state.waiting else desk
            task.speak(state, speaker.reply(task, state, RNG), RNG)
        assert state.faults == serve(plain, "handcrafted", goal=number)[0].faults
        assert not any("means" in line.text for line in state.user_lines)
    assert wished > 20


def test_a_mixture_holds_dialogues_of_good_and_of_bad_desks():
    stored = dialgym.collect("ServiceDesk-act-v0", "mixture", 60, seed=0)
    solved = {}
    for one in stored:
        solved.setdefault(one["kind"], []).append(one["success"])
    assert set(solved) == {"careful", "handcrafted", "careless", "hostile", "random"}
    assert all(solved["careful"])
    assert not any(solved["random"])
    assert 2 * sum(solved["hostile"]) < len(solved["hostile"])


@pytest.mark.parametrize("user", ["impatient", "lying"])
def test_other_users_have_batches_too(user):
    task = ServiceDesk("phone", turns=10)
    assert task.batch(2, "system", task.speaker_named("user", user)) is not None
    check_batch(task, num_envs=3, steps=60, simulator=user)


def test_a_user_who_is_asked_which_device_says_nothing_in_a_batch_either():
    task = ServiceDesk("phone")
    goal = first_goal(lambda goal: goal.requests[0].kind == task.domain.internet, "phone")
    ask = task.acts["system"].names.index("ask line")
    single, batch = ActEnv(task), ActVectorEnv(task, 1)
    for env in (single, batch):
        env.reset(seed=0, options={"goal": goal})
    for _ in range(3):
        np.testing.assert_equal(single.step(ask)[0], batch.step([ask])[0][0])


def test_every_act_of_both_parties_is_read_as_that_act():
    for task in (SHOP, PHONE, *ENGLISH.values()):
        user, desk = task.speaker_named("user", "lying"), task.speaker_named("system", "careful")
        for goal in range(40):
            state = task.initial(RNG, {"goal": goal})
            while not state.over:
                party = task.speaker(state)
                if state.waiting:
                    act = user.choose(task.domain, state)
                    text = task.texts.user(act, RNG)
                else:
                    acts = task.acts["system"]
                    act = acts.act(state, desk.act(task, state, RNG))
                    text = task.texts.desk(act)
                assert task.reader.read(party, text) == act, text
                assert task.reader.read(party, f"  {text.upper()} ") == act, text
                constraint = task.constraint(state, party)
                assert allows(constraint, text), text
                task.apply(state, party, text, act)


def test_tools_are_in_openais_schema():
    tools = json.loads(json.dumps(PHONE.tools))
    names = [tool["function"]["name"] for tool in tools["system"]]
    assert names == ["find_customer", "identify", "get_line", "cancel_line", "change_plan",
                     "resume_line", "roaming_on"]  # fmt: skip
    plan = tools["system"][4]["function"]["parameters"]
    assert plan["required"] == ["line", "plan"]
    assert plan["properties"]["plan"]["enum"] == ["basic", "plus", "max", "family"]
    assert tools["user"][0]["function"]["name"] == "read_screen"


def test_what_tools_answer_only_the_caller_sees():
    task = PHONE
    internet = task.domain.internet
    number = first_goal(lambda goal: {r.kind for r in goal.requests} > {internet}, "phone")
    state, _ = serve(task, "careful", goal=number)
    desk, user = (task.transcript(state, party) for party in task.parties)
    assert any(line.speaker == "tools" for line in desk)
    assert any(line.text == "read_screen" for line in user)
    assert not any(line.text in ("read_screen", "restart") for line in desk)
    assert not any(line.text.startswith("find_customer") for line in user)


def test_nobody_is_told_what_it_may_not_know():
    state = SHOP.initial(RNG, {"goal": 0})
    with pytest.raises(HiddenStateError):
        _ = SHOP.observed(state, "system").goal.requests
    with pytest.raises(HiddenStateError):
        _ = SHOP.observed(state, "user").goal.records[0]
    assert SHOP.picture(state) is None


def test_a_picture_when_all_is_over():
    state, _ = serve(SHOP, "careful")
    assert all(line.endswith(": met.") for line in SHOP.judgement(state))
    picture = SHOP.picture(state)
    assert picture.dtype == np.uint8
    assert picture.shape[1:] == (760, 3)


def test_an_impatient_user_leaves_and_a_lying_one_can_be_served():
    state = SHOP.initial(RNG, {"goal": first_goal(allowed_change)})
    user = SHOP.speaker_named("user", "impatient")
    texts = []
    while not state.over:
        text = user.reply(SHOP, state, RNG) if state.waiting else "ask name"
        texts.append(text)
        SHOP.speak(state, text, RNG)
    assert texts[-1] == "goodbye"
    assert state.turns == 3
    internet = first_goal(lambda goal: goal.requests[0].kind == PHONE.domain.internet, "phone")
    assert serve(PHONE, "careful", "lying", internet)[1] > 0.5


def test_bad_settings_and_options_are_one_clear_error():
    with pytest.raises(ValueError, match="domain of ServiceDesk must be one of 'shop', 'phone'"):
        ServiceDesk("bank")
    with pytest.raises(ValueError, match="expected a number below 500"):
        SHOP.initial(RNG, {"goal": 500, "split": "test"})
    with pytest.raises(ValueError, match="attack of hostile must be one of"):
        SHOP.speaker_named("system", "hostile", attack="sing")


def test_two_parties_can_both_learn():
    env = dialgym.aec_env("ServiceDesk-Phone-act-v0")
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    while env.agents:
        party = env.agent_selection
        over = env.terminations[party]
        policy = env.task.acts[party].policy_named("careful" if party == "system" else "agenda")
        env.step(None if over else policy.act(env.task, env.dialogue_state, rng))
    assert env.dialogue_state.faults == 0
