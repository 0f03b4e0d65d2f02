"""Recorded dialogues of sessions, to be played again and compared."""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from dialgym.testing.sessions import Answer, TextEnvironment, TextSession


@dataclass(frozen=True)
class Recording:
    """A dialogue: what was said, and the answers, that of the reset first."""

    seed: int
    said: tuple[str, ...]
    answers: tuple[Answer, ...]

    @property
    def total(self) -> float:
        """Sum of the rewards."""
        return float(sum(answer.reward or 0.0 for answer in self.answers))


@contextmanager
def opened(environment: TextEnvironment, count: int = 1) -> Iterator[list[TextSession]]:
    """Sessions, open at once; they are closed at the end."""
    sessions: list[TextSession] = []
    try:
        for _ in range(count):
            sessions.append(environment.open())
        yield sessions
    finally:
        for session in sessions:
            session.close()


def record(
    environment: TextEnvironment,
    seed: int,
    most: int,
    options: Mapping[str, Any] | None = None,
) -> Recording:
    """Play a dialogue of up to `most` steps in a new session, with texts that it samples."""
    rng = np.random.default_rng([seed, 1])
    said: list[str] = []
    with opened(environment) as (session,):
        answers = [session.reset(seed, options)]
        while not answers[-1].over and len(said) < most:
            said.append(environment.sample(session, answers, rng))
            answers.append(session.step(said[-1]))
    return Recording(seed, tuple(said), tuple(answers))


def replay(session: TextSession, recording: Recording, *, between: Any = lambda: None) -> Recording:
    """Say the same again after a reset with the same seed, and `between()` before each step."""
    answers = [session.reset(recording.seed)]
    for text in recording.said:
        if answers[-1].over:
            break
        between()
        answers.append(session.step(text))
    return Recording(recording.seed, recording.said, tuple(answers))


def interleaved(
    sessions: Sequence[TextSession], recordings: Sequence[Recording]
) -> list[Recording]:
    """Say the same again in several sessions, a step of each in turn."""
    answers = [[session.reset(recording.seed)] for session, recording in zip(sessions, recordings)]
    for step in range(max(len(recording.said) for recording in recordings)):
        for session, recording, so_far in zip(sessions, recordings, answers):
            if step < len(recording.said) and not so_far[-1].over:
                so_far.append(session.step(recording.said[step]))
    return [
        Recording(recording.seed, recording.said, tuple(so_far))
        for recording, so_far in zip(recordings, answers)
    ]


@contextmanager
def process_wide_draws() -> Iterator[Any]:
    """A function that draws from the generators of the process, which are as before at the end."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002

    def draw() -> None:
        random.random()
        np.random.random()  # noqa: NPY002

    try:
        yield draw
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def differing(one: Recording, other: Recording) -> str:
    """The first difference of two recordings in words; empty where they are equal."""
    for step, (a, b) in enumerate(zip(one.answers, other.answers)):
        where = f"after {step} steps" if step else "at the beginning"
        if a.text != b.text:
            return f"{where} one heard {_shown(a.text, b.text)}, the other {_shown(b.text, a.text)}"
        if not _same(a.reward, b.reward):
            return f"{where} one got the reward {a.reward}, the other {b.reward}"
        if a[2:4] != b[2:4]:
            return f"{where} one has {_ended(a)}, the other {_ended(b)}"
    return ""


def _same(one: Any, other: Any) -> bool:
    return one == other or (one != one and other != other)  # NaN is held against bounds, not here


def _ended(answer: Answer) -> str:
    return "ended" if answer.terminated else "been cut" if answer.truncated else "not ended"


def _shown(text: str, other: str) -> str:
    """The piece of a text in which it begins to differ from another."""
    pairs = enumerate(zip(text, other))
    at = next((i for i, (a, b) in pairs if a != b), min(len(text), len(other)))
    start = max(0, at - 20)
    dots = "..." if start else ""
    return repr(dots + text[start : at + 30])
