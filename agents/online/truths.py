"""A policy's probability of naming the truth at each turn, and its rise by a turn.

Arrays by step are (T, n), as in `agents.online.credit`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from agents.buffers.sequences import Sequences


def turn_starts(ends: np.ndarray, said: np.ndarray) -> np.ndarray:
    """(T, n) bool: where a turn begins. `ends` (T, n) closes one, `said` is where it was played."""
    none = np.zeros((1, said.shape[1]), bool)
    before = np.concatenate([none, said[:-1]])
    ended = np.concatenate([none, ends[:-1]])
    begun: np.ndarray = said & (~before | ended)
    return begun


def continued(
    sequences: Sequences, decisions: np.ndarray, answers: Sequence[np.ndarray]
) -> Sequences:
    """Each prefix that ends where a decision is due, and after it what might be said there.

    Args:
        sequences: a rollout's.
        decisions: (m,) numbers of decisions.
        answers: (m,) of (k,) int tokens, at least one each.

    Returns:
        m sequences; their decisions are the tokens of the answers, in the column `actions`.
    """
    owner = np.repeat(np.arange(len(sequences.sizes)), sequences.sizes)[decisions]
    prefix = sequences.places[decisions] + 1
    sizes = np.array([len(answer) for answer in answers])
    first = np.append(0, sizes.cumsum())
    within = np.arange(first[-1]) - np.repeat(first[:-1], sizes)
    rows, places = np.repeat(np.arange(len(sizes)), sizes), np.repeat(prefix, sizes) + within
    device = sequences.tokens.device
    actions = torch.from_numpy(np.concatenate(answers).astype(np.int64)).to(device)
    index = torch.from_numpy(owner).to(device)
    room = torch.zeros(len(sizes), int((prefix + sizes).max()), dtype=torch.int64, device=device)
    known = min(room.shape[1], sequences.tokens.shape[1])
    kept = torch.arange(known, device=device) < torch.from_numpy(prefix).to(device)[:, None]
    room[:, :known] = sequences.tokens[index, :known] * kept
    room[torch.from_numpy(rows).to(device), torch.from_numpy(places).to(device)] = actions
    return Sequences(
        tokens=room,
        features=None if sequences.features is None else sequences.features[index],
        lengths=prefix + sizes - 1,
        first=first,
        places=places - 1,
        steps=np.arange(first[-1]),
        columns={"actions": actions},
    )


def probabilities(log_probs: Tensor, sizes: np.ndarray) -> np.ndarray:
    """(m,): the geometric mean of an answer's probabilities by token.

    Args:
        log_probs: (N,) of the tokens of all answers, one after another.
        sizes: (m,) tokens of each.
    """
    values = log_probs.double().cpu().numpy()
    found: np.ndarray = np.exp(np.add.reduceat(values, sizes.cumsum() - sizes) / sizes)
    return found


def probability_rises(values: np.ndarray, begun: np.ndarray) -> np.ndarray:
    """(T, n): at each beginning of a turn but a row's last, the next value less this one.

    Args:
        values: (T, n), where a turn has begun.
        begun: (T, n) bool, of `turn_starts`; of one episode a row.
    """
    row, step = np.nonzero(begun.T)
    here = values[step, row]
    gain = np.append(here[1:] - here[:-1], 0.0)
    gain[np.append(row[1:] != row[:-1], True)] = 0.0
    found = np.zeros(values.shape)
    found[step, row] = gain
    return found
