"""Figures of a tiny GPT beside the usual way of giving Stable-Baselines3 a transformer.

Iterations of rollout and update on `dialgym/Wordle-20-v0`, the environment included: 128 dialogues,
4 epochs, 2 layers of 64. The usual way is stock PPO with a Hugging Face GPT-2 of that size as
features extractor, which reads the whole window at every step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

import gymnasium as gym
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor

import dialgym
from agents.buffers.episodes import EpisodeRolloutBuffer
from agents.models.gpt_config import PRESETS
from agents.online.ppo import SequencePPO
from agents.policies.gpt import GPTPolicy
from benchmarks.environments.timing import Figure, cost

ENV, ENVS, EPOCHS, REPEATS = "dialgym/Wordle-20-v0", 128, 4, 3
BAR = 10.0
"""Bar: speed in multiples of the reference's."""


class HuggingFaceGPT(BaseFeaturesExtractor):
    """Hidden state (B, d) of a random GPT-2 of a preset's shape, at the last token of (B, L)."""

    def __init__(self, observation_space: gym.spaces.Box, preset: str = "nano") -> None:
        super().__init__(observation_space, features_dim=PRESETS[preset]["n_embd"])
        from transformers import GPT2Config, GPT2Model

        shape: dict[str, Any] = {**PRESETS[preset]}
        config = GPT2Config(
            vocab_size=int(observation_space.high.max()) + 1,
            n_positions=observation_space.shape[0],
            **shape,
            bos_token_id=None,
            eos_token_id=None,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        )
        self.model = GPT2Model(config)

    def forward(self, observations: Tensor) -> Tensor:
        """Features (B, d) of observations (B, L), which SB3 hands over as floats."""
        tokens = observations.long()
        last = (tokens != 0).sum(1) - 1
        hidden: Tensor = self.model(tokens, attention_mask=(tokens != 0).long()).last_hidden_state
        return hidden[torch.arange(len(tokens)), last]


def measure(
    policy: Any, n_steps: int, repeats: int = REPEATS, algorithm: Any = PPO, **settings: Any
) -> dict[str, float]:
    """Tokens of the rollout, samples of the update, and steps of both, per CPU-second.

    The medians of `repeats` iterations, after one that warms caches up.
    """
    env = dialgym.sb3_vec_env(ENV, ENVS, seed=0)
    model = algorithm(policy, env, n_steps=n_steps, n_epochs=EPOCHS, gamma=1.0, seed=0, **settings)
    _, callback = model._setup_learn(10**9)

    def rollout() -> None:
        model.collect_rollouts(model.env, callback, model.rollout_buffer, n_steps)

    spent = [(cost(rollout, 1), cost(model.train, 1)) for _ in range(repeats + 1)]
    played, updated = (median(column) for column in zip(*spent[1:]))
    steps = ENVS * n_steps
    env.close()
    return {
        "rollout": steps / played,
        "update": EPOCHS * steps / updated,
        "end to end": steps / (played + updated),
    }


def figures() -> Iterator[Figure]:
    """Each way, beside the usual one."""
    usual = measure(
        "MlpPolicy",
        n_steps=8,  # each step costs the same; 72 would take minutes
        batch_size=256,
        policy_kwargs={
            "features_extractor_class": HuggingFaceGPT,
            "net_arch": [],
            "share_features_extractor": True,
            "ortho_init": False,
        },
    )
    references = {
        name: Figure(f"Hugging Face extractor, {name}", value, "/s")
        for name, value in usual.items()
    }
    yield from references.values()
    common: Mapping[str, Any] = {"n_steps": 72, "batch_size": 1024}
    plain = {
        "policy_kwargs": {"execution": {"cache": False, "group": False}},
        "repeats": 1,
    }  # half a minute
    ways: dict[str, dict[str, Any]] = {
        "GPTPolicy, no cache, no grouping": plain,
        "GPTPolicy, stock buffer": {"repeats": 1},
        "GPTPolicy, EpisodeRolloutBuffer": {"rollout_buffer_class": EpisodeRolloutBuffer},
        "SequencePPO": {"algorithm": SequencePPO},
    }
    for name, settings in ways.items():
        for part, value in measure(GPTPolicy, **common, **settings).items():
            bar = None
            if name == "SequencePPO" and part == "end to end":
                bar = round(BAR * usual[part])
            yield Figure(f"{name}, {part}", value, "/s", bar, references[part], "usual")
