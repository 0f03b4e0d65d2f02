"""The house's plan, held by tests: what may be imported where, and when."""

import ast
import subprocess
import sys
from collections.abc import Collection
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support.by_day import by_day
from tests.support.sources import ROOT, files, imported_at_import, module_name, source_of

HEAVY = {
    "accelerate",
    "datasets",
    "httpx",
    "matplotlib",
    "minari",
    "nltk",
    "openenv",
    "pandas",
    "peft",
    "pyarrow",
    "resources_servers",
    "rl_zoo3",
    "rouge_score",
    "sacrebleu",
    "sb3_contrib",
    "scipy",
    "sentence_transformers",
    "sklearn",
    "skyrl_gym",
    "stable_baselines3",
    "tensorboard",
    "textarena",
    "tinker",
    "tinker_cookbook",
    "torch",
    "transformers",
    "trl",
    "verifiers",
    "verl",
    "wandb",
}
# Their classes derive from those of a heavy package, so they may import it; nobody imports them
# before they are needed.
ADAPTERS = {"dialgym.views.sb3"}
LIGHT_FILES = [
    path
    for path in [*files("dialgym"), ROOT / "agents" / "__init__.py"]
    if module_name(path) not in ADAPTERS
]


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def loaded_by(statement: str) -> set[str]:
    """The top-level packages in memory after `statement` in a fresh interpreter."""
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    return set(result.stdout.splitlines()[-1].split())


def test_heavy_packages_are_imported_lazily():
    """Each where it is used."""
    found = {module_name(path): source_of(path).at_import & HEAVY for path in LIGHT_FILES}
    assert {name: heavy for name, heavy in found.items() if heavy} == {}


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
    assert packages(imported_at_import(ast.parse(source).body)) == {
        "typing",
        "torch",
        "transformers",
        "peft",
    }


LIGHT = {
    "dialgym": "import dialgym",
    "agents": "import agents",
    "datasets": "import dialgym.datasets",
    "env": "import gymnasium, dialgym; gymnasium.make('dialgym/Wordle-20-v0').reset(seed=0); "
    "gymnasium.make_vec('dialgym/Wordle-20-v0', 2).reset(seed=0)",
    "list": "from dialgym.cli.app import app; app(['list', '--json'], standalone_mode=False)",
}


@pytest.mark.parametrize(
    "statement",
    by_day(LIGHT.values(), *[LIGHT[name] for name in LIGHT if name != "dialgym"]),
    ids=list(LIGHT),
)
def test_nothing_heavy_is_loaded(statement: str):
    loaded = loaded_by(statement)
    assert "dialgym" in loaded or statement == "import agents"
    assert not loaded & HEAVY
    assert "agents" not in loaded or statement == "import agents"


def test_tasks_do_not_import_each_other():
    """By folder, so that a new task is held to it without being listed anywhere."""
    names = {*map(module_name, files("dialgym"))}
    folders = {path.parent for path in (ROOT / "dialgym" / "tasks").glob("*/__init__.py")}
    assert len(folders) >= 4
    for folder in folders:
        others = tuple(f"{module_name(other)}." for other in folders - {folder})
        for path in folder.rglob("*.py"):
            found = [f"{name}." for name in imports_of(path, names)]
            assert not [name for name in found if name.startswith(others)], path


def imports_of(path: Path, names: Collection[str]) -> set[str]:
    """Those of the modules that a file imports anywhere: in functions, for types alone, too."""
    found: set[str] = set()
    for statement in source_of(path).imports:
        # a package that is asked for its files only is a folder, no module
        only_files = statement.names <= set(names)
        found |= statement.names if only_files else {statement.module, *statement.names}
    return found & set(names)


@pytest.mark.parametrize("package", ["dialgym", "agents"])
def test_no_file_imports_itself_by_way_of_others(package: str):
    paths = {module_name(path): path for path in files(package)}
    graph = {name: imports_of(path, paths) for name, path in paths.items()}
    assert sum(map(len, graph.values())) > len(paths)
    TopologicalSorter(graph).prepare()  # a CycleError shows the way


def test_what_may_come_from_a_hub_goes_through_one_module():
    """There `trust_remote_code=False` is said, revisions are heeded, and being offline is."""
    asks = {"from_pretrained", "snapshot_download", "hf_hub_download", "load_dataset", "HfApi"}
    found = {
        module_name(path): source_of(path).methods_called & asks
        for path in files("dialgym", "agents")
    }
    assert {name: asked for name, asked in found.items() if asked} == {
        "dialgym.io.hub": {"HfApi", "from_pretrained", "snapshot_download"},
        "dialgym.datasets.minari": {"load_dataset"},  # of Minari, which looks at what is here
    }
