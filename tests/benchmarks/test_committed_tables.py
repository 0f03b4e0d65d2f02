"""Tables of the documentation are those of the committed rows, and each says how it is made."""

import json

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
from benchmarks.tables.__main__ import DOCS, ROWS, differing, how
from benchmarks.tables.comments import comments_table


def test_the_documentation_has_the_tables_of_the_rows():
    assert not differing(), "run python -m benchmarks.tables --write"


def test_every_file_of_results_has_a_command():
    assert sorted(how()) == sorted(file.stem for file in DOCS.glob("*.md"))


def test_the_grid_of_comments_has_the_mean_of_each_learner_and_reward():
    _, _, *lines = comments_table(ROWS).splitlines()
    cells = {
        name: list(map(str.strip, more)) for _, name, *more, _ in (x.split("|") for x in lines)
    }
    shown = cells[" cql "]
    for place, env in enumerate(("Comments", "Comments-Noised", "Comments-Upvotes")):
        files = sorted((ROWS / "comments" / "cql").glob(f"{env}-v0-seed*.json"))
        rows = [json.loads(file.read_text("utf-8"))["episodes"] for file in files]
        for way, cell in zip(("greedy", "drawn"), shown[2 * place :]):
            mean = np.mean([np.mean(row[way]["returns"]) for row in rows])
            assert cell.partition(" ")[0] == f"{mean:.2f}"
