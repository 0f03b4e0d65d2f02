"""The house's plan, held by tests: what may be imported where, and when."""

import ast
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {
    "accelerate",
    "datasets",
    "matplotlib",
    "minari",
    "nltk",
    "pandas",
    "peft",
    "pyarrow",
    "rl_zoo3",
    "rouge_score",
    "sacrebleu",
    "sb3_contrib",
    "scipy",
    "sentence_transformers",
    "sklearn",
    "stable_baselines3",
    "tensorboard",
    "torch",
    "transformers",
    "wandb",
}
# Their classes derive from those of a heavy package, so they may import it; nobody imports them
# before they are needed.
ADAPTERS = {"dialgym.views.sb3"}
FILES = [*sorted((ROOT / "dialgym").rglob("*.py")), ROOT / "agents" / "__init__.py"]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


LIGHT_FILES = [path for path in FILES if module_name(path) not in ADAPTERS]


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def run_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that importing a module executes: all but functions and type checking."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_type_checking(node):
            continue
        yield node
        for name in ("body", "orelse", "finalbody", "handlers"):
            for part in getattr(node, name, []):
                inner = part.body if isinstance(part, ast.ExceptHandler) else [part]
                yield from run_at_import(inner)


def imported_at_import(source: str) -> set[str]:
    """The modules that a module imports as soon as it is imported itself."""
    modules: set[str] = set()
    for node in run_at_import(ast.parse(source).body):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return modules


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def loaded_by(statement: str) -> set[str]:
    """The top-level packages in memory after `statement` in a fresh interpreter."""
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


@pytest.mark.parametrize("path", LIGHT_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_heavy_packages_are_imported_lazily(path: Path):
    heavy = imported_at_import(path.read_text(encoding="utf-8")) & HEAVY
    assert not heavy, (
        f"{path.relative_to(ROOT)} imports {sorted(heavy)} at its top; do it where used"
    )


def test_the_check_sees_through_blocks_and_skips_functions():
    source = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import pandas
try:
    import torch.nn
except ImportError:
    from transformers import GPT2Model
class A:
    import peft
    def use(self):
        import datasets
from . import matplotlib
"""
    assert packages(imported_at_import(source)) == {"typing", "torch", "transformers", "peft"}


@pytest.mark.parametrize("package", ["dialgym", "agents"])
def test_importing_loads_nothing_heavy(package: str):
    assert not loaded_by(f"import {package}") & HEAVY


def test_tasks_do_not_import_each_other():
    """By folder, so that a new task is held to it without being listed anywhere."""
    files = {module_name(path): path for path in sorted((ROOT / "dialgym").rglob("*.py"))}
    folders = {path.parent for path in (ROOT / "dialgym" / "tasks").glob("*/__init__.py")}
    assert len(folders) >= 4
    for folder in folders:
        others = tuple(f"{module_name(other)}." for other in folders - {folder})
        for path in folder.rglob("*.py"):
            found = [f"{name}." for name in imports_of(path, files)]
            assert not [name for name in found if name.startswith(others)], path


# Cycles


def imports_of(path: Path, files: Collection[str]) -> set[str]:
    """Those of the files that one imports anywhere: in functions, and for types alone, too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            # a package that is asked for its files only is a folder, no module
            names |= parts if parts <= set(files) else {node.module, *parts}
    return names & set(files)


def find_cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The sets of modules that reach one another (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            place = stack.index(name)
            group = stack[place:]
            del stack[place:]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


@pytest.mark.parametrize("package", ["dialgym", "agents"])
def test_no_file_imports_itself_by_way_of_others(package: str):
    files = {module_name(path): path for path in sorted((ROOT / package).rglob("*.py"))}
    graph = {name: imports_of(path, files) for name, path in files.items()}
    assert find_cycles(graph) == []


def test_a_cycle_is_found():
    assert find_cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


def test_what_may_come_from_a_hub_goes_through_one_module():
    """There `trust_remote_code=False` is said, revisions are heeded, and being offline is."""
    asks = {"from_pretrained", "snapshot_download", "hf_hub_download", "load_dataset", "HfApi"}
    found = {}
    for path in sorted([*(ROOT / "dialgym").rglob("*.py"), *(ROOT / "agents").rglob("*.py")]):
        tree = ast.parse(path.read_text("utf-8"))
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        named = {call.attr for call in calls if isinstance(call, ast.Attribute)} & asks
        if named:
            found[module_name(path)] = named
    assert found == {
        "dialgym.io.hub": {"HfApi", "from_pretrained", "snapshot_download"},
        "dialgym.datasets.minari": {"load_dataset"},  # of Minari, which looks at what is here
    }
