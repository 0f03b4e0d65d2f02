"""Dialogues as sequences of whole utterances: where each begins, its tokens, and where it ends."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from agents.buffers.sequences import Sequences
from agents.buffers.stored import opened, sequences_of
from dialgym.datasets import TokenBatch

ENDS, TOKENS, CUTS = range(3)  # kinds of places, in their order where they share one


def utterances_of(
    batch: TokenBatch, device: torch.device, tag: int | None = None, window: int = 0
) -> Sequences:
    """Dialogues and the places in them that count, a sequence for each dialogue with any.

    A place stands before each of the learner's tokens, and one after each of its utterances. A
    truncated dialogue has one more at its end, where an utterance would begin; with the learner's
    `tag` and the length of the `window` it is after a tag, see `opened`.

    Columns (N,): `said` bool, before a token, `actions` int64; `begins` bool, before an utterance's
    first token or where none was said any more; `real` bool, after an utterance, `rewards` float32
    the sum over its tokens, and `goes_on` bool, whether another place follows in the dialogue.
    """
    if tag is not None and batch.truncated.any():
        batch = opened(batch, tag, window)
    rows, places, kinds = _places(batch)
    order = np.lexsort((kinds, places, rows))
    rows, places, kinds = rows[order], places[order], kinds[order]
    said, real = kinds == TOKENS, kinds == ENDS
    after = np.minimum(places + 1, batch.tokens.shape[1] - 1)
    begins = (kinds == CUTS) | (said & ~batch.is_action[rows, places])
    rewards = np.zeros(len(rows), np.float32)
    rewards[real] = _sums(batch.reward[rows, after][said], begins[said])
    columns = {
        "actions": np.where(said, batch.tokens[rows, after], 0).astype(np.int64),
        "said": said,
        "begins": begins,
        "real": real,
        "rewards": rewards,
    }
    return sequences_of(batch, rows, places, columns, device)


def _places(batch: TokenBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dialogue, place and kind (N,) of all places, in no particular order."""
    spoken = batch.is_action
    rows, at = np.nonzero(spoken)
    ends = np.nonzero(spoken & ~np.pad(spoken[:, 1:], ((0, 0), (0, 1))))
    cut = np.flatnonzero(batch.truncated & spoken.any(1))
    kinds = np.repeat([TOKENS, ENDS, CUTS], [len(rows), len(ends[0]), len(cut)])
    return (
        np.concatenate([rows, ends[0], cut]),
        np.concatenate([at - 1, ends[1], batch.lengths[cut] - 1]),
        kinds,
    )


def _sums(rewards: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Of rewards (n,) of tokens, their sums by utterance; each begins where `first` (n,) is set."""
    if not len(rewards):
        return rewards
    return np.add.reduceat(rewards, np.flatnonzero(first))


def spread(values: Tensor, where: Tensor) -> Tensor:
    """Values (m,) at the m set places of `where` (n,), and 0 elsewhere: (n,)."""
    return torch.zeros(len(where), dtype=values.dtype, device=values.device).masked_scatter(
        where, values
    )
