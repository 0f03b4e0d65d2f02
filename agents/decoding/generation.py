"""Batched generation: whole utterances drawn from a GPT policy, one cached forward for each token.

The keys and values of a dialogue are computed once, and copied for all that might follow it.
`agents.decoding.beams` searches in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.decoding.sampling import draw
from agents.models.cache import KVCache
from agents.models.masking import FORBIDDEN
from agents.models.observations import Observed, token_space
from agents.models.prefixes import PAD, lengths_of
from dialgym.language.tokenizers import END

if TYPE_CHECKING:
    from agents.policies.gpt import GPTActorCritic

CPU_TOKENS, GPU_TOKENS = 2**17, 2**20
"""Most tokens of the copies of keys and values that are made at once."""


class Utterances(NamedTuple):
    """n utterances for each of B dialogues, of at most K tokens, `<end>` included where said."""

    tokens: Tensor  # (B, n, K) int64, PAD at the right
    lengths: Tensor  # (B, n) int64, 1 or more; 0 where a beam search found none
    log_probs: Tensor  # (B, n, K) float32, of each token; 0 at the right
    hidden: Tensor | None = None  # (B, n, K, d) after each token, 0 at the right; None if not kept

    @property
    def log_prob(self) -> Tensor:
        """Log-probabilities (B, n) of the utterances."""
        return self.log_probs.sum(-1)


@dataclass
class Prompts:
    """B dialogues in which the learner speaks next, read already."""

    tokens: Tensor  # (B, L) int64, PAD at the right
    lengths: np.ndarray  # (B,) int64
    hidden: Tensor  # (B, d) at the ends
    cache: KVCache
    rows: np.ndarray  # (B,) int64, those of the cache; its sequences may be longer
    states: np.ndarray  # (B,) int64, of the policy's automaton; 0 where there is none
    room: np.ndarray  # (B,) int64, tokens that may follow, 1 or more

    def __len__(self) -> int:
        return len(self.lengths)

    def select(self, rows: np.ndarray) -> Prompts:
        """The prompts at `rows` (b,)."""
        index = torch.from_numpy(rows).to(self.tokens.device)
        return Prompts(
            self.tokens[index],
            self.lengths[rows],
            self.hidden[index],
            self.cache,
            self.rows[rows],
            self.states[rows],
            self.room[rows],
        )


@torch.no_grad()
def read_prompts(policy: GPTActorCritic, tokens: Tensor, max_tokens: int | None = None) -> Prompts:
    """The dialogues of observations (B, L), PAD at the right, perhaps within an utterance.

    They are read through the policy's own cache and are valid until that reads others.

    Args:
        policy: reads.
        tokens: (B, L).
        max_tokens: of a whole utterance; None lets it go on up to the window's end.
    """
    tokens = tokens.long()
    lengths = lengths_of(tokens)
    caches = policy.caches
    hidden = caches.read(Observed.of(tokens))
    ends = lengths.cpu().numpy()
    states = np.zeros_like(ends)
    masker = policy.planned_masks.masker
    if masker is not None:
        states = masker.states(tokens, lengths).cpu().numpy()
    return Prompts(
        tokens,
        ends,
        hidden,
        caches._get(len(tokens)).kv,
        np.arange(len(tokens)),
        states,
        room_of(policy, ends, said_so_far(policy, tokens, ends), max_tokens),
    )


def said_so_far(policy: GPTActorCritic, tokens: Tensor, lengths: np.ndarray) -> np.ndarray:
    """Tokens (B,) of the learner's utterance at the end of each row of (B, L)."""
    tag = getattr(token_space(policy.observation_space), "learner_tag", -1)
    places = np.arange(1, tokens.shape[1] + 1)
    starts = ((tokens.cpu().numpy() == tag) * places).max(1)
    return np.where(starts > 0, lengths - starts, 0)


def room_of(
    policy: GPTActorCritic, lengths: np.ndarray, said: np.ndarray, max_tokens: int | None
) -> np.ndarray:
    """Number of tokens (B,) that may follow, at least 1: something has to be said."""
    room = policy.backbone.window - lengths
    if max_tokens is not None:
        room = np.minimum(room, max_tokens - said)
    return np.maximum(room, 1)


@torch.no_grad()
def sample_utterances(
    policy: GPTActorCritic,
    prompts: Prompts,
    count: int,
    uniform: Tensor | None = None,
    random: int = 0,
    keep_hidden: bool = False,
) -> Utterances:
    """Draw `count` utterances for each dialogue from the policy's distribution of tokens.

    Args:
        policy: speaks.
        prompts: B of them.
        count: n.
        uniform: (B, n, K) numbers from 0 to below 1 to draw with, K at least the most room;
            None draws them from PyTorch's generator.
        random: the last so many of the n are of tokens drawn uniformly from what may be said.
        keep_hidden: whether to keep hidden states, which costs a forward after each last token.
    """
    if uniform is None:
        shape = (len(prompts), count, int(prompts.room.max(initial=1)))
        uniform = torch.rand(shape, dtype=torch.float64, device=prompts.hidden.device)
    parts = []
    for rows in pieces(prompts, count):
        drawn = Continuations(policy, prompts.select(rows), count)
        drawn.sample(uniform[torch.from_numpy(rows).to(uniform.device)], random, keep_hidden)
        parts.append(drawn.utterances())
    return joined(parts)


class Continuations:
    """N = B n utterances said token by token, n for each dialogue side by side.

    Args:
        policy: speaks.
        prompts: B of them.
        count: n.
    """

    def __init__(self, policy: GPTActorCritic, prompts: Prompts, count: int) -> None:
        self.policy, self.count = policy, count
        self.device = prompts.hidden.device
        self.starts = np.repeat(prompts.lengths, count)
        self.room = np.repeat(prompts.room, count)
        self.max_tokens = int(prompts.room.max(initial=1))
        self.cache = copies(prompts, count, self.max_tokens)
        self.state = np.repeat(prompts.states, count)
        self.ends = prompts.hidden.repeat_interleave(count, 0)  # (N, d) hidden states so far
        n = len(self.starts)
        self.tokens = torch.zeros(n, self.max_tokens, dtype=torch.int64, device=self.device)
        self.log_probs = torch.zeros(n, self.max_tokens, device=self.device)
        self.lengths = np.zeros(n, np.int64)
        self.hidden: Tensor | None = None
        # What is seen so far, for policies that read more than the hidden state.
        seen = prompts.tokens.repeat_interleave(count, 0)
        self.seen = torch.nn.functional.pad(
            seen, (0, max(policy.backbone.window - seen.shape[1], 0))
        )

    def sample(self, uniform: Tensor, random: int, keep_hidden: bool) -> None:
        """See `sample_utterances`; `uniform` is (B, n, K)."""
        numbers = uniform.flatten(0, 1)
        at_random = np.arange(len(self.starts)) % self.count >= self.count - random
        if keep_hidden:
            shape = (*self.tokens.shape, self.ends.shape[1])
            self.hidden = torch.zeros(shape, device=self.device)
        alive = np.arange(len(self.starts))
        for step in range(self.max_tokens):
            index = self.index(alive)
            log_probs = self.next_log_probs(alive, at_random[alive])
            said = draw(log_probs, numbers[index, step])
            going_on = self.append(alive, said, log_probs.gather(1, said[:, None])[:, 0], step)
            if keep_hidden:
                self.read_last(alive)
                self.hidden[index, step] = self.ends[index]  # type: ignore[index]
            alive = alive[going_on]
            if not len(alive):
                return
            if not keep_hidden:
                self.read_last(alive)

    def utterances(self) -> Utterances:
        """The utterances that were said."""
        lengths = torch.from_numpy(self.lengths).to(self.device)
        hidden = None if self.hidden is None else self.hidden.unflatten(0, (-1, self.count))
        return Utterances(
            self.tokens.unflatten(0, (-1, self.count)),
            lengths.unflatten(0, (-1, self.count)),
            self.log_probs.unflatten(0, (-1, self.count)),
            hidden,
        )

    def index(self, rows: np.ndarray) -> Tensor:
        return torch.from_numpy(rows).to(self.device)

    def next_log_probs(self, rows: np.ndarray, at_random: np.ndarray | None = None) -> Tensor:
        """Log-probabilities (b, V) of the next token of `rows`, -inf where it is forbidden."""
        index, masker, allowed = self.index(rows), self.policy.planned_masks.masker, None
        if masker is not None:
            allowed = masker.allowed[torch.from_numpy(self.state[rows])].to(self.device)
        seen = self.seen[index]
        distribution = self.policy._distribution(seen, self.ends[index], allowed)
        logits: Tensor = distribution.distribution.logits  # type: ignore[union-attr]
        log_probs = logits.masked_fill(logits <= FORBIDDEN / 2, -torch.inf)
        if at_random is None or not at_random.any():
            return log_probs
        alike = torch.zeros_like(logits)
        if allowed is None:
            alike[:, PAD] = -torch.inf
        else:
            alike.masked_fill_(~allowed, -torch.inf)
        chosen = torch.from_numpy(at_random).to(self.device)[:, None]
        return torch.where(chosen, alike.log_softmax(-1), log_probs)

    def append(self, rows: np.ndarray, said: Tensor, log_prob: Tensor, step: int) -> np.ndarray:
        """Say tokens (b,) in `rows` (b,), all the `step`-th of an utterance; who goes on, (b,)."""
        index, spoken = self.index(rows), said.cpu().numpy()
        self.tokens[index, step] = said
        self.log_probs[index, step] = log_prob
        self.lengths[rows] = step + 1
        places = self.index(self.starts[rows] + step)
        fits = places < self.seen.shape[1]
        self.seen[index[fits], places[fits]] = said[fits]
        masker = self.policy.planned_masks.masker
        if masker is not None:
            moves, stride = masker.moves, masker.stride
            self.state[rows] = moves[self.state[rows] * stride + spoken] // stride
        return (spoken != END) & (step + 1 < self.room[rows])

    def read_last(self, rows: np.ndarray) -> None:
        """Let the model read the last token of `rows`, where the window holds it."""
        places = self.starts[rows] + self.lengths[rows] - 1
        rows = rows[places < self.policy.backbone.window]
        if not len(rows):
            return
        index = self.index(rows)
        last = self.tokens[index, self.index(self.lengths[rows] - 1)]
        self.ends[index] = self.policy.backbone.extend(last, np.ones_like(rows), self.cache, rows)


def copies(prompts: Prompts, count: int, more: int) -> KVCache:
    """Keys and values of the prompts, `count` times each in a row, with room for `more` tokens."""
    rows, lengths = np.repeat(prompts.rows, count), np.repeat(prompts.lengths, count)
    return prompts.cache.copied(rows, lengths, more)


def pieces(prompts: Prompts, count: int) -> list[np.ndarray]:
    """Numbers of prompts to go on from at once."""
    most = CPU_TOKENS if prompts.hidden.device.type == "cpu" else GPU_TOKENS
    longest = int((prompts.lengths + prompts.room).max(initial=1))
    size = max(most // (longest * count), 1)
    return np.split(np.arange(len(prompts)), range(size, len(prompts), size))


def joined(parts: list[Utterances]) -> Utterances:
    """Utterances of pieces, of which each may have its own K, as one."""
    if len(parts) == 1:
        return parts[0]
    most = max(part.tokens.shape[2] for part in parts)

    def joined(tensors: list[Tensor]) -> Tensor:
        widths = [most - tensor.shape[2] for tensor in tensors]
        tails = [(0, 0) * (t.dim() - 3) + (0, w) for t, w in zip(tensors, widths, strict=True)]
        return torch.cat(
            [torch.nn.functional.pad(t, p) for t, p in zip(tensors, tails, strict=True)]
        )

    hidden = [part.hidden for part in parts if part.hidden is not None]
    return Utterances(
        joined([part.tokens for part in parts]),
        torch.cat([part.lengths for part in parts]),
        joined([part.log_probs for part in parts]),
        joined(hidden) if hidden else None,
    )
