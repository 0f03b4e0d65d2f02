"""Messages for bad arguments and dead services: what, where, expected, got, and what to do."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from numbers import Integral, Real
from socket import gaierror
from typing import Any, ParamSpec, TypeVar, Unpack, get_args, get_origin

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


class ServiceError(ConnectionError, RuntimeError):
    """A service that a speaker or judge asks gives no answer."""


def service_error(who: str, asker: Any, error: BaseException) -> ServiceError | None:
    """Make the error for a service that is not there; None where something else is wrong.

    Args:
        who: asks it, for the message.
        asker: whose `url` or `base_url`, or that of its `client`, the message names, where the
            error itself knows none.
        error: what was raised, whatever client library it comes from.
    """
    chain = list(_causes(error))
    if not any(isinstance(each, (ConnectionError, TimeoutError, gaierror)) for each in chain):
        return None
    text = " ".join(f"{type(error).__name__}: {error}".split())
    url = next(_urls([*chain, asker]), "")
    at = f" at {url}" if url and url not in text else ""
    said = isinstance(error, ServiceError)  # whose text says what to do
    advice = "" if said else " Start it, or check its address."
    return ServiceError(f"{who}: no answer from the service{at} ({text}).{advice}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what led to it, as client libraries wrap one in another."""
    while error is not None:
        yield error
        inner = getattr(error, "reason", None)  # of urllib
        if isinstance(inner, BaseException):
            yield inner
        error = error.__cause__ or error.__context__


def _urls(owners: Iterable[Any]) -> Iterator[str]:
    """The addresses that errors and who asks know of, by themselves or by a part."""
    for owner in owners:
        for part in (owner, *(_part(owner, name) for name in ("request", "client", "speaker"))):
            for name in ("url", "base_url"):
                found = str(_part(part, name))
                if "://" in found:
                    yield found


def _part(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name, None)
    except RuntimeError:  # of httpx, where there was no request
        return None


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """`" Did you mean 'x'?"` for the nearest known name, or nothing."""
    close = get_close_matches(str(name), list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def unknown(what: str, name: object, known: Iterable[str], where: str = "") -> ValueError:
    """The error for a name that is not among the known ones."""
    names = sorted({*known})
    place = f" in {where}" if where else ""
    hint = did_you_mean(name, names)
    listing = ", ".join(names) or "none"
    return ValueError(f"unknown {what} {name!r}{place}.{hint} Known: {listing}.")


class UnexpectedArgument(TypeError, ValueError):
    """An unknown keyword argument.

    A TypeError as Python's own, by which libraries that try arguments out know it; a ValueError as
    all errors of bad arguments here.
    """


def unexpected(name: str, known: Iterable[str], where: str) -> UnexpectedArgument:
    """The error for a keyword argument that is not among the known ones."""
    names = sorted(known)
    return UnexpectedArgument(
        f"{where} got an unexpected keyword argument {name!r}.{did_you_mean(name, names)} "
        f"Known: {', '.join(names) or 'none'}."
    )


def parameters_of(cls: type) -> dict[str, Parameter]:
    """Parameters of a constructor, and those that it hands on to its parents.

    By ``**kwargs`` it hands on all of theirs, by ``**kwargs: Unpack[Options]`` those of the typed
    dictionary `Options`.
    """
    found: dict[str, Parameter] = {}
    handed_on: set[str] | None = None
    for base in cls.__mro__:
        if "__init__" not in vars(base):
            continue
        make = vars(base)["__init__"]
        parameters = signature(make).parameters.values()
        for one in parameters:
            known = handed_on is None or one.name in handed_on
            if known and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
                found.setdefault(one.name, one)
        rest = next((one for one in parameters if one.kind is one.VAR_KEYWORD), None)
        if rest is None:
            break
        if (names := _unpacked(make, rest)) is not None:
            handed_on = names if handed_on is None else handed_on & names
    return found


def _unpacked(function: Any, rest: Parameter) -> set[str] | None:
    """The keys of the typed dictionary that ``**rest`` is; None for any keyword."""
    annotation = rest.annotation
    if isinstance(annotation, str) and annotation.startswith("Unpack["):
        annotation = eval(annotation, function.__globals__)
    options = get_args(annotation)[:1] if get_origin(annotation) is Unpack else ()
    return {*options[0].__annotations__} if options else None


def keywords_of(make: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: ``**options`` of a constructor are the optional arguments of `make`.

    Its signature has them by name, and keyword arguments are checked by it.
    """
    options = [p for p in signature(make).parameters.values() if p.default is not p.empty]

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        plain = signature(function)
        own = [p for p in plain.parameters.values() if p.kind is not p.VAR_KEYWORD]
        named = [p.replace(kind=p.KEYWORD_ONLY) for p in options]
        shown = plain.replace(parameters=[*own, *named])
        where = function.__qualname__.removesuffix(".__init__")

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            check_arguments(kwargs, shown.parameters, where)
            return function(*args, **kwargs)

        vars(checked)["__signature__"] = shown
        return checked

    return decorate


def arguments_of(cls: type) -> dict[str, Any]:
    """Arguments of a constructor and of its parents', with defaults; `empty` for none."""
    return {name: one.default for name, one in parameters_of(cls).items()}


def check_arguments(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise an `UnexpectedArgument`, with the nearest known one, for a name that is unknown."""
    names = {*known} - {"self"}
    for name in given:
        if name not in names:
            raise unexpected(name, (n for n in names if not n.startswith("_")), where)


def one_of(what: str, value: object, allowed: Iterable[object], where: str = "") -> None:
    """Raise a ValueError unless `value` is one of `allowed`."""
    choices = list(allowed)
    if value not in choices:
        place = f" of {where}" if where else ""
        expected = ", ".join(repr(choice) for choice in choices)
        hint = did_you_mean(value, [str(c) for c in choices if isinstance(c, str)])
        raise ValueError(f"{what}{place} must be one of {expected}; got {value!r}.{hint}")


def check_object(what: str, given: object) -> None:
    """Raise a ValueError for a class where an object is expected."""
    if isinstance(given, type):
        name = given.__name__
        raise ValueError(f"{what}: expected an object, got the class {name}. Make one: {name}().")


def finite_number(what: str, value: object) -> float:
    """The value as a float; a ValueError where it is no number, or not a finite one."""
    if is_finite(value):
        return float(value)  # type: ignore[arg-type]
    raise ValueError(f"{what} must be a finite number; got {value!r:.80}.")


def is_finite(value: object) -> bool:
    """Return True if a value is a finite number; a truth value is none."""
    plain = type(value) in (float, int)  # most are, and to ask an abstract class takes long
    if not plain and (not isinstance(value, Real) or isinstance(value, bool)):
        return False
    try:
        return math.isfinite(value)  # type: ignore[arg-type]
    except OverflowError:  # a whole number beyond all floats
        return False


def share(what: str, value: object) -> float:
    """The value as a float; a ValueError where it is no number from 0 to 1."""
    number = finite_number(what, value)
    if not 0 <= number <= 1:
        raise ValueError(f"{what} must be from 0 to 1; got {value!r}.")
    return number


def check_flags(make: Callable[..., Any], given: Mapping[str, Any], where: str) -> None:
    """Raise a ValueError where something else is given for what is True or False by default."""
    known = signature(make).parameters
    for name, value in given.items():
        is_flag = name in known and isinstance(known[name].default, bool)
        if is_flag and not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} of {where} must be True or False; got {value!r}.")


def with_settings(make: Callable[..., Any], what: str, settings: Mapping[str, Any]) -> Any:
    """``make(**settings)``; a ValueError where it knows no such setting, or needs another one."""
    if not isinstance(settings, Mapping):
        raise ValueError(f"{what}: expected a mapping of settings, got {settings!r}")
    known = signature(make).parameters.values()
    names = [p.name for p in known if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if not any(p.kind is Parameter.VAR_KEYWORD for p in known):
        for name in settings:
            if name not in names:
                raise unknown("setting", name, names, what)
    missing = [p.name for p in known if p.default is p.empty and p.name in names]
    for name in missing:
        if name not in settings:
            raise ValueError(f"{what} needs the setting {name!r}; got {sorted(settings)}.")
    return make(**settings)


def settings_as(kind: type[R], what: str, value: R | Mapping[str, Any] | None) -> R:
    """Settings as they are, or of what YAML spells as a mapping; None is all defaults.

    Raises ValueError as `with_settings` does.
    """
    if isinstance(value, kind):
        return value
    made: R = with_settings(kind, what, value or {})  # type: ignore[arg-type]
    return made


def whole_number(
    what: str, value: object, where: str, least: int = 1, most: int | None = None
) -> int:
    """The value as an int; a ValueError where it is no whole number, or beyond the bounds."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if number >= least and (most is None or number <= most):
            return number
    to = "" if most is None else f" to {most}"
    raise ValueError(f"{what} of {where} must be a whole number from {least}{to}; got {value!r}.")
