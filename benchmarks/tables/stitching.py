"""Learners as tables of the dialogues of ``halves``: what values can win over filtered cloning.

    python -m benchmarks.tables.stitching [--episodes 3000 12000]

Writes a record and prints its tables. No network stands between the data and the figures: each
learner is a table over everything that was said so far, and is played greedily with every secret.
Means of five sets of dialogues; differences are paired by set, with Student's t.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dialgym
from benchmarks.tables.records import RECORDS, Figures, make_record
from dialgym.datasets import Dataset
from dialgym.experiments.statistics import Estimate, format_estimate, t_interval
from dialgym.experiments.tables import markdown_table
from dialgym.registry import entry_of
from dialgym.rollouts import Player
from dialgym.rollouts.policies import RandomText
from dialgym.tasks.base import SYSTEM

NAME, COMMAND = "stitching", "python -m benchmarks.tables.stitching"
ENVIRONMENTS = ("Wordle-Alike-v0", "Wordle-20-v0", "TwentyQuestions-8-v0")
SHARES = (0.5, 0.3, 0.1)
SEEDS = range(5)
APART = 1_000_000
LEAST = 10
"""Times that something was said, from which its value is believed; of 3, 10 and 30, on seed 100."""
REPEATS = 4
"""Dialogues of each secret: where a table has no entry, chance speaks."""

History = tuple[str, ...]


class Said(NamedTuple):
    """One utterance of the learner in the data.

    Attributes:
        history: all that was said before.
        text: the utterance.
        reward: of it.
        then: the history of the learner's next one; None at the end.
    """

    history: History
    text: str
    reward: float
    then: History | None


class TableSpeaker:
    """Says what a table has for all that was said so far; where it has nothing, anything."""

    def __init__(self, table: Mapping[History, str]) -> None:
        self.table, self.otherwise = table, RandomText()

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """See `dialgym.simulators.Speaker`."""
        said = tuple(line.text for line in task.transcript(state, SYSTEM))
        return self.table.get(said) or self.otherwise.reply(task, state, rng)


def utterances(dataset: Dataset) -> list[Said]:
    """The learner's utterances."""
    found = []
    for row in dataset:
        turns = row["turns"]
        texts = tuple(turn["text"] for turn in turns)
        own = [i for i, turn in enumerate(turns) if turn["party"] == SYSTEM]
        for i, then in zip(own, [*own[1:], None], strict=True):
            after = None if then is None else texts[:then]
            found.append(Said(texts[:i], texts[i], turns[i]["reward"], after))
    return found


def by_history(said: list[Said]) -> dict[History, dict[str, list[Said]]]:
    """The utterances by history and text, the longest histories first."""
    found: dict[History, dict[str, list[Said]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(said, key=lambda one: -len(one.history)):
        found[one.history][one.text].append(one)
    return found


def clone(said: list[Said]) -> dict[History, str]:
    """Text that was said most often, by history."""
    counts: dict[History, Counter[str]] = defaultdict(Counter)
    for one in said:
        counts[one.history][one.text] += 1
    return {history: max(sorted(seen), key=seen.__getitem__) for history, seen in counts.items()}


def by_values(said: list[Said], q_learning: bool) -> dict[History, str]:
    """Text of the highest value, by history, of those said often enough; else the commonest.

    Q(h, a) = mean of r + V(h'), from the longest histories backwards. V is the mean of Q over the
    data (single-step RL), or its maximum over what was said often enough: the limit of implicit
    Q-learning, expectile 1.
    """
    values: dict[History | None, float] = {None: 0.0}
    table = {}
    for history, texts in by_history(said).items():
        q = {text: np.mean([x.reward + values[x.then] for x in of]) for text, of in texts.items()}
        known = [text for text in sorted(q) if len(texts[text]) >= LEAST]
        counts = {text: len(of) for text, of in texts.items()}
        best = max(known, key=q.__getitem__) if known else max(sorted(q), key=counts.__getitem__)
        mean = sum(q[text] * n for text, n in counts.items()) / sum(counts.values())
        values[history] = float(q[best] if q_learning and known else mean)
        table[history] = best
    return table


def tables(dataset: Dataset) -> Iterator[dict[History, str]]:
    """The learners' tables, in the order of the columns."""
    said = utterances(dataset)
    yield clone(said)
    for share in SHARES:
        yield clone(utterances(dataset.top(share)))
    yield by_values(said, q_learning=False)
    yield by_values(said, q_learning=True)


def mean_return(env_id: str, table: Mapping[History, str]) -> float:
    """The mean return of a table over all secrets."""
    player = Player(env_id, TableSpeaker(table))
    jobs = [(0, number) for number in range(REPEATS)]
    played = [player.play(jobs, secret) for secret in player.task.secrets()]
    return float(np.mean([batch.returns for batches in played for batch in batches]))


def measure(episodes: Sequence[int]) -> dict[str, Any]:
    """By environment, for each number of dialogues: what `returns_of` gives, of each set."""
    return {env_id: [*returns_of(env_id, episodes)] for env_id in ENVIRONMENTS}


def returns_of(env_id: str, episodes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """For each number of dialogues their mean returns (S,), and those of the learners (S, L)."""
    sets = [dialgym.collect(env_id, "halves", max(episodes), seed=APART * (1 + s)) for s in SEEDS]
    for number in episodes:
        few = [data.select(range(number)) for data in sets]
        learned = [[mean_return(env_id, table) for table in tables(data)] for data in few]
        stored = [float(data.returns.mean()) for data in few]
        yield {
            "dialogues": number,
            "stored": np.round(stored, 6).tolist(),
            "learned": np.round(learned, 6).tolist(),
        }


def rows(figures: Figures) -> Iterator[tuple[list[str], list[str]]]:
    """The row of returns and that of gains of each environment and number of dialogues."""
    for env_id, several in figures.items():
        scores = entry_of(env_id).row.scores
        for one in several:
            found = np.array(one["learned"])
            first = [f"`{env_id}`", f"{one['dialogues']:,}"]
            stored = float(np.mean(one["stored"]))
            means = [scores["random"], stored, *found.mean(0), scores["expert"]]
            gains = [found[:, -1] - column for column in found.T[:-1]]
            yield [*first, *(f"{value:.2f}" for value in means)], [*first, *map(shown, gains)]


def shown(gains: np.ndarray) -> str:
    """Format the mean of some differences with its interval."""
    return format_estimate(Estimate(float(gains.mean()), *t_interval(gains)), 2, signed=True)


BESIDE = ("clone", *(f"best {100 * share:.0f} % cloned" for share in SHARES), "single-step")
FIRST = ("environment", "dialogues")


def table(figures: Figures) -> str:
    """Both tables: mean returns, and what Q-learning has more than each of the others."""
    returns, gains = zip(*rows(figures), strict=True)
    means = [(*FIRST, "random", "stored", *BESIDE, "Q-learning", "optimal"), *returns]
    less = [(*FIRST, *(f"Q-learning less {name}" for name in BESIDE)), *gains]
    return f"{markdown_table(means)}\n{markdown_table(less)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--episodes", type=int, nargs="+", default=[3000, 12000])
    parser.add_argument("--records", type=Path, default=RECORDS, help="folder of the record")
    given = parser.parse_args()
    print(table(make_record(NAME, COMMAND, lambda: measure(given.episodes), given.records)))


if __name__ == "__main__":
    main()
