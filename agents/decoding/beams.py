"""Beam search for the likeliest utterances of a GPT policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from agents.decoding.generation import Continuations, Prompts, Utterances, joined, pieces
from agents.models.prefixes import PAD

if TYPE_CHECKING:
    from agents.policies.gpt import GPTActorCritic


@torch.no_grad()
def beam_search(policy: GPTActorCritic, prompts: Prompts, width: int) -> Utterances:
    """The utterances (B, width, K) that a beam search finds, likeliest first.

    The likeliest `width` beginnings are kept at each token, whole utterances among them. A width
    of 1 is greedy; one of all possible beginnings finds the likeliest utterance. Where fewer can be
    said, the others have no tokens and log-probability -inf.

    Raises:
        ValueError: the width is not positive.
    """
    if width < 1:
        raise ValueError(f"beam_search: width must be at least 1, got {width}")
    parts = []
    for rows in pieces(prompts, width):
        beams = Beams(policy, prompts.select(rows), width)
        beams.search()
        parts.append(beams.utterances())
    return joined(parts)


class Beams(Continuations):
    """The beams of B dialogues, `count` of each, by falling probability."""

    def search(self) -> None:
        """Say token after token until all beams have ended."""
        first = np.arange(len(self.starts)) % self.count == 0  # at the start all beams are the same
        scores = torch.where(torch.from_numpy(first).to(self.device), 0.0, -torch.inf)
        unfinished = first
        for step in range(self.max_tokens):
            table = self._scored(np.flatnonzero(unfinished))
            scores, parents, said = self._best(scores, table)
            self._reorder(parents)
            origin = parents.cpu().numpy()
            unfinished = unfinished[origin] & (scores > -torch.inf).cpu().numpy()
            rows = np.flatnonzero(unfinished)
            index = self.index(rows)
            chosen = table[parents[index], said[index]]
            going_on = self.append(rows, said[index], chosen, step)
            unfinished[rows[~going_on]] = False
            if not unfinished.any():
                break
            self.read_last(np.flatnonzero(unfinished))
        self._empty(scores == -torch.inf)

    def _scored(self, rows: np.ndarray) -> Tensor:
        """Log-probabilities (N, V) of what each beam may say; only `rows` go on."""
        log_probs = self.next_log_probs(rows)
        table = torch.full((len(self.starts), log_probs.shape[1]), -torch.inf, device=self.device)
        table[:, 0] = 0  # whole utterances stay as they are, in any one column
        table[self.index(rows)] = log_probs
        return table

    def _best(self, scores: Tensor, table: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The best beams of each dialogue: scores, the beams they continue, and tokens."""
        vocabulary = table.shape[1]
        best = (scores[:, None] + table).view(-1, self.count * vocabulary).topk(self.count)
        parents = best.indices // vocabulary
        parents += self.count * torch.arange(len(parents), device=self.device)[:, None]
        return best.values.flatten(), parents.flatten(), (best.indices % vocabulary).flatten()

    def _reorder(self, parents: Tensor) -> None:
        """Row i becomes what row `parents[i]` was, for all rows (N,)."""
        origin = parents.cpu().numpy()
        if (origin == np.arange(len(origin))).all():
            return
        for name in ("tokens", "log_probs", "ends", "seen"):
            setattr(self, name, getattr(self, name)[parents])
        self.lengths, self.state = self.lengths[origin], self.state[origin]
        span = int(self.cache.lengths.max())
        for stored in (self.cache.keys, self.cache.values):
            stored[:, :, :, :span] = stored[:, parents, :, :span]
        self.cache.lengths = self.cache.lengths[origin]

    def _empty(self, rows: Tensor) -> None:
        """Tokens of beams without an utterance, `rows` (N,) bool."""
        self.tokens[rows] = PAD
        self.log_probs[rows] = 0
        self.log_probs[rows, 0] = -torch.inf
        self.lengths[rows.cpu().numpy()] = 0
