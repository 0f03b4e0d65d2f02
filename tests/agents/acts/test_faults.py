"""Numbers that are not finite end learning with one clear error, before anything has moved."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from stable_baselines3.common.logger import Logger

import agents
import dialgym
from agents import (
    A2C,
    ACER,
    BBQN,
    DQN,
    ENAC,
    PG,
    TRACER,
    Committee,
    FeudalACER,
    FeudalDQN,
    FeudalGain,
    GPSarsa,
)
from tests.support.act_mdps import five_states, vec_env
from tests.support.by_day import by_day
from tests.support.slot_mdp import slot_vec_env

DEEP = (A2C, ACER, BBQN, DQN, ENAC, FeudalACER, FeudalDQN, FeudalGain, PG, TRACER)
EACH_BASE = (ACER, DQN, ENAC, PG, GPSarsa)


def made(algorithm, table):
    if algorithm in (GPSarsa, Committee):
        return algorithm("GPPolicy", vec_env(table, 2), seed=0)
    env = slot_vec_env(table, 2)
    more = {} if algorithm is PG else {"learning_starts": 10}
    more |= {"dialogues_per_update": 2} if algorithm is ENAC else {}
    return algorithm("MlpPolicy", env, seed=0, device="cpu", **more)


def knowledge(model):
    """All that a model has learned, as one array."""
    if isinstance(model, GPSarsa):
        parts = [part for g in model.process.groups.values() for part in (g.inputs, g.weights)]
        return np.concatenate([np.zeros(1), *(part.ravel() for part in parts)])
    return model.policy.parameters_to_vector()


@pytest.mark.parametrize("reward", by_day([np.nan, np.inf, -np.inf], -np.inf))
@pytest.mark.parametrize("algorithm", by_day([*DEEP, GPSarsa, Committee], *EACH_BASE))
def test_rewards_are_finite(algorithm, reward):
    table = replace(five_states(), rewards=five_states().rewards.copy())
    model = made(algorithm, table).learn(60)
    before = knowledge(model)
    table.rewards[:] = reward
    message = rf"{algorithm.__name__} at timestep \d+: expected finite rewards, got (nan|-?inf) in"
    with pytest.raises(FloatingPointError, match=message):
        model.learn(60, reset_num_timesteps=False)
    assert np.array_equal(knowledge(model), before)
    table.rewards[:] = five_states().rewards  # nothing of it is remembered
    model.learn(60)
    assert np.isfinite(knowledge(model)).all()


@pytest.mark.parametrize("reward", [np.nan, np.inf])
def test_parts_of_rewards_are_finite(reward):
    model = GPSarsa(
        "GPPolicy", vec_env(five_states()), objectives={"left": 1.0, "right": 1.0}, seed=0
    )
    step = model.env.step

    def with_parts(actions):
        seen, rewards, dones, infos = step(actions)
        parts = {"left": 1.0, "right": reward}
        return seen, rewards, dones, [{**info, "reward_components": parts} for info in infos]

    model.env.step = with_parts
    with pytest.raises(FloatingPointError, match="expected finite rewards"):
        model.learn(40)
    assert len(model.process) == 0


@pytest.mark.parametrize("algorithm", DEEP)
def test_gradients_are_finite(algorithm):
    model = made(algorithm, five_states()).learn(60)
    before = knowledge(model)
    for weight in model.policy.parameters():
        if weight.requires_grad:
            weight.register_hook(lambda gradient: gradient * torch.nan)
    message = (
        rf"{algorithm.__name__} at timestep \d+: expected a finite (natural )?gradient, got nan"
    )
    with pytest.raises(FloatingPointError, match=message):
        model.learn(200, reset_num_timesteps=False)
    assert np.array_equal(knowledge(model), before)


def played():
    model = ENAC("MlpPolicy", slot_vec_env(five_states(), 2), seed=0, learning_starts=10**6)
    model.learn(100)
    model.set_logger(Logger(None, []))
    return model, model.replay_buffer.draw(4)


FAULTS = {
    "reward": (lambda model, batch: batch._replace(rewards=batch.rewards * torch.inf), "return"),
    "probability": (lambda model, batch: batch._replace(probs=batch.probs * torch.nan), "weight"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_actor_of_enac_waits_for_all_checks(fault):
    model, batch = played()
    change, what = FAULTS[fault]
    before = knowledge(model)
    with pytest.raises(FloatingPointError, match=f"expected a finite {what}, got"):
        model.update(change(model, batch))
    assert np.array_equal(knowledge(model), before)


@pytest.mark.parametrize("value", [torch.nan, 1e30])
def test_values_that_overflow_leave_the_actor_of_enac_where_it_is(value):
    model, batch = played()
    with torch.no_grad():
        model.policy.value_net.bias.fill_(value)
    before = knowledge(model)
    with pytest.raises(FloatingPointError, match=r"expected a finite (return|loss), got"):
        model.update(batch)
    assert np.array_equal(knowledge(model), before, equal_nan=True)


@pytest.mark.parametrize("part", ["estimator", "policy"])
def test_the_gradients_of_gdpl_are_finite(part):
    id = "tests.support.toy_acts:Wishes-act"
    expert = dialgym.collect(id, "ask-all", 10, seed=0)
    env = dialgym.sb3_vec_env(id, 4, seed=0)
    model = agents.GDPL("MlpPolicy", env, dataset=expert, n_steps=8, batch_size=16, seed=0)
    weights = [*getattr(model, part).parameters()]
    before = [weight.clone() for weight in weights]
    weights[0].register_hook(lambda gradient: gradient * torch.inf)
    message = r"GDPL at timestep \d+: expected a finite gradient, got"
    with pytest.raises(FloatingPointError, match=message):
        model.learn(32)
    assert all(torch.equal(a, b) for a, b in zip(before, weights))
