"""The other party: whoever answers the learner."""

from dialgym.simulators.base import BatchSpeaker, EachReplies, Speaker, ask_all
from dialgym.simulators.concurrent import Asynchronous, AsyncSpeaker, Concurrent
from dialgym.simulators.human import HumanSpeaker

__all__ = [
    "AsyncSpeaker",
    "Asynchronous",
    "BatchSpeaker",
    "Concurrent",
    "EachReplies",
    "HumanSpeaker",
    "Speaker",
    "ask_all",
]
