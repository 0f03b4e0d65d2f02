"""From stored dialogues to minibatches: which ones at which step, and the decisions in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.buffers.sequences import Sequences
from dialgym.datasets import Dataset, TokenBatch, TokenData


def token_data(dataset: Any, space: Any) -> TokenData:
    """The dialogues of `dataset` as an env with the observation space `space` writes them.

    Args:
        dataset: a `Dataset`, `TokenData`, or the path or name that `dialgym.load_dataset` takes.
        space: a `TokenBox`.

    Raises:
        ValueError: the dialogues cannot be written in that space, or there are none.
    """
    if isinstance(dataset, str | Path):
        from dialgym import load_dataset

        dataset = load_dataset(dataset)
    if isinstance(dataset, Dataset):
        dataset = dataset.tokens(tokenizer=space.tokenizer, window=space.shape[0])
    if not isinstance(dataset, TokenData):
        raise ValueError(
            "dataset: expected a dialgym Dataset, its TokenData, or the path of one, got "
            f"{type(dataset).__name__}; make one with dialgym.collect"
        )
    expected = (space.shape[0], int(space.high.max()) + 1)
    if (dataset.window, dataset.vocab_size) != expected:
        raise ValueError(
            f"dataset: expected windows of {expected[0]} tokens out of {expected[1]}, as in the "
            f"env, got {dataset.window} out of {dataset.vocab_size}; give the env's tokenizer and "
            "window to Dataset.tokens"
        )
    if not dataset.is_action.any():
        raise ValueError("dataset: expected dialogues in which the learner speaks, got none")
    return dataset


class Sampler:
    """Which dialogues a gradient step reads: each epoch all of them once, in a new order.

    The order follows from seed and step alone, so that a resumed run goes on exactly.
    """

    def __init__(self, dialogues: int, batch_size: int, seed: int) -> None:
        self.dialogues, self.seed = dialogues, seed
        self.batch_size = min(batch_size, dialogues)
        self.steps = dialogues // self.batch_size  # of an epoch; what is left over waits
        self._epoch, self._order = -1, np.zeros(0, np.int64)

    def rows(self, step: int) -> np.ndarray:
        """Dialogues (batch_size,) of a step, counted from 0."""
        epoch, batch = divmod(step, self.steps)
        if epoch != self._epoch:
            rng = np.random.default_rng([self.seed, epoch])
            self._epoch, self._order = epoch, rng.permutation(self.dialogues)
        return self._order[batch * self.batch_size : (batch + 1) * self.batch_size]


def opened(batch: TokenBatch, tag: int, window: int) -> TokenBatch:
    """The batch, with the learner's `tag` at the end of dialogues that a limit cut off.

    Values are learned of states in which the learner speaks and of no others, so the value of what
    was cut off is read after its tag. Nothing is added where the learner itself spoke last, or
    where the `window` is full.
    """
    last = batch.tokens[np.arange(len(batch.tokens)), batch.lengths - 1]
    heard = ~batch.is_action[np.arange(len(batch.tokens)), batch.lengths - 1]
    rows = np.flatnonzero(batch.truncated & heard & (last != tag) & (batch.lengths < window))
    if not len(rows):
        return batch
    names = ("tokens", "is_action", "reward", "return_to_go")
    wider = {name: np.pad(getattr(batch, name), ((0, 0), (0, 1))) for name in names}
    lengths = batch.lengths.copy()
    wider["tokens"][rows, lengths[rows]] = tag
    lengths[rows] += 1
    return batch._replace(**wider, lengths=lengths)


def decisions_of(
    batch: TokenBatch, device: torch.device, tag: int | None = None, window: int = 0
) -> Sequences:
    """Dialogues and the decisions in them, a sequence for each dialogue with any.

    A truncated dialogue ends with one more state, at which nothing was said: `real` is false there.
    With the learner's `tag` and the length of the `window` it is one in which the learner would
    speak; see `opened`.

    Columns (N,): `actions` int64; `rewards`, `returns` float32, the latter from that decision on;
    `real` bool; `goes_on` bool, whether a state follows in the dialogue.
    """
    if tag is not None and batch.truncated.any():
        batch = opened(batch, tag, window)
    spoke = batch.is_action.any(1)
    rows, at = np.nonzero(batch.is_action)
    cut = np.flatnonzero(batch.truncated & spoke)
    rows, at = np.concatenate([rows, cut]), np.concatenate([at, batch.lengths[cut]])
    order = np.lexsort((at, rows))
    rows, at, real = rows[order], at[order], (np.arange(len(rows)) < len(rows) - len(cut))[order]
    here = np.minimum(at, batch.tokens.shape[1] - 1)
    columns = {
        "actions": np.where(real, batch.tokens[rows, here], 0).astype(np.int64),
        "rewards": np.where(real, batch.reward[rows, here], np.float32(0)),
        "returns": np.where(real, batch.return_to_go[rows, here], np.float32(0)),
        "real": real,
    }
    return sequences_of(batch, rows, at - 1, columns, device)


def sequences_of(
    batch: TokenBatch,
    rows: np.ndarray,
    places: np.ndarray,
    columns: dict[str, np.ndarray],
    device: torch.device,
) -> Sequences:
    """Places (N,) in the dialogues `rows` (N,), in order, as sequences; none for other dialogues.

    To the `columns` (N, ...) comes `goes_on` bool, whether another place follows in the dialogue.
    """
    used, sequence = np.unique(rows, return_inverse=True)
    first = np.searchsorted(sequence, np.arange(len(used) + 1))
    lengths = places[first[1:] - 1] + 1
    goes_on = np.ones(len(rows), bool)
    goes_on[first[1:] - 1] = False
    tokens = batch.tokens[used, : int(lengths.max(initial=1))].astype(np.int64)
    everything = {**columns, "goes_on": goes_on}
    return Sequences(
        tokens=torch.from_numpy(tokens).to(device),
        lengths=lengths,
        first=first,
        places=places,
        steps=np.arange(len(rows)),
        columns={name: torch.from_numpy(column).to(device) for name, column in everything.items()},
    )
