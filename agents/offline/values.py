"""What the algorithms with Q values share: slow targets, and speech by values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
from stable_baselines3.common.policies import BasePolicy

from agents.offline.base import OfflineAlgorithm
from agents.policies.value import ValueGPTPolicy


class ValueAlgorithm(OfflineAlgorithm):
    """Base of the algorithms that learn values and speak by them.

    Args:
        policy: the algorithm's own kind, or "GPTPolicy", which names it.
        env, dataset: as of `OfflineAlgorithm`.
        target_rate: of the targets' Polyak average, each step.
        kwargs: further arguments of `OfflineAlgorithm`.

    Raises:
        ValueError: a number that cannot be, another policy, or as of `OfflineAlgorithm`.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"GPTPolicy": ValueGPTPolicy}
    policy: ValueGPTPolicy
    speech: ClassVar[dict[str, float]] = {}
    """Arguments of the policy's `decoding` that hold unless `policy_kwargs` gives others."""

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        dataset: Any = None,
        target_rate: float = 0.005,
        **kwargs: Any,
    ) -> None:
        self.target_rate = self._share("target_rate", target_rate)
        super().__init__(policy, env, dataset, **kwargs)

    def _share(self, name: str, number: float) -> float:
        if not 0 < number < 1:
            raise ValueError(f"{type(self).__name__}: {name} must be between 0 and 1, got {number}")
        return number

    def _setup_model(self) -> None:
        super()._setup_model()
        expected = self.policy_aliases["GPTPolicy"]
        if not isinstance(self.policy, expected):
            raise ValueError(
                f"{self.algorithm}: expected agents.{expected.__name__}, which speaks by values "
                f"such as it learns, got {type(self.policy).__name__}"
            )
        given = self.policy_kwargs.get("decoding", {})
        self.policy.decoding = self.policy.decoding_class(**{**self.speech, **given})

    def save(
        self,
        path: Any,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """As everywhere in Stable-Baselines3; `policy.decoding` is saved as it is now."""
        given = self.policy_kwargs
        self.policy_kwargs = {**given, "decoding": asdict(self.policy.decoding)}
        super().save(path, exclude, include)
        self.policy_kwargs = given

    def _learn_from(self, rows: np.ndarray) -> None:
        super()._learn_from(rows)
        self.policy.update_targets(self.target_rate)
