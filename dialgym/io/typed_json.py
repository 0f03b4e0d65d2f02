"""Values as plain JSON, and back by type hints alone.

The JSON names no class: what is made of it is what the hints ask for, field by field. So reading
imports nothing, runs nothing, calls no constructor, and sets no attribute but declared fields.

| hint | JSON |
|---|---|
| None, ``bool``, ``int``, ``float`` (finite), ``str``, ``Literal[...]`` | itself |
| an enumeration | the name of the member |
| ``list[X]``, ``tuple[X, ...]``, ``tuple[X, Y]``, ``set[X]``, ``frozenset[X]`` | list |
| a NamedTuple | list |
| ``dict[K, V]``, ``Mapping[K, V]`` | list of pairs |
| a dataclass | mapping of its fields |
| ``X | None`` | null, or as X |
| ``X | Y``, ``Sequence[X]`` (a tuple or a list) | the place of the type among them, and the value |
| ``np.ndarray`` of numbers or bool | ``dtype``, ``shape``, ``items`` |
| ``np.random.Generator`` (PCG64, Gymnasium's) | its state |
"""

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from dialgym.io.json_leaves import (
    GENERATOR_FORM,
    SCALARS,
    Convert,
    Form,
    Json,
    Misfit,
    array_form,
    enum_form,
    literal_form,
    scalar_form,
    unfit,
)


def to_json(value: Any, hint: Any) -> Json:
    """The JSON of a value of a type.

    Raises:
        ValueError: the value is not of that type, or the type has no form in JSON; the message
            names the field.
    """
    return _checked(lambda: form_of(hint).write(value))


def from_json(values: Json, hint: Any) -> Any:
    """The value of a type that JSON from anywhere spells.

    Raises:
        ValueError: it spells none, or the type has no form in JSON; the message names the field.
    """
    return _checked(lambda: form_of(hint).read(values))


def _checked(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Misfit as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


_forms: dict[Any, Form] = {}


def form_of(hint: Any) -> Form:
    """The two functions that write and read values of a type; each type is looked at once.

    Raises:
        Misfit: the type, or that of a field, has no form in JSON.
    """
    try:
        form = _forms.get(hint)
    except TypeError:  # no key of a dict
        raise _formless(hint) from None
    if form is None:
        form = _forms[hint] = _new_form(hint)
    return form


def _new_form(hint: Any) -> Form:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is None or hint is type(None):
        return literal_form([None])
    if hint in SCALARS:
        return scalar_form(hint)
    if hint is np.random.Generator:
        return GENERATOR_FORM
    if origin is Literal:
        return literal_form(arguments)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if np.ndarray in (hint, origin):
        return array_form(arguments)
    if origin in CONTAINERS:
        return CONTAINERS[origin](*arguments)
    return _class(hint)


def _class(hint: Any) -> Form:
    if is_dataclass(get_origin(hint) or hint):
        return _record(hint)
    if isinstance(hint, type):
        if issubclass(hint, Enum):
            return enum_form(hint)
        if issubclass(hint, tuple) and hasattr(hint, "_fields"):
            return _named_tuple(hint)
    if hasattr(hint, "__value__"):  # type X = ...
        return form_of(hint.__value__)
    raise _formless(hint)


def _formless(hint: Any) -> Misfit:
    return Misfit(
        f"the type {getattr(hint, '__name__', repr(hint))} has no form in JSON. Give a hint that "
        "says all of it, of bool, int, float, str, list[X], tuple[X, ...], dict[K, V], X | None, "
        "arrays, NamedTuples and dataclasses"
    )


# Containers


def _each(work: Convert, values: Iterable[Any]) -> list[Any]:
    made: list[Any] = []
    try:
        for value in values:
            made.append(work(value))
    except Misfit as error:
        raise error.within(f"[{len(made)}]") from None
    return made


def _any_number(kind: Any, hint: Any) -> Form:
    """Form of a container of any number of values of one type."""
    part = form_of(hint)

    def write(values: Any) -> list[Json]:
        if type(values) is not kind:
            raise unfit(kind.__name__, values)
        is_set = kind in (set, frozenset)
        return _each(part.write, sorted(values, key=repr) if is_set else values)

    def read(values: Json) -> Any:
        made = _each(part.read, _as_list(values))
        return made if kind is list else _made(kind, made)

    return Form(write, read)


def _as_list(values: Json) -> list[Json]:
    if type(values) is not list:
        raise unfit("a list", values)
    return values


def _made(kind: Any, values: list[Any]) -> Any:
    """A container of what was read; some want it hashable."""
    try:
        return kind(values)
    except TypeError as error:
        raise Misfit(f"{error}") from None


def _tuple(*hints: Any) -> Form:
    if len(hints) == 2 and hints[1] is Ellipsis:
        return _any_number(tuple, hints[0])
    return _by_position(tuple, {f"[{index}]": form_of(hint) for index, hint in enumerate(hints)})


def _named_tuple(cls: Any) -> Form:
    hints, parts = _hints(cls), dict[str, Form]()
    wanted = {f".{name}": hints.get(name, Any) for name in cls._fields}
    return _fill_in(cls, _by_position(cls, parts), parts, wanted)


def _by_position(kind: Any, parts: Mapping[str, Form]) -> Form:
    """Form of a tuple with a form for each position."""

    def through(values: Sequence[Any], side: int) -> list[Any]:
        if len(values) != len(parts):
            raise Misfit(f"expected {len(parts)} values, got {len(values)}")
        return [_at(where, form[side], v) for (where, form), v in zip(parts.items(), values)]

    def write(values: Any) -> list[Json]:
        if type(values) is not kind:
            raise unfit(kind.__name__, values)
        return through(values, 0)

    return Form(write, lambda values: tuple.__new__(kind, through(_as_list(values), 1)))


def _at(where: str, work: Convert, value: Any) -> Any:
    try:
        return work(value)
    except Misfit as error:
        raise error.within(where) from None


def _mapping(key: Any, value: Any) -> Form:
    pairs = _any_number(list, tuple[key, value])

    def write(values: Any) -> list[Json]:
        if not isinstance(values, Mapping):
            raise unfit("a mapping", values)
        return pairs.write(list(values.items()))

    return Form(write, lambda values: _made(dict, pairs.read(values)))


CONTAINERS: dict[Any, Callable[..., Form]] = {
    list: lambda hint: _any_number(list, hint),
    set: lambda hint: _any_number(set, hint),
    frozenset: lambda hint: _any_number(frozenset, hint),
    tuple: _tuple,
    dict: _mapping,
    Mapping: _mapping,
    Sequence: lambda hint: _tagged([_any_number(tuple, hint), _any_number(list, hint)]),
}


def _union(hints: Sequence[Any]) -> Form:
    forms = [form_of(hint) for hint in hints if hint is not type(None)]
    write, read = forms[0] if len(forms) == 1 else _tagged(forms)
    if len(forms) == len(hints):
        return Form(write, read)
    return Form(
        lambda value: None if value is None else write(value),
        lambda value: None if value is None else read(value),
    )


def _tagged(forms: Sequence[Form]) -> Form:
    """Form of a value of one of several types, whose place the JSON tells."""

    def write(value: Any) -> Json:
        for index, form in enumerate(forms):
            try:
                return [index, form.write(value)]
            except Misfit as error:
                last = error
        raise last

    def read(values: Json) -> Any:
        known = type(values) is list and len(values) == 2 and type(values[0]) is int
        if not known or values[0] not in range(len(forms)):
            raise unfit(f"a place from 0 to {len(forms) - 1}, and a value", values)
        return forms[values[0]].read(values[1])

    return Form(write, read)


# Classes


def _record(hint: Any) -> Form:
    cls, parts = get_origin(hint) or hint, dict[str, Form]()
    hints, types = _hints(cls), dict(zip(getattr(cls, "__parameters__", ()), get_args(hint)))

    def write(value: Any) -> Json:
        if type(value) is not cls:
            raise unfit(cls.__name__, value)
        if more := getattr(value, "__dict__", {}).keys() - parts.keys():
            raise Misfit(f"{cls.__name__} has attributes that are no fields ({sorted(more)})")
        return {name: _at(f".{name}", parts[name].write, getattr(value, name)) for name in parts}

    def read(values: Json) -> Any:
        if type(values) is not dict or values.keys() != parts.keys():
            got = ", ".join(values) if type(values) is dict else type(values).__name__
            raise Misfit(f"expected {cls.__name__} by {', '.join(parts)}; got {got[:60]}")
        made = object.__new__(cls)
        for name, part in parts.items():
            object.__setattr__(made, name, _at(f".{name}", part.read, values[name]))
        return made

    wanted = {field.name: _bound(hints[field.name], types) for field in fields(cls)}
    return _fill_in(hint, Form(write, read), parts, wanted)


def _bound(hint: Any, types: Mapping[Any, Any]) -> Any:
    """The hint of a generic class's field, with the types that the class was given."""
    if isinstance(hint, TypeVar):
        return types.get(hint, hint)
    open_ = getattr(hint, "__parameters__", ())
    return hint[tuple(types.get(one, one) for one in open_)] if open_ else hint


def _fill_in(key: Any, form: Form, parts: dict[str, Form], hints: Mapping[str, Any]) -> Form:
    """Give a form its parts, which may be of the same type again."""
    _forms[key] = form
    try:
        for name, hint in hints.items():
            parts[name] = _at(f".{name.lstrip('.')}", form_of, hint)
    except Misfit:
        del _forms[key]
        raise
    return form


def _hints(cls: Any) -> dict[str, Any]:
    try:
        return get_type_hints(cls)
    except (NameError, TypeError, AttributeError) as error:
        raise Misfit(f"the hints of {cls.__name__} cannot be looked up ({error})") from None
