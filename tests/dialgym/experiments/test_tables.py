"""The tables of the documentation are those of the committed rows."""

import runpy
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]


def test_the_documentation_has_the_tables_of_the_rows(tmp_path, monkeypatch):
    script = REPOSITORY / "scripts" / "leaderboard_tables.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--out", str(tmp_path)])
    tables = runpy.run_path(str(script))
    tables["main"]()
    made = {file.name: file.read_text("utf-8") for file in tmp_path.glob("*.md")}
    assert sorted(made) == sorted(f"{name}.md" for name in (*tables["TABLES"], tables["LMRL"]))
    committed = REPOSITORY / "docs" / "results"
    stale = [name for name, text in made.items() if text != (committed / name).read_text("utf-8")]
    assert not stale, f"run scripts/leaderboard_tables.py: {stale} are not of these rows"
