"""Calibration of predicted returns and their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
from scipy import stats

import dialgym
from agents.returns import discounted_returns
from dialgym.experiments.panel import PanelEnvironment
from dialgym.rollouts.episodes import seeded
from dialgym.rollouts.policies import takes_masks

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
BINS = 10
DIALOGUES = 128
LEAST = 1e-6  # of a deviation


def calibration(
    model: Any, environment: PanelEnvironment, seed: int, dialogues: int = DIALOGUES
) -> dict[str, Any]:
    """Q(b, a) of the acts that a model takes, beside the returns G that follow.

    Returns:
        ``levels`` and ``coverage``: how often G lies in the central interval of the normal
        distribution that the model has for Q, which holds that much of it; ``expected``,
        ``returned``, ``deviation``: means of Q, of G and of the deviation of Q over tenths of the
        decisions, ordered by Q; ``error``: root of the mean square of G - Q in tenths ordered by
        deviation, whose means are ``unsure``.
    """
    mean, std, returns = _decisions(model, environment, seed, dialogues)
    std = np.maximum(std, LEAST)
    far = np.abs(returns - mean) / std
    by_mean, by_std = (np.array_split(np.argsort(a, kind="stable"), BINS) for a in (mean, std))
    return {
        "levels": list(LEVELS),
        "coverage": [float((far <= stats.norm.ppf((1 + p) / 2)).mean()) for p in LEVELS],
        "expected": _means(mean, by_mean),
        "returned": _means(returns, by_mean),
        "deviation": _means(std, by_mean),
        "unsure": _means(std, by_std),
        "error": [float(np.sqrt(np.mean((returns - mean)[part] ** 2))) for part in by_std],
    }


def _means(values: np.ndarray, parts: Sequence[np.ndarray]) -> list[float]:
    return [float(values[part].mean()) for part in parts]


def _decisions(
    model: Any, environment: PanelEnvironment, seed: int, dialogues: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and deviation of Q, and the return, of each decision (M,) of so many dialogues."""
    masked, kwargs = takes_masks(model), {"text_info": False, **environment.settings}
    steps: list[tuple[np.ndarray, ...]] = []
    with (
        seeded(model, seed),
        closing(dialgym.sb3_vec_env(environment.id, dialogues, seed=seed, **kwargs)) as env,
    ):
        seen: Any = env.reset()
        playing = np.ones(dialogues, bool)
        while playing.any():
            masks = {"action_masks": np.stack(env.env_method("action_masks"))} if masked else {}
            acts, _ = model.predict(seen, deterministic=True, **masks)
            mean, std = (part[np.arange(dialogues), acts] for part in model.q_distribution(seen))
            seen, rewards, dones, _ = env.step(acts)
            steps.append((mean, std, np.where(playing, rewards, 0), playing.copy()))
            playing &= ~dones
    mean, std, rewards, played = (np.stack(column) for column in zip(*steps))
    returns = discounted_returns(rewards, getattr(model, "gamma", 1.0))
    return mean[played], std[played], returns[played]
