"""The other party: whoever answers the learner."""

from dialgym.simulators.base import Speaker

__all__ = ["Speaker"]
