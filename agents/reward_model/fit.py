"""The training loop of a reward model: gradient steps, held-out metrics, early stopping."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from agents.reward_model.agreement import pairwise_accuracy, pearson, spearman
from agents.reward_model.network import Network
from agents.reward_model.pairs import LABELS, PREFERENCES, SCORES, Examples
from agents.reward_model.reward_model_config import RewardModelConfig


class RewardModelTraining:
    """A training run: what it has learned so far, and how to go on.

    All randomness follows from the seed and the number of the step, so that the state is weights
    and counts alone; PyTorch's generators are left as they were.

    Args:
        network: learns.
        examples: to be split.
        settings: hyperparameters.
        rate: the peak of the learning rate.
        seed: of everything.
        bf16: compute in bfloat16 where that is safe.
    """

    def __init__(
        self,
        network: Network,
        examples: Examples,
        settings: RewardModelConfig,
        rate: float,
        seed: int,
        bf16: bool,
    ) -> None:
        self.network, self.settings, self.seed, self.bf16 = network, settings, seed, bf16
        if settings.threshold is not None:
            examples = examples.labelled(settings.threshold)
        self.kind = examples.kind
        self.device = network.model.device
        learned, held_out = examples.split(settings.held_out, seed)
        self.learned, self.held_out = (
            SplitExamples(network, learned),
            SplitExamples(network, held_out),
        )
        biased = network.head.bias is not None
        self.shift = float(learned.scores.mean()) if self.kind == SCORES and biased else 0.0
        self.scale = float(learned.scores.std()) or 1.0 if self.kind == SCORES else 1.0
        self.steps = -(-len(learned) // settings.batch_size)  # of an epoch
        self.optimizer = torch.optim.AdamW(
            network.model.parameters(), lr=rate, weight_decay=settings.weight_decay
        )
        total = self.steps * settings.epochs
        self.rates: list[float] = (rate * schedule(total, settings.warmup)).tolist()
        self.step = 0
        self.loss_sum = 0.0  # of this epoch
        self.best: dict[str, Tensor] = {}
        self.history: list[dict[str, float]] = []

    # Learning

    def learn(
        self, saved: Callable[[RewardModelTraining], None], progress_bar: bool = False
    ) -> None:
        """Take the steps that are left; `saved` is called after each."""
        from tqdm import tqdm

        total = len(self.rates)
        with tqdm(total=total, initial=self.step, disable=not progress_bar, unit="step") as bar:
            while self.step < total and not self.is_over:
                self._learn_from(self._rows())
                self.step += 1
                if self.step % self.steps == 0:
                    self._end_epoch()
                    bar.set_postfix(held_out_loss=f"{self.history[-1]['loss']:.4f}")
                bar.update()
                saved(self)

    @property
    def is_over(self) -> bool:
        """Return True if the held-out loss has not fallen for `patience` epochs."""
        patience = self.settings.patience
        return bool(patience and self.history) and len(self.history) >= self.best_epoch + patience

    @property
    def best_epoch(self) -> int:
        """The epoch with the lowest held-out loss, counted from 1."""
        return 1 + int(np.argmin([epoch["loss"] for epoch in self.history]))

    def _rows(self) -> np.ndarray:
        """The examples of this step: each epoch has all of them once, in a new order."""
        epoch, place = divmod(self.step, self.steps)
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.learned))
        size = self.settings.batch_size
        return order[place * size : (place + 1) * size]

    def _learn_from(self, rows: np.ndarray) -> None:
        model = self.network.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = self.rates[self.step]
        with self._own_randomness(), self._precision():
            loss = self._losses(self.learned, rows, self.learned.rewards(rows)).mean()
        if not bool(torch.isfinite(loss)):
            raise ValueError(
                f"reward model: the loss is {float(loss)} at step {self.step}; lower "
                f"learning_rate, which is {max(self.rates):g}"
            )
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), self.settings.max_grad_norm)
        self.optimizer.step()
        self.loss_sum += float(loss.detach()) * len(rows)

    def _losses(self, side: SplitExamples, rows: np.ndarray, rewards: Tensor) -> Tensor:
        """(n,), from rewards (n, 1) of scored replies, or (n, 2) of pairs, the better one first.

        Squared errors of scores, cross-entropies of labels, -log sigmoid of differences of pairs.
        """
        if self.kind == SCORES:
            targets = torch.from_numpy(self._standardised(side.scores[rows])).to(rewards.device)
            return (rewards[:, 0] - targets).square()
        if self.kind == LABELS:
            labels = torch.from_numpy(side.scores[rows]).to(rewards)
            return binary_cross_entropy_with_logits(rewards[:, 0], labels, reduction="none")
        return -logsigmoid(rewards[:, 0] - rewards[:, 1])

    def _standardised(self, scores: np.ndarray) -> np.ndarray:
        return ((scores - self.shift) / self.scale).astype(np.float32)

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            torch.manual_seed(int(np.random.default_rng([self.seed, self.step, 1]).integers(2**62)))
            yield

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16)

    # Measuring

    def _end_epoch(self) -> None:
        figures = {"train_loss": self.loss_sum / len(self.learned), **self._measure()}
        self.history.append({"epoch": len(self.history) + 1, **figures})
        self.loss_sum = 0.0
        if self.best_epoch == len(self.history):
            weights = self.network.model.state_dict()
            self.best = {name: w.detach().cpu().clone() for name, w in weights.items()}

    @torch.no_grad()
    def _measure(self) -> dict[str, float]:
        """Loss of the held-out examples, and how well the rewards order them."""
        self.network.model.eval()
        side, size = self.held_out, self.settings.batch_size
        parts = np.split(np.arange(len(side)), range(size, len(side), size))
        with self._precision():
            rewards = torch.cat([side.rewards(rows) for rows in parts])
        losses = self._losses(side, np.arange(len(side)), rewards)
        return {"loss": float(losses.mean()), **self._order(rewards.cpu().double().numpy())}

    def _order(self, rewards: np.ndarray) -> dict[str, float]:
        if self.kind == LABELS:
            right = (rewards[:, 0] > 0) == (self.held_out.scores > 0)
            return {"accuracy": float(right.mean())}
        if self.kind == PREFERENCES:
            return {"accuracy": pairwise_accuracy(rewards)}
        found, scores = rewards[:, 0], self.held_out.scores
        return {"pearson": pearson(found, scores), "spearman": spearman(found, scores)}

    def metrics(self) -> dict[str, Any]:
        """Metrics of the best epoch, with all epochs as `history`."""
        best = self.history[self.best_epoch - 1]
        counts = {"examples": len(self.learned), "held_out": len(self.held_out)}
        return {"kind": self.kind, "seed": self.seed, **counts, **best, "history": self.history}

    @torch.no_grad()
    def use_best(self) -> None:
        """Give the model the weights of the best epoch, its outputs in units of the scores."""
        self.network.model.load_state_dict(self.best)
        head = self.network.head
        head.weight.mul_(self.scale)
        if head.bias is not None:
            head.bias.mul_(self.scale).add_(self.shift)

    # What a checkpoint keeps

    def state(self) -> dict[str, Any]:
        """All that `restore` needs."""
        return {
            "model": self.network.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "best": self.best,
            "history": self.history,
            "step": self.step,
            "loss_sum": self.loss_sum,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        self.network.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        for name in ("best", "history", "step", "loss_sum"):
            setattr(self, name, state[name])


class SplitExamples:
    """The examples of one side of the split, in tokens."""

    def __init__(self, network: Network, examples: Examples) -> None:
        self.network, self.scores = network, examples.scores
        self.choices = len(examples.items[0].replies)
        self.encoded = network.encode(
            [item.context for item in examples.items for _ in item.replies],
            [reply for item in examples.items for reply in item.replies],
        )
        if self.choices == 2:
            self._warn_of_equals()

    def _warn_of_equals(self) -> None:
        """Warn of pairs whose replies differ only in what is cut off, or in unknown words."""
        ids = [columns["input_ids"] for columns in self.encoded]
        equal = sum(better == worse for better, worse in zip(ids[::2], ids[1::2]))
        if equal:
            warnings.warn(
                f"reward model: the two replies of {equal} of {len(self)} pairs are the same "
                f"tokens within max_length={self.network.max_length}, and teach nothing; give a "
                "larger max_length, or leave them out",
                stacklevel=4,
            )

    def __len__(self) -> int:
        return len(self.scores)

    def rewards(self, rows: np.ndarray) -> Tensor:
        """(n, choices) of the examples `rows` (n,)."""
        places = (rows[:, None] * self.choices + np.arange(self.choices)).ravel()
        return self.network.rewards([self.encoded[i] for i in places]).view(-1, self.choices)


def schedule(total: int, warmup: float) -> np.ndarray:
    """Factors (total,) of the learning rate: up from 0 in a share of the steps, then down to 0."""
    steps = np.arange(1, total + 1)
    rising = round(warmup * total)
    falling = (total + 1 - steps) / max(total - rising, 1)
    return np.minimum(steps / max(rising, 1), falling)
