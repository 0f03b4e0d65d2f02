"""Measured figures in README.md and docs stand in sections that say where they are from.

The rule is told in CONTRIBUTING.md, "Figures in the documentation".
"""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.scripts import ROOT

MADE = ROOT / "docs" / "results"
"""Tables that a command makes: `tests/benchmarks/test_committed_tables.py` holds which."""
TRIES = {ROOT / "docs" / "lab.md": "single tries without rows"}
"""Pages that say at their head that their figures have no rows; none may lean on them."""

NUMBER = r"(?<![\w.,/-])[-+−±]?(?:\d[\d,]*)?"
UNITS = r"(?:CPU-?|core-)?(?:seconds?|minutes?|hours?|ms|µs|s|h)\b"
MEASURED = re.compile(
    rf"{NUMBER}\.\d+\b(?!\.\d)"  # -1.45, .94, 0.07
    r"|\b\d+(?: to \d+)? ?(?:%|per cent\b)"  # 97 %
    rf"|\b\d[\d,]* {UNITS}"  # 22 CPU-seconds
    rf"|\b\d[\d,]* [\w ]{{1,20}} (?:a|per) {UNITS}"  # 1,400 tokens per CPU-second
    r"|\b\d+ times (?:as|the|slower|faster|less|more)\b"  # 13 times as fast
)
"""What counts as a measured figure: a fraction, a share, a time, a speed, a ratio."""
NAMES = (
    "Apache-|arXiv|BY-SA|BY-NC-SA|CC BY|CUDA|Gymnasium|Linux|MultiWOZ|NumPy|Python|PyTorch|Qwen|"
    "Table|equation|sections?|transformers|version|v"
)
NAMED = re.compile(
    r"95 %(?= (?:intervals?|bootstrap|confidence|of (?:a|Student)))"
    rf"|\b(?:{NAMES})[ -]?\d+(?:\.\d+)*(?:(?: to |, | and )\d+\.\d+)*"
)
"""Numbers that are names or say what an interval is: they are not looked at."""
UNNAMED = ("measured elsewhere", "written down from memory")
FENCED = re.compile(r"^[ ]*```.*?^[ ]*```$|^--8<--.*$", re.M | re.S)
CODE = re.compile(r"`[^`]*`|\]\([^)]*\)|<!--.*?-->|<[^>]+>")
COMMAND = re.compile(
    r"(?:^|[`\s])(?:dialgym (?:evaluate|benchmark|train|leaderboard|report|check-domain)|"
    r"make (?:run|test|nightly|bench|soak|tables)|python -m (?:benchmarks|dialgym|tests)[\w.]*|"
    r"python (?:examples|scripts)/\w+\.py)|^--8<-- \"(?:examples/|docs/results/)|"
    r"^```python\n(?:(?!^```).*\n)*?.*\b(?:evaluate|benchmark)\(",
    re.M,
)
"""Commands and code that train, score or measure, and tables and scripts that are included."""
ROWS = re.compile(
    r"\((?:docs/)?(?:leaderboard_)?results\.md|docs/results/\w+\.md|benchmarks/results"
)
TEST = re.compile(r"tests/[\w/]+\.py")
SOURCE = re.compile(r"\b(?:et al\.|and \w+),? \(?(?:19|20)\d\d\)?")


class Section(NamedTuple):
    """A heading and what stands below it, to the next heading.

    Attributes:
        page: its file.
        line: number of its first line, from 1.
        text: all of it.
    """

    page: Path
    line: int
    text: str


def pages() -> list[Path]:
    """The README, and the pages of the documentation but for the tables that commands make."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(page for page in found if MADE not in page.parents)]


def sections(page: Path, text: str) -> Iterator[Section]:
    """The sections of a page; headings within fenced code are none."""
    start, lines, fenced = 1, list[str](), False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced and lines:
            yield Section(page, start, "\n".join(lines))
            start, lines = number, []
        lines.append(line)
    yield Section(page, start, "\n".join(lines))


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Lines outside of code, by number from 0, without addresses, names and versions."""
    blank = FENCED.sub(lambda found: "\n" * found[0].count("\n"), text)
    plain = CODE.sub(lambda found: "\n" * found[0].count("\n"), blank)
    yield from enumerate(NAMED.sub("", line) for line in plain.splitlines())


def has_evidence(text: str) -> bool:
    """True if a section has a command, a link to rows, a test or a published source."""
    return any(kind.search(text) for kind in (COMMAND, ROWS, TEST, SOURCE))


def bare_figures(section: Section) -> list[str]:
    """The measured figures of a section without evidence, with their places."""
    if has_evidence(section.text):
        return []
    return [
        f"{section.page.relative_to(ROOT)}:{section.line + number}: {found[0].strip()!r}"
        for number, line in prose(section.text)
        for found in MEASURED.finditer(line)
    ]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_every_measured_figure_says_where_it_is_from(page: Path):
    if page in TRIES:
        return
    found = [bare for section in sections(page, page.read_text("utf-8"))
             for bare in bare_figures(section)]  # fmt: skip
    assert not found, (
        f"{len(found)} figures without a command, rows, a test or a source in their section: "
        f"{'; '.join(found)}. See CONTRIBUTING.md, Figures in the documentation."
    )


@pytest.mark.parametrize("page", TRIES, ids=lambda page: page.stem)
def test_a_page_of_single_tries_says_so_at_its_head(page: Path):
    head = next(sections(page, page.read_text("utf-8"))).text
    assert TRIES[page] in head


def test_a_link_to_single_tries_is_no_evidence():
    for page in TRIES:
        assert not has_evidence(f"It earns -1.05, see the [log]({page.name}#one-try).")


def test_no_page_quotes_figures_whose_source_is_not_named():
    for page in pages():
        text = " ".join(page.read_text("utf-8").split())
        assert not [words for words in UNNAMED if words in text], page


# What pages name is there


def named(pattern: str) -> set[str]:
    """All that pages name in such a way."""
    return {found for page in pages() for found in re.findall(pattern, page.read_text("utf-8"))}


def test_commands_of_pages_exist():
    modules = named(r"python -m ((?:benchmarks|dialgym|tests)[\w.]*\w)")
    assert [name for name in modules if find_spec(name) is None] == []
    scripts = named(r"python ((?:examples|scripts)/\w+\.py)")
    assert [name for name in scripts if not (ROOT / name).is_file()] == []
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert named(r"(?m)(?:^|`)make ([a-z-]+)") <= {*targets}


def test_tests_of_pages_exist():
    known = {name: (ROOT / name).read_text("utf-8") for name in named(r"(tests/[\w/]+\.py)")}
    lost = [
        f"{file}::{name}"
        for file, name in named(r"(tests/[\w/]+\.py)::(\w+)")
        if f"def {name}(" not in known[file]
    ]
    assert not lost


# The rule itself


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("It earns -1.05 on twenty words.", ["-1.05"]),
        ("ILQL has .94 there.", [".94"]),
        ("PPO succeeds in 97 % of the games.", ["97 %"]),
        ("It takes 22 CPU-seconds.", ["22 CPU-seconds"]),
        ("It does 1,400 token steps per CPU-second.", ["1,400 token steps per CPU-second"]),
        ("That is 13 times as fast.", ["13 times as"]),
        ("| ilql | -2.3 | 88 % |", ["-2.3", "88 %"]),
    ],
)
def test_a_figure_is_caught_where_nothing_says_where_it_is_from(line: str, found: list[str]):
    bare = bare_figures(Section(ROOT / "README.md", 7, f"## A heading\n\n{line}\n"))
    assert bare == [f"README.md:9: {figure!r}" for figure in found]


@pytest.mark.parametrize(
    "evidence",
    [
        "`dialgym benchmark wordle` makes it.",
        "```\nmake bench\n```",
        "```python\nprint(dialgym.evaluate(model, ID))\n```",
        "See the [rows](leaderboard_results.md#two-hundred-words).",
        '--8<-- "docs/results/credit.md"',
        "`tests/agents/online/test_ppo.py` holds that.",
        "So it is in Snell et al. (2022).",
    ],
)
def test_evidence_in_the_section_is_enough(evidence: str):
    text = f"## A heading\n\nIt earns -1.05.\n\n{evidence}\n"
    assert not bare_figures(Section(ROOT / "README.md", 1, text))


@pytest.mark.parametrize(
    "line",
    [
        "Python 3.11 to 3.14, dialgym version 0.1.0 under Apache-2.0.",
        "A batch of 1,024 dialogues, 340 numbers, 209 acts, turn limit 6.",
        "With `learning_rate=0.003` and `gamma: 0.99`.",
        "In brackets 95 % intervals; MultiWOZ 2.1; section 5.2.",
        "`dialgym chat --temperature 0.7`",
        "```\nreturn 0.93\n```",
    ],
)
def test_sizes_versions_settings_and_names_are_no_measured_figures(line: str):
    assert not bare_figures(Section(ROOT / "README.md", 1, f"## A heading\n\n{line}\n"))


def test_evidence_of_another_section_does_not_count():
    text = "# Page\n\n`make bench`\n\n```\n# no heading\n```\n\n## Below\n\nIt earns -1.05.\n"
    found = [bare_figures(part) for part in sections(ROOT / "README.md", text)]
    assert found == [[], ["README.md:11: '-1.05'"]]
