"""Implicit language Q-learning of whole utterances (Snell et al. 2022)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.buffers.sequences import Part, Sequences
from agents.buffers.stored_utterances import spread, utterances_of
from agents.offline.losses import bellman_target, expectile, following
from agents.offline.values import ValueAlgorithm
from agents.policies.gpt import chosen, token_log_probs
from agents.policies.utterance import UtteranceGPTPolicy
from agents.updater import Loss


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
    read: ClassVar[Callable[..., Sequences]] = staticmethod(utterances_of)

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.policy.decoding.max_tokens is None and self.data is not None:
            layout = self.data.layout
            self.policy.decoding.max_tokens = layout.limit(layout.party)

    def _utterances_per_token(self, sequences: Sequences) -> float:
        """Of all processes: sums over tokens are divided by the number of utterances elsewhere."""
        columns = sequences.columns
        utterances, tokens = self.processes.sums(
            float(columns["real"].sum()), float(columns["said"].sum())
        )
        return utterances / max(tokens, 1)

    def _log_probs_said(
        self, sequences: Sequences, part: Part, hidden: Tensor, said: Tensor
    ) -> Tensor:
        """Log-probabilities (m,) of the tokens at the m set places of `said` (n,)."""
        rows = part.rows[said]
        allowed = self._allowed(sequences, rows)
        log_probs = token_log_probs(self.policy.policy_head, hidden[said], allowed)
        return chosen(log_probs, sequences.columns["actions"][rows])


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
        expectile: tau of the value loss; 0.5 is the mean, near 1 the best of what was said.
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
        **kwargs: Any,
    ) -> None:
        self.expectile = self._share("expectile", expectile)
        self.q_weight, self.v_weight, self.policy_weight = q_weight, v_weight, policy_weight
        super().__init__(policy, env, dataset, **kwargs)

    def _loss_of(self, sequences: Sequences) -> Loss:
        ratio = self._utterances_per_token(sequences)

        def loss_of(part: Part) -> tuple[Tensor, dict[str, Tensor]]:
            columns = {name: values[part.rows] for name, values in sequences.columns.items()}
            with self.updater.precision():
                hidden, value_hidden, slow = self.policy.hidden_states(part.tokens, part.at)
            losses = self._value_losses(columns, value_hidden, slow)
            log_prob = self._log_probs_said(sequences, part, hidden, columns["said"])
            losses["policy_loss"] = spread(-ratio * log_prob, columns["said"])
            loss = (
                self.q_weight * losses["q_loss"]
                + self.v_weight * losses["v_loss"]
                + self.policy_weight * losses["policy_loss"]
            )
            return loss, losses

        return loss_of

    def _value_losses(
        self, columns: dict[str, Tensor], hidden: Tensor, slow: Tensor
    ) -> dict[str, Tensor]:
        """Losses (n,), from hidden states (n, d); they stand at the utterances' ends."""
        ends, begins = columns["real"], columns["begins"]
        q = self.policy.q_values(hidden[ends])[..., 0]  # (2, m)
        target_q = self.policy.target_q(slow[ends])[:, 0]
        v = spread(self.policy.value_head(hidden[begins])[:, 0], begins)  # (n,)
        v_next = following(v.detach())[ends]
        v_said = v[begins & columns["said"]]  # (m,), in the order of the ends
        targets = bellman_target(
            columns["rewards"][ends], v_next, columns["goes_on"][ends], self.gamma
        )
        return {
            "q_loss": spread((targets - q).square().sum(0), ends),
            "v_loss": spread(expectile(target_q - v_said, self.expectile), ends),
            "q": spread(q.mean(0), ends),
            "v": spread(v_said, ends),
        }
