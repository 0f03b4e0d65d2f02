"""Truths in infos: the same in all views, from the beginning on, and nowhere unasked."""

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.wordle import Wordle
from dialgym.testing import check_batch
from dialgym.views.act_env import ActEnv
from dialgym.views.token_env import TokenEnv
from dialgym.views.utterance_env import UtteranceEnv

SMALL = {"items": 8, "turns": 6}


@pytest.mark.parametrize("task", [Wordle(words=20), TwentyQuestions(**SMALL)], ids=lambda t: t.name)
def test_what_names_the_truth_wins(task):
    env = UtteranceEnv(task, truths=True)
    for seed in range(5):
        _, info = env.reset(seed=seed)
        truth = info["truth"]
        _, reward, terminated, _, info = env.step(truth)
        assert terminated
        assert info["is_success"]
        assert info["truth"] == truth
        assert reward == 0


@pytest.mark.parametrize("view", [TokenEnv, ActEnv])
def test_other_views_say_the_same(view):
    task = TwentyQuestions(**SMALL)
    env, other = view(task, truths=True, anchors=True), UtteranceEnv(task, truths=True)
    for seed in range(5):
        info = env.reset(seed=seed)[1]
        assert info["truth"] == other.reset(seed=seed)[1]["truth"]
        assert len(info["anchor"]) == 16


@pytest.mark.parametrize("task", [Wordle(words=20), TwentyQuestions(**SMALL)], ids=lambda t: t.name)
def test_a_batch_equals_single_envs(task):
    check_batch(task, num_envs=3, steps=80, truths=True, anchors=True)


def test_pools_pass_them_on():
    env = dialgym.sb3_vec_env("dialgym/TwentyQuestions-8-v0", 4, workers=2, seed=0, truths=True)
    env.reset()
    first = [info["truth"] for info in env.reset_infos]
    assert len(set(first)) > 1
    env.step(np.zeros(4, int))
    env.close()


def test_tasks_that_cannot_name_it_refuse():
    with pytest.raises(ValueError, match=r"truths of SlotFilling: expected a task whose learner"):
        ActEnv(SlotFilling(env=1), truths=True)
    with pytest.raises(ValueError, match="truths"):
        gym.make("dialgym/DailyDialog-v0", truths=True)
    env = gym.make("dialgym/Wordle-v0", words=20, truths=True, host="adversarial")
    with pytest.raises(ValueError, match="never settles on a secret"):
        env.reset(seed=0)


def test_nothing_is_said_unasked():
    assert "truth" not in gym.make("dialgym/Wordle-20-v0").reset(seed=0)[1]
