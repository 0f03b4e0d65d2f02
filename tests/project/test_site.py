"""The documentation as it is built, and pages of results, in a browser without a server."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import all_of, browser, one_of
from tests.support.commands import succeed

ROOT = Path(__file__).parents[2]
RESULTS = ("leaderboard_results", "results", "slot_filling", "multi_domain", "belief_policies",
           "environments/wordle", "environments/slot_filling", "performance", "lab")  # fmt: skip
PANELS = [
    pytest.param(name, marks=() if name == "wordle" else pytest.mark.slow)
    for name in ("wordle", "slot-filling-words", "questions", "language")
]
TOO_WIDE = """
return [...document.querySelectorAll('table')]
  .map(table => [table.closest('.md-typeset__scrollwrap') || table.parentElement, table])
  .filter(([frame, table]) => Math.max(frame.scrollWidth, table.scrollWidth) > frame.clientWidth)
  .map(([_, table]) => table.querySelector('tr').innerText)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make docs` builds."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", folder]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("browser"), width=1300) as made:
        yield made


@pytest.mark.slow
def test_links_lead_to_files(site: Path):
    """Of `file://` a folder is a listing: each link names a file."""
    broken = {
        (page.relative_to(site).as_posix(), link)
        for page in site.rglob("*.html")
        if page.name != "404.html"
        for link in re.findall(r'(?:href|src)="([^":#?]+)[#?]?[^":]*"', page.read_text("utf-8"))
        if not (page.parent / link).is_file()
    }
    assert broken == set()


@pytest.mark.slow
def test_search_works_without_a_server(site: Path, driver: Any):
    driver.get((site / "index.html").as_uri())
    driver.execute_script("document.querySelector('[data-md-toggle=search]').click()")
    one_of(driver, ".md-search__input").send_keys("expectile")
    one_of(driver, ".md-search-result__link")
    links = [found.get_attribute("href") for found in all_of(driver, ".md-search-result__link")]
    assert any("/offline.html" in link or "/ILQL.html" in link for link in links)


@pytest.mark.slow
@pytest.mark.parametrize("page", RESULTS)
def test_tables_of_the_documentation_fit_a_page(site: Path, driver: Any, page: str):
    driver.get((site / f"{page}.html").as_uri())
    one_of(driver, "table")
    assert driver.execute_script(TOO_WIDE) == []


@pytest.mark.slow
def test_arguments_stand_on_their_page_with_defaults(site: Path, driver: Any):
    driver.get((site / "reference/agents/SequencePPO.html").as_uri())
    signature = one_of(driver, ".doc-signature").text
    assert "gamma: float = 1.0" in signature
    assert "n_steps: int = 128" in signature
    rows = [row.text for row in all_of(driver, ".doc-contents tr")]
    assert any(row.startswith("gamma float") and row.endswith("1.0") for row in rows)


@pytest.mark.parametrize("panel", PANELS)
def test_the_page_of_a_panel_is_not_clipped(driver: Any, tmp_path: Path, panel: str):
    rows, out = str(ROOT / "benchmarks" / "results"), str(tmp_path / "page.html")
    succeed("leaderboard", "html", panel, "--results", rows, "--out", out)
    driver.get((tmp_path / "page.html").as_uri())
    one_of(driver, "table.ranking")
    assert driver.execute_script(TOO_WIDE) == []
