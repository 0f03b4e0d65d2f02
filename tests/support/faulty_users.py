"""Users of `toy_acts` with whom something goes wrong."""

from dataclasses import dataclass
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np

from dialgym.rewards import Reward
from tests.support.waiting import HANG_GUARD

EVERYTHING = "ask 0 1 2 3"


class ServiceError(Exception):
    """One that cannot be read back where it has been sent to: its constructor wants two things."""

    def __init__(self, service: str, status: int) -> None:
        super().__init__(f"{service} answered {status}")


class FaultyUser:
    """Tells nothing, and fails where it is asked for everything at once."""

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        if state.lines[-1].text == EVERYTHING:
            raise ServiceError("the service of users", 503)
        return "want"


class RemoteUser:
    """Asks a service, as by any client library: an error of its own hides the connection's."""

    url = "http://127.0.0.1:9/v1"  # where nobody listens

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        try:
            urlopen(self.url, timeout=HANG_GUARD)
        except URLError as error:
            raise ServiceError("the service of users", 0) from error
        return "want"


@dataclass(frozen=True, kw_only=True)
class RemoteJudge(Reward):
    """Asks a service for its scores."""

    base_url: str = "http://127.0.0.1:9/v1"

    def score(self, replies: Any) -> np.ndarray:
        with urlopen(self.base_url, timeout=HANG_GUARD) as answer:
            return np.array([float(answer.read()) for _ in replies])
