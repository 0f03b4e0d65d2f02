"""Off-policy evaluation: what a policy would earn, from dialogues that another one held.

Fitted Q evaluation (FQE; Le et al. 2019, arXiv 1903.08738, Algorithm 3), here by token, with Q
linear in features of a trunk that does not learn (Duan, Jia and Wang 2020, arXiv 2002.09516):

    w[k+1] = argmin_w sum_i (w . phi(s_i, a_i) - r_i - gamma w[k] . phi(s'_i, pi))^2 + ridge |w|^2
    phi(s, pi) = sum_a pi(a | s) phi(s, a),   0 after the end,   w[0] = 0

Each step has a closed form, and where the steps settle so has their limit, which is that of LSTD-Q
(Lagoudakis and Parr 2003). The value of the policy is the mean of Q(s, pi) over first decisions.
Beside it stand weighted importance sampling per decision (Precup, Sutton and Singh 2000) and its
effective sample size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.argument_checks import COUNT, require
from agents.buffers.sequences import Sequences
from agents.buffers.stored import DecisionBatch
from agents.models.masking import FORBIDDEN
from agents.offline.algorithm import OfflineAlgorithm
from agents.offline.rank_accuracy import MOST_TOKENS
from agents.policies.gpt import GPTPolicy, MaskableGPTPolicy
from agents.policies.value import ValueGPTPolicy

READABLE = (GPTPolicy, MaskableGPTPolicy, ValueGPTPolicy)
"""Policies whose speech is a distribution of the next token, given the tokens before."""


class Moments(NamedTuple):
    """Sums over decisions, of which a step of the iteration is made; d features."""

    covariance: np.ndarray  # (d, d) of phi phi^T
    transition: np.ndarray  # (d, d) of phi phi(s', pi)^T
    reward: np.ndarray  # (d,) of phi r
    first: np.ndarray  # (d,) of phi(s, pi) at the first decisions
    dialogues: int


class PolicyValue(NamedTuple):
    """An estimate of a policy's mean return.

    `error` is the standard error over dialogues (delete-a-group jackknife), nan of one group;
    `left_out` (g,) float64 are the estimates without each of the groups.
    """

    value: float
    error: float
    left_out: np.ndarray


class Weighted(NamedTuple):
    """Weighted importance sampling per decision; `size` is the effective number of dialogues."""

    value: float
    size: float


def moments(
    features: np.ndarray,
    of_policy: np.ndarray,
    rewards: np.ndarray,
    is_action: np.ndarray,
    not_done: np.ndarray,
) -> Moments:
    """The sums of n places of whole dialogues, in order.

    Args:
        features: (n, d) float64, phi of what was said.
        of_policy: (n, d) float64, phi(s, pi).
        rewards: (n,) float64.
        is_action: (n,) bool; elsewhere a limit had cut the dialogue off, and nothing was said.
        not_done: (n,) bool, whether the next place is of the same dialogue.
    """
    begins = np.append(True, ~not_done[:-1])
    goes_on = np.flatnonzero(not_done)
    said = features[is_action]
    return Moments(
        said.T @ said,
        features[goes_on].T @ of_policy[goes_on + 1],
        said.T @ rewards[is_action],
        of_policy[begins].sum(0),
        int(begins.sum()),
    )


def fitted_value(parts: list[Moments], gamma: float = 1.0, ridge: float = 1e-6) -> PolicyValue:
    """The limit for all groups of dialogues together, and for all but one of them in turn.

    Args:
        parts: sums of each group.
        gamma: discount from one decision to the next.
        ridge: penalty, relative to the mean square of the features. It draws each of many steps
            towards 0, so that a large one makes long dialogues worth too little.

    Raises:
        ValueError: the steps do not settle, but grow.
    """
    value = _limit(_added(parts), gamma, ridge)
    rest = [_added([*parts[:i], *parts[i + 1 :]]) for i in range(len(parts)) if len(parts) > 1]
    return _with_error(value, np.array([_limit(one, gamma, ridge) for one in rest]))


def difference(first: PolicyValue, second: PolicyValue) -> PolicyValue:
    """The first less the second of the same dialogues, whose luck both share."""
    return _with_error(first.value - second.value, first.left_out - second.left_out)


def _with_error(value: float, left_out: np.ndarray) -> PolicyValue:
    if not len(left_out):
        return PolicyValue(value, float("nan"), left_out)
    count = len(left_out)
    error = np.sqrt((count - 1) / count * np.square(left_out - left_out.mean()).sum())
    return PolicyValue(value, float(error), left_out)


def _added(parts: list[Moments]) -> Moments:
    return Moments(*(sum(column) for column in zip(*parts, strict=True)))  # type: ignore[arg-type]


def _limit(sums: Moments, gamma: float, ridge: float) -> float:
    """The value that the steps come to."""
    size = len(sums.reward)
    penalty = ridge * np.trace(sums.covariance) / size
    inverse = np.linalg.inv(sums.covariance + penalty * np.eye(size))
    transition = gamma * inverse @ sums.transition
    radius = np.abs(np.linalg.eigvals(transition)).max()
    if not radius < 1:
        raise ValueError(
            f"fitted_value: a step makes errors grow (spectral radius {radius:.4g}, expected below "
            "1). Give a larger ridge, fewer token features or more dialogues"
        )
    weights = np.linalg.solve(np.eye(size) - transition, inverse @ sums.reward)
    return float(sums.first @ weights) / sums.dialogues


def weighted_returns(
    ratios: np.ndarray, rewards: np.ndarray, place: np.ndarray, dialogue: np.ndarray
) -> Weighted:
    """The sum of rewards, each weighed by the ratios up to its decision, normalised over dialogues.

    sum_t sum_i rho[i, t] r[i, t] / sum_i rho[i, t], rho[i, t] = prod_{u <= t} pi / mu; a dialogue
    that has ended keeps its last weight, so that all t have all dialogues.

    Args:
        ratios: (n,) pi(a | s) / mu(a | s) of n decisions, dialogue by dialogue.
        rewards: (n,).
        place: (n,) int64, the number of a decision in its dialogue, from 0.
        dialogue: (n,) int64, its dialogue, from 0.
    """
    shape = int(dialogue.max()) + 1, int(place.max()) + 1
    logs, earned = np.zeros(shape), np.zeros(shape)
    logs[dialogue, place] = np.log(np.maximum(ratios, np.finfo(np.float64).tiny))
    earned[dialogue, place] = rewards
    logs = logs.cumsum(1)
    weights = np.exp(logs - logs.max(0))
    weights /= weights.sum(0)
    return Weighted(float((weights * earned).sum()), float(1 / np.square(weights[:, -1]).sum()))


# Reading dialogues


@dataclass(frozen=True)
class _Read:
    """n places in a group of dialogues: hidden states, what was said, what was thought of it."""

    states: np.ndarray  # (n, h) float64, with a 1
    actions: np.ndarray  # (n,) int64
    rewards: np.ndarray  # (n,) float64
    is_action: np.ndarray  # (n,) bool
    not_done: np.ndarray  # (n,) bool
    chances: np.ndarray  # (n,) float64, of what was said, by the reader's own policy


class FittedEvaluation:
    """Evaluation of policies over tokens by dialogues that are none of their training.

    phi(s, a) is the outer product of (1, h(s)) and (1, u(a)): h(s) is the last hidden state of the
    reader's trunk, u(a) the token in so many principal components of its embeddings.

    Args:
        reader: a model whose trunk reads them; that of a clone, whose speech stands for that of
            who held the dialogues in `weighted`.
        dataset: the dialogues, with the rewards that were earned, whatever the reader learned from
            (`normalize_rewards`, `token_reward`): a `Dataset`, `TokenData` or a path.
        gamma: discount from one token of the learner's to the next.
        ridge: see `fitted_value`.
        components: of the embeddings; all are taken where there are fewer.
        groups: of dialogues, that are left out in turn for the standard error.

    Raises:
        ValueError: as of the algorithms for the dataset, or a number that cannot be.
    """

    def __init__(
        self,
        reader: OfflineAlgorithm,
        dataset: Any,
        gamma: float = 1.0,
        ridge: float = 1e-6,
        components: int = 8,
        groups: int = 10,
    ) -> None:
        require("FittedEvaluation", COUNT, components=components, groups=groups)
        self.reader, self.gamma, self.ridge = reader, gamma, ridge
        _check_readable(reader.policy)
        data = reader.tokens_of(dataset)
        self._sequences = [
            reader.read(data.batch(rows, gamma, trim=True))
            for rows in np.array_split(np.arange(len(data)), min(groups, len(data)))
        ]
        self._tokens = _token_features(reader.policy, components)
        self._groups = [self._read_group(one) for one in self._sequences]

    def value(self, policy: Any, deterministic: bool = False) -> PolicyValue:
        """Estimate the mean return of a policy.

        Args:
            policy: of a model over the reader's tokens: `agents.GPTPolicy`, or one that speaks by
                values of tokens.
            deterministic: it says the likeliest token; without the rule against repeats.

        Raises:
            ValueError: its next token depends on more than the tokens before, or as of
                `fitted_value`.
        """
        parts = []
        for sequences, group in zip(self._sequences, self._groups, strict=True):
            mean, _ = self._speech(policy, sequences, deterministic)
            said = self._tokens[group.actions]
            parts.append(
                moments(
                    _outer(group.states, said),
                    _outer(group.states, mean),
                    group.rewards,
                    group.is_action,
                    group.not_done,
                )
            )
        return fitted_value(parts, self.gamma, self.ridge)

    def weighted(self, policy: Any) -> Weighted:
        """Estimate it by weighted importance sampling, with the reader's policy as behaviour."""
        columns: list[tuple[np.ndarray, ...]] = []
        dialogues = 0
        for sequences, group in zip(self._sequences, self._groups, strict=True):
            _, chances = self._speech(policy, sequences, False)
            own = group.is_action
            owner = np.repeat(np.arange(len(sequences.sizes)), sequences.sizes)
            place = np.arange(len(owner)) - sequences.first[owner]
            discounted = group.rewards * self.gamma**place
            ratios = chances / np.maximum(group.chances, np.finfo(np.float64).tiny)
            columns.append((ratios[own], discounted[own], place[own], owner[own] + dialogues))
            dialogues += len(sequences.sizes)
        return weighted_returns(*map(np.concatenate, zip(*columns, strict=True)))

    @torch.no_grad()
    def _read_group(self, sequences: Sequences) -> _Read:
        trunk = self.reader.policy.backbone
        hidden = self._of_all(sequences, lambda b: trunk(b.observations, b.at).double())
        own = {name: values.cpu().numpy() for name, values in sequences.columns.items()}
        return _Read(
            np.concatenate([np.ones((len(hidden), 1)), hidden], 1),
            own["actions"],
            own["rewards"].astype(np.float64),
            own["is_action"],
            own["not_done"],
            self._speech(self.reader.policy, sequences, False)[1],
        )

    @torch.no_grad()
    def _speech(
        self, policy: Any, sequences: Sequences, deterministic: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean token features (n, u) under a policy, and the probability (n,) of what was said."""
        tokens = torch.from_numpy(self._tokens).to(self.reader.device)

        def spoken(batch: DecisionBatch) -> Tensor:
            chances = speech(policy, batch, deterministic).double()
            return torch.cat([chances @ tokens, chances.gather(1, batch.actions[:, None])], 1)

        found = self._of_all(sequences, spoken)
        return found[:, :-1], found[:, -1]

    def _of_all(self, sequences: Sequences, function: Callable[[Any], Tensor]) -> np.ndarray:
        found: np.ndarray = self.reader.of_all(sequences, function, MOST_TOKENS).cpu().numpy()
        return found


def speech(policy: Any, batch: DecisionBatch, deterministic: bool = False) -> Tensor:
    """Probabilities (n, V) float32 of the next token at all decisions of a batch, as it speaks.

    Raises:
        ValueError: the next token depends on more than the tokens before.
    """
    _check_readable(policy)
    hidden = policy.backbone(batch.observations, batch.at)
    logits = policy.policy_head(hidden)
    if batch.allowed is not None:
        logits = logits.masked_fill(~batch.allowed, FORBIDDEN)
    if isinstance(policy, ValueGPTPolicy):
        advantages = None
        if policy.decoding.beta:
            if policy.value_backbone is not None:
                hidden = policy.value_backbone(batch.observations, batch.at)
            q = policy.least_q(hidden)
            advantages = policy.decoding.clip(q - policy.value_head(hidden))
        logits = policy.decoding.logits(logits, advantages)
    else:
        logits = policy.sampling.logits(logits)
    if deterministic:
        chosen = logits.argmax(-1, keepdim=True)
        return torch.zeros_like(logits, dtype=torch.float32).scatter(1, chosen, 1.0)
    return logits.float().softmax(-1)


def _check_readable(policy: Any) -> None:
    """Raises ValueError for a policy whose next token depends on more than the tokens before."""
    if type(policy) not in READABLE:
        names = ", ".join(kind.__name__ for kind in READABLE)
        raise ValueError(
            f"speech: expected a policy that is a distribution of the next token ({names}), got "
            f"{type(policy).__name__}; play it with dialgym.evaluate"
        )


def _outer(states: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """(n, h u): outer products of rows (n, h) and (n, u)."""
    products: np.ndarray = states[:, :, None] * tokens[:, None, :]
    return products.reshape(len(states), -1)


@torch.no_grad()
def _token_features(policy: Any, components: int) -> np.ndarray:
    """(V, 1 + u) float64: 1, and each token in the principal components, of deviation 1."""
    embedded = policy.backbone.embedding.detach().double().cpu().numpy()
    embedded = embedded - embedded.mean(0)
    left, scales, _ = np.linalg.svd(embedded, full_matrices=False)
    kept = min(components, int((scales > 1e-9 * scales[0]).sum()))
    return np.concatenate([np.ones((len(left), 1)), left[:, :kept] * len(left) ** 0.5], 1)
