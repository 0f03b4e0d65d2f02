"""Multi-turn DPO: preferences between whole dialogues, learned without a reward model."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar, Unpack

import torch
import torch.nn.functional as F
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor, nn

from agents.buffers.sequences import Sequences, sums_by_pair
from agents.buffers.stored import DecisionBatch
from agents.buffers.stored_pairs import StoredPairs, starts_of
from agents.buffers.stored_tokens import loaded
from agents.buffers.stream import DialogueStream
from agents.offline.algorithm import DialogueSample, Losses, OfflineAlgorithm, OfflineOptions
from agents.online.reference import FrozenPolicy
from agents.policies.belief import BeliefPolicy
from dialgym.errors import one_of

PAIRS = ("any", "start")


class DPO(OfflineAlgorithm):
    """Direct preference optimisation of dialogues, by the learner's own turns alone.

    With r(d) = sum over the turns t of a dialogue d, of T turns, of phi(t, T) log pi(turn) /
    pi_ref(turn), the loss of a pair is -log sigmoid(beta (r(better) - r(worse))). What the other
    party says is no choice of the learner's and counts nothing. phi is 1 in M-DPO (Xiong et al.
    2024, arXiv 2409.02392); in DMPO it is (1 - g^(T - t)) / (1 - g^T), t from 0, by
    which early turns count more and long dialogues no more than short ones (Shi et al. 2024, arXiv
    2406.14868). g = 0 is M-DPO; with g = 1 it is (T - t) / T.

    The reference pi_ref is the policy that learning first begins with, and stays: begin with a
    clone (`agents.start_from`). Each dialogue of the data that has a partner stands once in an
    epoch, beside one that is drawn anew.

    Args:
        policy, env: as of `OfflineAlgorithm`.
        dataset: as of `OfflineAlgorithm`, but for streams.
        batch_size: pairs of a gradient step, over all processes.
        beta: how much a log ratio counts; the smaller, the farther the policy may go.
        pairs: "any" two dialogues, or two of the same "start": seed and options of their reset,
            hidden things included, so that luck decides less. These have to be of a `Dataset`.
        margin: least difference of the returns of a pair.
        turn_gamma: g.
        policy_weight: of cloning the better dialogue beside, -log pi by token or act (Pang et al.
            2024, arXiv 2404.19733): else what was said may become less likely in both.
        kwargs: further arguments of `OfflineAlgorithm`; `gamma` is not asked.

    Raises:
        ValueError: a number or name that cannot be, no pair, or as of `OfflineAlgorithm`.
    """

    averaged_over: ClassVar[str] = "pairs"
    together: ClassVar[int] = 2

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        dataset: Any = None,
        beta: float = 0.1,
        pairs: str = "any",
        margin: float = 0.0,
        turn_gamma: float = 0.0,
        policy_weight: float = 0.0,
        **kwargs: Unpack[OfflineOptions],
    ) -> None:
        one_of("pairs", pairs, PAIRS, "DPO")
        self.beta, self.pairs, self.margin = beta, pairs, margin
        self.turn_gamma, self.policy_weight = turn_gamma, policy_weight
        self.reference_is_set = False
        super().__init__(policy, env, dataset, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        kind = FrozenBeliefs if self._plays_acts else FrozenPolicy
        self.reference = kind(self.policy)

    def _setup_learn(self, *args: Any, **kwargs: Any) -> Any:
        found = super()._setup_learn(*args, **kwargs)
        if not self.reference_is_set:
            self.reference.follow(self.policy)
            self.reference_is_set = True
        return found

    def stored(self, dataset: Any) -> StoredPairs:  # type: ignore[override]
        """As of `OfflineAlgorithm`, in pairs."""
        if isinstance(dataset, DialogueStream):
            raise ValueError(
                f"DPO: expected dialogues at hand, to choose pairs among, got {dataset!r}; collect "
                "them first"
            )
        dataset = loaded(dataset)
        starts = starts_of(dataset) if self.pairs == "start" else None
        return StoredPairs(super().stored(dataset), self.margin, starts, self.seed or 0)

    def read(self, dialogues: DialogueSample) -> Sequences:
        """As of `OfflineAlgorithm`, of dialogues in pairs: each worse one before the better one.

        The column `pairs` marks the first decision of each pair.
        """
        sequences = super().read(dialogues)
        marks = torch.zeros(len(sequences), dtype=torch.bool, device=self.device)
        marks[torch.from_numpy(sequences.first[:-1:2]).to(self.device)] = True
        sequences.columns["pairs"] = marks
        return sequences

    def loss(self, batch: DecisionBatch) -> Losses:
        """Losses (p,) of the p pairs in a batch, and metrics (p,)."""
        choices = batch.observations, batch.at, batch.actions, batch.allowed
        log_probs = self.policy.evaluate_sequences(*choices)[1]
        return self.loss_of_log_probs(batch, log_probs, self.reference.log_prob(*choices))

    def loss_of_log_probs(
        self, batch: DecisionBatch, log_probs: Tensor, reference: Tensor
    ) -> Losses:
        """The loss, from log-probabilities (n,) of what was chosen, now and by the reference."""
        rows, own = batch.at // batch.observations.shape[1], batch.is_action
        count = len(batch.observations)
        begins = self._begins(batch, rows).to(log_probs)
        weights = turn_weights(begins, rows, count, self.turn_gamma) * own
        worse, better = sums_by_pair(weights * (log_probs - reference), rows, count)
        loss = -F.logsigmoid(self.beta * (better - worse))
        metrics = {
            "preference_loss": loss,
            "accuracy": (better > worse).to(log_probs),
            "log_ratio_better": better,
            "log_ratio_worse": worse,
        }
        if self.policy_weight:
            sums, sizes = (
                sums_by_pair(x, rows, count)[1] for x in (log_probs * own, own.to(log_probs))
            )
            metrics["policy_loss"] = -sums / sizes
            loss = loss + self.policy_weight * metrics["policy_loss"]
        return loss, {name: values.detach() for name, values in metrics.items()}

    def _begins(self, batch: DecisionBatch, rows: Tensor) -> Tensor:
        """(n,) bool: where a turn begins; of acts each decision is one."""
        if self._plays_acts:
            return batch.is_action
        apart = torch.diff(batch.at, prepend=batch.at[:1] - 2) != 1
        return batch.is_action & (apart | (torch.diff(rows, prepend=rows[:1] - 1) != 0))

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "reference"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        modules, tensors = super()._get_torch_save_params()
        return [*modules, "reference"], tensors


class FrozenBeliefs(nn.Module):
    """A policy over beliefs as it is now: what `FrozenPolicy` is of a GPT policy."""

    def __init__(self, policy: Any) -> None:
        super().__init__()
        self.policy: BeliefPolicy = deepcopy(policy).requires_grad_(False)

    def follow(self, policy: Any) -> None:
        """Copy the current weights of the policy."""
        self.policy.load_state_dict(policy.state_dict())

    @torch.no_grad()
    def log_prob(self, *choices: Any) -> Tensor:
        """Log-probabilities (n,); arguments as of `BeliefPolicy.evaluate_sequences`."""
        return self.policy.evaluate_sequences(*choices)[1]


def turn_weights(begins: Tensor, rows: Tensor, count: int, gamma: float) -> Tensor:
    """phi(t, T) (n,) of the turns that decisions belong to; see `DPO`.

    Args:
        begins: (n,) float, 1 where a turn begins, else 0.
        rows: (n,) int64, of which of `count` dialogues; those of one stand together.
        count: of dialogues, each with a turn at least.
        gamma: g, from 0 to 1.
    """
    totals = begins.new_zeros(count).index_add(0, rows, begins)
    number = begins.cumsum(0) - 1  # over all dialogues
    left = totals[rows] - (number - (totals.cumsum(0) - totals)[rows])  # T - t
    if gamma == 1:
        return left / totals[rows]
    return (1 - gamma**left) / (1 - gamma ** totals[rows])
