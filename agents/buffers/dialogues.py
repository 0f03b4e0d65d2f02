"""Memory of whole dialogues: what was seen, allowed and likely at each decision."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from agents.models.act_masks import allowed_at_the_end


class ActionChoice(NamedTuple):
    """The acts of a step, and how they were chosen."""

    actions: np.ndarray  # (n_envs,) int64
    masks: np.ndarray  # (n_envs, A) bool
    probs: np.ndarray  # (n_envs, A) float32, of the behaviour: 0 where an act is forbidden
    starts: np.ndarray  # (n_envs,) bool, whether a dialogue begins with this decision


class DialogueSample(NamedTuple):
    """N decisions of n whole dialogues, one dialogue after the other."""

    observations: Tensor  # (N, B) float32
    actions: Tensor  # (N,) int64
    rewards: Tensor  # (N,) float32
    masks: Tensor  # (N, A) bool
    probs: Tensor  # (N, A) float32, of the behaviour
    last: Tensor  # (N,) bool, of its dialogue
    cut: Tensor  # (N,) bool, a limit cut the dialogue off here
    after: Tensor  # (N, B) float32, what was seen next, or at the end
    masks_after_cut: Tensor  # (N, A) bool, where a limit cut the dialogue off those of `after`

    @property
    def behaviour(self) -> Tensor:
        """(N,): the probability with which each act was chosen."""
        return self.probs.gather(1, self.actions[:, None])[:, 0]

    @property
    def number(self) -> Tensor:
        """(N,) int64: which dialogue a decision is of, from 0."""
        return self.last.long().cumsum(0) - self.last.long()


class DialogueMemory(ReplayBuffer):
    """Stable-Baselines3's ring of steps, of which the dialogues that have ended are drawn whole.

    A dialogue is forgotten when its first decision is overwritten. Everything is in arrays by step
    and row, from which a checkpoint restores it, dialogues that are still open included.

    Args:
        buffer_size: decisions that are kept, of all rows together.
        observation_space, action_space, device, n_envs: as of `ReplayBuffer`.
        kwargs: its other arguments.

    Attributes:
        masks, probs: (buffer_size, n_envs, A), of each decision; see `ActionChoice`.
        masks_after_cut: (buffer_size, n_envs, A), of the last observation of a dialogue that a
            limit cut off; see `allowed_at_the_end`.
        turns: (buffer_size, n_envs) int32, the decisions of the dialogue before this one.
        lengths: (buffer_size, n_envs) int32, at the first decision of a dialogue that has ended the
            number of its decisions, elsewhere 0.
        unseen: (buffer_size, n_envs) bool, at the same places, until `mark_seen`.
        ended: (1,) int64, see `n_unseen`.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space,
        action_space: spaces.Discrete,
        device: torch.device | str = "auto",
        n_envs: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(buffer_size, observation_space, action_space, device, n_envs, **kwargs)
        steps, acts = (self.buffer_size, n_envs), int(action_space.n)
        self.masks = np.zeros((*steps, acts), bool)
        self.masks_after_cut = np.zeros((*steps, acts), bool)
        self.probs = np.zeros((*steps, acts), np.float32)
        self.turns = np.zeros(steps, np.int32)
        self.lengths = np.zeros(steps, np.int32)
        self.unseen = np.zeros(steps, bool)
        self.ended = np.zeros(1, np.int64)

    def add(  # type: ignore[override]
        self,
        obs: np.ndarray,
        next_obs: np.ndarray,
        action: ActionChoice,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Keep a step of each row.

        Raises:
            ValueError: a dialogue has more decisions than a row of the memory.
        """
        here = self.pos
        self.masks[here], self.probs[here] = action.masks, action.probs
        last = allowed_at_the_end(action.masks, infos, self.action_space)
        self.masks_after_cut[here] = last
        self.turns[here] = np.where(action.starts, 0, self.turns[here - 1] + 1)
        self.lengths[here], self.unseen[here] = 0, False
        super().add(obs, next_obs, action.actions, reward, done, infos)
        self._end(here, np.flatnonzero(done))

    def _end(self, here: int, rows: np.ndarray) -> None:
        """Note the dialogues that end at a step."""
        lengths = self.turns[here, rows] + 1
        if (lengths > self.buffer_size).any():
            raise ValueError(
                f"buffer_size: a dialogue of {lengths.max()} decisions does not fit into "
                f"{self.buffer_size}, the share of each of {self.n_envs} rows"
            )
        first = (here + 1 - lengths) % self.buffer_size
        self.lengths[first, rows], self.unseen[first, rows] = lengths, True
        self.ended += len(rows)

    # Reading

    @property
    def n_unseen(self) -> int:
        """Number of dialogues that have ended since `mark_seen`, those forgotten since, too."""
        return int(self.ended[0])

    def mark_seen(self) -> None:
        """From here on those that have ended are not new."""
        self.unseen[:], self.ended[:] = False, 0

    def draw(self, count: int, env: VecNormalize | None = None) -> DialogueSample:
        """`count` of the dialogues that have ended, any as likely as any other, with replacement.

        Args:
            count: of dialogues.
            env: normalises observations and rewards as it would now.
        """
        places = np.argwhere(self.lengths)
        chosen = np.random.randint(len(places), size=count)  # noqa: NPY002 (as Stable-Baselines3)
        return self._read(places[chosen], env)

    def new(self, env: VecNormalize | None = None) -> DialogueSample:
        """All dialogues that have ended since `mark_seen`; `env` as in `draw`."""
        return self._read(np.argwhere(self.unseen), env)

    def _read(self, places: np.ndarray, env: VecNormalize | None) -> DialogueSample:
        """The dialogues whose first decisions are at places (n, 2)."""
        lengths = self.lengths[places[:, 0], places[:, 1]]
        ends = lengths.cumsum()
        turns = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        steps = (np.repeat(places[:, 0], lengths) + turns) % self.buffer_size
        at = steps, np.repeat(places[:, 1], lengths)
        last = np.zeros(len(turns), bool)
        last[ends - 1] = True
        columns = (
            self._normalize_obs(self.observations[at], env),
            self.actions[at][:, 0],
            self._normalize_reward(self.rewards[at], env),
            self.masks[at],
            self.probs[at],
            last,
            self.timeouts[at] > 0,
            self._normalize_obs(self.next_observations[at], env),
            self.masks_after_cut[at],
        )
        return DialogueSample(*(torch.as_tensor(column, device=self.device) for column in columns))
