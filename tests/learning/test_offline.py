"""Offline RL joins the good parts of bad games: half a minute of one core a test, at night."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.evaluation import evaluate_policy

import dialgym
from agents import BC, CQL, ILQL, SingleStepRL
from dialgym.datasets import concatenate

# `fjord` tells the four words apart completely: who opens with it and looks at the colours earns
# -0.75, the most there is. Who opens with another word and plays well after it earns -1.1.
WORDS = {"answers": ["crane", "slimy", "bough", "fjord"], "guesses": "answers"}
GAME = {**WORDS, "constraint": "words", "turns": 3}
ID = "dialgym/Wordle-v0"


class Waster:
    """Opens with `fjord` half of the time, and then mostly repeats it; else plays well.

    No opening earned less on average. That its continuation can be chosen, and that the best of
    them earns more than anything else, is what only learning over several steps finds out.
    """

    def reply(self, task, state, rng):
        if not state.guesses:
            return "fjord" if rng.random() < 0.5 else str(rng.choice(["crane", "slimy", "bough"]))
        if state.guesses[0] == "fjord" and rng.random() < 0.75:
            return "fjord"
        return task.answers[int(rng.choice(task.candidates(state)))]


@pytest.fixture(scope="module")
def games():
    torch.set_num_threads(1)
    return dialgym.collect(ID, Waster(), 1500, seed=0, env_kwargs=GAME)


def played(algorithm, games, deterministic=True, **settings):
    """Mean return of 400 games, and the word that opens them."""
    env = dialgym.sb3_vec_env(ID, 40, seed=7, tokenizer="word", **GAME)
    common = {"learning_rate": 3e-3, "policy_kwargs": {"n_embd": 32}, "seed": 0}
    model = algorithm("GPTPolicy", env, games, **common, **settings).learn(600)
    mean, _ = evaluate_policy(model, env, 400, deterministic=deterministic, warn=False)
    opening = model.predict(env.reset(), deterministic=True)[0]
    return mean, env.observation_space.tokenizer.decode(opening[:1])


@pytest.mark.slow
def test_several_steps_beat_a_single_one_which_beats_cloning(games):
    opens = np.array([row["turns"][0]["text"] == "fjord" for row in games])
    assert games.returns[opens].mean() < games.returns[~opens].mean() - 0.3
    cloned, _ = played(BC, games, deterministic=False)
    single, opening = played(SingleStepRL, games, tau=0.05)
    several, best_opening = played(ILQL, games, tau=0.05, expectile=0.9)
    assert cloned == pytest.approx(games.returns.mean(), abs=0.2)  # -1.39
    assert cloned + 0.2 < single < several - 0.1
    assert several > -0.85
    assert opening != "fjord" == best_opening


ACTS = "dialgym/SFRestaurants-Env1-act-v0"


def acted(algorithm, dialogues, steps, **settings):
    """Success in 60 dialogues of an act view."""
    env = dialgym.sb3_vec_env(ACTS, 1)
    common = {"batch_size": 32, "learning_rate": 2e-3, "seed": 0, **settings}
    model = algorithm("MlpPolicy", env, dialogues, **common).learn(steps)
    return dialgym.evaluate(model, ACTS, episodes=60, seeds=[3]).success


@pytest.mark.slow
def test_on_an_act_view_values_beat_cloning_of_a_mixture():
    """Handcrafted dialogues are cloned; hidden among random ones, only values find them."""
    torch.set_num_threads(1)
    good = dialgym.collect(ACTS, "handcrafted", 100, seed=0)
    mixed = concatenate([good.select(np.arange(60)), dialgym.collect(ACTS, "random", 150, seed=1)])
    values = {"gamma": 0.95, "tau": 0.05, "policy_kwargs": {"decoding": {"beta": 1.0}}}
    assert dialgym.evaluate("handcrafted", ACTS, episodes=60, seeds=[3]).success > 0.95
    assert acted(BC, good, 200) > 0.85
    cloned = acted(BC, mixed, 200)
    assert cloned < 0.6
    assert acted(CQL, mixed, 400, cql_weight=0.5, **values) > cloned + 0.2
    assert acted(ILQL, mixed, 400, expectile=0.8, cql_weight=0.5, **values) > cloned + 0.2
