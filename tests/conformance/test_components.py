"""The components of the learner's reward add up to it, in every view and for either learner."""

import math

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.registry import entry_of, make_task
from dialgym.testing import check_task
from dialgym.testing.scripts import random_utterance
from dialgym.views.dialogue import Dialogue
from dialgym.views.info import row_info
from dialgym.views.speakers import find_speaker
from tests.conformance.ids import in_full

EPISODES = 3


def script(task, learner, other, seed):
    """Texts of a random learner in one dialogue; None where it never has the floor."""
    dialogue = Dialogue(task, learner, find_speaker(task, learner, other))
    rng, words = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    if dialogue.start(rng, None).over:
        return None
    said, over = [], False
    while not over:
        constraint = task.constraint(dialogue.state, learner)
        said.append(random_utterance(task, learner, constraint, words))
        over = dialogue.say(said[-1], rng).over
    return said


@pytest.mark.parametrize("learner", ["system", "user"])
@pytest.mark.parametrize("env_id", in_full("utterance"))
def test_components_add_up_to_the_reward_single_and_batched(env_id, learner):
    other = None if learner == "system" else "random"
    env = gym.make(env_id, learner=learner, simulator=other)
    batch = gym.make_vec(env_id, 1, learner=learner, simulator=other)
    task, totals = env.unwrapped.task, []
    for seed in range(EPISODES):
        said = script(task, learner, other, seed)
        if said is None:  # the user of a dialogue that ends before it could speak
            continue
        env.reset(seed=seed)
        batch.reset(seed=seed)
        for text in said:
            _, reward, *_, info = env.step(text)
            _, rewards, *_, infos = batch.step([text])
            parts = info["reward_components"]
            assert math.isclose(sum(parts.values()), reward, abs_tol=1e-9)
            assert set(parts) <= set(task.facts.components.get(learner, ()))
            assert rewards[0] == reward
            assert row_info(infos, 0)["reward_components"] == parts
            totals.append(reward)
    if not totals:
        assert learner == "user"
        pytest.skip("the user never has the floor here")


def test_the_host_of_wordle_is_told_what_its_reward_is_made_of():
    env = gym.make("dialgym/Wordle-utterance-v0", learner="user", simulator="random")
    env.reset(seed=0)
    _, reward, *_, info = env.step("crane")
    assert reward == 6.0
    assert info["reward_components"] == {"wrong guess": 6.0}


def test_each_party_is_told_of_its_own_components():
    env = dialgym.aec_env("dialgym/Wordle-utterance-v0")
    env.reset(seed=0)
    env.step("crane")
    env.step("slate")
    told = {party: info["reward_components"] for party, info in env.infos.items()}
    assert told == {"system": {"wrong guess": -1.0}, "user": {"wrong guess": 1.0}}
    assert {party: sum(parts.values()) for party, parts in told.items()} == env.rewards


@pytest.mark.parametrize("env_id", ["dialgym/Wordle-v0", "dialgym/SlotFilling-v0"])
def test_components_that_do_not_add_up_are_found(env_id):
    task = make_task(entry_of(env_id), {})

    class Wrong(type(task)):
        def speak(self, state, text, rng):
            outcome = super().speak(state, text, rng)
            return outcome._replace(rewards={p: r + 0.5 for p, r in outcome.rewards.items()})

    wrong = Wrong(words=20) if env_id == "dialgym/Wordle-v0" else Wrong()
    with pytest.raises(AssertionError, match="do not add up to its reward"):
        check_task(wrong, episodes=2)
