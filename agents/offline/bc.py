"""Cloning: say what was said."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from agents.buffers.sequences import Part, Sequences
from agents.offline.base import OfflineAlgorithm
from agents.updater import Loss
from dialgym.datasets import TokenBatch
from dialgym.language.tokenizers import PAD, TAGS


class BC(OfflineAlgorithm):
    """Behavioural cloning: maximum likelihood of the learner's tokens, -mean log pi(a | s).

    On the dialogues of greatest return (`dataset.top(0.1)`) it is filtered cloning, %BC (Chen et
    al. 2021, section 5.1). See `OfflineAlgorithm` for the arguments. A policy cloned here begins
    online learning by `model.policy.load_state_dict(cloned.policy.state_dict())`.

    Args:
        both_parties: learn to say what the other party says, too: more to learn a language from,
            where the two speak the same. Constraints of the task are then left out of the loss.
        args, kwargs: as of `OfflineAlgorithm`.
    """

    def __init__(self, *args: Any, both_parties: bool = False, **kwargs: Any) -> None:
        self.both_parties = both_parties
        super().__init__(*args, **kwargs)

    def _decisions(self, batch: TokenBatch) -> Sequences:
        return super()._decisions(_everything_said(batch) if self.both_parties else batch)

    def _allowed(self, sequences: Sequences, rows: Tensor) -> Tensor | None:
        return None if self.both_parties else super()._allowed(sequences, rows)

    def _loss_of(self, sequences: Sequences) -> Loss:
        def loss_of(part: Part) -> tuple[Tensor, dict[str, Tensor]]:
            actions = sequences.columns["actions"][part.rows]
            allowed = self._allowed(sequences, part.rows)
            with self.updater.precision():
                _, log_prob, entropy = self.policy.evaluate_sequences(
                    part.tokens, part.at, actions, allowed
                )
            real = sequences.columns["real"][part.rows]
            return -log_prob * real, {"entropy": entropy * real}

        return loss_of


def _everything_said(batch: TokenBatch) -> TokenBatch:
    """The batch, with all tokens but tags as actions, as if one learner had said them all."""
    said = ~np.isin(batch.tokens, (PAD, *TAGS.values()))
    said[:, 0] = False  # nothing is seen before it
    return batch._replace(is_action=said, truncated=np.zeros_like(batch.truncated))
