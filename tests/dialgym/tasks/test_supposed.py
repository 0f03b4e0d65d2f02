"""Dialogues in which another thing is supposed to be hidden."""

import gymnasium as gym
import numpy as np
import pytest

from dialgym.tasks import ExactPosterior

IDS = ["dialgym/Wordle-800-v0", "dialgym/TwentyQuestions-Noisy-v0", "dialgym/VisualDialogue-v0",
       "dialgym/CarDealer-v0"]  # fmt: skip


@pytest.fixture(params=IDS)
def held(request):
    """A task, and a dialogue in which something has been said."""
    env = gym.make(request.param).unwrapped
    env.reset(seed=5)
    dialogue, rng = env.dialogue, np.random.default_rng(0)
    asks = dialogue.task.speaker_named("system", "random")
    dialogue.say(asks.reply(dialogue.task, dialogue.state, rng), rng)
    return dialogue.task, dialogue.state


def test_the_truth_supposed_is_the_dialogue(held):
    task, state = held
    assert isinstance(task, ExactPosterior)
    same = task.suppose(state, task.truth(state))
    assert same == state
    assert same is not state


def test_what_the_learner_knows_is_as_it_was(held):
    task, state = held
    before = task.posterior(state)
    place = next(i for i in np.flatnonzero(before > 0).tolist() if i != task.truth(state))
    other = task.suppose(state, place)
    assert task.truth(other) == place
    assert list(task.transcript(other, "system")) == list(task.transcript(state, "system"))
    np.testing.assert_allclose(task.posterior(other), before)
