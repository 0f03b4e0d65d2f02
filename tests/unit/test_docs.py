"""The generated parts of the documentation."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import dialgym

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return script("make_env_pages")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(ROOT / "scripts"))  # as mkdocs does for its hooks
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return module


def test_every_id_is_on_a_page(maker: ModuleType):
    text = "".join(maker.pages().values())
    assert [env_id for env_id in dialgym.list_ids() if f"`{env_id}`" not in text] == []


def test_arguments_are_listed_with_their_defaults(maker: ModuleType):
    assert "| `turns` | `6` | guesses in a game. |" in maker.pages()["environments/wordle.md"]


def test_the_readme_lists_the_tasks_of_the_registry(maker: ModuleType):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert maker.overview() in readme, "run: python scripts/make_env_pages.py README.md"


def test_the_page_on_rewards_lists_those_of_the_registry():
    page = (ROOT / "docs" / "rewards.md").read_text(encoding="utf-8")
    command = "python scripts/make_reward_table.py docs/rewards.md"
    assert script("make_reward_table").table() in page, f"run: {command}"


def test_renewing_a_table_keeps_the_rest(maker: ModuleType, tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{maker.BEGIN}\nold\n{maker.END}\nafter\n", encoding="utf-8")
    maker.renew(page)
    text = page.read_text(encoding="utf-8")
    assert text == f"before\n{maker.BEGIN}\n{maker.overview()}{maker.END}\nafter\n"


def test_a_file_without_markers_is_refused(maker: ModuleType, tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("nothing to renew\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="expected the markers"):
        maker.renew(page)


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


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.stem
)
def test_the_code_on_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    run(list(map(included, blocks)), page.stem, tmp_path, monkeypatch)


def test_every_public_name_has_a_page():
    maker = script("make_api_pages")
    pages = maker.pages()
    for module in maker.MODULES:
        for name in importlib.import_module(module).__all__:
            text = pages[maker.path_of(module, name)]
            assert f"::: {maker.home_of(module, name)}\n" in text
            assert f"`{name}`" in pages[f"reference/{module}/index.md"]


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


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 3
    code = [re.sub(r"episodes=\d\d+", "episodes=20", cell) for cell in code]
    run(code, path.stem, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_as_a_notebook(path: Path):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = script("run_notebooks").executed(path)
    assert [cell.source for cell in book.cells] == [
        "".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    ]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_are_stored_with_what_they_print(path: Path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert any(cell.get("outputs") for cell in cells), "run: python scripts/run_notebooks.py"
