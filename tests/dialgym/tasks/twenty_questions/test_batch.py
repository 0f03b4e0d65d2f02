"""Many dialogues at once are so many dialogues; acts of both parties."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.twenty_questions.batch import TwentyQuestionsBatch
from dialgym.tasks.twenty_questions.policies import GreedyQuestioner, TableAnswerer, Truthful
from dialgym.testing import check_batch, check_task, check_views
from dialgym.testing.act_checks import check_acts
from tests.support.question_games import begun, say

KINDS: list[dict[str, Any]] = [
    {"table": "animals"},
    {"table": "cities", "noise": 0.2, "vague": 0.2, "turns": 9},
    {"items": 8, "questions": 7, "constraint": None, "turns": 4},
]


@pytest.mark.parametrize("kwargs", KINDS, ids=str)
def test_all_views_and_batches_are_the_rules(kwargs: dict[str, Any]) -> None:
    task = TwentyQuestions(**kwargs)
    check_task(task, 3)
    check_views(task, 1)
    check_batch(task, num_envs=3, steps=60)


def held(task: TwentyQuestions, size: int, turns: int) -> tuple[TwentyQuestionsBatch, list[Any]]:
    """A batch in which all sorts of things were said, and the same dialogues one by one."""
    batch = task.batch(size, "system", TableAnswerer())
    assert isinstance(batch, TwentyQuestionsBatch)
    rngs, alone = ([np.random.default_rng(i) for i in range(size)] for _ in range(2))
    rows, words = np.arange(size), np.random.default_rng(0)
    batch.begin(rows, batch.draw(rows, rngs, {}), rngs)
    states = [task.initial(rng) for rng in alone]
    said = [*task.said, "can it not fly?", "blah", "does it never swim?"]
    for _ in range(turns):
        texts = words.choice(said, len(rows))
        outcome = batch.say(rows, texts, rngs)
        for row, text in zip(rows.tolist(), texts.tolist()):
            task.speak(states[row], text, alone[row])
            reply = TableAnswerer().reply(task, states[row], alone[row])
            task.speak(states[row], reply, alone[row])
        rows = rows[~outcome.terminated]
    return batch, states


@pytest.mark.parametrize("kwargs", KINDS[:2], ids=str)
def test_states_and_beliefs_of_a_batch(kwargs: dict[str, Any]) -> None:
    task = TwentyQuestions(**kwargs)
    batch, states = held(task, 30, 7)
    rows = np.arange(30)
    expected = np.array([task.posterior(state) for state in states])
    np.testing.assert_array_equal(batch.beliefs(rows), expected)
    for row, state in enumerate(states):
        found = batch.state(row)
        for name in ("item", "opening", "lines", "codes", "answers", "negated", "over"):
            assert getattr(found, name) == getattr(state, name), name


def test_greedy_says_the_same_in_a_batch() -> None:
    task = TwentyQuestions(table="cities", noise=0.1, vague=0.1)
    batch, states = held(task, 20, 6)
    rngs = [[np.random.default_rng(i) for i in range(20)] for _ in range(3)]
    alone = [GreedyQuestioner().reply(task, state, rng) for state, rng in zip(states, rngs[0])]
    assert list(GreedyQuestioner().reply_many(task, batch.states(np.arange(20)), rngs[1])) == alone
    assert list(GreedyQuestioner().reply_many(task, states, rngs[2])) == alone


def test_other_answerers_have_no_batch() -> None:
    task = TwentyQuestions()
    assert task.batch(4, "system", Truthful()) is None
    assert task.batch(4, "user", TableAnswerer()) is None


def test_acts_that_tell_nothing_are_masked() -> None:
    task = TwentyQuestions(items=16, questions=12)
    state, acts = begun(task, task.table.names[0][0]), task.acts["system"]
    assert acts.mask(state).all()
    say(task, state, [task.said[0], task.table.guesses[5]])
    mask = acts.mask(state)
    assert not mask[0]
    assert not mask[task.questions + 5]
    assert mask[task.questions]
    left = task.posterior(state) > 0
    np.testing.assert_array_equal(mask[task.questions :], left)


def test_the_questioner_observes_its_beliefs() -> None:
    task = TwentyQuestions(items=16, questions=12)
    state, acts = begun(task, task.table.names[0][0]), task.acts["system"]
    say(task, state, [task.said[0]])
    seen, belief = acts.observe(state), task.posterior(state)
    np.testing.assert_allclose(seen[12:28], belief, atol=1e-6)
    np.testing.assert_allclose(seen[:12], belief @ (task.table.truth == 1), atol=1e-6)
    assert seen[28] == np.float32(1 / 20)


def test_the_answerer_observes_what_is_true() -> None:
    task = TwentyQuestions(items=16, questions=12)
    state, acts = begun(task, task.table.names[0][0]), task.acts["user"]
    rng = np.random.default_rng(0)
    assert acts.observe(state).tolist() == [0, 0, 0, 0, 0, 0]
    expected = [("blah", [0, 0, 1, 0, 1]), (task.table.guesses[1], [1, 0, 0, 1, 0])]
    for turn, (text, seen) in enumerate(expected, 1):
        task.speak(state, text, rng)
        np.testing.assert_allclose(acts.observe(state), [*seen, turn / 20])
        check_acts(task, state, rng, 0)
        task.speak(state, acts.text(state, 0, rng), rng)


def test_a_greedy_act_policy_is_as_good_as_the_greedy_speaker() -> None:
    env = gym.make("dialgym/TwentyQuestions-16-act-v0").unwrapped
    policy, rng, returns = env.acts.policy_named("greedy"), np.random.default_rng(0), []
    for seed in range(100):
        env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            action = policy.act(env.task, env.dialogue.state, rng)
            _, reward, over, _, info = env.step(action)
            total += float(reward)
        assert info["is_success"]
        returns.append(total)
    assert -4.2 < np.mean(returns) < -3.2


def test_two_parties_can_both_learn() -> None:
    env = dialgym.aec_env("TwentyQuestions-16-utterance-v0")
    env.reset(seed=0, options={"item": "cat"})
    rewards = {"system": 0.0, "user": 0.0}
    for text in ("is it an animal?", "yes", "is it a cat?", "yes"):
        env.step(text)
        for agent in rewards:
            rewards[agent] += env.rewards[agent]
    assert all(env.terminations.values())
    assert rewards == {"system": -1.0, "user": -1.0}
