"""Tables of the documentation are those of the committed rows, and each says how it is made."""

import pytest

pytest.importorskip("stable_baselines3")
from benchmarks.tables.__main__ import DOCS, differing, how


def test_the_documentation_has_the_tables_of_the_rows():
    assert not differing(), "run python -m benchmarks.tables --write"


def test_every_file_of_results_has_a_command():
    assert sorted(how()) == sorted(file.stem for file in DOCS.glob("*.md"))
