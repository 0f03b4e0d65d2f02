"""Typed JSON: values come back as they were, and JSON that spells none is one clear error."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dialgym.io.typed_json import from_json, to_json

Kind = TypeVar("Kind")
MADE = []


class Colour(Enum):
    GREEN = (0, 1)
    BLACK = "b"


class Line(NamedTuple):
    speaker: str
    private: bool = False


@dataclass(frozen=True, slots=True)
class Goal:
    slots: Mapping[str, str | None]
    colour: Colour = Colour.BLACK

    def __post_init__(self):
        MADE.append(self)


@dataclass
class Tree:
    name: str
    goal: Goal | None = None
    branches: "list[Tree]" = field(default_factory=list)


@dataclass
class Pair(Generic[Kind]):
    first: Kind
    others: list[Kind]


@dataclass
class Vague:
    name: str
    lines: list = field(default_factory=list)


@dataclass
class Unknown:
    name: "NoSuchClass"  # noqa: F821


ROUND = [
    (bool, True),
    (float, 0.1),
    (float, 3),
    (float, -0.0),
    (int, 2**70),
    (None, None),
    (Literal["a", 1], 1),
    (Colour, Colour.GREEN),
    (list[tuple[int, ...]], [(1, 2), ()]),
    (tuple[str, int | None], ("a", None)),
    (set[tuple[str, str]], {("b", "a"), ("a", "b")}),
    (frozenset[int] | None, frozenset({3, 1})),
    (dict[tuple[str, int], list[str]], {("b", 1): ["x"], ("a", 2): []}),
    (int | str | list[int], "1"),
    (int | str | list[int], [1]),
    (Sequence[str], ("a",)),
    (Sequence[str], ["a"]),
    (Line, Line("system", True)),
    (Tree, Tree("a", Goal({"area": None}, Colour.GREEN), [Tree("b"), Tree("c")])),
    (Pair[str], Pair("a", ["b"])),
    (dict[str, Pair[int]], {"x": Pair(1, [])}),
]


@pytest.mark.parametrize(("hint", "value"), ROUND)
def test_values_come_back_as_they_were(hint, value):
    found = from_json(json.loads(json.dumps(to_json(value, hint), allow_nan=False)), hint)
    assert found == value or not isinstance(value, set | frozenset)
    assert sorted(repr(found)) == sorted(repr(value))  # sets have no order
    assert type(found) is type(value)


def test_the_order_of_a_mapping_and_what_it_is_are_kept_apart():
    given = MappingProxyType({"b": "1", "a": None})
    found = from_json(to_json(Goal(given), Goal), Goal)
    assert list(found.slots.items()) == [("b", "1"), ("a", None)]


def test_no_constructor_is_called():
    values = to_json(Goal({}), Goal)
    MADE.clear()
    assert from_json(values, Goal) == Goal({})
    assert len(MADE) == 1  # the one compared with


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32)))
def test_arrays_come_back_bit_for_bit(values):
    for dtype in (np.float32, np.float64):
        array = np.array(values, dtype).reshape(-1, 1)
        found = from_json(json.loads(json.dumps(to_json(array, np.ndarray))), np.ndarray)
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == array.tobytes()


def test_generators_go_on_as_they_would_have():
    rng = np.random.default_rng(3)
    rng.integers(5, size=3, dtype=np.int32)  # leaves half a draw behind
    hint = np.random.Generator
    other = from_json(json.loads(json.dumps(to_json(rng, hint))), hint)
    assert other.integers(9, size=5, dtype=np.int32).tolist() == (
        rng.integers(9, size=5, dtype=np.int32).tolist()
    )
    assert other.random() == rng.random()


def deep(levels):
    return {"name": "a", "goal": None, "branches": [] if not levels else [deep(levels - 1)]}


def nested(levels):
    found = deep(0)
    for _ in range(levels):
        found = {"name": "a", "goal": None, "branches": [found]}
    return found


def array(**changes):
    return {"dtype": "<f8", "shape": [2], "items": [1.0, 2.0], **changes}


GENERATOR = {"state": 1, "inc": 3, "has_uint32": 0, "uinteger": 0}
REFUSED = [
    (Tree, {"name": "a", "goal": None}, "expected Tree by name, goal, branches; got name, goal"),
    (Tree, {**deep(0), "__class__": "os:system"}, "expected Tree by"),
    (Tree, [1], "expected Tree by name, goal, branches; got list"),
    (Tree, {**deep(0), "name": 1}, "^name: expected str, got int 1"),
    (Tree, {**deep(0), "branches": [{**deep(0), "name": None}]}, r"^branches\[0\].name: expected"),
    (Tree, {**deep(0), "goal": {"slots": [["a", 1]], "colour": "BLACK"}}, r"slots\[0\]\[1\]: "),
    (Tree, nested(5000), "nested too deeply"),
    (Colour, "__class__", "expected one of GREEN, BLACK"),
    (Line, ["a"], "expected 2 values, got 1"),
    (Line, ["a", 1], "^private: expected bool, got int 1"),
    (int, True, "expected int, got bool"),
    (int, 1.0, "expected int, got float"),
    (float, float("nan"), "expected a finite number"),
    (float, float("inf"), "expected a finite number"),
    (float, 10**400, "whole number up to"),
    (str | None, {"$": "class", "name": "os:system"}, "expected str, got dict"),
    (int | str, [2, 1], "a place from 0 to 1"),
    (int | str, [True, 1], "a place from 0 to 1"),
    (dict[str, int], {"a": 1}, "expected a list, got dict"),
    (dict[str, int], [["a"]], r"^\[0\]: expected 2 values"),
    (set[Tree], [deep(0)], "unhashable"),
    (np.ndarray, array(shape=[10**9]), "cannot reshape"),
    (np.ndarray, array(shape=[-1]), "of the shape given"),
    (np.ndarray, array(dtype="|O"), "expected an array of numbers or bool, got str '|O'"),
    (np.ndarray, array(dtype="<U99999999"), "expected an array of numbers or bool"),
    (np.ndarray, array(items=["1", "2"]), "a list of float"),
    (np.ndarray, array(items=[1.0, float("nan")]), "finite"),
    (np.ndarray, array(dtype="|i1", items=[1, 1000]), "out of bounds"),
    (NDArray[np.float64], array(dtype="<f4"), "expected an array of <f8, got str '<f4'"),
    (np.random.Generator, {**GENERATOR, "state": 2**128}, "^state: expected a whole number below"),
    (np.random.Generator, {**GENERATOR, "bit_generator": "os"}, "expected a generator's state"),
]


@pytest.mark.parametrize(("hint", "values", "message"), REFUSED)
def test_other_json_is_one_clear_error(hint, values, message):
    with pytest.raises(ValueError, match=message):
        from_json(values, hint)


UNWRITTEN = [
    (Vague, Vague("a"), "^lines: the type list has no form in JSON. Give a hint that says all"),
    (Pair[Any], Pair(1, []), "^first: the type Any has no form"),
    (Unknown, Unknown("a"), "the hints of Unknown cannot be looked up .*NoSuchClass"),
    (list[complex], [], "the type complex has no form"),
    (Literal[[]], [], "has no form"),
    (Tree, Tree("a", branches=[Tree(b"b")]), r"^branches\[0\].name: expected str, got bytes"),
    (Tree, Goal({}), "expected Tree, got Goal"),
    (np.ndarray, np.array([np.inf]), "finite"),
    (np.ndarray, np.array(["a"]), "expected an array of numbers"),
    (tuple[int, ...], [1], "expected tuple, got list"),
    (np.random.Generator, np.random.Generator(np.random.SFC64(0)), "a generator of PCG64"),
]


@pytest.mark.parametrize(("hint", "value", "message"), UNWRITTEN)
def test_what_hints_do_not_say_is_not_written(hint, value, message):
    with pytest.raises(ValueError, match=message):
        to_json(value, hint)


def test_an_attribute_that_is_no_field_is_not_lost_silently():
    tree = Tree("a")
    tree.extra = 1
    with pytest.raises(ValueError, match=r"Tree has attributes that are no fields \(\['extra'\]\)"):
        to_json(tree, Tree)
