"""Users of `toy_acts` with whom something goes wrong."""

from typing import Any

import numpy as np

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
