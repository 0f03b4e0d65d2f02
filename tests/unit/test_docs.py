"""The generated parts of the documentation."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import dialgym

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return script("make_env_pages")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_id_is_on_a_page(maker: ModuleType):
    text = "".join(maker.pages().values())
    assert [env_id for env_id in dialgym.list_ids() if f"`{env_id}`" not in text] == []


def test_arguments_are_listed_with_their_defaults(maker: ModuleType):
    assert "| `turns` | `6` | guesses in a game. |" in maker.pages()["environments/wordle.md"]


def test_the_readme_lists_the_environments_of_the_registry(maker: ModuleType):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert maker.environments() in readme, "run: python scripts/make_env_pages.py README.md"


def test_the_page_on_rewards_lists_those_of_the_registry():
    page = (ROOT / "docs" / "rewards.md").read_text(encoding="utf-8")
    command = "python scripts/make_reward_table.py docs/rewards.md"
    assert script("make_reward_table").table() in page, f"run: {command}"


def test_renewing_a_table_keeps_the_rest(maker: ModuleType, tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{maker.BEGIN}\nold\n{maker.END}\nafter\n", encoding="utf-8")
    maker.renew(page)
    text = page.read_text(encoding="utf-8")
    assert text == f"before\n{maker.BEGIN}\n{maker.environments()}{maker.END}\nafter\n"


def test_a_file_without_markers_is_refused(maker: ModuleType, tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("nothing to renew\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="expected the markers"):
        maker.renew(page)


def included(block: str) -> str:
    """A block with the files that it includes."""
    return re.sub(r'--8<-- "(.*)"', lambda found: (ROOT / found[1]).read_text("utf-8"), block)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_the_code_on_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    if any("agents" in block for block in blocks):
        pytest.importorskip("stable_baselines3")
    code = re.sub(r"learn\([\d_]+\)", "learn(1)", "\n".join(map(included, blocks)))
    (tmp_path / f"page_{page.stem}.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(f"page_{page.stem}")
