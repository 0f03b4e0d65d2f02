"""What a stored dialogue is: its turns and where it came from, as columns of an Arrow table."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dialgym.datasets.tables import arrow
from dialgym.language import Utterance
from dialgym.views.dialogue import Dialogue


def schema() -> Any:
    """The Arrow schema of a dataset: a row a dialogue.

    ``turns`` is a list of what the learner has seen, in order: ``party``, ``text``, ``said`` (an
    utterance of the learner, not one that it heard or was told), ``reward`` (what that earned
    until its next turn; else 0) and ``tokens`` (the ids that the learner emitted, ``<end>``
    included where it said one; null where it spoke in text).

    The dialogue is that of ``gym.make(env, **settings).reset(seed=seed, options=options)`` in
    which ``learner`` says its turns; `settings` and `options` are JSON. ``vocabulary`` tells
    whose token ids are logged. ``kind``, ``source`` and ``branch`` are a generator's: the role
    of the dialogue, and, where it goes on from another of the same episode, the place of that one
    among the episode's dialogues (else -1), and how many of the learner's utterances they share.
    """
    pa = arrow()
    turn = pa.struct(
        [
            ("party", pa.string()),
            ("text", pa.string()),
            ("said", pa.bool_()),
            ("reward", pa.float64()),
            ("tokens", pa.list_(pa.int32())),
        ]
    )
    return pa.schema(
        [
            ("turns", pa.list_(turn)),
            ("terminated", pa.bool_()),
            ("truncated", pa.bool_()),
            ("success", pa.bool_()),
            ("env", pa.string()),
            ("settings", pa.string()),
            ("options", pa.string()),
            ("learner", pa.string()),
            ("policy", pa.string()),
            ("vocabulary", pa.string()),
            ("seed", pa.uint64()),
            ("episode", pa.int64()),
            ("kind", pa.string()),
            ("source", pa.int64()),
            ("branch", pa.int64()),
        ]
    )


@dataclass(frozen=True)
class Origin:
    """What all dialogues of one collection have in common; see `schema`."""

    env: str
    settings: Mapping[str, Any]
    learner: str
    policy: str
    vocabulary: str = ""


class Recorder:
    """Takes dialogues as they end, and makes a table of them."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self._sizes: list[int] = []
        self._turns: dict[str, list[Any]] = {
            name: [] for name in ("party", "text", "said", "reward", "tokens")
        }
        self._rows: dict[str, list[Any]] = {
            name: []
            for name in (
                *("terminated", "truncated", "success", "options"),
                *("seed", "episode", "kind", "source", "branch"),
            )
        }

    def __len__(self) -> int:
        return len(self._sizes)

    def add(
        self,
        lines: Sequence[Utterance],
        said: Sequence[int],
        rewards: Sequence[float],
        tokens: Sequence[list[int]] | None = None,
        *,
        terminated: bool,
        truncated: bool,
        success: bool | None,
        seed: int,
        episode: int,
        options: Mapping[str, Any] | None = None,
        kind: str = "",
        source: int = -1,
        branch: int = 0,
    ) -> None:
        """Record one dialogue.

        Args:
            lines: the learner's transcript.
            said: the places in it of what the learner said.
            rewards: of each of those.
            tokens: the ids of each of those, where they are known.
            terminated, truncated, success, seed, episode, options, kind, source, branch: as in
                `schema`.
        """
        count, turns = len(lines), self._turns
        own, earned, ids = [False] * count, [0.0] * count, [None] * count
        for k, place in enumerate(said):
            own[place], earned[place] = True, rewards[k]
            if tokens is not None:
                ids[place] = tokens[k]  # type: ignore[call-overload]
        turns["party"] += [line.speaker for line in lines]
        turns["text"] += [line.text for line in lines]
        turns["said"] += own
        turns["reward"] += earned
        turns["tokens"] += ids
        self._sizes.append(count)
        row = (terminated, truncated, bool(success), json.dumps(dict(options or {})))
        for values, value in zip(self._rows.values(), (*row, seed, episode, kind, source, branch)):
            values.append(value)

    def add_many(
        self,
        turns: Mapping[str, list[Any]],
        sizes: list[int],
        rows: Mapping[str, list[Any]],
        options: Mapping[str, Any],
    ) -> None:
        """Record dialogues given as columns: of their turns, and of themselves.

        `sizes` are their numbers of turns; columns that are not given have their usual values.
        """
        usual = {**_USUAL, "options": json.dumps(dict(options))}
        for name, values in self._turns.items():
            values += turns[name] if name in turns else [usual[name]] * sum(sizes)
        for name, values in self._rows.items():
            values += rows[name] if name in rows else [usual[name]] * len(sizes)
        self._sizes += sizes

    def table(self) -> Any:
        """The dialogues so far as an Arrow table."""
        pa, layout, n = arrow(), schema(), len(self)
        offsets = pa.array([0, *_running_sum(self._sizes)], pa.int32())
        fields = list(layout.field("turns").type.value_type)
        children = [pa.array(self._turns[field.name], field.type) for field in fields]
        turns = pa.ListArray.from_arrays(
            offsets, pa.StructArray.from_arrays(children, fields=fields)
        )
        origin = self.origin
        same = {
            "env": origin.env,
            "settings": json.dumps(dict(origin.settings), sort_keys=True),
            "learner": origin.learner,
            "policy": origin.policy,
            "vocabulary": origin.vocabulary,
        }
        columns = {"turns": turns}
        columns |= {name: pa.repeat(pa.scalar(value), n) for name, value in same.items()}
        columns |= {
            name: pa.array(values, layout.field(name).type) for name, values in self._rows.items()
        }
        return pa.table([columns[name] for name in layout.names], schema=layout)


_USUAL: Mapping[str, Any] = {
    "tokens": None,
    "kind": "",
    "source": -1,
    "branch": 0,
}


def _running_sum(sizes: list[int]) -> Iterable[int]:
    total = 0
    for size in sizes:
        total += size
        yield total


def origin_of(env_id: str, settings: Mapping[str, Any], dialogue: Dialogue, policy: str) -> Origin:
    """The origin of dialogues in which the learner speaks in text.

    Raises:
        ValueError: a setting cannot be written down.
    """
    check_json(settings, f"env_kwargs of {env_id}")
    return Origin(env_id, played_settings(settings, dialogue), dialogue.learner, policy)


def played_settings(settings: Mapping[str, Any], dialogue: Dialogue) -> Mapping[str, Any]:
    """The settings that make an env's task again, a stand-in too, wherever they are read."""
    task = dialogue.task
    return {**settings, **task.played} if task.stand_in else settings


def check_json(values: Mapping[str, Any], what: str) -> None:
    """Raise a ValueError where values are not plain ones that JSON can hold."""
    for name, value in values.items():
        try:
            json.dumps(value)
        except TypeError:
            raise ValueError(
                f"{what}: {name} is stored with the dialogues, so it must be a number, a string "
                f"or a list of them; got {value!r}. Give a name or a path instead of an object."
            ) from None
