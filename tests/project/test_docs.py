"""The generated parts of the documentation."""

import html
import importlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

import dialgym
from agents.registry import ALGORITHMS
from dialgym.io.objects import load
from dialgym.language.bubbles import COLOURS
from tests.support.by_day import by_day
from tests.support.checkers import checker
from tests.support.commands import COMMAND
from tests.support.scripts import ROOT, script

FIRST_PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "quickstart.md"]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    made = script("make_env_pages")
    made.pages = cache(made.pages)  # they are made of dialogues
    return made


def test_every_id_is_on_a_page(maker: ModuleType):
    text = "".join(maker.pages().values())
    assert [env_id for env_id in dialgym.list_ids() if f"`{env_id}`" not in text] == []


def test_arguments_are_listed_with_their_defaults(maker: ModuleType):
    assert "| `turns` | `6` | guesses in a game. |" in maker.pages()["environments/wordle.md"]


TASKS = ("bargain", "car_dealer", "comments", "daily_dialog", "endgames", "logged", "maze",
         "multiwoz", "service_desk", "slot_filling", "text_nav", "twenty_questions",
         "visual_dialogue", "wordle")  # fmt: skip


@pytest.mark.parametrize("task", TASKS)
def test_each_index_of_a_token_view_is_explained(maker: ModuleType, task: str):
    rows = dict(maker.tasks())[task]
    env = maker.made(rows[0], "token")
    page = maker.pages()[f"environments/{task}.md"]
    part = page.partition("## A token view")[2].partition("## Rules")[0]
    lines = re.findall(r"^\| (\d+)(?: to (\d+))? \| (\S+) \| (\S+) \| (.*) \|$", part, re.M)
    covered = [at for first, last, *_ in lines for at in range(int(first), int(last or first) + 1)]
    assert covered == list(range(env.observation_space.shape[0]))
    alone = [(int(i), html.unescape(token[6:-7])) for _, _, i, token, _ in lines if i != "..."]
    assert [env.tokenizer.tokens[i].replace(" ", "␣") for i, _ in alone] == [t for _, t in alone]
    assert 2 not in dict(alone), "an utterance that the tokenizer does not know"


def test_a_token_view_is_that_of_the_dialogue(maker: ModuleType):
    """The optimal policy's first guess, the host's colours, the open tag, the padding."""
    page = maker.pages()["environments/wordle.md"]
    guess, host = re.findall(r'<p class="[\w ]+"><b>\w+</b> (.*)</p>', page)[:2]
    for at, char in enumerate(f"[{guess}]({host.replace(' ', '␣')})"):
        shown = {"[": "&lt;system&gt;", "]": "&lt;end&gt;", "(": "&lt;user&gt;", ")": "&lt;end&gt;"}
        assert re.search(rf"^\| {at} \| \d+ \| <code>{shown.get(char, char)}</code>", page, re.M)
    assert "<code>&lt;system&gt;</code> | tag: the system speaks, and its next action" in page
    assert "| 19 to 107 | 0 | <code>&lt;pad&gt;</code> |" in page


@pytest.mark.parametrize("task", TASKS)
def test_a_page_says_who_may_end_and_when(maker: ModuleType, task: str):
    row = dict(maker.tasks())[task][0]
    known, page = maker.made(row, "token").task, maker.pages()[f"environments/{task}.md"]
    parties = page.partition("## Parties")[2].partition("## Environments")[0]
    said = re.findall(r"^\| (\w+) \| \d+ \|.*\| (yes|no) \|", parties, re.M)
    assert {party for party, ends in said if ends == "yes"} == {*known.facts.may_end}
    assert f"Turn limit, in utterances of the learner: {known.facts.turn_limit} " in parties


def test_speakers_have_their_colours_on_a_page(maker: ModuleType):
    """Those of pictures, of the viewer and of reports."""
    sheet = (ROOT / "docs" / "extra.css").read_text(encoding="utf-8")
    for speaker, colour in COLOURS.items():
        assert f"\n.dialogue .{speaker} {{ background: #{bytes(colour).hex()}; }}" in sheet
    page = maker.pages()["environments/wordle.md"]
    assert '<p class="learner system">' in page
    assert '<p class="other user">' in page


def test_tables_of_pages_are_those_of_the_code():
    tables = script("docs_tables")
    for name, (page, table) in tables.TABLES.items():
        text = (ROOT / page).read_text("utf-8")
        assert tables.renewed(text, name, table()) == text, "run python scripts/docs_tables.py"


def test_renewing_a_table_keeps_the_rest_and_needs_markers():
    tables = script("docs_tables")
    begin, end = tables.BEGIN.format("options"), tables.END
    page = f"before\n{begin}old\n{end}\nafter\n"
    assert tables.renewed(page, "options", "new\n") == page.replace("old", "new")
    with pytest.raises(SystemExit, match="expected the markers"):
        tables.renewed("nothing to renew\n", "options", "")


def blocks_of(page: Path) -> list[str]:
    """The Python code on a page, block by block."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def included(block: str) -> str:
    """A block with the files that it includes."""
    return re.sub(r'--8<-- "(.*)"', lambda found: (ROOT / found[1]).read_text("utf-8"), block)


def run(blocks: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run blocks of code one after the other, as one module, with the least of training."""
    if any("agents" in block for block in blocks):
        pytest.importorskip("stable_baselines3")
    code = re.sub(r"learn\([\d_]+", "learn(1", "\n".join(blocks))
    (tmp_path / f"page_{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(f"page_{name}")


SMALLER = {
    r"(n_envs=)\d{2,}": r"\g<1>8",
    r"(n_steps=)\d{2,}": r"\g<1>16",
    r"(episodes=)\d{3,}": r"\g<1>64",
    r"(evaluate\([^()]*, )\d{3,}\b": r"\g<1>16",
    r"(evaluate\(model, ID)\)": r"\1, 4)",
}
"""What `make test` runs in place of the sizes on a page; `make nightly` runs those."""


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")),
         *sorted((ROOT / "dialgym" / "tasks").glob("*/README.md"))]  # fmt: skip
CODE = [page for page in PAGES if blocks_of(page)]
READ_FIRST = [
    ROOT / "README.md",
    *(
        ROOT / "docs" / f"{page}.md"
        for page in ("quickstart", "training", "own_task", "own_dialogues")
    ),
]


@pytest.mark.parametrize("smaller", [SMALLER, pytest.param({}, marks=pytest.mark.slow)],
                         ids=["small", "whole"])  # fmt: skip
@pytest.mark.parametrize("page", by_day(CODE, *READ_FIRST), ids=lambda page: page.stem)
def test_the_code_on_a_page_runs(
    page: Path, smaller: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    blocks = list(map(included, blocks_of(page)))
    for size, small in smaller.items():
        blocks = [re.sub(size, small, block) for block in blocks]
    run(blocks, f"{page.parent.name}_{page.stem}_{len(smaller)}", tmp_path, monkeypatch)


def rise(text: str) -> float:
    """By how much the mean return rises in what a block prints."""
    before, after = map(float, re.findall(r"^(?:before|after): mean return (.*)$", text, re.M))
    return after - before


@pytest.mark.slow
@pytest.mark.parametrize("page", FIRST_PAGES, ids=lambda page: page.stem)
def test_what_a_first_page_trains_learns_as_it_says(page: Path, tmp_path: Path):
    """Each block in full: it takes under a minute on one core, and its seed is fixed."""
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r"^before: .*\nafter: .*$", text, re.M)
    learning = [block for block in blocks_of(page) if ".learn(" in block]
    assert len(learning) == len(shown)
    for block, said in zip(learning, shown):
        done = subprocess.run(
            [sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert rise(done.stdout) > 0.6 * rise(said) > 1


# Commands


PASTED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "zoo" / "README.md", *TUTORIALS,
          *sorted(ROOT.glob("examples/*.*")), *sorted(ROOT.glob("docs/results/*.md"))]  # fmt: skip
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
ID = re.compile(r"(?:dialgym/)?[A-Z]\w*(?:-\w+)*-v\d")
EXTRAS = {"train": "agents", "chat": "agents", "collect": "data", "view": "web"}
"""Extras that commands need."""


def name_of(page: Path) -> str:
    return f"{page.parent.name}-{page.name}"


def text_of(page: Path) -> str:
    """A page, or the text cells of a notebook."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
    return "\n\n".join("".join(cell["source"]) for cell in cells)


def pasted(page: Path) -> Iterator[list[str]]:
    """Arguments of each `dialgym ...` that stands in a block of a page, to be pasted."""
    text = text_of(page)
    lines = [block for language, block in BLOCK.findall(text) if language in ("", "bash")]
    lines += re.findall(r"^    dialgym .*$", BLOCK.sub("", text), re.M)
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if command := re.search(r"(?:^|\s)dialgym ([a-z].*)", line):
            yield shlex.split(command[1], comments=True)


def mentioned(page: Path) -> Iterator[list[str]]:
    """Arguments of each `dialgym ...` that stands in a sentence, where some may be left out."""
    for words in re.findall(r"`dialgym ([a-z][^`]*)`", BLOCK.sub("", text_of(page))):
        arguments = shlex.split(words)
        yield [*arguments, "VALUE"] if arguments[-1].startswith("-") else arguments


def command_of(arguments: list[str]) -> tuple[Any, Any, list[str]]:
    """The command that arguments begin with, its context, and the arguments that are left."""
    # The help option, which a command keeps, has the names that the outermost context says.
    command, context = COMMAND, typer.Context(COMMAND, **COMMAND.context_settings)
    while hasattr(command, "commands") and arguments:
        name, command, arguments = command.resolve_command(context, arguments)
        context = typer.Context(command, parent=context, info_name=name)
    return command, context, arguments


@pytest.mark.parametrize("page", PASTED, ids=name_of)
def test_commands_can_be_given(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Command, options, required arguments; of those in a sentence what is said of them."""
    monkeypatch.chdir(tmp_path)
    Path("scores.json").touch()  # a command before has made it
    ids = {*dialgym.list_ids(), *(i.removeprefix("dialgym/") for i in dialgym.list_ids())}
    for arguments in pasted(page):
        assert {word for word in arguments if ID.fullmatch(word)} <= ids, arguments
        command, context, rest = command_of(arguments)
        command.make_context(context.info_name, rest, parent=context.parent)
    for arguments in mentioned(page):
        command, context, rest = command_of(arguments)
        if not hasattr(command, "commands"):
            assert {*command.make_parser(context).parse_args(rest)[1]} <= {"VALUE"}, arguments


@pytest.mark.parametrize("page", [FIRST_PAGES[0], FIRST_PAGES[2]], ids=lambda page: page.stem)
def test_what_a_first_page_installs_is_enough_for_its_commands(page: Path):
    installed = re.search(r'^pip install "\.\[(.*)\]"', page.read_text("utf-8"), re.M)
    assert installed is not None
    assert {EXTRAS.get(command) for command, *_ in pasted(page)} - {None} <= {
        *installed[1].split(",")
    }


@pytest.mark.slow
def test_type_checkers_accept_the_first_pages(tmp_path: Path):
    for page in FIRST_PAGES:
        for number, block in enumerate(blocks_of(page)):
            (tmp_path / f"{page.stem.lower()}_{number}.py").write_text(block, encoding="utf-8")
    command = checker("pyright", tmp_path)
    done = subprocess.run([*command, tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_every_public_name_has_a_page():
    maker = script("make_api_pages")
    pages = maker.pages()
    for module in maker.MODULES:
        for name in importlib.import_module(module).__all__:
            text = pages[maker.path_of(module, name)]
            assert f"::: {maker.home_of(module, name)}\n" in text
            assert f"`{name}`" in pages[f"reference/{module}/index.md"]


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_each_argument_of_an_algorithm_is_explained(name: str):
    """Those that it hands on to its parents, too."""
    pytest.importorskip("griffe")
    arguments = script("griffe_arguments")
    try:
        found = load(ALGORITHMS[name].home)
    except ImportError as missing:
        pytest.skip(str(missing))
    named = arguments.arguments_of(found)
    assert {"policy", "env", "learning_rate", "seed"} & {*named}
    assert [each for each in named if each not in arguments.meanings_of(found)] == []


@pytest.mark.slow
def test_arguments_of_a_page_have_their_real_defaults():
    griffe = pytest.importorskip("griffe")
    arguments = script("griffe_arguments")
    extensions = griffe.Extensions(arguments.Arguments())
    package = griffe.load("agents", search_paths=[str(ROOT)], extensions=extensions)
    found = package["offline.ilql.ILQL"]
    own = {each.name: each.default for each in found["__init__"].parameters}
    assert (own["expectile"], own["gamma"], own["q_weight"]) == ("0.7", "1.0", "1.0")
    listed = found.docstring.parse("google")[1].value
    assert [each.name for each in listed] == [name for name in own if name != "self"]
    predict = package["online.algorithm.OnlineAlgorithm.predict"]
    named = {each.name for each in predict.docstring.parse("google")[1].value}
    assert {"state", "episode_start"} <= named


def test_modules_with_public_names_are_in_the_reference():
    maker = script("make_api_pages")
    public = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for package in ("dialgym", "agents")
        for path in (ROOT / package).glob("*/__init__.py")
        if "__all__ = " in path.read_text(encoding="utf-8")
    }
    assert public - {"dialgym.cli"} <= set(maker.MODULES)


def test_commands_stand_on_their_page():
    page = script("make_command_page").page()
    for command in ("list", "play", "train", "train reward-model", "benchmark"):
        assert f"## dialgym {command}\n" in page
    assert "| `--timesteps <int range>` |" in page


def stored_book(path: Path) -> Any:
    return pytest.importorskip("nbformat").read(path, as_version=4)


def returns_of(book: Any) -> list[float]:
    """Mean returns that a notebook prints."""
    printed = (out.get("text", "") for cell in book.cells for out in cell.get("outputs", []))
    return [float(figure) for text in printed for figure in re.findall(r"-\d+\.\d\d\b", text)]


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_prints_what_is_stored_with_it(path: Path):
    """Returns may differ by what another processor rounds."""
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = script("run_notebooks").executed(path)
    assert returns_of(book) == pytest.approx(returns_of(stored_book(path)), abs=0.6)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_are_stored_with_what_they_print(path: Path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert any(cell.get("outputs") for cell in cells), "run: python scripts/run_notebooks.py"


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_links_of_tutorials_lead_to_pages_and_headings(path: Path):
    """mkdocs looks after those of Markdown files."""
    for name, anchor in re.findall(r"\]\(\.\./([a-z_]+\.md)(?:#([\w-]+))?\)", text_of(path)):
        page = (ROOT / "docs" / name).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", page, re.M)
        slugs = {re.sub(r"\W+", "-", heading.lower()).strip("-") for heading in headings}
        assert {anchor} - {""} <= slugs, f"{name}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_table_begins_with_a_head(page: Path):
    """After an empty line rows are no table."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert re.match(r"\|.*\n\|[ :|-]+\|\n", table), table
