"""Measures of offline learning beside returns: Q, V, KL to the clone, entropy, rank accuracy.

The measures are those of Snell et al. (2022): how far speech is from the cloned policy, how sure it
is, what tokens earn, whether Q ranks what an expert said above what led nowhere, and which
utterances it thinks most and least of.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.buffers.stored import DecisionBatch
from agents.models.masking import FORBIDDEN
from agents.offline.algorithm import OfflineAlgorithm
from agents.offline.ilql import ValueAlgorithm
from agents.policies.value import ValueGPTPolicy
from dialgym.datasets import Dataset, TokenBatch, TokenData
from dialgym.errors import one_of
from dialgym.language.tokenizers import END

BATCH, MOST_TOKENS = 64, 4096
"""Dialogues, and most tokens, that are read at once."""


@dataclass(frozen=True)
class LoggedDecisions:
    """N tokens that the learner said in stored dialogues, in order, and what a model thinks of it.

    Attributes:
        dialogue: (N,) int64, rows of the dataset.
        utterance: (N,) int64, the learner's utterances before this one in the dialogue.
        token: (N,) int64, what was said.
        reward: (N,) float32, what it earned.
        q: (N,) float32, the lesser Q of it, as speech reads it.
        v: (N,) float32.
        kl: (N,) float32, KL(speech || cloned policy) of that state, in nats.
        entropy: (N,) float32, of speech, in nats.
    """

    dialogue: np.ndarray
    utterance: np.ndarray
    token: np.ndarray
    reward: np.ndarray
    q: np.ndarray
    v: np.ndarray
    kl: np.ndarray
    entropy: np.ndarray

    @property
    def advantage(self) -> np.ndarray:
        """(N,) float32: Q - V."""
        return self.q - self.v


class Ranks(NamedTuple):
    """The ranking of pairs of continuations of one state by Q."""

    accuracy: float  # share of pairs in which the expert's has the higher Q; nan without pairs
    pairs: int


class Rated(NamedTuple):
    """An utterance and the sum of its tokens' advantages."""

    advantage: float
    dialogue: int  # row of the dataset
    utterance: int  # the learner's utterances before it
    text: str


def decisions(model: OfflineAlgorithm, dataset: Any) -> LoggedDecisions:
    """The learner's decisions in the dialogues of `dataset`, with the estimates of `model`.

    Args:
        model: `ILQL` or one of its kin; its `policy.decoding` says how it speaks.
        dataset: as an algorithm takes it.

    Raises:
        ValueError: the model has no Q values, or as of the algorithms for the dataset.
    """
    return _decisions(model, _data(model, dataset))


def summary(model: OfflineAlgorithm, dataset: Any) -> dict[str, float]:
    """Means over all that the learner said in `dataset`: token reward, KL, entropy, Q and V.

    Raises:
        ValueError: as of `decisions`.
    """
    found = decisions(model, dataset)
    return {
        "token_reward": float(found.reward.mean()),
        "kl": float(found.kl.mean()),
        "entropy": float(found.entropy.mean()),
        "q": float(found.q.mean()),
        "v": float(found.v.mean()),
        "advantage": float(found.advantage.mean()),
    }


def rank_accuracy(
    model: OfflineAlgorithm, dataset: Dataset, kind: str = "repeat", by: str = "first"
) -> Ranks:
    """In how many branches the Q of what the expert said is higher than that of the branch.

    Pairs in which both went on with the same utterance are left out.

    Args:
        model: as of `decisions`.
        dataset: of a generator that branches, such as Wordle's `adversarial`.
        kind: of the branches.
        by: "first" compares the first tokens that differ, which are said in the same state;
            "utterance" the sums over the tokens of the first utterances that differ.

    Raises:
        ValueError: as of `decisions`, or another `by`.
    """
    one_of("by", by, ["first", "utterance"], "rank_accuracy")
    pairs = dataset.pairs(kind)
    if not len(pairs):
        return Ranks(float("nan"), 0)
    rows, places = np.unique(pairs[:, :2], return_inverse=True)
    found = decisions(model, dataset.select(rows))
    right = []
    for (source, branch), shared in zip(places.reshape(-1, 2), pairs[:, 2], strict=True):
        two = [_utterance(found, row, shared) for row in (source, branch)]
        said = [found.token[one] for one in two]
        if np.array_equal(*said) or not (len(said[0]) and len(said[1])):
            continue
        if by == "first":
            size = min(map(len, said))
            differs = np.flatnonzero(said[0][:size] != said[1][:size])[0]
            two = [one[differs : differs + 1] for one in two]
        expert, other = (found.q[one].sum() for one in two)
        right.append(expert > other)
    return Ranks(float(np.mean(right)) if right else float("nan"), len(right))


def extreme_utterances(
    model: OfflineAlgorithm, dataset: Any, count: int = 10
) -> tuple[list[Rated], list[Rated]]:
    """The utterances of greatest and of least advantage, summed over their tokens, best first.

    Each list has `count`, or all that there are; the second begins with the worst.

    Raises:
        ValueError: as of `decisions`.
    """
    data = _data(model, dataset)
    found = _decisions(model, data)
    starts = np.flatnonzero(_begins(found.dialogue, found.utterance))
    sums = np.add.reduceat(found.advantage, starts)
    order = np.argsort(-sums, kind="stable")
    ends = np.append(starts[1:], len(found.token))
    decode = data.layout.tokenizer.decode

    def rated(i: int) -> Rated:
        at, said = starts[i], found.token[starts[i] : ends[i]]
        text = decode(said[said != END])
        return Rated(float(sums[i]), int(found.dialogue[at]), int(found.utterance[at]), text)

    return [rated(i) for i in order[:count]], [rated(i) for i in order[::-1][:count]]


def divergence(logits: Tensor, others: Tensor) -> Tensor:
    """KL(p || q) (n,) in nats of the distributions with `logits` (n, V) and `others` (n, V)."""
    log_p = logits.log_softmax(-1)
    return (log_p.exp() * (log_p - others.log_softmax(-1))).sum(-1)


def entropy(logits: Tensor) -> Tensor:
    """Entropy (n,) in nats of the distributions with `logits` (n, V)."""
    log_p = logits.log_softmax(-1)
    return -(log_p.exp() * log_p).sum(-1)


def _utterance(found: LoggedDecisions, dialogue: int, utterance: int) -> np.ndarray:
    return np.flatnonzero((found.dialogue == dialogue) & (found.utterance == utterance))


def _begins(*columns: np.ndarray) -> np.ndarray:
    """(N,) bool: where any of the columns (N,) has another value than just before."""
    changes = [np.append(True, column[1:] != column[:-1]) for column in columns]
    return np.logical_or.reduce(changes)


def _data(model: OfflineAlgorithm, dataset: Any) -> TokenData:
    """The dialogues, as the model's env writes them."""
    tokens = isinstance(model, ValueAlgorithm) and model.estimates_tokens
    if not (tokens and isinstance(model.policy, ValueGPTPolicy)):
        raise ValueError(
            "metrics: expected a model with Q and V of single tokens, such as ILQL, got "
            f"{type(model).__name__} with {type(model.policy).__name__}"
        )
    return model.tokens_of(dataset)


def _decisions(model: OfflineAlgorithm, data: TokenData) -> LoggedDecisions:
    assert isinstance(model.policy, ValueGPTPolicy)
    model.policy.set_training_mode(False)
    rows = np.array_split(np.arange(len(data)), -(-len(data) // BATCH))
    parts = [_of_batch(model, model.policy, data.batch(some, trim=True)) for some in rows]
    names = [field.name for field in fields(LoggedDecisions)]
    return LoggedDecisions(
        **{name: np.concatenate([part[name] for part in parts]) for name in names}
    )


@torch.no_grad()
def _of_batch(
    model: OfflineAlgorithm, policy: ValueGPTPolicy, batch: TokenBatch
) -> dict[str, np.ndarray]:
    row, place = np.nonzero(batch.is_action)
    whole = model.read(batch._replace(truncated=np.zeros_like(batch.truncated)))
    estimates = model.of_all(whole, lambda batch: _estimates(policy, batch), MOST_TOKENS).T
    begins = _begins(row, place - np.arange(len(place)))
    number = begins.cumsum() - 1
    first = np.flatnonzero(_begins(row))
    names = ("q", "v", "kl", "entropy")
    return {
        "dialogue": batch.rows[row],
        "utterance": number - np.repeat(number[first], np.diff(np.append(first, len(row)))),
        "token": batch.tokens[row, place].astype(np.int64),
        "reward": batch.reward[row, place],
        **dict(zip(names, estimates.cpu().numpy(), strict=True)),
    }


def _estimates(policy: ValueGPTPolicy, batch: DecisionBatch) -> Tensor:
    """Q, V, KL and entropy (n, 4) of the decisions of a batch."""
    hidden = value_hidden = policy.backbone(batch.observations, batch.at)
    if policy.value_backbone is not None:
        value_hidden = policy.value_backbone(batch.observations, batch.at)
    q, v = policy.least_q(value_hidden), policy.value_head(value_hidden)
    cloned = policy.policy_head(hidden)
    if batch.allowed is not None:
        cloned = cloned.masked_fill(~batch.allowed, FORBIDDEN)
    spoken = policy.decoding.logits(cloned, policy.decoding.clip(q - v))
    q_said = q.gather(1, batch.actions[:, None])[:, 0]
    return torch.stack([q_said, v[:, 0], divergence(spoken, cloned), entropy(spoken)], 1)
