"""Learners' values of the turns of stored dialogues, as the viewer shows them."""

import numpy as np
import pytest
import torch

import agents
import dialgym
from agents.training.value_estimates import turn_values

SMALL = "dialgym/Wordle-20-v0"
NANO = {"preset": "nano", "n_layer": 1}


@pytest.fixture(scope="module")
def games():
    return dialgym.collect(SMALL, "random", 12)


def test_a_critic_has_a_value_before_each_turn(games, tmp_path):
    env = dialgym.sb3_vec_env(SMALL, 2)
    model = agents.SequencePPO(
        "GPTPolicy", env, n_steps=24, policy_kwargs=NANO, seed=0, device="cpu"
    )
    agents.save(model, tmp_path / "model.zip")
    values = turn_values(tmp_path)
    one = games.select([1])
    found = values(one)
    places = [place for place, turn in enumerate(one[0]["turns"]) if turn["said"]]
    assert list(found) == places
    env = dialgym.make(SMALL)
    obs, _ = env.reset(seed=int(one[0]["seed"]))
    for place in places:
        with torch.no_grad():
            expected = model.policy.predict_values(torch.as_tensor(obs[None]))
        assert found[place]["value"] == pytest.approx(float(expected), abs=1e-4)
        for token in [*env.unwrapped.tokenizer.encode(one[0]["turns"][place]["text"])]:
            obs, *_ = env.step(token)
            last = obs
        obs = last


def test_a_learner_of_q_has_advantages_too(games, tmp_path):
    model = agents.ILQL("GPTPolicy", dialgym.sb3_vec_env(SMALL, 1), policy_kwargs=NANO, seed=0)
    agents.save(model, tmp_path / "ilql.zip")
    found = turn_values(tmp_path / "ilql.zip")(games.select([2]))
    assert len(found) == games.lengths[2]
    assert all(np.isfinite([note["value"], note["advantage"]]).all() for note in found.values())


UNTAUGHT = [
    agents.BC,
    agents.ArCHer,
    agents.ExpertIteration,
    agents.GRPO,
    agents.OfflineArCHer,
    agents.QSFT,
]


@pytest.mark.parametrize("algorithm", UNTAUGHT)
def test_heads_that_learn_no_values_are_refused(algorithm, tmp_path):
    model = algorithm("GPTPolicy", dialgym.sb3_vec_env(SMALL, 8), policy_kwargs=NANO, seed=0)
    agents.save(model, tmp_path / "model.zip")
    with pytest.raises(
        ValueError, match=f"expected a learner that has values.*{algorithm.__name__}"
    ):
        turn_values(tmp_path)


def test_who_has_no_values_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="expected a run with a model"):
        turn_values(tmp_path)
