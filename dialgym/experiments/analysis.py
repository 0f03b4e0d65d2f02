"""Analysis of stored dialogues: success by domain, requests, misheard acts, loops, failures.

Each dialogue is played again by its seed, options and utterances, and the rules tell what they
found (`Task.findings`). What does not go as it is stored, such as a dialogue of a corpus, is left
out and counted.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.datasets import Dataset
from dialgym.experiments.bootstrap import measured_mean
from dialgym.experiments.statistics import Estimate, format_estimate
from dialgym.experiments.tables import markdown_table
from dialgym.io.files import parse_json
from dialgym.language import Utterance
from dialgym.registry import entry_of
from dialgym.rollouts.player import make_dialogue
from dialgym.tasks.findings import Findings
from dialgym.views.dialogue import Dialogue

LOOP = 3
"""The same utterance of a party so many times in a row is a loop."""
MOST, EXAMPLES = 15, 5
"""Rows of a table, and dialogues that are named of each kind of failure."""
SUCCESS = "success"


class Finished(NamedTuple):
    """A stored dialogue that was played again.

    Attributes:
        row: its place in the data set.
        success: whether the task was solved.
        lines: the learner's transcript.
        findings: of the rules.
    """

    row: int
    success: bool
    lines: Sequence[Utterance]
    findings: Findings


class FailureGroup(NamedTuple):
    """Failed dialogues that are alike.

    Attributes:
        kind: what they failed by.
        rows: their places in the data set.
    """

    kind: str
    rows: Sequence[int]


@dataclass(frozen=True)
class Analysis:
    """Counts over dialogues.

    Attributes:
        dialogues: that were played again.
        left_out: those that did not go as they are stored.
        success: share of them that were solved.
        domains: by domain how many dialogues had a goal in it, and its measures with 95 %
            intervals.
        requests: by request how often it was made, and how often answered.
        misheard: by mistake how often it was made.
        loops: by utterance in how many dialogues it was said three times in a row or more.
        failures: the most frequent first.
    """

    dialogues: int
    left_out: int
    success: Estimate
    domains: Mapping[str, tuple[int, Mapping[str, Estimate | None]]]
    requests: Mapping[str, tuple[int, int]]
    misheard: Mapping[str, int]
    loops: Mapping[str, int]
    failures: Sequence[FailureGroup]

    def tables(self) -> Iterator[tuple[str, list[list[str]]]]:
        """Tables by title; the first row of each is its head. Those without rows are left out."""
        yield "Success by domain", self._domains()
        missed = {name: (asked - told, asked) for name, (asked, told) in self.requests.items()}
        worst = sorted(missed.items(), key=lambda item: -item[1][0])
        unanswered = [[name, str(n), f"{n / of:.0%}"] for name, (n, of) in worst if n]
        counted = (
            ("Unanswered requests", ["request", "unanswered", "of all"], unanswered),
            ("Misheard acts", ["act", "times"], _counted(self.misheard)),
            ("Loops", ["said three times in a row or more", "dialogues"], _counted(self.loops)),
        )
        for title, head, rows in counted:
            if rows:
                yield title, [head, *rows[:MOST]]

    def _domains(self) -> list[list[str]]:
        names = list(dict.fromkeys(name for _, own in self.domains.values() for name in own))
        head = ["domain", "dialogues", *(names or [SUCCESS])]
        rows = [
            [domain, str(count), *(format_estimate(own.get(name), 2) for name in names)]
            for domain, (count, own) in self.domains.items()
        ]
        rest = ["-"] * (len(names) - 1)
        return [head, *rows, ["all", str(self.dialogues), format_estimate(self.success, 2), *rest]]

    def to_markdown(self, link: str = "") -> str:
        """Format as Markdown.

        Args:
            link: address of a dialogue, with ``{}`` for its place; without it places stand alone.
        """
        parts = [f"### {title}\n\n{markdown_table(rows)}" for title, rows in self.tables()]
        if self.failures:
            rows = [
                [group.kind, str(len(group.rows)), ", ".join(_links(group.rows, link))]
                for group in self.failures[:MOST]
            ]
            head = ["failed by", "dialogues", "such as"]
            parts.append(f"### Failed dialogues\n\n{markdown_table([head, *rows])}")
        return "\n".join([*parts, f"{self.caption}\n"])

    @property
    def caption(self) -> str:
        """Caption of the tables."""
        left = f" {self.left_out} that did not go as they are stored are left out."
        return (
            f"{self.dialogues} dialogues, played again by their seeds and utterances. In brackets: "
            f"95 % bootstrap intervals.{left if self.left_out else ''}"
        )


def _links(rows: Sequence[int], link: str) -> Iterator[str]:
    for row in rows[:EXAMPLES]:
        yield f"[{row}]({link.format(row)})" if link else str(row)


def _counted(counts: Mapping[str, int]) -> list[list[str]]:
    return [[name, str(count)] for name, count in Counter(counts).most_common(MOST)]


def analyze(dataset: Dataset) -> Analysis:
    """Analyze the dialogues of one environment.

    Args:
        dataset: as of `collect` or `load_dataset`.

    Raises:
        ValueError: they are of several environments, or none goes as it is stored.
    """
    env_id, settings = dataset.environment()
    dialogues = {
        learner: make_dialogue(entry_of(env_id), {**settings, "learner": learner})
        for learner in np.unique(dataset["learner"].astype(str)).tolist()
    }
    played = [_play_again(dialogues[row["learner"]], n, row) for n, row in enumerate(dataset)]
    found = [one for one in played if one is not None]
    if not found:
        raise ValueError(
            f"analyze: expected dialogues that their seeds and utterances give again; got "
            f"{len(played)} of which none does. Dialogues of a corpus, or of another version of "
            "the rules, cannot be analyzed: collect new ones."
        )
    findings = [one.findings for one in found]
    return Analysis(
        len(found),
        len(played) - len(found),
        _estimate([float(one.success) for one in found]),
        dict(_domains(findings)),
        _answered(findings),
        Counter(mistake for each in findings for mistake in each.misheard),
        Counter(loop for one in found for loop in loops(one.lines)),
        _groups(found),
    )


def _play_again(dialogue: Dialogue, place: int, row: Mapping[str, Any]) -> Finished | None:
    """Play a stored dialogue; None where it did not go as it is stored."""
    rng = np_random(int(row["seed"]))[0]
    exchange = dialogue.start(rng, parse_json(row["options"] or "{}", "options"))
    for turn in row["turns"]:
        if turn["said"] and not exchange.over:
            exchange = dialogue.say(turn["text"], rng)
    lines = dialogue.task.transcript(dialogue.state, dialogue.learner)
    if [line.text for line in lines] != [turn["text"] for turn in row["turns"]]:
        return None
    return Finished(place, bool(row["success"]), lines, _findings(dialogue, row))


def _findings(dialogue: Dialogue, row: Mapping[str, Any]) -> Findings:
    """Findings of the rules; without any, how the dialogue ended."""
    found = dialogue.task.findings(dialogue.state)
    if found.failures or row["success"]:
        return found
    end = "the limit of turns" if row["truncated"] else "not solved at its end"
    return found._replace(failures=[end])


def loops(lines: Iterable[Utterance]) -> set[str]:
    """Name what a party has said `LOOP` times in a row or more, with the party."""
    found = set()
    own: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        if not line.private:
            own[line.speaker].append(line.text)
    for speaker, texts in own.items():
        for text, alike in groupby(texts):
            if len(list(alike)) >= LOOP:
                found.add(f"{speaker}: {text or '(nothing)'}")
    return found


def _domains(
    findings: Sequence[Findings],
) -> Iterator[tuple[str, tuple[int, Mapping[str, Estimate | None]]]]:
    """Count the dialogues with a goal in each domain, with its measures; the worst first."""
    rows: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    for each in findings:
        for domain, measures in each.domains.items():
            rows[domain].append(measures)
    worst = sorted(rows.items(), key=lambda item: np.mean([m[SUCCESS] for m in item[1]]))
    for domain, own in worst:
        columns = {name: np.array([[measures[name] for measures in own]]) for name in own[0]}
        yield domain, (len(own), {name: measured_mean(values) for name, values in columns.items()})


def _answered(findings: Sequence[Findings]) -> dict[str, tuple[int, int]]:
    asked: Counter[str] = Counter()
    told: Counter[str] = Counter()
    for each in findings:
        asked.update(each.requests.keys())
        told.update(name for name, answered in each.requests.items() if answered)
    return {name: (count, told[name]) for name, count in asked.items()}


def _groups(found: Sequence[Finished]) -> list[FailureGroup]:
    alike: dict[str, list[int]] = defaultdict(list)
    for one in found:
        if not one.success:
            alike["; ".join(sorted(one.findings.failures))].append(one.row)
    groups = [FailureGroup(kind, rows) for kind, rows in alike.items()]
    return sorted(groups, key=lambda group: -len(group.rows))


def _estimate(values: Sequence[float]) -> Estimate:
    estimate = measured_mean(np.array([values]))
    assert estimate is not None
    return estimate
