"""Fingerprints of the rules that rows of results were played by.

A fingerprint is the version of a task, a hash of its settings and one of some dialogues of scripted
policies: a refactoring keeps it, a change of behaviour does not. It is the same on any machine.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple, Self

from dialgym.registry import Environment, RegistryEntry, entry_of
from dialgym.rollouts.episode_batch import EpisodeBatch
from dialgym.rollouts.player import Player, make_dialogue, policy_names
from dialgym.tasks.base import Task
from dialgym.views.making import settings_of_entry

DIALOGUES = 50
"""Of each of the policies."""
DIGITS = 2
"""Digits of rewards after the point: the rest may differ between machines."""
MIXTURE, RANDOM = "random-mixture", "random"
_TEXT = re.compile(r"(\d+)-([0-9a-f]{16})-([0-9a-f]{16})")


class Fingerprint(NamedTuple):
    """The fingerprint of an environment's rules.

    Attributes:
        task_version: `Task.version`.
        settings: a hash of the settings of task and view, the files that they name by their names.
        dialogues: a hash of words, rewards and ends of 50 dialogues each of a scripted policy and
            of a random one.
    """

    task_version: int
    settings: str
    dialogues: str

    def __str__(self) -> str:
        return f"{self.task_version}-{self.settings}-{self.dialogues}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The fingerprint that `str` gives.

        Raises:
            ValueError: it is none.
        """
        parts = _TEXT.fullmatch(text)
        if parts is None:
            raise ValueError(
                "rules: expected a version and two hashes of 16 hexadecimal digits, such as "
                f"3-{'0a' * 8}-{'1b' * 8}; got {text!r:.80}"
            )
        return cls(int(parts[1]), parts[2], parts[3])

    @classmethod
    def of_values(cls, values: Any) -> Self:
        """The fingerprint in a row: the mapping that `_asdict` gives.

        Raises:
            ValueError: it is none.
        """
        known = isinstance(values, Mapping) and {*values} == {*cls._fields}
        parts = [str(values[name]) for name in cls._fields] if known else [str(values)]
        return cls.parse("-".join(parts))


def rules_of(env: Environment, settings: Mapping[str, Any] | None = None) -> Fingerprint:
    """The fingerprint of an environment; it plays dialogues, once in a process.

    Args:
        env: an id, or what stands for one.
        settings: as for ``gym.make(id, ...)``.

    Raises:
        ValueError, OSError, ImportError: the environment cannot be played here.
    """
    entry, given = entry_of(env), dict(settings or {})
    task = make_dialogue(entry, given).task
    return Fingerprint(*_stated(entry, given, task), _dialogues(entry, given, task))


def _stated(entry: RegistryEntry, settings: Mapping[str, Any], task: Task) -> tuple[int, str]:
    """The parts of a fingerprint that need no play: the version, and the hash of settings."""
    whole = _portable({**settings_of_entry(entry), **settings})
    return task.version, _digest(json.dumps(whole, sort_keys=True, default=_kind))


_known: dict[Hashable, str] = {}
"""Hashes of the dialogues that this process has played."""


def _dialogues(entry: RegistryEntry, settings: Mapping[str, Any], task: Task) -> str:
    """The hash of dialogues, which are played once in a process."""
    whole = {**settings_of_entry(entry), **settings}
    try:
        key = type(task), entry.id, json.dumps(whole, sort_keys=True), task.surroundings(whole)
    except TypeError:  # objects, of which no text tells one from another
        return _played(entry, settings)
    if key not in _known:
        _known[key] = _played(entry, settings)
    return _known[key]


def _played(entry: RegistryEntry, settings: Mapping[str, Any]) -> str:
    lines: list[str] = []
    for name in _policies(entry, settings):
        player = Player(entry, name, settings, record=True)
        try:
            for played in player.play([(0, episode) for episode in range(DIALOGUES)]):
                lines += _lines(played)
        finally:
            player.close()
    return _digest("\n".join(lines))


def _policies(entry: RegistryEntry, settings: Mapping[str, Any]) -> list[str]:
    """A scripted policy, and a random one, as far as there are any."""
    dialogue = make_dialogue(entry, settings)
    scripted = [*dialogue.task.speakers.get(dialogue.learner, {})]
    known = policy_names([entry], settings)
    wanted = [MIXTURE if MIXTURE in known else next(iter(scripted), RANDOM), RANDOM]
    return [name for name in dict.fromkeys(wanted) if name in known]


def _lines(played: EpisodeBatch) -> list[str]:
    """Texts, rewards and ends of dialogues as lines; numbers without their last digits."""
    turns = played.turns
    assert turns is not None  # they were asked for
    said = zip(turns.party, turns.text, turns.reward, strict=True)
    ends = zip(played.returns, played.success, played.terminated, played.truncated, strict=True)
    return [
        json.dumps(turns.sizes),
        *(json.dumps([party, text, _rounded(reward)]) for party, text, reward in said),
        *(json.dumps([_rounded(r), *map(bool, flags)]) for r, *flags in ends),
    ]


def _rounded(value: float) -> str:
    return repr(round(float(value), DIGITS) + 0.0)  # not -0.0


def _portable(value: Any) -> Any:
    """With files by their names: where they lie differs between machines."""
    if isinstance(value, Mapping):
        return {str(name): _portable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_portable(each) for each in value]
    if isinstance(value, str | os.PathLike) and os.path.exists(value):
        return os.path.basename(os.path.abspath(value))
    return value


def _kind(value: Any) -> str:
    """Name of an object's class, which stands for it."""
    return f"{type(value).__module__}:{type(value).__qualname__}"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# Rows of older rules


class RowOrigin(NamedTuple):
    """The environment and rules by which a row says that it was played.

    Attributes:
        name: what tables call the row.
        env_id: what was played.
        settings: beside those of the id.
        stand_in: what stood in for the data that the settings name, if anything.
        rules: the fingerprint; None in rows that were made before there were any.
    """

    name: str
    env_id: str
    settings: Mapping[str, Any]
    stand_in: str | None
    rules: Fingerprint | None

    @property
    def is_older(self) -> bool:
        """Return True if the rules are unknown, or known to be others than those here.

        Dialogues are compared only on the same data. Where the environment cannot be played, for
        want of packages or data, nothing is.
        """
        if self.rules is None:
            return True
        version, settings, dialogues = self.rules
        try:
            entry = entry_of(self.env_id)
            task = make_dialogue(entry, self.settings).task
            if _stated(entry, self.settings, task) != (version, settings):
                return True
            same_data = task.stand_in == self.stand_in
            return same_data and _dialogues(entry, self.settings, task) != dialogues
        except (ImportError, OSError, ValueError):
            return False


def older_rules(rows: Iterable[RowOrigin]) -> str:
    """A line that says how many rows are of older rules, and of which names; empty for none."""
    every = [*rows]
    played = {str(row[1:]): row for row in every}  # many rows are of the same rules
    of_older = {rules for rules, row in played.items() if row.is_older}
    older = Counter(row.name for row in every if str(row[1:]) in of_older)
    if not older:
        return ""
    count = sum(older.values())
    names = ", ".join(name if n == 1 else f"{name} ({n})" for name, n in sorted(older.items()))
    noun, were = "row" if len(every) == 1 else "rows", "was" if count == 1 else "were"
    how = f"{were} played by older rules (or name none): {names}."
    return f"{count:,} of {len(every):,} {noun} {how}"
