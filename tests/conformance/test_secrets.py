"""A task's list of secrets fixes each hidden thing once, in the order of its exact posterior."""

import numpy as np
import pytest

from dialgym.rollouts.episodes import every_secret
from dialgym.rollouts.player import make_dialogue
from dialgym.tasks import ExactPosterior

FINITE = ("Wordle-20-v0", "Wordle-Alike-v0", "TwentyQuestions-16-v0", "GuessMyCity-v0",
          "Maze-Partial-v0", "TextNav-Partial-v0", "CarDealer-v0")  # fmt: skip


@pytest.mark.parametrize("env_id", [*FINITE, "VisualDialogue-100-v0"])
def test_each_secret_is_one_hypothesis(env_id):
    task = make_dialogue(env_id, {}).task
    assert isinstance(task, ExactPosterior)
    states = [task.initial(np.random.default_rng(0), options) for options in task.secrets()]
    assert [task.truth(state) for state in states] == [*range(task.hypotheses(states[0]))]


@pytest.mark.parametrize("env_id", FINITE)
def test_a_secret_that_is_drawn_is_as_likely_as_any_other(env_id):
    task = make_dialogue(env_id, {}).task
    state = task.initial(np.random.default_rng(0))
    assert np.allclose(task.posterior(state), 1 / len(task.secrets()))


@pytest.mark.parametrize("env_id", ["Wordle-Adversarial-v0", "Wordle-ILQL-v0"])
def test_a_host_that_settles_on_no_secret_has_no_list(env_id):
    assert not make_dialogue(env_id, {}).task.secrets()


def test_each_secret_comes_equally_often():
    assert every_secret([{"item": 0}, {"item": 1}], 3) == [{"item": 0}, {"item": 1}] * 2
    assert len(every_secret([{}] * 20, 500)) == 500
    assert len(every_secret([{}] * 431, 20)) == 431
