"""Turns of a learner's own dialogues, and what it credits them with."""

import numpy as np
import pytest

import agents
import dialgym
from agents import GRPO, ILQL, SequencePPO
from agents.training.advantage_estimates import turn_estimates
from dialgym.experiments.advantages import agreement, true_advantages

WORDS = ["crane", "slimy", "bough", "fjord"]
GAME = {"answers": WORDS, "guesses": "answers", "constraint": "words", "turns": 3}
SMALL = {"n_layer": 1, "n_head": 1, "n_embd": 8}
ID = "dialgym/Wordle-v0"


def env(rows):
    return dialgym.sb3_vec_env(ID, rows, seed=0, **GAME)


def ppo():
    return SequencePPO("GPTPolicy", env(4), n_steps=40, policy_kwargs=SMALL, seed=0)


def grpo():
    settings = {"n_steps": 40, "group_size": 4, "scale_rewards": "none", "credit": "turn"}
    return GRPO("GPTPolicy", env(4), policy_kwargs=SMALL, seed=0, **settings)


def ilql():
    data = dialgym.collect(ID, "random", 20, seed=0, env_kwargs=GAME)
    model = ILQL("GPTPolicy", env(1), data, policy_kwargs=SMALL, seed=0, batch_size=8)
    return model.learn(3)


@pytest.mark.parametrize("make", [ppo, grpo, ilql])
def test_turns_are_whole_and_stand_where_they_were_taken(make):
    model = make()
    found = turn_estimates(model, ID, 8, seed=3, env_kwargs=GAME)
    space = model.observation_space
    assert len({d.episode for d in found}) >= 8
    for decision in found:
        said = space.tokenizer.decode(decision.actions[decision.actions > 1])
        assert said in WORDS
        assert decision.before.turn < 3
        assert not decision.before.over
        assert np.isfinite(decision.estimate)
    firsts = [d for d in found if d.before.turn == 0]
    assert len(firsts) >= 8
    worth = true_advantages(model, ID, found[:6], 4, env_kwargs=GAME, num_envs=16)
    assert np.isfinite(worth.advantages).all()


@pytest.mark.slow
def test_returns_of_turns_are_right_but_for_noise():
    """With the group's mean as baseline GRPO is not biased, and its error is that of returns."""
    model = grpo()
    found = turn_estimates(model, ID, 40, seed=0, env_kwargs=GAME)
    worth = true_advantages(model, ID, found, 32, env_kwargs=GAME)
    measured = agreement(found, worth)
    assert measured.bias[1] < 0.05 < 0.2
    assert measured.bias[2] > -0.05
    assert 0 < measured.correlation[0] < 0.9
    assert 0.2 < measured.error[0] < 1.5


def test_other_models_are_one_clear_error():
    with pytest.raises(ValueError, match=r"turn_estimates: expected PPO, NLPO or GRPO.* got str"):
        turn_estimates("random", ID)
    for algorithm in (agents.ArCHer, agents.ExpertIteration, agents.QSFT):
        model = algorithm("GPTPolicy", env(8), policy_kwargs=SMALL)
        with pytest.raises(ValueError, match=f"turn_estimates: .* got {algorithm.__name__}"):
            turn_estimates(model, ID, env_kwargs=GAME)
