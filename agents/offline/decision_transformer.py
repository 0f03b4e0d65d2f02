"""Decision transformer: cloning conditioned on the return of the dialogue (Chen et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor

from agents.buffers.stored import DecisionBatch
from agents.buffers.stream import known_dialogues
from agents.models.build import make_optimizer
from agents.models.observations import FeatureEmbedding
from agents.models.return_embedding import ReturnEmbedding, add_to_embeddings
from agents.offline.algorithm import Losses
from agents.offline.bc import BC, BCOptions
from agents.policies.gpt import GPTPolicy
from dialgym.datasets import TokenData
from dialgym.errors import finite_number


class ReturnGPTPolicy(GPTPolicy):
    """`GPTPolicy` that is told what the dialogue is to earn: an embedding added to every token's.

    Attributes:
        target_return: float, what to earn at play; may be set at any time.
    """

    _target: Tensor

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        self.return_embedding = ReturnEmbedding(self.backbone.width)
        self.register_buffer("_target", torch.zeros(()))
        self._given: Tensor | None = None  # (B,), in place of the target
        add_to_embeddings(self.backbone, self._embedded_target)
        self.optimizer = make_optimizer(self, lr_schedule)

    def _embedded_target(self) -> Tensor | float:
        return self.return_embedding(self._target) if self._given is None else 0.0

    def _bias(self, embed: FeatureEmbedding | None, features: Tensor | None) -> tuple[Tensor, ...]:
        bias = super()._bias(embed, features)
        return bias if self._given is None else (sum(bias, self.return_embedding(self._given)),)

    @property
    def target_return(self) -> float:
        return float(self._target)

    @target_return.setter
    def target_return(self, value: float) -> None:
        self._target.fill_(finite_number("target_return", value))
        self.caches.forget()  # their keys and values were of another return

    @contextmanager
    def given(self, returns: Tensor) -> Iterator[None]:
        """Condition whole sequences on `returns` (B,) within the block."""
        self._given = returns
        try:
            yield
        finally:
            self._given = None


class DecisionTransformer(BC):
    """-mean log pi(a | s, R), R being the dialogue's return; it speaks given the return to earn.

    R is the undiscounted return of the whole dialogue, as in the published code of Snell et al.
    (2022), and not the return-to-go of each utterance: observations do not say what was earned so
    far, so that at play only the former is known. Where the dialogue shows its rewards the two tell
    the model the same. A linear map of R, standardised over the dataset, is added to the embedding
    of every token, in place of one more token in front: no position is lost, and no layer has to
    look back for it.

    Args:
        policy: `ReturnGPTPolicy`, or "GPTPolicy", which names it here.
        env, dataset: as of `OfflineAlgorithm`.
        target_return: what to earn at play; None is the greatest return in the dataset, of a stream
            in its first block.
            `model.policy.target_return` changes it later.
        kwargs: further arguments of `OfflineAlgorithm`.

    Raises:
        ValueError: as of `OfflineAlgorithm`, or a return that is no finite number.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"GPTPolicy": ReturnGPTPolicy}
    policy_kinds = ()
    expected_policy = "{}, which is told a return"
    policy: ReturnGPTPolicy

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        dataset: Any = None,
        target_return: float | None = None,
        **kwargs: Unpack[BCOptions],
    ) -> None:
        if target_return is not None:
            finite_number("target_return of DecisionTransformer", target_return)
        self.target_return = target_return
        super().__init__(policy, env, dataset, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        target = self.target_return
        if self.data is not None:
            returns = torch.from_numpy(total_returns(known_dialogues(self.data)))
            self.policy.return_embedding.standardise(returns)
            target = float(returns.max()) if target is None else target
        self.policy.target_return = target or 0.0

    def policy_given(self, settings: Mapping[str, Any]) -> None:
        """Take a target that `load` was given in place of the file's."""
        if settings.get("target_return") is not None:
            self.policy.target_return = settings["target_return"]

    def loss(self, batch: DecisionBatch) -> Losses:
        returns = torch.zeros(len(batch.observations), device=self.device)
        returns[batch.at // batch.observations.shape[1]] = batch.total_returns
        with self.policy.given(returns):
            return super().loss(batch)


def total_returns(data: TokenData) -> np.ndarray:
    """Undiscounted returns (N,) float32 of all dialogues."""
    earned = np.where(data.is_action, data.reward, 0).astype(np.float64)
    sums = np.concatenate([[0.0], earned.cumsum()])
    return np.diff(sums[data.offsets]).astype(np.float32)
