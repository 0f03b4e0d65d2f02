"""Implicit language Q-learning of whole utterances (Snell et al. 2022)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Unpack

import torch
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.buffers.sequences import Part, Sequences
from agents.buffers.stored import UtteranceBatch, scattered, utterances_of
from agents.models.heads import chosen
from agents.offline.algorithm import DialogueSample, Losses
from agents.offline.ilql import ValueAlgorithm, ValueOptions
from agents.offline.losses import bellman_target, expectile_loss, next_values
from agents.policies.utterance import UtteranceGPTPolicy


class UtteranceAlgorithm(ValueAlgorithm):
    """Base of the algorithms whose actions are whole utterances.

    Losses of values are means over utterances, that of cloning is a mean over tokens. `gamma`
    counts from one utterance to the next.

    Args:
        policy: a subclass of `UtteranceGPTPolicy`, or "GPTPolicy", which names the algorithm's.
        kwargs: as of `ValueAlgorithm`.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"GPTPolicy": UtteranceGPTPolicy}
    policy: UtteranceGPTPolicy
    find_decisions: ClassVar[Callable[..., Sequences]] = staticmethod(utterances_of)
    batch_class: ClassVar[Any] = UtteranceBatch
    averaged_over: ClassVar[str] = "ends"

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.policy.decoding.max_tokens is None and self.data is not None:
            self.policy.decoding.max_tokens = self.data.layout.said_limit

    def read(self, dialogues: DialogueSample) -> Sequences:
        """As of `OfflineAlgorithm`, with `token_weights`.

        The updater divides all sums by the number of utterances; a mean over tokens has to make up
        for it, by the utterances per token of all processes.
        """
        sequences = super().read(dialogues)
        columns = sequences.columns
        utterances, tokens = self.processes.sums(
            float(columns["ends"].sum()), float(columns["is_action"].sum())
        )
        ratio = utterances / max(tokens, 1)
        columns["token_weights"] = torch.full(columns["is_action"].shape, ratio, device=self.device)
        return sequences

    def gather(self, sequences: Sequences, part: Part) -> UtteranceBatch:
        """A part of `sequences` as a batch; what could be said is found for its tokens alone."""
        tokens = part.rows[sequences.columns["is_action"][part.rows]]
        return UtteranceBatch.gather(sequences, part, self.allowed(sequences, tokens))

    def clone_loss(self, batch: UtteranceBatch, hidden: Tensor) -> Tensor:
        """-log pi(a | s) (n,) of the tokens, weighed so as to be averaged over them."""
        said = batch.is_action
        log_probs = self.policy.log_probs(hidden[said], batch.allowed)
        log_prob = chosen(log_probs, batch.actions[said])
        return scattered(-batch.token_weights[said] * log_prob, said)


class UtteranceILQL(UtteranceAlgorithm):
    """ILQL whose actions are utterances: a scalar Q after each, V before each.

    With s what is seen when the learner begins to speak and u what it says then, both
    Q(s, u) = Q(hidden state after u) regress to r(u) + gamma V(s'), and V(s) to the upper expectile
    of min target Q(s, u). A cloned policy is learned beside. The agent draws candidates from it and
    says the one with the greatest min target Q + w log p (`UtteranceDecoding`).

    Where the published code errs this one does not: rewards are sums of all that the utterance
    earned and keep their fractions, losses are means over the learner's own utterances and tokens,
    one shared trunk works as well as separate ones, and V is 0 after a dialogue's end alone, not
    where a limit cut it off.

    Args:
        policy: `UtteranceGPTPolicy`, or "GPTPolicy", which names it here.
        env, dataset: as of `OfflineAlgorithm`.
        expectile: of the value loss; 0.5 is the mean, near 1 the best of what was said.
        q_weight, v_weight: of the Q and the value loss.
        policy_weight: of the cloning loss.
        kwargs: further arguments of `UtteranceAlgorithm`.

    Raises:
        ValueError: a number that cannot be, or as of `OfflineAlgorithm`.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        dataset: Any = None,
        expectile: float = 0.7,
        q_weight: float = 1.0,
        v_weight: float = 1.0,
        policy_weight: float = 1.0,
        **kwargs: Unpack[ValueOptions],
    ) -> None:
        self.expectile = self._share("expectile", expectile)
        self.q_weight, self.v_weight, self.policy_weight = q_weight, v_weight, policy_weight
        super().__init__(policy, env, dataset, **kwargs)

    def loss(self, batch: UtteranceBatch) -> Losses:
        hidden, value_hidden, target_hidden = self.policy.hidden_states(
            batch.observations, batch.at
        )
        begins, ends = batch.begins, batch.ends
        q = self.policy.q_values(value_hidden[ends])[..., 0]  # (2, m), after each utterance
        target_q = self.policy.target_q(target_hidden[ends])[:, 0]
        v = scattered(self.policy.value_head(value_hidden[begins])[:, 0], begins)  # (n,)
        v_said = v[begins & batch.is_action]  # (m,), in the order of the ends
        q_targets = bellman_target(
            batch.rewards[ends], next_values(v.detach())[ends], batch.not_done[ends], self.gamma
        )
        losses = {
            "q_loss": scattered((q_targets - q).square().sum(0), ends),
            "v_loss": scattered(expectile_loss(target_q - v_said, self.expectile), ends),
            "policy_loss": self.clone_loss(batch, hidden),
        }
        loss = (
            self.q_weight * losses["q_loss"]
            + self.v_weight * losses["v_loss"]
            + self.policy_weight * losses["policy_loss"]
        )
        return loss, {**losses, "q": scattered(q.mean(0), ends), "v": scattered(v_said, ends)}
