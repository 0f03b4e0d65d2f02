"""Sequence PPO: what it computes is what stock PPO computes, on the same rollout."""

import numpy as np
import pytest
import torch
from gymnasium.wrappers import TimeLimit
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv
from toy_tokens import Echo

import dialgym
from agents import GPTPolicy, SequencePPO

SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}
STEPS = {"gae_lambda": 0.95, "n_steps": 10, "n_epochs": 1, "seed": 0, "policy_kwargs": SMALL}


def limited(limit: int = 3):
    return TimeLimit(Echo(turns=3, said=2), limit)


def collected(algorithm, env, **settings):
    model = algorithm(GPTPolicy, env, **{**STEPS, **settings})
    torch.nn.init.normal_(model.policy.value_head.linear.weight)
    _, callback = model._setup_learn(10_000)
    callback.on_training_start({}, {})
    torch.manual_seed(1)
    for _ in range(2):  # the second begins in the middle of dialogues
        model.collect_rollouts(model.env, callback, model.rollout_buffer, 10)
    return model


def gradient(model) -> np.ndarray:
    model.policy.optimizer = torch.optim.SGD(model.policy.parameters(), lr=1.0)
    model._update_current_progress_remaining(0, 1)
    model.lr_schedule = lambda _: 1.0
    before = model.policy.parameters_to_vector()
    model.train()
    return before - model.policy.parameters_to_vector()


SETTINGS = [
    {"ent_coef": 0.1, "gamma": 0.9, "gae_lambda": 0.8},
    {"clip_range_vf": 0.1, "normalize_advantage": False, "vf_coef": 1.0, "gamma": 0.99},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("micro_batch_tokens", [None, 40])
def test_loss_and_gradient_are_those_of_stock_ppo(settings, micro_batch_tokens):
    stock = collected(PPO, make_vec_env(limited, 6, seed=0), batch_size=60, **settings)
    ours = collected(
        SequencePPO,
        make_vec_env(limited, 6, seed=0),
        batch_size=60,
        micro_batch_tokens=micro_batch_tokens,
        max_grad_norm=0.5,
        **settings,
    )
    buffer = stock.rollout_buffer
    columns = ours.sequences.columns
    for name, grid in {
        "advantages": buffer.advantages,
        "targets": buffer.returns,
        "log_probs": buffer.log_probs,
        "values": buffer.values,
        "actions": buffer.actions[..., 0],
    }.items():
        np.testing.assert_allclose(columns[name], grid.reshape(-1)[ours.sequences.steps], atol=1e-5)
    expected, got = gradient(stock), gradient(ours)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(got, expected, atol=1e-5)
    stock_log, our_log = stock.logger.name_to_value, ours.logger.name_to_value
    for name in ("loss", "value_loss", "policy_gradient_loss", "approx_kl", "clip_fraction"):
        assert our_log[f"train/{name}"] == pytest.approx(stock_log[f"train/{name}"], abs=1e-5)
