"""Behavioural cloning: maximum likelihood of what the learner said."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.buffers.sequences import Sequences
from agents.buffers.stored import DecisionBatch
from agents.offline.algorithm import DialogueSample, Losses, OfflineAlgorithm, OfflineOptions
from dialgym.datasets import TokenBatch
from dialgym.language.tokenizers import PAD, TAGS


class BCOptions(OfflineOptions, total=False):
    """Arguments of `BC` that its kin shares."""

    both_parties: bool


class BC(OfflineAlgorithm):
    """Behavioural cloning: maximum likelihood of the learner's tokens, -mean log pi(a | s).

    On the dialogues of greatest return (`dataset.top(0.1)`) it is filtered cloning, %BC (Chen et
    al. 2021, section 5.1). See `OfflineAlgorithm` for the arguments. A policy cloned here begins
    online learning by `model.policy.load_state_dict(cloned.policy.state_dict())`.

    Args:
        both_parties: learn to say what the other party says, too: more to learn a language from,
            where the two speak the same. Constraints of the task are then left out of the loss.
        policy, env, dataset: as of `OfflineAlgorithm`.
        kwargs: further arguments of `OfflineAlgorithm`.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        dataset: Any = None,
        both_parties: bool = False,
        **kwargs: Unpack[OfflineOptions],
    ) -> None:
        self.both_parties = both_parties
        super().__init__(policy, env, dataset, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.both_parties and self._plays_acts:
            raise ValueError("BC: both_parties is for words; on act views leave it out")

    def loss(self, batch: DecisionBatch) -> Losses:
        _, log_prob, entropy = self.policy.evaluate_sequences(
            batch.observations, batch.at, batch.actions, batch.allowed
        )
        return -log_prob * batch.is_action, {"entropy": entropy * batch.is_action}

    def read(self, dialogues: DialogueSample) -> Sequences:
        if self.both_parties and isinstance(dialogues, TokenBatch):
            dialogues = _everything_said(dialogues)
        return super().read(dialogues)

    def allowed(self, sequences: Sequences, rows: Tensor) -> Tensor | None:
        return None if self.both_parties else super().allowed(sequences, rows)

    def _warn_of_refused(self, sequences: Sequences) -> None:
        if not self.both_parties:  # masks are of what the learner says
            super()._warn_of_refused(sequences)


def _everything_said(batch: TokenBatch) -> TokenBatch:
    """The batch, with all tokens but tags as actions, as if one learner had said them all."""
    said = ~np.isin(batch.tokens, (PAD, *TAGS.values()))
    said[:, 0] = False  # nothing is seen before it
    return batch._replace(is_action=said, truncated=np.zeros_like(batch.truncated))
