"""Rewards as small objects, composed by adding up, each logged by its name."""

from dialgym.rewards.base import Components, Cost, Reply, Reward

__all__ = ["Components", "Cost", "Reply", "Reward"]
