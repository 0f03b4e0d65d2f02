"""Options, parsing, progress and errors that several commands share."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dialgym.files import parse_yaml
from dialgym.optional import require

console = Console(highlight=False)

Set = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="A setting of the environment."),
]
Episodes = Annotated[int, typer.Option("--episodes", "-n", min=1, help="Episodes for each seed.")]
Seeds = Annotated[str, typer.Option(metavar="N,N,...", help="Seeds of the episodes.")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Read pickled models, import what files name: both can run others' code."
    ),
]
EnvId = Annotated[
    str, typer.Argument(metavar="ID", help="An id (`dialgym list`), or MODULE:CLASS.")
]


def algorithm_names() -> list[str]:
    """What `dialgym train` takes, and completes: names of the table of algorithms."""
    try:
        names: list[str] = import_module("agents.registry").names()
    except ImportError:  # another package of that name, or none
        return []
    return [*names, "guesser", "reward-model"]


def require_agents() -> ModuleType:
    """dialgym's own package `agents`; another distribution installs the same name.

    Raises:
        ImportError: it is missing, or what was imported is not dialgym's.
    """
    agents = require("agents", "agents", "training and loading agents")
    if not getattr(agents, "__dialgym_agents__", False):
        raise ImportError(
            "expected dialgym's package 'agents', got another one of that name from "
            f"{agents.__file__} (the OpenAI Agents SDK, openai-agents, installs it too). "
            "Keep the two in separate virtual environments."
        )
    return agents


def complain(message: str) -> None:
    """Print an error in red on one line of the error stream."""
    err = Console(stderr=True, highlight=False, soft_wrap=True)
    err.print("error:", style="bold red", end=" ")
    err.print(" ".join(message.split()), style="red", markup=False)


def settings(pairs: Sequence[str] | None, option: str = "--set") -> dict[str, Any]:
    """``["words=50", "hard_mode=true"]`` as a dict, the values read as YAML.

    Raises:
        ValueError: a pair has no ``=``, or its value is no YAML.
    """
    return dict(_pair(text, option) for text in pairs or ())


def _pair(text: str, option: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    try:
        if name and equals:
            found = parse_yaml(value, option)
            return name, float(found) if _is_power(found) else found
    except ValueError:
        pass
    raise ValueError(f"{option}: expected KEY=VALUE, such as words=50; got {text!r}.")


def _is_power(value: Any) -> bool:
    """Whether it is a number such as 1e-4, which YAML 1.1 takes for a text."""
    return isinstance(value, str) and bool(re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", value))


def numbers(text: str, option: str = "--seeds") -> list[int]:
    """``"0,1,2"`` as a list.

    Raises:
        ValueError: a part is no whole number.
    """
    try:
        return [int(part) for part in words(text)]
    except ValueError:
        raise ValueError(
            f"{option}: expected whole numbers separated by commas; got {text!r}."
        ) from None


def words(text: str) -> list[str]:
    """``"a,b"`` as a list, without empty parts."""
    return [part.strip() for part in text.split(",") if part.strip()]


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar while the block runs; yields the function that says how much more is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    hidden = not console.is_terminal
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=hidden
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
