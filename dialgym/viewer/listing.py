"""Stored dialogues as a list that can be filtered, sorted and searched, and one by one."""

from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np

from dialgym.datasets import Dataset
from dialgym.datasets.schema import arrow
from dialgym.experiments.analysis import EXAMPLES, MOST, analyze
from dialgym.io.files import parse_json
from dialgym.language import Utterance
from dialgym.rollouts.player import make_dialogue
from dialgym.tasks import Task
from dialgym.viewer.lines import first_words, number_as_text, turn
from dialgym.viewer.query import NotHereError, Query

SORTS = ("order", "return", "length", "seed")
FACETS = {"env": "envs", "policy": "policies", "kind": "kinds"}
"""Columns by which dialogues are chosen, and what their values are called together."""
MOST_FACETS = 50
MOST_ROWS = 200
MOST_ANALYZED = 2000
"""Dialogues that are played again for an analysis."""


class Listing:
    """Dialogues of a data set, with cached columns.

    Args:
        dataset: the dialogues.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._tasks: dict[tuple[str, str], Task | None] = {}

    def about(self) -> dict[str, Any]:
        """Entry of the data set in the page's list."""
        return {"dialogues": len(self.dataset), **self.facets}

    @cached_property
    def returns(self) -> np.ndarray:
        """(N,) float64."""
        return self.dataset.returns

    @cached_property
    def lengths(self) -> np.ndarray:
        """(N,) int64."""
        return self.dataset.lengths

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """(N,) each."""
        names = (*FACETS, "seed", "episode", "success", "terminated", "truncated")
        return {name: self.dataset[name] for name in names}

    @cached_property
    def facets(self) -> dict[str, list[tuple[str, int]]]:
        """The values of some columns, and how often each is there, the most frequent first."""
        facets = {}
        for name, together in FACETS.items():
            counts = Counter(self.columns[name].tolist()).most_common(MOST_FACETS)
            facets[together] = [(str(value), count) for value, count in counts if value]
        return facets

    @cached_property
    def analysis(self) -> dict[str, Any]:
        """Tables and failures of the first dialogues; see `analyze`.

        Raises:
            ValueError: they are of several environments, or none goes as it is stored.
        """
        found = analyze(self.dataset.select(range(min(len(self.dataset), MOST_ANALYZED))))
        return {
            "tables": [{"title": title, "rows": rows} for title, rows in found.tables()],
            "failures": [
                {"kind": group.kind, "count": len(group.rows), "rows": group.rows[:EXAMPLES]}
                for group in found.failures[:MOST]
            ],
            "caption": found.caption,
        }

    def page(self, query: Query) -> dict[str, Any]:
        """A page of the list, by `q`, `env`, `policy`, `kind`, `success`, `least`, `most`,
        `sort`, `descending`, `offset` and `limit`.

        Raises:
            ValueError: one of them cannot be.
        """
        rows = self._sorted(self.rows(query), query)
        offset, limit = query.integer("offset", 0), query.integer("limit", 50, 1, MOST_ROWS)
        shown = [self.row(int(row)) for row in rows[offset : offset + limit]]
        returns = self.returns[rows]
        return {
            "total": len(self.dataset),
            "found": len(rows),
            "mean": float(returns.mean()) if len(rows) else None,
            "success": float(self.columns["success"][rows].mean()) if len(rows) else None,
            "rows": shown,
        }

    def rows(self, query: Query) -> np.ndarray:
        """(n,) the dialogues that meet all that is query, in their order."""
        keep = np.ones(len(self.dataset), bool)
        for name in FACETS:
            if name in query:
                keep &= self.columns[name] == query.text(name)
        if "success" in query:
            wanted = query.choice("success", ("yes", "no")) == "yes"
            keep &= self.columns["success"].astype(bool) == wanted
        if "least" in query:
            keep &= self.returns >= query.number("least")
        if "most" in query:
            keep &= self.returns <= query.number("most")
        if "q" in query:
            keep &= self._with_text(query.text("q"))
        return np.flatnonzero(keep)

    def row(self, row: int) -> dict[str, Any]:
        """Entry of a dialogue in the page's list."""
        values = {name: column[row] for name, column in self.columns.items()}
        said = [t["text"] for t in self.dataset[row]["turns"] if t["said"]]
        return {
            "row": row,
            "env": str(values["env"]),
            "policy": str(values["policy"]),
            "kind": str(values["kind"] or ""),
            "seed": number_as_text(values["seed"]),
            "episode": int(values["episode"]),
            "success": bool(values["success"]),
            "terminated": bool(values["terminated"]),
            "truncated": bool(values["truncated"]),
            "return": float(self.returns[row]),
            "length": int(self.lengths[row]),
            "words": first_words(said),
        }

    def select(self, row: int) -> Dataset:
        """A dialogue as a dataset of its own.

        Raises:
            NotHereError: there is no such row.
        """
        if not 0 <= row < len(self.dataset):
            raise NotHereError(f"there is no dialogue {row}; there are {len(self.dataset)}.")
        return self.dataset.select([row])

    def dialogue(self, row: int) -> dict[str, Any]:
        """A dialogue in full.

        Raises:
            NotHereError: there is no such row.
        """
        stored = self.select(row)[0]
        task = self.task(row)
        turns = [
            turn(task, Utterance(t["party"], t["text"]), t["said"], t["reward"])
            for t in stored["turns"]
        ]
        return {
            **self.row(row),
            "task": task.name if task else "",
            "learner": stored["learner"],
            "settings": parse_json(stored["settings"], "settings"),
            "options": parse_json(stored["options"] or "{}", "options"),
            "tokens": sum(len(t["tokens"] or ()) for t in stored["turns"]),
            "turns": turns,
        }

    def task(self, row: int) -> Task | None:
        """The rules of a dialogue; None where they are not here, or not to be trusted."""
        key = str(self.columns["env"][row]), str(self.dataset[row]["settings"])
        if key not in self._tasks:
            try:
                env_id, settings = self.dataset.select([row]).environment()
                self._tasks[key] = make_dialogue(env_id, settings).task
            except (ValueError, ImportError, OSError):
                self._tasks[key] = None
        return self._tasks[key]

    def _sorted(self, rows: np.ndarray, query: Query) -> np.ndarray:
        by = query.choice("sort", SORTS, "order")
        keys = {"return": self.returns, "length": self.lengths, "seed": self.columns["seed"]}
        if by in keys:
            rows = rows[np.argsort(keys[by][rows], kind="stable")]
        return rows[::-1] if query.flag("descending") else rows

    def _with_text(self, text: str) -> np.ndarray:
        """(N,) bool: in which dialogues somebody says it, in letters small or large."""
        arrow()
        from pyarrow import compute

        sizes, turns = self.dataset.turns()
        matches = compute.match_substring(turns.field("text"), text, ignore_case=True)
        dialogues = np.repeat(np.arange(len(self.dataset)), sizes)
        hits = matches.to_numpy(zero_copy_only=False).astype(bool)
        return np.bincount(dialogues[hits], minlength=len(self.dataset)) > 0
