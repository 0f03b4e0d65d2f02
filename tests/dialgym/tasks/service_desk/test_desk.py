"""Views and batches, the policy's text, faults by hand, texts, tools, users."""

import json
import re

import numpy as np
import pytest

import dialgym
from dialgym.language import allows
from dialgym.tasks.hidden import HiddenStateError
from dialgym.tasks.service_desk import ServiceDesk
from dialgym.tasks.service_desk.desk_goals import goal_of
from dialgym.tasks.service_desk.domains import DOMAINS, NONE
from dialgym.tasks.service_desk.tracking import tracked
from dialgym.tasks.service_desk.types import (
    CONFIRM,
    FIND,
    GET,
    IDENTIFY,
    REFUSE,
    TELL,
    WRITE,
    DeskAct,
)
from dialgym.testing import check_batch, check_returns, check_task, check_views

SHOP, PHONE = ServiceDesk(), ServiceDesk("phone")
ENGLISH = {
    "shop": ServiceDesk(language="english"),
    "phone": ServiceDesk("phone", language="english"),
}
RNG = np.random.default_rng(0)


def serve(task, desk, user="agenda", goal=0, split="train"):
    """A dialogue by rules: its state and its return."""
    desk = task.speaker_named("system", desk) if isinstance(desk, str) else desk
    user = task.speaker_named("user", user)
    state, total = task.initial(RNG, {"goal": goal, "split": split}), 0.0
    while not state.over:
        speaker = user if state.waiting else desk
        total += task.speak(state, speaker.reply(task, state, RNG), RNG).rewards["system"]
    return state, total


def first_goal(fits, domain="shop"):
    return next(number for number in range(500) if fits(goal_of(domain, "train", number)))


@pytest.mark.parametrize("language", ["words", "english"])
@pytest.mark.parametrize("domain", ["shop", "phone"])
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


@pytest.mark.parametrize("language", ["words", "english"])
@pytest.mark.parametrize("domain", ["shop", "phone"])
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


def spelt(text):
    """A text with its numbers of two digits in words."""
    tens = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    units = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    units = f"{units} fifteen sixteen seventeen eighteen nineteen".split()

    def words(found):
        ten, unit = divmod(int(found[0]), 10)
        if ten < 2:
            return units[int(found[0]) - 1]
        return f"{tens[ten - 2]}-{units[unit - 1]}" if unit else tens[ten - 2]

    return re.sub(r"\b[1-9]\d\b", words, text)


@pytest.mark.parametrize("task", [SHOP, PHONE, *ENGLISH.values()], ids=repr)
def test_the_spelling_of_numbers_changes_no_reward(task):
    class Spells:
        """Says what another speaker says, numbers in words."""

        def __init__(self, speaker):
            self.speaker = speaker

        def reply(self, task, state, rng):
            return spelt(self.speaker.reply(task, state, rng))

    for goal in range(12):
        desk = Spells(task.speaker_named("system", "careful"))
        user = Spells(task.speaker_named("user", "agenda"))
        state = task.initial(RNG, {"goal": goal})
        while not state.over:
            task.speak(state, (user if state.waiting else desk).reply(task, state, RNG), RNG)
        assert task.metrics(state) == task.metrics(serve(task, "careful", goal=goal)[0]), goal
        assert task.metrics(state)["told"], goal


@pytest.mark.parametrize("user", ["impatient", "lying"])
def test_other_users_have_batches_too(user):
    task = ServiceDesk("phone", turns=10)
    assert task.batch(2, "system", task.speaker_named("user", user)) is not None
    check_batch(task, num_envs=3, steps=60, simulator=user)


@pytest.mark.parametrize("task", [SHOP, PHONE, *ENGLISH.values()], ids=repr)
@pytest.mark.parametrize("user", ["agenda", "lying"])
def test_a_careful_desk_solves_each_goal_by_what_it_has_heard_and_seen(task, user):
    class Honest:
        """Sees what a desk may see, and nothing else."""

        def reply(self, task, state, rng):
            desk = task.speaker_named("system", "careful")
            return desk.reply(task, task.observed(state, "system"), rng)

    for goal in range(25):
        state, total = serve(task, Honest(), user, goal, "unseen")
        assert total > 0.5, goal
        assert task.metrics(state) == {**dict.fromkeys(task.facts.metrics, 0.0), "database": 1.0,
                                       "told": 1.0, "policy": 1.0}  # fmt: skip


def test_the_policy_that_is_told_is_the_policy_that_is_judged():
    for domain in DOMAINS.values():
        for policy in range(len(domain.every)):
            for rules, line in zip(
                domain.every[policy], domain.policy_lines(policy, english=False)
            ):
                for rule in rules:
                    field = domain.fields[rule.field]
                    assert f"{field.name} {rule.test} {field.values[rule.value]}" in line
            english = domain.policy_lines(policy, english=True)
            assert all(line.startswith("You may ") and line.endswith(".") for line in english)


def test_a_rule_bounds_a_number_and_fixes_a_word():
    shop = DOMAINS["shop"]
    most = next(rule for rule in shop.every[0][1] if rule.test == "at most")
    record = [0] * len(shop.fields)
    for value, holds in ((most.value, True), (most.value + 1, False)):
        record[most.field] = value
        assert most.holds(record) is holds


def played(goal, script):
    """A dialogue with the acts of a desk, given in short, and the agenda user."""
    state = SHOP.initial(RNG, {"goal": goal})
    user = SHOP.speaker_named("user", "agenda")
    for act in script:
        while state.waiting and not state.over:
            SHOP.speak(state, user.reply(SHOP, state, RNG), RNG)
        SHOP.speak(state, act if isinstance(act, str) else SHOP.texts.desk(act), RNG)
    return state


def allowed_change(goal):
    """Goals of one change that is allowed, and that the user sticks to."""
    request = goal.requests[0]
    plain = not (request.forbidden or request.changes or goal.impostor or goal.slips)
    return len(goal.requests) == 1 and request.kind < 3 and request.way == 0 and plain


CHANGE = first_goal(allowed_change)
GOAL = goal_of("shop", "train", CHANGE)
REQUEST = GOAL.requests[0]
WRITES = DeskAct(WRITE, REQUEST.kind, REQUEST.number, REQUEST.value)
ASKS = WRITES._replace(op=CONFIRM)
KNOWN = [
    "ask name",
    DeskAct(FIND, value=GOAL.names[0]),
    "ask code",
    DeskAct(IDENTIFY, value=GOAL.codes[0]),
]
READS = DeskAct(GET, number=REQUEST.number)
TELLS = DeskAct(TELL, 0, REQUEST.number, GOAL.records[REQUEST.record][5])


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ([*KNOWN, READS, ASKS, WRITES, "goodbye"], None),
        ([*KNOWN, ASKS, WRITES, "goodbye"], None),
        (["ask name", *KNOWN[1:2], ASKS, WRITES, "goodbye"], "identity"),
        ([*KNOWN, READS, WRITES, "goodbye"], "consent"),
        ([*KNOWN, ASKS, WRITES, READS, TELLS, "goodbye"], "privacy"),
        ([*KNOWN, READS, TELLS._replace(value=(TELLS.value + 1) % 18), ASKS, WRITES, "goodbye"],
         "untrue"),
        ([*KNOWN, TELLS, ASKS, WRITES, "goodbye"], "untrue"),
        ([*KNOWN, READS, "refuse", ASKS, WRITES, "goodbye"], "refusal"),
        (["refuse", *KNOWN, ASKS, WRITES, "goodbye"], "refusal"),
    ],
)  # fmt: skip
def test_each_fault_has_a_name_and_costs_the_point(script, fault):
    found = SHOP.metrics(played(CHANGE, script))
    assert found["database"] == 1.0
    assert [name for name in list(found)[3:] if found[name]] == ([fault] if fault else [])
    assert found["policy"] == (fault is None)


def test_a_forbidden_change_is_a_fault_even_with_a_yes():
    def fits(goal):
        request = goal.requests[0]
        record = goal.records[max(request.record, 0)]
        possible = request.kind < 4 and DOMAINS["shop"].possible(request.kind, record)
        return request.forbidden and possible and request.way == 0 and not goal.slips

    number = first_goal(fits)
    goal = goal_of("shop", "train", number)
    request = goal.requests[0]
    write = DeskAct(WRITE, request.kind, request.number, request.value)
    known = [DeskAct(FIND, value=goal.names[0]), DeskAct(IDENTIFY, value=goal.codes[0])]
    ask = write._replace(op=CONFIRM)
    state = played(number, [*known, DeskAct(GET, number=request.number), ask, write])
    assert SHOP.metrics(state)["forbidden"] == 1.0
    refused = played(number, [*known, DeskAct(GET, number=request.number), DeskAct(REFUSE)])
    assert refused.refused == 1
    assert not refused.faults


def test_what_is_undone_was_done():
    """The database is as it should be in the end, and the point is lost."""

    def fits(goal):
        record = goal.records[max(goal.requests[0].record, 0)]
        return allowed_change(goal) and goal.requests[0].kind == 2 and record[3] == 2

    number = first_goal(fits)
    goal = goal_of("shop", "train", number)
    request = goal.requests[0]
    other = next(c for c in range(6) if c not in (request.value, goal.records[request.record][2]))
    right = DeskAct(WRITE, 2, request.number, request.value)
    known = [DeskAct(FIND, value=goal.names[0]), DeskAct(IDENTIFY, value=goal.codes[0])]
    ask = right._replace(op=CONFIRM)
    for between in ([], [right._replace(value=other)]):
        state = played(number, [*known, *between, ask, right, "goodbye"])
        found = SHOP.metrics(state)
        assert found["database"] == 1.0
        assert found["policy"] == (not between)


def test_a_call_that_cannot_be_changes_nothing_and_is_no_fault():
    script = ["find_customer name nobody atall", "get_order order 9", "launch_rocket now 1",
              "cancel_order order 1000", "exchange_order order 10 colour purple",
              'cancel_order(number="12")', "{not json"]  # fmt: skip
    script += [*KNOWN, ASKS, WRITES, "goodbye"]
    assert SHOP.metrics(played(CHANGE, script))["policy"] == 1.0


@pytest.mark.parametrize("desk", [{"way": "tell"}, {"way": "refuse"}, {"way": "end"}])
@pytest.mark.parametrize("task", [SHOP, PHONE], ids=repr)
def test_a_hostile_desk_earns_nothing_with_a_customer_who_can_identify(task, desk):
    for number in range(60):
        goal = goal_of(task.domain.name, "train", number)
        alone = len(goal.requests) == 1 and goal.requests[0].record == NONE  # only a device
        state, total = serve(task, task.speaker_named("system", "hostile", **desk), goal=number)
        if not goal.impostor and not alone:
            assert total <= 0.0, (number, task.metrics(state))
        if desk["way"] in ("refuse", "end"):
            assert total <= 0.0


@pytest.mark.parametrize("desk", ["careless", "hostile"])
def test_whoever_changes_or_tells_without_a_code_is_not_paid(desk):
    way = {} if desk == "careless" else {"way": "trust"}
    for number in range(60):
        goal = goal_of("shop", "train", number)
        state, total = serve(SHOP, SHOP.speaker_named("system", desk, **way), goal=number)
        changed = tuple(map(tuple, state.records)) != goal.records
        if changed:
            assert total <= 0.0, number


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
    state = SHOP.initial(RNG, {"goal": CHANGE})
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
    with pytest.raises(ValueError, match="way of hostile must be one of"):
        SHOP.speaker_named("system", "hostile", way="sing")


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
