"""Pages for who comes from one of the four systems: their rows, and the tests that these name."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("coming_from_*.md"))
NAMED = re.compile(r"(tests/[\w/]+\.py)::(\w+)")


def rows(page: Path) -> list[list[str]]:
    lines = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_row_says_what_there_is_here(page):
    found = rows(page)
    assert len(found) > 20
    for cells in found:
        assert len(cells) in (2, 3), cells
        assert all(cells), cells


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_tests_that_are_named_exist(page):
    for file, name in NAMED.findall(page.read_text("utf-8")):
        path = ROOT / file
        assert path.is_file(), file
        assert f"def {name}(" in path.read_text("utf-8"), f"{file}::{name}"
