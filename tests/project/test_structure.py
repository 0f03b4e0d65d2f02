"""Limits on the structure of both packages: first words, names, parameters, folders."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("dialgym", "agents")
FILES = [path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]
QUESTION = re.compile(r"(What|Whether|Who|How|Where)\b")
MOST_PARAMETERS, LARGE_SIGNATURES = 12, 9
"""Parameters of a function, and the constructors in the shape of Stable-Baselines3 beyond them."""
ROOT_FILES, STEMS, LINES = 10, 10, 410
"""Files at the root, file names that stand three times in a package, lines of a file. These, and
the signatures above, may fall and not rise."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def definitions(path: Path) -> Iterator[Definition]:
    """Every class and function of a file."""
    return (node for node in ast.walk(parsed(path)) if isinstance(node, Definition))


def place(path: Path, node: Definition) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def begins_with_a_question(node: ast.Module | Definition) -> bool:
    return bool(QUESTION.match(ast.get_docstring(node) or ""))


def test_docstrings_say_what_is_there_and_ask_nothing():
    modules = [str(p.relative_to(ROOT)) for p in FILES if begins_with_a_question(parsed(p))]
    others = [place(p, n) for p in FILES for n in definitions(p) if begins_with_a_question(n)]
    assert modules + others == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_two_public_classes_share_a_name(package: str):
    places: dict[str, list[str]] = defaultdict(list)
    for path in FILES:
        for node in definitions(path) if path.is_relative_to(ROOT / package) else ():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(place(path, node))
    assert [found for found in places.values() if len(found) > 1] == []


def test_few_file_names_stand_three_times_in_a_package():
    names: dict[tuple[str, str], int] = defaultdict(int)
    for path in FILES:
        names[path.relative_to(ROOT).parts[0], path.stem] += path.name != "__init__.py"
    assert len(often := [name for name, count in names.items() if count > 2]) <= STEMS, often


def test_long_signatures_are_those_of_constructors():
    long = []
    for path in FILES:
        for node in definitions(path):
            if not isinstance(node, ast.ClassDef):
                taken = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                if len(taken) > MOST_PARAMETERS:
                    long.append(place(path, node))
    assert len(long) <= LARGE_SIGNATURES, long


def test_the_root_holds_few_files_and_no_file_is_endless():
    assert len(list((ROOT / "dialgym").glob("*.py"))) <= ROOT_FILES
    long = [path for path in FILES if len(path.read_text("utf-8").splitlines()) > LINES]
    assert [str(path.relative_to(ROOT)) for path in long] == []
