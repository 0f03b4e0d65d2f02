"""Canaries: what is secret, searched in what a session tells before the end.

A secret is a value of a field that is called so, what the last words of a dialogue give away, or an
option by which a dialogue was begun. It is told where it stands in earlier observations, in words
that the learner has not said, far more often than the secrets of other dialogues stand there.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dialgym.testing.recordings import Recording

NAMES = {
    *[
        "secret",
        "secrets",
        "answer",
        "answers",
        "solution",
        "hidden",
        "target",
        "gold",
        "truth",
        "password",
    ]
}
"""Words in the names of fields that hold what is hidden."""
MEASURES = {"length", "len", "count", "size", "type", "reached"}
"""Words in the names of fields that tell something about it, not it."""
LEVEL = 1e-3
"""Chance at most with which secrets stand there that often without being told."""
OTHERS = 8
"""Secrets of other dialogues that are searched in each."""
_GIVEN_AWAY = re.compile(
    r"\b(?:secret|hidden|answer|solution|target|correct|code|word|number)\b[^.\n]{0,30}?"
    r"\b(?:was|were|is|are)\b:?\s*['\"\[(]*([\w-]+)",
    re.IGNORECASE,
)


class Secret(NamedTuple):
    """A value that is hidden in a dialogue, where it was found, and if it was there all along."""

    source: str
    value: str
    early: bool = False


def secrets_of(recording: Recording, options: Mapping[str, Any] | None = None) -> list[Secret]:
    """The secrets of a dialogue, the first of each source."""
    found: dict[str, Secret] = {}
    for name, value in _fields(options or {}):
        found.setdefault(f"option {name}", Secret(f"option {name}", value))
    for answer in recording.answers:
        for name, value in _fields(answer.info):
            if _is_named(name):
                source = f"info[{name!r}]"
                found.setdefault(source, Secret(source, value, not answer.over))
    if recording.answers[-1].over and (given := _GIVEN_AWAY.search(_news(recording))):
        found["the last words"] = Secret("the last words", given[1])
    return list(found.values())


def told(dialogues: Sequence[tuple[Recording, Sequence[Secret]]]) -> tuple[list[str], list[str]]:
    """The sources whose secrets are told before the end, in words, and all that were tried.

    A source whose secret is the same in all dialogues is left out.
    """
    sources = dict.fromkeys(secret.source for _, secrets in dialogues for secret in secrets)
    tried, faults = [], []
    for source in sources:
        pairs = [(r, s) for r, secrets in dialogues for s in secrets if s.source == source]
        values = {secret.value for _, secret in pairs}
        if len(values) < 2:
            continue
        tried.append(source)
        if all(secret.early for _, secret in pairs):
            faults.append(f"{source} is there before the end, {pairs[0][1].value!r} for one")
        elif fault := _standing(source, pairs):
            faults.append(fault)
    return faults, tried


def _standing(source: str, pairs: Sequence[tuple[Recording, Secret]]) -> str:
    """The fault where secrets stand in observations more often than those of others."""
    own, other, trials = 0, 0, 0
    example = ""
    for at, (recording, secret) in enumerate(pairs):
        if step := _first_step(recording, secret.value):
            own += 1
            example = example or f"{secret.value!r} {step}"
        around = (pairs[(at + k) % len(pairs)][1].value for k in range(1, OTHERS + 1))
        for value in {value for value in around if value != secret.value}:
            other += bool(_first_step(recording, value))
            trials += 1
    if own > 1 and _tail(own, len(pairs), (other + 1) / (trials + 2)) < LEVEL:
        return (
            f"{source} stands in observations of {own} of {len(pairs)} dialogues before the end: "
            f"{example}"
        )
    return ""


def _first_step(recording: Recording, value: str) -> str:
    """The first observation with a value that the learner has not said, in words; or none."""
    pattern = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE)
    for step, answer in enumerate(recording.answers):
        said = step and pattern.search(recording.said[step - 1])
        if answer.over or said:
            return ""
        if pattern.search(answer.text):
            return f"after {step} steps" if step else "at the beginning"
    return ""


def _tail(hits: int, trials: int, chance: float) -> float:
    """Probability of at least so many hits."""
    counts = np.arange(trials + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])  # of factorials
    choose = logs[trials] - logs[counts] - logs[trials - counts]
    weights = choose + counts * np.log(chance) + (trials - counts) * np.log1p(-chance)
    return float(np.exp(weights[hits:]).sum())


def _news(recording: Recording) -> str:
    """The last answer, without what it repeats of the one before."""
    *_, before, last = ["", *(answer.text for answer in recording.answers)]
    return last.removeprefix(before)


def _is_named(name: str) -> bool:
    words = {*re.split(r"[^a-z]+", name.lower())}
    return bool(NAMES & words) and not MEASURES & words


def _fields(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Texts and whole numbers in a mapping, by name; those within mappings by dotted names."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _fields(value, f"{prefix}{name}.")
        elif _is_plain(value):
            yield f"{prefix}{name}", str(value)


def _is_plain(value: Any) -> bool:
    """Return True for a text that is not blank and for a whole number."""
    plain = isinstance(value, str | int | np.integer) and not isinstance(value, bool)
    return plain and bool(str(value).strip())
