"""REINFORCE over dialogue acts."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.logger import Logger

import dialgym
from agents import PG
from tests.support.by_day import by_day
from tests.support.toy_acts import COST

ID = "tests.support.toy_acts:Wishes-act"


def env(rows=8):
    return dialgym.sb3_vec_env(ID, rows, seed=0)


def made(rows=8, **settings):
    model = PG("MlpPolicy", env(rows), seed=0, **settings)
    model.set_logger(Logger(None, []))
    return model


@pytest.mark.parametrize("baseline", ["none", "mean", "value"])
def test_a_rollout_is_a_whole_dialogue_in_each_row(baseline):
    model = made(baseline=baseline, gamma=0.9)
    model.learn(1)
    found = model.rollout
    starts = np.flatnonzero(found.observations[:, -1] == 0)  # nothing has been said yet
    assert len(starts) == 8
    assert len(found.returns) == model.num_timesteps
    assert (found.returns >= -5 * COST).all()
    with torch.no_grad():
        values = model.policy.predict_values(found.observations)[:, 0]
    base = {"none": 0.0, "mean": found.returns.mean()}
    if baseline != "value":  # else the critic has learned meanwhile
        torch.testing.assert_close(found.weights, found.returns - base[baseline])
    else:
        assert not torch.equal(values, found.returns)


@pytest.mark.parametrize("normalize", [False, True])
def test_the_loss_is_that_of_a_slow_version(normalize):
    settings = {"ent_coef": 0.1, "vf_coef": 0.3, "normalize_advantage": normalize}
    model = made(baseline="value", **settings)
    model.learn(1)
    batch = model.rollout
    loss, _ = model.loss(batch)
    weights = batch.weights.double().numpy()
    if normalize:
        weights = (weights - weights.mean()) / (weights.std(ddof=1) + 1e-8)
    total = 0.0
    for i in range(len(weights)):
        with torch.no_grad():
            distribution = model.policy.get_distribution(batch.observations[i : i + 1])
            value = model.policy.predict_values(batch.observations[i : i + 1]).item()
        rates = torch.sigmoid(distribution.logits)[0].double().numpy()
        free = batch.masks[i].reshape(-1, 2)[:, 1].numpy()
        acts = batch.actions[i].numpy()
        chosen = np.where(acts > 0, rates, 1 - rates)[free]
        total -= weights[i] * np.log(chosen).sum()
        total += 0.1 * (rates * np.log(rates) + (1 - rates) * np.log(1 - rates))[free].sum()
        total += 0.3 * (value - batch.returns[i].item()) ** 2
    assert loss.item() == pytest.approx(total / len(weights), rel=1e-4)


def test_a_dialogue_that_is_cut_is_bootstrapped_with_values_alone():
    model = made(baseline="value", gamma=0.5)
    last = np.ones(9, np.float32)
    infos = [{"TimeLimit.truncated": True, "terminal_observation": last}, {}, {}]
    found = model._final_values(infos, np.array([True, True, False]))
    with torch.no_grad():
        value = model.policy.predict_values(torch.tensor(last[None])).item()
    assert found.tolist() == [pytest.approx(0.5 * value), 0, 0]
    assert not made(baseline="mean")._final_values(infos, np.array([True, True, False])).any()


@pytest.mark.parametrize("baseline", by_day(["mean", "value"], "value"))
def test_it_learns_to_ask_for_everything_at_once(baseline):
    """The bar is near the best; what does not learn, or climbs the wrong way, stays at random."""
    model = made(64, baseline=baseline, learning_rate=0.01)
    model.learn(6000)
    scores = [dialgym.evaluate(who, ID, 200).mean_return for who in (model, "ask-all", "random")]
    assert scores[0] > scores[1] - 0.05 > scores[2] + 0.1


def test_one_act_at_a_time_will_do():
    model = PG("MlpPolicy", dialgym.sb3_vec_env("SlotFilling-act-v0", 4, seed=0), seed=0)
    model.learn(4)
    assert model.rollout.actions.dtype == torch.int64
