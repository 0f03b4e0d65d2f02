"""The other party: whoever answers the learner."""

from dialgym.simulators.base import Speaker
from dialgym.simulators.human import HumanSpeaker

__all__ = ["HumanSpeaker", "Speaker"]
