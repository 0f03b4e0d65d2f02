"""Cloning: say what was said."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from agents.common.gradients import Loss
from agents.common.sequences import Part, Sequences
from agents.offline.base import OfflineAlgorithm


class BC(OfflineAlgorithm):
    """Behavioural cloning: maximum likelihood of the learner's tokens, -mean log pi(a | s).

    On the dialogues of greatest return (`dataset.top(0.1)`) it is filtered cloning, %BC (Chen et
    al. 2021, section 5.1). See `OfflineAlgorithm` for the arguments. A policy cloned here begins
    online learning by `model.policy.load_state_dict(cloned.policy.state_dict())`.
    """

    figures: ClassVar[tuple[str, ...]] = ("loss", "entropy")

    def _loss_of(self, sequences: Sequences) -> Loss:
        def loss_of(part: Part) -> tuple[Tensor, dict[str, Tensor]]:
            actions = sequences.columns["actions"][part.rows]
            allowed = self._allowed(sequences, part.rows)
            with self._precision():
                _, log_prob, entropy = self.policy.evaluate_sequences(
                    part.tokens, part.at, actions, allowed
                )
            real = sequences.columns["real"][part.rows]
            return -log_prob * real, {"entropy": entropy * real}

        return loss_of
