"""Limits on the structure of both packages: first words, names, parameters, folders."""

import re
from collections import Counter

import pytest

from tests.support.sources import ROOT, Definition, code_lines, files, source_of

PACKAGES = ("dialgym", "agents")
FILES = files(*PACKAGES)
QUESTION = re.compile(r"(What|Whether|Who|How|Where)\b")
MOST_PARAMETERS, LARGE_SIGNATURES = 12, 5
"""Parameters of a function, and the constructors in the shape of Stable-Baselines3 beyond them."""
ROOT_FILES, STEMS, LINES = 10, 10, 410
"""Files at the root, file names that stand three times in a package, lines of a file. These, and
the signatures above, may fall and not rise."""
GLUE = 80
"""Lines of code of a door to another library; what is longer belongs into the chat below."""


def definitions(*packages: str) -> list[Definition]:
    """Every class and function."""
    return [each for path in files(*packages) for each in source_of(path).definitions]


def test_docstrings_say_what_is_there_and_ask_nothing():
    modules = [str(path) for path in FILES if QUESTION.match(source_of(path).docstring)]
    others = [each.place for each in definitions(*PACKAGES) if QUESTION.match(each.docstring)]
    assert modules + others == []
    constants = [text for path in FILES for text in source_of(path).constants]
    assert len(constants) > 300
    assert [text for text in constants if QUESTION.match(text)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_two_public_classes_share_a_name(package: str):
    classes = [each for each in definitions(package) if each.is_class and each.name[0] != "_"]
    counts = Counter(each.name for each in classes)
    assert [each.place for each in classes if counts[each.name] > 1] == []


def test_few_file_names_stand_three_times_in_a_package():
    names = Counter((path.relative_to(ROOT).parts[0], path.stem) for path in FILES)
    often = [name for name, count in names.items() if count > 2 and name[1] != "__init__"]
    assert len(often) <= STEMS, often


def test_long_signatures_are_those_of_constructors():
    long = [each.place for each in definitions(*PACKAGES) if each.parameters > MOST_PARAMETERS]
    assert len(long) <= LARGE_SIGNATURES, long


def test_the_root_holds_few_files_and_no_file_is_endless():
    assert len(list((ROOT / "dialgym").glob("*.py"))) <= ROOT_FILES
    assert [str(path) for path in FILES if source_of(path).lines > LINES] == []


def test_a_door_is_little_glue():
    """Of each module that the table of doors names."""
    page = (ROOT / "docs" / "bridges.md").read_text(encoding="utf-8")
    doors = set(re.findall(r"^\|.*`bridges\.(\w+)", page, re.M))
    lines = {
        name: code_lines((ROOT / "dialgym" / "bridges" / f"{name}.py").read_text("utf-8"))
        for name in doors
    }
    assert {name: count for name, count in lines.items() if count > GLUE} == {}


def test_lines_of_code_are_those_that_are_run():
    source = '''"""A docstring.

Of three lines."""

X = 1  # a comment
"""A text below it."""
# a comment alone


def f(a,
      b):
    """One line."""
    return """two
lines"""
'''
    assert code_lines(source) == 5
