"""Rollout buffers whose minibatches are whole episodes, so that prefix grouping pays fully.

Stock PPO takes them as `rollout_buffer_class`. Stock buffers draw single moments: a minibatch
then holds a few beginnings of every dialogue of the rollout and the model reads nearly all of
them, whatever the minibatch's size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from stable_baselines3.common.buffers import RolloutBuffer


def episode_batches(
    starts: np.ndarray, batch_size: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Indices of minibatches of about `batch_size`, each made of whole pieces of episodes.

    Args:
        starts: (n_steps, n_envs) bool, true where an episode begins.
        batch_size: transitions wanted; a batch is larger or smaller by a piece of an episode.
        rng: shuffles the pieces.

    Yields:
        Index arrays into the flat (n_envs * n_steps) order of Stable-Baselines3's buffers.
    """
    begins = starts.T.copy()  # (n_envs, n_steps)
    begins[:, 0] = True
    piece = begins.ravel().cumsum() - 1  # (n_envs * n_steps,)
    sizes = np.bincount(piece)
    order = rng.permutation(len(sizes))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first = sizes[order].cumsum() - sizes[order]  # where each piece begins, in shuffled order
    batches = max(1, round(len(piece) / batch_size))
    batch_of_piece = first * batches // len(piece)
    shuffled = np.argsort(rank[piece], kind="stable")
    cuts = first[np.flatnonzero(np.diff(batch_of_piece)) + 1]
    yield from np.split(shuffled, cuts)


class EpisodeBatches(RolloutBuffer):
    """Replaces how a rollout buffer draws minibatches; `seed` is its own, nothing global."""

    def __init__(self, *args: Any, seed: int = 0, **kwargs: Any) -> None:
        self.rng = np.random.default_rng(seed)
        super().__init__(*args, **kwargs)

    def get(self, batch_size: int | None = None) -> Iterator[Any]:  # type: ignore[override]
        """Minibatches, in the format of the parent buffer; one of everything when None."""
        total = self.buffer_size * self.n_envs
        self._flatten()
        for indices in episode_batches(
            self.episode_starts.astype(bool), batch_size or total, self.rng
        ):
            yield self._get_samples(indices)

    def _flatten(self) -> None:
        if self.generator_ready:
            return
        names = ["observations", "actions", "values", "log_probs", "advantages", "returns"]
        for name in [*names, *(["action_masks"] if hasattr(self, "action_masks") else [])]:
            setattr(self, name, self.swap_and_flatten(getattr(self, name)))
        self.generator_ready = True


class EpisodeRolloutBuffer(EpisodeBatches, RolloutBuffer):
    """For `PPO(..., rollout_buffer_class=EpisodeRolloutBuffer)`."""


class MaskableEpisodeRolloutBuffer(EpisodeBatches, MaskableRolloutBuffer):  # type: ignore[misc]
    """For `MaskablePPO(..., rollout_buffer_class=MaskableEpisodeRolloutBuffer)`."""
