"""Policies and speakers that answer with something else: one clear error, and never a score."""

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.simulators import Asynchronous, Concurrent


class Acts:
    """Chooses the same act always."""

    def __init__(self, chosen):
        self.chosen = chosen

    def act(self, task, state, rng):
        return self.chosen


class Predicts:
    """Answers as `predict` must not."""

    def __init__(self, answer):
        self.answer = answer

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return self.answer


class Speaks:
    """Says a word that is none."""

    def reply(self, task, state, rng):
        return "hello"


@pytest.mark.parametrize("chosen", [-1, 16, None, "a", 1.5])
def test_an_act_that_is_none(chosen):
    with pytest.raises(ValueError, match="action of a policy in SlotFilling: expected a whole"):
        dialgym.evaluate(Acts(chosen), "SlotFilling-act-v0", 1, seeds=[0])


@pytest.mark.parametrize("chosen", [None, [1], "abc", 3])
def test_several_acts_that_are_none(chosen):
    with pytest.raises(ValueError, match=r"action of a policy in MultiWOZ: expected .* of 0 and 1"):
        dialgym.evaluate(Acts(chosen), "MultiWOZ-act-v0", 1, seeds=[0])


@pytest.mark.parametrize("chosen", [-1, 999])
def test_a_simulator_that_chooses_no_act(chosen):
    env = gym.make("dialgym/Bargain-act-v0", simulator=Acts(chosen))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action of Acts: expected a whole number"):
        env.step(0)


@pytest.mark.parametrize("answer", [3, None, np.zeros(2)])
def test_a_prediction_that_is_no_pair(answer):
    with pytest.raises(ValueError, match=r"Predicts\.predict: expected a pair"):
        dialgym.evaluate(Predicts(answer), "SlotFilling-act-v0", 1, seeds=[0])


def test_a_class_in_the_place_of_an_object():
    with pytest.raises(ValueError, match=r"policy: expected an object.*Make one: Speaks\(\)"):
        dialgym.evaluate(Speaks, "Wordle-20-v0", 1, seeds=[0])
    with pytest.raises(ValueError, match=r"simulator: expected an object.*Make one: Speaks\(\)"):
        dialgym.make("SlotFilling-v0", simulator=Speaks)
    for make in (Concurrent, Asynchronous):
        with pytest.raises(ValueError, match=r"expected an object, got the class Speaks"):
            make(Speaks)
