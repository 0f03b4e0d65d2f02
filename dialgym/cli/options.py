"""Options of a command from the fields of a dataclass, which hold their help as metadata."""

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, Field
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

PAIRS = "KEY=VALUE"
"""The type of an option that is a mapping, as metadata has it."""


def parameter_of(one: Field[Any]) -> Parameter:
    """The parameter of the command for a field, from its metadata."""
    about = one.metadata
    default = None if one.default is MISSING else one.default
    takes: Any = about["takes"]
    metavar = about.get("metavar") or {PAIRS: PAIRS, list: "PATH", Path: "PATH"}.get(takes)
    takes = list[str] if takes in (PAIRS, list) else takes
    if (other := about.get("command_default")) is not None:
        default = other
    help, least = about["help"], about.get("least")
    flag = about.get("flag") or f"--{one.name.replace('_', '-')}"
    option = typer.Option(*flag.split(","), help=help, min=least, metavar=metavar)
    default = bool(default) if takes is bool else default
    annotation: Any = Annotated[takes if takes is bool else takes | None, option]
    return Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def set_parameters(function: Any, more: Sequence[Parameter] = ()) -> None:
    """Give a command `more` parameters in place of its `**options`."""
    own = Signature.from_callable(function).parameters.values()
    fixed = [one for one in own if one.kind is Parameter.POSITIONAL_OR_KEYWORD]
    function.__signature__ = Signature([*fixed, *more])
    function.__annotations__ = {one.name: one.annotation for one in (*fixed, *more)}


def command_of(name: str, function: Any, options: Iterable[Field[Any]], **kwargs: Any) -> Any:
    """The command `name` of a function whose `**options` are those of some fields."""
    set_parameters(function, [*map(parameter_of, options)])
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command(name, **kwargs)(function)
    return typer.main.get_command(app)
