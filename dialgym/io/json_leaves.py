"""Leaves of typed JSON: scalars, enumerations, arrays and generators, checked on both ways."""

import math
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple, get_args

import numpy as np

Json = Any
Convert = Callable[[Any], Any]
SCALARS: dict[Any, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.int64),
    float: (float, np.float64, int),
    str: (str, np.str_),
}
"""By hint, the types of values that it may have: NumPy's are written as Python's."""
LARGEST_WHOLE = 2**53
"""Whole numbers up to it are floats too."""
DTYPES = {np.dtype(code).str: np.dtype(code) for code in "?bhilqBHILQefd"}
ITEMS = {"b": bool, "i": int, "u": int, "f": float}
"""By kind of array, the type of its items in JSON."""
GENERATOR = {"state": 2**128, "inc": 2**128, "has_uint32": 2, "uinteger": 2**32}
"""Parts of the state of a PCG64, each a number below the one given."""


class Form(NamedTuple):
    """Two functions, to JSON and from it; both raise `Misfit`."""

    write: Convert
    read: Convert


class Misfit(Exception):
    """A value that is not of its type, and the path to it: fields and indices, innermost first."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.path: list[str] = []

    def within(self, where: str) -> "Misfit":
        """The same, seen from one level further out."""
        self.path.append(where)
        return self

    def __str__(self) -> str:
        return f"{''.join(reversed(self.path)).lstrip('.')}: {self.what}".removeprefix(": ")


def unfit(expected: str, value: Any) -> Misfit:
    """The error of a value that is another than was expected."""
    shown = repr(value) if isinstance(value, bool | int | float | str) else ""
    return Misfit(f"expected {expected}, got {type(value).__name__} {shown[:40]}".rstrip())


def scalar_form(hint: Any) -> Form:
    """Form of bool, int, float or str."""
    known = SCALARS[hint]

    def write(value: Any) -> Json:
        if type(value) not in known:
            raise unfit(hint.__name__, value)
        plain = value.item() if isinstance(value, np.generic) else value
        return _finite(plain) if hint is float else plain

    def read(value: Json) -> Any:
        if type(value) is not hint and (hint is not float or type(value) is not int):
            raise unfit(hint.__name__, value)
        return _finite(value) if hint is float else value

    return Form(write, read)


def _finite(value: float) -> float:
    """The number; one from a file may be NaN, endless, or whole and beyond all floats."""
    if type(value) is float and not math.isfinite(value):
        raise unfit("a finite number", value)
    if type(value) is int and abs(value) > LARGEST_WHOLE:
        raise unfit(f"a float, or a whole number up to {LARGEST_WHOLE}", value)
    return value


def literal_form(values: Sequence[Any]) -> Form:
    """Form of one of some scalars."""
    known = [(type(value), value) for value in values]

    def same(value: Any) -> Any:
        if (type(value), value) not in known:
            raise unfit(" or ".join(map(repr, values)), value)
        return value

    return Form(same, same)


def enum_form(cls: type[Enum]) -> Form:
    """Form of a member of an enumeration, by its name."""
    members = cls.__members__

    def write(value: Any) -> str:
        if type(value) is not cls or value.name not in members:
            raise unfit(f"a member of {cls.__name__}", value)
        return value.name

    def read(value: Json) -> Any:
        if type(value) is not str or value not in members:
            raise unfit(f"one of {', '.join(members)}", value)
        return members[value]

    return Form(write, read)


def array_form(arguments: Sequence[Any]) -> Form:
    """Form of an array; `arguments` are those of the hint, if it has any."""
    scalar = (*get_args(arguments[-1] if arguments else None), None)[0]
    expected = next((code for code, dtype in DTYPES.items() if dtype.type is scalar), None)

    def dtype_of(code: Any) -> np.dtype:
        if type(code) is not str or code not in DTYPES or expected not in (None, code):
            raise unfit(f"an array of {expected or 'numbers or bool'}", code)
        return DTYPES[code]

    def write(value: Any) -> Json:
        if type(value) is not np.ndarray:
            raise unfit("an array", value)
        code, shape = dtype_of(value.dtype.str).str, list(value.shape)
        if not np.isfinite(value).all():
            raise Misfit("expected an array of finite numbers")
        return {"dtype": code, "shape": shape, "items": value.ravel().tolist()}

    def read(values: Json) -> np.ndarray:
        if type(values) is not dict or values.keys() != {"dtype", "shape", "items"}:
            raise unfit("an array's dtype, shape and items", values)
        return _filled(dtype_of(values["dtype"]), values["shape"], values["items"])

    return Form(write, read)


def _filled(dtype: np.dtype, shape: Any, items: Any) -> np.ndarray:
    """An array of a shape that its items fill, so that none is larger than its file."""
    lists = type(shape) is list and type(items) is list
    if not lists or {*map(type, items)} - {ITEMS[dtype.kind]} or {*map(type, shape)} - {int}:
        raise Misfit(f"expected a shape and a list of {ITEMS[dtype.kind].__name__}")
    try:
        array = np.array(items, dtype).reshape(shape)
    except (ValueError, OverflowError) as error:
        raise Misfit(f"{error}") from None
    if list(array.shape) != shape or not np.isfinite(array).all():
        raise Misfit("expected an array of finite numbers, of the shape given")
    return array


def _write_generator(value: Any) -> Json:
    bits = value.bit_generator.state if type(value) is np.random.Generator else {}
    if bits.get("bit_generator") != "PCG64":
        raise unfit("a generator of PCG64, as Gymnasium makes them", value)
    parts = {**bits, **bits["state"]}
    return {name: int(parts[name]) for name in GENERATOR}


def _read_generator(values: Json) -> np.random.Generator:
    if type(values) is not dict or values.keys() != GENERATOR.keys():
        raise unfit(f"a generator's {', '.join(GENERATOR)}", values)
    for name, bound in GENERATOR.items():
        if type(values[name]) is not int or not 0 <= values[name] < bound:
            raise unfit(f"a whole number below {bound}", values[name]).within(f".{name}")
    bits = np.random.PCG64(0)
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": values["state"], "inc": values["inc"]},
        "has_uint32": values["has_uint32"],
        "uinteger": values["uinteger"],
    }
    return np.random.Generator(bits)


GENERATOR_FORM = Form(_write_generator, _read_generator)
"""Of `np.random.Generator`."""


def plain_value(value: Any) -> Any:
    """Convert what JSON lacks: arrays and numbers of NumPy, and sets in an order of their own."""
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"situation: expected strings, numbers, arrays, sets ...; got {value!r}.")
