"""The update of the sequence algorithms: minibatches of whole sequences, alone or in shares."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.buffers.sequences import Part, Sequences, minibatches
from agents.distributed.processes import Processes
from agents.models.masking import unpacked_bits
from agents.online.losses import clipped_surrogate, k3
from agents.updater import Updater


class SequenceUpdate:
    """A part of `SequenceAlgorithm`: learns from the rollout in `sequences`."""

    updater: Updater
    policy: Any
    device: torch.device
    processes: Processes
    sequences: Sequences
    batch_size: int
    n_epochs: int
    target_kl: float | None
    rng: np.random.Generator
    algorithm: str
    observation_space: Any
    action_space: Any
    ent_coef: Any
    clip_range: Any
    logger: Any
    policy_class: Any
    policy_kwargs: Any
    lr_schedule: Any
    _keeps_masks: Any
    _n_updates: int
    _current_progress_remaining: float
    _update_learning_rate: Any

    def train(self) -> None:
        """Improve the policy with the rollout in `self.sequences`."""
        with self.updater.improving():
            self._improve()

    def _improve(self) -> None:
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        remaining = self._current_progress_remaining
        self._entropy_weight = self.ent_coef(remaining)  # type: ignore[operator]
        self._clip_now = self.clip_range(remaining)  # type: ignore[operator]
        self.logger.record("train/clip_range", self._clip_now)
        logs: dict[str, list[float]] = defaultdict(list)
        for _ in range(self.n_epochs):
            going_on = self._epoch(logs)
            self._n_updates += 1
            if not going_on:
                break
        for name, values in logs.items():
            self.logger.record(f"train/{name}", float(np.mean(values)))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def _epoch(self, logs: dict[str, list[float]]) -> bool:
        """One pass over the rollout; False when the policy has moved too far from the old one."""
        [decisions] = self.processes.sums(len(self.sequences))
        count = max(1, round(decisions / (self.batch_size * self.processes.count)))
        for chosen in minibatches(self.sequences.sizes, count, self.rng):
            figures = self._minibatch(chosen)
            for name, value in figures.items():
                logs[name].append(value)
            if self.target_kl is not None and figures["approx_kl"] > 1.5 * self.target_kl:
                return False
            for name, value in self.updater.step().items():
                logs[name].append(value)
        return True

    def _minibatch(self, chosen: np.ndarray) -> dict[str, float]:
        """Gradient of the mean loss of the sequences `chosen`; figures, averaged."""
        sequences = self.sequences
        weights = self._minibatch_columns(sequences.decisions(chosen))
        columns = {**sequences.columns, **weights}

        def loss_of(part: Part) -> tuple[Tensor, dict[str, Tensor]]:
            allowed = self._allowed(sequences, part.rows)
            values, log_prob, entropy = self.policy.evaluate_sequences(
                part.tokens, part.at, columns["actions"][part.rows], allowed
            )
            chosen_columns = {name: column[part.rows] for name, column in columns.items()}
            return self._loss(chosen_columns, values, log_prob, entropy)

        parts = sequences.parts(chosen, self.updater.most_tokens)
        count = int(sequences.sizes[chosen].sum())
        return self.updater.backward(loss_of, parts, count, sequences.shortest)

    def _minibatch_columns(self, rows: Tensor) -> dict[str, Tensor]:
        """Columns (N,) that depend on the whole minibatch, its decisions being `rows`."""
        return {}

    def _surrogate(
        self, columns: dict[str, Tensor], log_prob: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The clipped policy loss (n,), and how far the policy has moved."""
        old = columns["log_probs"]
        loss = clipped_surrogate(log_prob, old, columns["advantages"], self._clip_now)
        with torch.no_grad():
            log_ratio = log_prob - old
            clipped = ((log_ratio.exp() - 1).abs() > self._clip_now).float()
        figures = {"policy_gradient_loss": loss, "approx_kl": k3(log_ratio)}
        return loss, {**figures, "clip_fraction": clipped}

    def _loss(
        self, columns: dict[str, Tensor], values: Tensor, log_prob: Tensor, entropy: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss (n,) of each decision, and figures (n,) to be averaged and logged."""
        raise NotImplementedError

    def _allowed(self, sequences: Sequences, rows: Tensor) -> Tensor | None:
        """What could be said (n, V) at the decisions `rows`; None where everything could."""
        if self._keeps_masks:
            vocab_size = int(self.action_space.n)  # type: ignore[attr-defined]
            return unpacked_bits(sequences.columns["masks"][rows], vocab_size)
        if self.policy.masker is not None:
            return self.policy.masker.allowed[sequences.columns["states"][rows]]
        return None

    def learn(self, *args: Any, **kwargs: Any) -> Any:
        """As everywhere in Stable-Baselines3."""
        super().learn(*args, **kwargs)  # type: ignore[misc]
        if self.updater.sharding is not None:
            self.policy = self.updater.unshard(self._new_policy)
        return self

    def _new_policy(self) -> Any:
        return self.policy_class(
            self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
        )
