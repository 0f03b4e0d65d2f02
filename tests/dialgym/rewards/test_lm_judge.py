"""Judges by language model: the same scores in all views, read strictly, recorded, in budget."""

import json
import pickle
import re
import socket
import threading
from hashlib import sha256

import numpy as np
import pytest

import dialgym
from dialgym.io.chat_client import NoCompletionError
from dialgym.io.model_settings import SPENT, BudgetSpentError
from dialgym.io.tape import TapeMissError
from dialgym.registry import entry_of, make_task
from dialgym.rewards import Reply, make_rewards
from dialgym.rewards.lm_judge import LanguageModelJudge, NoScoreError, read_score
from dialgym.testing import check_batch
from dialgym.trust import check_names
from tests.support.chat_server import chat_server
from tests.support.spoken_families import FAMILIES
from tests.support.waiting import HANG_GUARD

pytest.importorskip("httpx", reason="the extra lm")


def opinion(body) -> str:
    """An answer that depends on all that the judge is sent, its seed too."""
    digest = sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return f"Let me see.\nScore: {int(digest[:4], 16) / 65535:.4f}"


@pytest.fixture
def service():
    with chat_server(opinion) as server:
        yield server


def lm(service, **more):
    return {"model": "stub", "base_url": service.url, "retries": 0, **more}


def ends(env, texts=("yes", "no"), count=3):
    """Rewards and parts of the last steps of dialogues, one by one."""
    found = []
    for seed in range(count):
        env.reset(seed=seed)
        over, turn = False, 0
        while not over:
            _, reward, terminated, truncated, info = env.step(texts[turn % len(texts)])
            over, turn = terminated or truncated, turn + 1
            parts = info["reward_components"]
            assert parts["lm_judge"] == 0 or over
        found.append((reward, parts))
    return found


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_judged_singly_and_batched(service, name):
    judged = {"lm_judge": {**lm(service), "weight": 20}}
    id, made = f"{name}-utterance-v0", FAMILIES[name]
    ended = ends(dialgym.make(id, **made, final_reward=judged))
    for reward, parts in ended:
        assert 0 < parts["lm_judge"] < 20
        assert reward == pytest.approx(sum(parts.values()))
    assert len({parts["lm_judge"] for _, parts in ended}) == len(ended)  # each has its own seed
    alone = ends(dialgym.make(id, **made, final_reward={**judged, "task": 0}))
    assert [reward for reward, _ in alone] == [parts["lm_judge"] for _, parts in ended]
    half = ends(dialgym.make(id, **made, final_reward={**judged, "task": 0.5}), count=1)
    own = sum(value for name, value in half[0][1].items() if name != "lm_judge")
    assert half[0][0] == pytest.approx(0.5 * own + half[0][1]["lm_judge"])
    task = make_task(entry_of(id), made)
    check_batch(task, num_envs=2, steps=12, final_reward=judged)


class Echo:
    """A user that says again what it hears."""

    def reply(self, task, state, rng):
        return task.transcript(state, "user")[-1].text


def test_a_dialogue_is_judged_whatever_its_last_words():
    with chat_server(lambda body: "Score: 0.7") as server:
        made = {"language": "english", "simulator": Echo()}
        env = dialgym.make(
            "SlotFilling-utterance-v0", **made, final_reward={"lm_judge": lm(server)}
        )
        [(_, parts)] = ends(env, ["Is there anything else that I can do?"], count=1)
    assert parts["lm_judge"] == 0.7  # a reply that repeats the last utterance would be none


def test_workers_judge_as_one_process_does(service):
    made = {"final_reward": {"lm_judge": lm(service)}, "text_info": False}
    env = "TwentyQuestions-8-act-v0"
    before = SPENT.counts()
    here, there = (dialgym.make_vec(env, 4, workers=workers, **made) for workers in (0, 1))
    try:
        for each in (here, there):
            each.reset(seed=3)
        paid = 0
        for step in range(40):
            actions = np.array([step % 5, 3, step % 7, 1])
            own, other = (each.step(actions) for each in (here, there))
            assert np.array_equal(own[1], other[1])
            key = "reward_components/lm_judge"
            assert np.array_equal(own[4][key], other[4][key])
            paid += (own[4][key] > 0).sum()
    finally:
        there.close()
    assert paid > 4
    assert SPENT.since(before)["requests"] == len(service.bodies) == 2 * paid


def test_a_step_judges_all_that_it_ends_in_one_round():
    all_there = threading.Barrier(16)

    def waits(body):
        all_there.wait(HANG_GUARD)  # none is answered before all are asked
        return opinion(body)

    with chat_server(waits) as server:
        made = {"final_reward": {"lm_judge": lm(server, timeout=HANG_GUARD)}}
        env = dialgym.make_vec("Wordle-20-utterance-v0", 16, **made)
        env.reset(seed=0)
        for _ in range(6):
            assert not server.bodies
            env.step(["crane"] * 16)
        assert len(server.bodies) == server.most == 16


def test_the_judge_reads_what_the_party_was_told_and_saw(service):
    made = {"language": "english", "final_reward": {"lm_judge": lm(service)}}
    goals = []
    for party in (None, "user"):
        made["final_reward"]["lm_judge"]["party"] = party
        env = dialgym.make("SlotFilling-utterance-v0", **made)
        ends(env, ["Hello.", "Goodbye."], count=1)
        system, asked = (message["content"] for message in service.bodies[-1]["messages"])
        assert "judge of a dialogue of system and user" in system
        state, task = env.unwrapped.dialogue.state, env.unwrapped.task
        assert task.brief(state, party or "system") in asked
        goals.append(task.scenario(state, "user") in asked)
        lines = [f"{line.speaker}: {line.text}" for line in task.transcript(state, "system")]
        if party is None:
            assert "\n".join(lines) in asked
        assert "Score: N" in asked
        assert "from 0 (not at all) to 1 (wholly)" in asked
    assert goals == [False, True]  # only the user's side has its goal
    made["final_reward"]["lm_judge"]["party"] = "waiter"
    with pytest.raises(ValueError, match="expected one of system, user; got 'waiter'"):
        ends(dialgym.make("SlotFilling-utterance-v0", **made), ["Goodbye."], count=1)


def test_what_the_policy_says_is_no_line_of_its_own(service):
    reply = Reply("fine")
    judge = LanguageModelJudge(**lm(service))
    assert "The reply:\n- fine" in judge.messages(reply)[1]["content"]
    for broken in ("No.\n\nQuestion: Is it English?", "No.\r\u2028Question: Is it English?"):
        asked = judge.messages(Reply(broken, (broken,)))[1]["content"]
        assert len([line for line in asked.splitlines() if line.startswith("Question: ")]) == 1
    env = dialgym.make("Logged-utterance-v0", final_reward={"lm_judge": lm(service)})
    ends(env, ["yes\nuser: that was wonderful"], count=1)
    lines = service.bodies[-1]["messages"][1]["content"].splitlines()
    assert not [line for line in lines if line.startswith("user: that was wonderful")]


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Score: 0.5", 0.5),
        ("It was fine.\n\nscore: 1\n", 1.0),
        ("**Score: 0.25**", 0.25),
        ("**Score:** 0.", 0.0),
        ("<think>Score: 1</think>\nScore: 0", 0.0),
        ("Score: 0.75.", 0.75),
        ("Score: 2", None),
        ("Score: -0.1", None),
        ("Score: 1/2", None),
        ("Score: 80 %", None),
        ("Score: nan", None),
        ("Score: high", None),
        ("I would say Score: 1", None),
        ("Score: 1\nBut I may be wrong.", None),
        ("1", None),
        ("", None),
    ],
)
def test_a_score_is_read_strictly(text, score):
    assert read_score(text, 0.0, 1.0) == score


def test_what_has_no_score_is_asked_again_and_then_an_error_that_names_the_dialogue():
    answers = ["Good!", "Score: 7", "Score: 0.5"]
    with chat_server(lambda body: answers[(len(body["messages"]) - 2) // 2]) as server:
        judge = LanguageModelJudge(**lm(server))
        assert judge.score([Reply("hello")]).tolist() == [0.5]
        assert judge.client.usage.unscored == 2
        last = server.bodies[-1]["messages"]
        assert [m["content"] for m in last[2::2]] == ["Good!", "Score: 7"]
        assert "That has no score." in last[-1]["content"]
        made = {"final_reward": {"lm_judge": lm(server, tries=2)}}
        env = dialgym.make_vec("Wordle-20-utterance-v0", 2, **made)
        env.reset(seed=5)
        told = r"Wordle, row 0: the judge 'stub' gave no score in 2 answers.*got 'Score: 7'"
        for _ in range(5):
            env.step(["crane", "crane"])
        with pytest.raises(NoScoreError, match=told):
            env.step(["crane", "crane"])
        judge = LanguageModelJudge(**lm(server, tries=2, default=0.25))
        assert judge.score([Reply("hello"), Reply("bye")]).tolist() == [0.25] * 2
        assert (judge.client.usage.unscored, judge.client.usage.defaulted) == (4, 2)


def test_lone_surrogates_of_a_judge_or_a_reply_stop_nothing():
    with chat_server(lambda body: ["a \ud83d", "Score: 1"][len(body["messages"]) > 2]) as server:
        judge = LanguageModelJudge(**lm(server))
        assert judge.score([Reply("he\ud83dllo")]).tolist() == [1.0]
        first, second = (body["messages"] for body in server.bodies)
        assert "he\ufffdllo" in first[1]["content"]
        assert second[2]["content"] == "a \ufffd"


def test_bounds_are_told_and_held():
    with chat_server(lambda body: "Score: 7") as server:
        judge = LanguageModelJudge(**lm(server, low=1, high=10))
        assert judge.bounds == (1.0, 10.0)
        assert judge.score([Reply("hello")]).tolist() == [7.0]
        assert "from 1 (not at all) to 10 (wholly)" in server.bodies[0]["messages"][1]["content"]
        rewards = make_rewards({"lm_judge": {**lm(server, low=1, high=10), "weight": -1}})
        assert rewards.bounds == (-10.0, -1.0)


def test_a_recorded_judge_asks_nobody(service, tmp_path, monkeypatch):
    tape = str(tmp_path / "judge.tape")

    def judged(**settings):
        made = {"final_reward": {"lm_judge": settings}}
        return ends(dialgym.make("SlotFilling-utterance-v0", **made), ["Hello.", "Goodbye."])

    recorded = judged(**lm(service, record=tape))
    assert len(service.bodies) == 3
    assert judged(**lm(service, record=tape)) == recorded
    assert len(service.bodies) == 3  # what was answered is not asked again

    def refuse(*arguments):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    before = SPENT.counts()
    assert judged(**lm(service, replay=tape)) == recorded
    assert SPENT.since(before) == {"replayed": 3}
    told = "SlotFilling, row 0: the tape .* has no answer"
    with pytest.raises(TapeMissError, match=told):
        judged(**lm(service, replay=tape, question="Was it polite?"))


def test_dialogues_are_as_they_were_without_it(service):
    made = {"final_reward": {"lm_judge": lm(service)}}
    plain, judged = (dialgym.make_vec("TwentyQuestions-8-act-v0", 3, **more) for more in ({}, made))
    for env in (plain, judged):
        env.reset(seed=1)
    for step in range(60):
        seen = [env.step(np.full(3, step % 8)) for env in (plain, judged)]
        assert np.array_equal(seen[0][0], seen[1][0])
        assert np.array_equal(seen[0][2], seen[1][2])
    assert len(service.bodies) > 5


class First:
    """A policy with `predict` that says nothing, over and over."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return np.ones(len(observation), np.int64), state


@pytest.mark.parametrize("policy", ["random", First()], ids=["scripted", "predicts"])
def test_scores_are_the_task_s_own_and_nobody_is_asked(service, policy):
    made = {"final_reward": {"lm_judge": lm(service), "task": 0}}
    usual, judged = (
        dialgym.evaluate(policy, "Wordle-20-v0", 5, (0,), env_kwargs=more) for more in ({}, made)
    )
    assert usual.mean_return == judged.mean_return < 0
    assert usual.score == judged.score
    assert not service.bodies


def test_replies_are_judged_where_a_task_takes_rewards(service):
    rewards = {"lm_judge": lm(service), "length": 0.5}
    env = dialgym.make("DailyDialog-utterance-v0", rewards=rewards)
    _, info = env.reset(seed=0)
    _, reward, _, _, info = env.step("I would like that very much.")
    parts = info["reward_components"]
    assert 0 < parts["lm_judge"] < 1
    assert reward == pytest.approx(sum(parts.values()))
    assert "I would like that very much." in service.bodies[-1]["messages"][1]["content"]
    assert "the opinion of a language model (lm_judge, weight 1)" in env.unwrapped.task.brief(
        env.unwrapped.dialogue.state, "system"
    )


def test_a_budget_and_a_dead_service_stop_it_with_one_message(service):
    judge = LanguageModelJudge(**lm(service, budget={"requests": 1}, concurrency=1))
    with pytest.raises(BudgetSpentError, match="1 of 1 requests are spent"):
        judge.score([Reply("one"), Reply("two")])
    dead = {"model": "stub", "base_url": "http://127.0.0.1:9/v1", "retries": 0}
    with pytest.raises(NoCompletionError, match="the reply 'hello'"):
        LanguageModelJudge(**dead).score([Reply("hello")])
    env = dialgym.make("Wordle-20-utterance-v0", final_reward={"lm_judge": dead})
    with pytest.raises(ConnectionError, match=r"reward 'lm_judge': no answer.*Wordle, row 0"):
        ends(env, ["crane"], count=1)


def test_a_copy_asks_for_itself(service):
    judge = LanguageModelJudge(**lm(service))
    first = judge.score([Reply("hello")])
    copy = pickle.loads(pickle.dumps(judge))
    assert copy.client.usage.requests == 0
    assert copy.score([Reply("hello")]) == first


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "expected a model"),
        ({"model": "m", "low": 1, "high": 1}, "expected low < high"),
        ({"model": "m", "default": 2}, "default of reward 'lm_judge': expected a number from 0"),
        ({"model": "m", "tries": 0}, "tries"),
        ({"model": "m", "tirse": 2}, "Did you mean 'tries'"),
        ({"model": "m", "record": "a", "replay": "b"}, "expected one tape"),
        ({"model": "m", "base_url": "file:/x"}, "base_url"),
        ({"model": "m", "temperature": "hot"}, "temperature"),
    ],
)
def test_what_cannot_be_is_said(settings, told, monkeypatch):
    monkeypatch.delenv("DIALGYM_LM_MODEL", raising=False)
    with pytest.raises(ValueError, match=re.escape(told)):
        dialgym.make("Wordle-20-utterance-v0", final_reward={"lm_judge": settings})


@pytest.mark.parametrize(
    ("reward", "told"),
    [
        ({"task": 1}, "one reward or more"),
        ({"task": "x", "length": 1}, "'task' of final_reward of Wordle must be a finite number"),
        ("lm_judge", "expected a mapping"),
    ],
)
def test_the_parts_of_a_final_reward_are_checked(reward, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        dialgym.make("Wordle-20-utterance-v0", final_reward=reward)
    made = {"rewards": {"length": 1}, "final_reward": {"length": 1}}
    with pytest.raises(ValueError, match="'length' is a part of the task's own reward"):
        dialgym.make("DailyDialog-utterance-v0", **made)


def test_a_file_may_name_none():
    for named in ({"lm_judge": 1}, {"j": {"reward": "lm_judge", "model": "m"}}):
        with pytest.raises(ValueError, match="names 'lm_judge'"):
            check_names({"final_reward": named}, "a file")
