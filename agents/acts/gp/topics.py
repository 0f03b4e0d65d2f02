"""Several domains in one dialogue: a topic manager, and one policy a domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from dialgym.errors import unknown
from dialgym.rollouts.policies import takes_masks

TopicAct = Literal["hello", "ask_topic", "bye"]


@dataclass
class TopicManager:
    """Speaks while no domain is known: says hello, asks for the topic, and hangs up.

    Args:
        attempts: questions for the topic in a row, after which it hangs up.
    """

    attempts: int = 3

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"TopicManager: attempts must be at least 1, got {self.attempts}")
        self.reset()

    def reset(self) -> None:
        """A new dialogue."""
        self.greeted, self.asked = False, 0

    def mark_known(self) -> None:
        """A topic is known: questions are counted again when it is lost."""
        self.greeted, self.asked = True, 0

    def act(self) -> TopicAct:
        """Return the next act."""
        if not self.greeted:
            self.greeted = True
            return "hello"
        self.asked += 1
        return "ask_topic" if self.asked <= self.attempts else "bye"


class TopicChoice(NamedTuple):
    """A choice of a policy manager."""

    domain: str | None  # whose act it is; None is the topic manager's
    act: int | TopicAct


class PolicyManager:
    """Gives each turn to the policy of the domain that it is about, in `dialgym.multi_domain_env`.

    Args:
        policies: a model for each domain, with `predict`; such as a `Committee` and what it is
            `transferred` to.
        topics: speaks while the domain is not known.
    """

    def __init__(self, policies: Mapping[str, Any], topics: TopicManager | None = None) -> None:
        self.policies, self.topics = dict(policies), topics or TopicManager()

    def reset(self) -> None:
        """A new dialogue."""
        self.topics.reset()

    def act(
        self,
        domain: str | None,
        belief: np.ndarray | None = None,
        mask: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> TopicChoice:
        """The next act.

        Args:
            domain: what the turn is about; None while that is not known.
            belief: (B,), of that domain.
            mask: (A,) bool, acts that it allows; for policies that take masks.
            deterministic: as of `predict`.

        Raises:
            ValueError: there is no policy for the domain.
        """
        if domain is None:
            return TopicChoice(None, self.topics.act())
        if domain not in self.policies:
            raise unknown("domain", domain, self.policies)
        self.topics.mark_known()
        policy = self.policies[domain]
        masks = {"action_masks": mask} if mask is not None and takes_masks(policy) else {}
        act, _ = policy.predict(belief, deterministic=deterministic, **masks)
        return TopicChoice(domain, int(act))
