"""All arguments of the public names on their pages, with types, defaults and what they mean.

An extension of griffe, which reads sources for mkdocstrings. It puts the arguments that a class
hands on by ``**kwargs`` (of Stable-Baselines3's classes too) into its signature, and their meaning
into its docstring; "gamma, gae_lambda: ..." becomes a line for each of the two.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe

from dialgym.errors import parameters_of

SECTION = re.compile(r"^Args:\n((?:    .*\n?|\n(?=    ))*)", re.M)
ITEM = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*): (.*(?:\n     .*|\n(?=\n?     ))*)", re.M)
SEVERAL = re.compile(r"^    \*{0,2}\w+, [\w*, ]+: ", re.M)
ELSEWHERE = re.compile(r"as (?:of|in) `\w+`\.?$")
"""A meaning that stands in the docstring of a parent."""


def arguments_of(cls: type) -> dict[str, inspect.Parameter]:
    """The arguments of a class, and those that its parents take from ``*args`` and ``**kwargs``."""
    found = parameters_of(cls)
    return {name: p for name, p in found.items() if name != "self" and not name.startswith("_")}


def meanings_in(text: str) -> dict[str, str]:
    """Meanings of the arguments that a docstring lists, by their names."""
    section = SECTION.search(text)
    items = ITEM.findall(section[1]) if section else []
    return {name.strip("*"): what for names, what in items for name in names.split(", ")}


def meanings_of(cls: type) -> dict[str, str]:
    """Meanings of the arguments of a class, by its docstring or that of a parent."""
    found: dict[str, str] = {}
    for parent in cls.__mro__:
        for name, what in _listed(parent):
            if ELSEWHERE.match(found.get(name, "as of `it`")):
                found[name] = what
    return found


def _listed(cls: type) -> Iterator[tuple[str, str]]:
    own = inspect.cleandoc(vars(cls).get("__doc__") or "")
    init = vars(cls).get("__init__")
    yield from meanings_in(own).items()
    yield from meanings_in(inspect.getdoc(init) or "" if init else "").items()
    for name, what in re.findall(r"^:param (\w+): (.*(?:\n +.*)*)", own, re.M):  # SB3's form
        yield name, " ".join(what.split())


def rewritten(text: str, names: list[str], meanings: dict[str, str]) -> str:
    """A docstring whose arguments are `names`, in that order."""
    lines = [f"    {name}: {meanings[name].rstrip()}" for name in names if name in meanings]
    section = "\n".join(["Args:", *lines, "", ""]) if lines else ""
    if SECTION.search(text):
        return SECTION.sub(lambda _: section, text, count=1).strip()
    head, gap, rest = text.partition("\n\nRaises:")
    return f"{head.rstrip()}\n\n{section}{gap.strip()}{rest}" if section else text


class Arguments(griffe.Extension):
    """Completes the signatures and the argument lists of public names."""

    def __init__(self) -> None:
        sys.path.append(str(Path(__file__).parent))  # griffe reads this file by its path alone
        from make_api_pages import MODULES, home_of, names_of

        self.public = {home_of(module, name) for module in MODULES for name in names_of(module)}

    def on_function_instance(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """A line for each argument of a function or method."""
        if func.docstring and SEVERAL.search(func.docstring.value):
            text = func.docstring.value
            meanings = meanings_in(text)
            func.docstring.value = rewritten(text, list(meanings), meanings)

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """The arguments of a public class, those of its parents among them."""
        if cls.path not in self.public or cls.docstring is None:
            return
        found = getattr(import_module(cls.module.path), cls.name)
        parameters = {} if is_dataclass(found) else arguments_of(found)
        if not parameters:  # of a protocol, a tuple or a dataclass griffe knows all
            return
        cls.docstring.value = rewritten(
            inspect.cleandoc(cls.docstring.value), list(parameters), meanings_of(found)
        )
        cls.set_member("__init__", self.constructor(cls, parameters))

    def constructor(
        self, cls: griffe.Class, parameters: dict[str, inspect.Parameter]
    ) -> griffe.Function:
        """An `__init__` with all arguments, where the class's own is, if it has one."""
        own = cls.members.get("__init__")
        known = {p.name: p for p in getattr(own, "parameters", ())}
        kept = [known.get("self") or griffe.Parameter("self")]
        kept += [known.get(name) or _parameter(p) for name, p in parameters.items()]
        made = griffe.Function("__init__", parameters=griffe.Parameters(*kept), parent=cls)
        made.lineno, made.endlineno = cls.lineno, cls.lineno
        return made


def _parameter(found: inspect.Parameter) -> griffe.Parameter:
    """Parameter of a parent, as griffe would have read it, without the names of modules."""
    default = getattr(found.default, "__name__", repr(found.default))
    return griffe.Parameter(
        found.name,
        annotation=None if found.annotation is found.empty else _written(found.annotation),
        kind=griffe.ParameterKind.keyword_only,
        default=None if found.default is found.empty else default,
    )


def _written(annotation: Any) -> str:
    text = inspect.formatannotation(annotation).strip("'\"")
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)
