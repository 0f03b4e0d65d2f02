"""Rewards of replies: small objects, added up by weights, each logged by its name."""

from dialgym.rewards.base import Components, Cost, Reply, Reward
from dialgym.rewards.compose import Composite, Examples, make_reward, make_rewards

__all__ = [
    "Components",
    "Composite",
    "Cost",
    "Examples",
    "Reply",
    "Reward",
    "make_reward",
    "make_rewards",
]
