"""Waits of a rollout for the accelerator, counted."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env

from agents import GRPO, NLPO, SequencePPO
from agents.models.gpt import GPT
from agents.models.rollout_cache import RolloutCaches
from tests.agents.online.test_sequence_ppo import SMALL
from tests.support.toy_tokens import Echo
from tests.support.waiting_device import DEVICE, OnDevice, move, waits

STEPS = 12


def on_the_device(algorithm, **more):
    env = make_vec_env(lambda: Echo(turns=3, said=2), 6, seed=0)
    model = algorithm(
        "GPTPolicy", env, n_steps=STEPS, policy_kwargs=SMALL, seed=0, device="cpu", **more
    )
    policies = [model.policy, *([model.mask_policy] if algorithm is NLPO else [])]
    for policy in policies:
        for network in getattr(policy, "_networks", [policy]):
            if network is not None:
                move(network)
    model.policy.caches = model.policy.value_caches = RolloutCaches(model.policy.backbone)
    if algorithm is NLPO:
        model.mask_policy.caches = RolloutCaches(model.mask_policy.backbone)
    model.device = model.updater.device = DEVICE
    return model


def test_the_device_is_pretended_rightly():
    with waits() as mode:
        there = torch.arange(4).to(DEVICE, non_blocking=True)
        assert isinstance(there, OnDevice)
        assert isinstance((there + 1).float().softmax(0), OnDevice)
        assert mode.places == []
        assert (there * 2).cpu().tolist() == [0, 2, 4, 6]
        assert bool((there >= 0).all())
        assert there[1].item() == 1
        there.nonzero()
        torch.arange(4).to(DEVICE)
    kinds = [place.split(" at ")[0] for place in mode.places]
    scalar = "_local_scalar_dense"
    assert kinds == ["_to_copy", scalar, scalar, "nonzero", "a copy to the device that waits"]


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        (SequencePPO, {}),
        (SequencePPO, {"env_masks": True}),
        (NLPO, {"top_p": 0.6, "min_tokens": 1}),
        (GRPO, {"group_size": 2}),
    ],
    ids=["ppo", "env-masks", "nlpo", "grpo"],
)
def test_a_token_waits_for_the_device_twice(algorithm, more, monkeypatch):
    # Tensors of classes of their own know no inference mode; what is computed is the same.
    monkeypatch.setattr(GPT, "extend", torch.no_grad()(GPT.extend.__wrapped__))
    with waits() as mode:
        model = on_the_device(algorithm, **more)
        _, callback = model._setup_learn(10_000)
        model.policy.set_training_mode(False)
        model.rollout_buffer.reset()
        if algorithm is NLPO:
            model.said_within = []
        playing = np.arange(6) < 4 if algorithm is GRPO else None
        mode.places.clear()
        for _ in range(STEPS):
            assert model._step(model.env, callback, playing) is not None
    assert len(mode.places) == 2 * STEPS, sorted(set(mode.places))
