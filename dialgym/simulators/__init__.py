"""Speakers that answer the learner: protocols, slow and remote ones, a person at the terminal."""

from dialgym.simulators.base import (
    BatchSpeaker,
    EachReplies,
    Speaker,
    all_shown_to,
    ask_all,
    is_oracle,
    shown_to,
)
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
    "all_shown_to",
    "ask_all",
    "is_oracle",
    "shown_to",
]
