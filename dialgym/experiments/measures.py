"""Language measures of the replies that a row is scored by, and the verdict of a judge.

They are those of `dialgym.rewards.metrics`, and ``judge``, which is not the reward
(`ReplyTask.judge`). A row keeps those that are means over replies reply by reply, and all of them
as figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dialgym.errors import unknown
from dialgym.experiments.result import Episodes
from dialgym.io.strict_reader import all_finite
from dialgym.rewards import Reply
from dialgym.rewards.compose import reward_rows
from dialgym.rewards.metrics import BLEU, DISTINCT, NAMES, ReplyMetrics
from dialgym.rollouts import EpisodeBatch
from dialgym.tasks.replies import ReplyTask

JUDGE = "judge"
OF_SETS = (*DISTINCT, BLEU)
"""Measures of a set of replies, which no single reply has."""
SHARES = (JUDGE, "intent", "rouge1", "rougeL", "rougeLsum", "meteor", BLEU, *DISTINCT)
BOUNDS = {"sentiment": (-1.0, 1.0), **dict.fromkeys(SHARES, (0.0, 1.0))}
"""The least and the greatest value of measures that have any."""
DIGITS = 3
"""Of what is kept of a reply."""
CLOSE = 1e-6
Values = Mapping[str, Any]


def known_measures() -> list[str]:
    """Names of all measures."""
    return [*dict.fromkeys([JUDGE, *NAMES, *reward_rows()])]


def measure_replies(
    task: Any, names: Sequence[str], parts: Iterable[EpisodeBatch]
) -> dict[str, Any]:
    """Measure the replies of some dialogues, the first reply of each, as a row keeps them.

    Args:
        task: the rules that they were played by.
        names: of the measures.
        parts: the dialogues, with what was said.

    Raises:
        ValueError: the task is not one of replies, or has no such judge.
    """
    if not isinstance(task, ReplyTask):
        raise ValueError(f"{task.name} has no replies to be measured by {', '.join(names)}.")
    replies = [reply for part in parts for reply in replies_of(task, part)]
    own = {JUDGE: {"reward": task.judge()}} if JUDGE in names else {}
    metrics = ReplyMetrics(names, task.examples, own)
    single = {
        name: [round(value, DIGITS) for value in column.tolist()]
        for name, column in metrics.per_reply(replies).items()
    }
    whole = metrics.values(replies)
    means = {name: float(np.mean(column)) for name, column in single.items()}
    figures = {name: round(means.get(name, whole[name]), 6) for name in names}
    return {"replies": {name: single[name] for name in names if name in single}, "figures": figures}


def with_measures(
    part: Episodes, task: Any, names: Sequence[str], played: Sequence[EpisodeBatch]
) -> Episodes:
    """The episodes with measures of their replies.

    Raises:
        ValueError: the task is not one of replies, or has no such judge.
    """
    found = measure_replies(task, names, played)
    columns = {n: np.array(v).reshape(part.returns.shape) for n, v in found["replies"].items()}
    figures = {name: found["figures"][name] for name in names if name not in columns}
    return replace(part, measures=columns, figures=figures)


def replies_of(task: ReplyTask, part: EpisodeBatch) -> Iterator[Reply]:
    """The first reply of the learner in each dialogue, as the rewards saw it."""
    if part.turns is None or part.options is None:
        raise ValueError(
            "measures: expected dialogues with what was said and the options of their resets, as "
            "`Player(..., record=True)` plays them; got some without. Play them again."
        )
    turns, begin = part.turns, 0
    for seed, chosen, size in zip(part.seeds, part.options, turns.sizes, strict=True):
        own = range(begin, begin + size)
        text = next((turns.text[i] for i in own if turns.said[i]), "")
        yield task.first_reply(seed, text, chosen)
        begin += size


def measure_problems(names: Sequence[str], actions: str, part: Any, episodes: int) -> Iterator[str]:
    """Problems of the measures of a row that should have these, with actions of one kind."""
    where = f"measures, {actions}"
    if not isinstance(part, Mapping) or part.keys() != {"replies", "figures"}:
        yield f"{where}: expected replies and figures, got {part!r:.40}"
        return
    single, figures = part["replies"], part["figures"]
    expected = [name for name in names if name not in OF_SETS]
    for key, values, wanted in (("replies", single, expected), ("figures", figures, [*names])):
        if not isinstance(values, Mapping) or sorted(values) != sorted(wanted):
            got = [*values] if isinstance(values, Mapping) else values
            yield f"{where}, {key}: expected {', '.join(wanted)}, got {got!r:.80}"
            return
    bad = [name for name, value in figures.items() if not all_finite([value])]
    yield from (f"{where}, figures, {name}: expected a finite number" for name in bad)
    for name, column in single.items():
        if not isinstance(column, Sequence) or len(column) != episodes or not all_finite(column):
            yield f"{where}, replies, {name}: expected {episodes} finite numbers"
        elif name not in bad and abs(float(np.mean(column)) - figures[name]) > CLOSE:
            yield f"{where}, figures, {name}: expected the mean of the replies, {np.mean(column):g}"


def differing_measures(before: Values, again: Values) -> Iterator[str]:
    """Tell which measures of the same replies are others when they are computed again."""
    for name, value in before["figures"].items():
        measured = again["figures"][name]
        if abs(value - measured) > CLOSE:
            yield f"{name}: {value} in the file, {measured} measured"


def check_names(names: Iterable[str], where: str) -> tuple[str, ...]:
    """The names, as a tuple.

    Raises:
        ValueError: one is of no measure.
    """
    for name in names:
        if name not in known_measures():
            raise unknown("measure", name, known_measures(), where)
    return tuple(names)
