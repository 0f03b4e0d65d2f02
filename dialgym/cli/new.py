"""``dialgym new``: begin a task of your own."""

import ast
import builtins
import keyword
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dialgym.cli.common import console
from dialgym.cli.templates import check_absent, templates_in, write_templates
from dialgym.registry import is_registered

new = typer.Typer(no_args_is_help=True, help="Begin something of your own.")
TEMPLATES = "new_task"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_ ][A-Za-z0-9]+)*")


@new.callback()
def commands() -> None:
    """Begin something of your own."""


@new.command("task")
def task(
    name: Annotated[str, typer.Argument(help="Such as guess-number, or GuessNumber.")],
    into: Annotated[
        Path, typer.Option(file_okay=False, help="The folder to put its folder into.")
    ] = Path(),
) -> None:
    """Write a folder with a small task that works: rules, policies, tests, ids.

    It is yours to change; `dialgym check` and its own tests say what is still right.
    """
    words = words_of(name)
    module = "_".join(words)
    folder = into / module
    check_class(class_of(module))
    check_module(module, folder)
    write_task(folder, module)
    shown = ", ".join(sorted(path.name for path in folder.iterdir()))
    env_id = f"{module}:{class_of(module)}-v0"
    console.print(f"{folder}: {shown}\n", soft_wrap=True)
    where = "" if into == Path() else f"cd {into}; "
    for command in (
        f"dialgym check {env_id}",
        f"python -m pytest {module}",
        f"dialgym play {env_id}",
        f"dialgym train ppo {env_id} --timesteps 250000 --out runs/{module}",
        f"dialgym benchmark --ids {env_id} --policies random,bisect,runs/{module}",
        f"python -m {module}.two_party",
    ):
        console.print(f"    {where}{command}", soft_wrap=True, highlight=False)


def words_of(name: str) -> list[str]:
    """The words of a name in lower case.

    Raises:
        ValueError: it is none.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"new task: expected a name of letters, digits and hyphens that begins with a letter, "
            f"such as guess-number; got {name!r}."
        )
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.split(r"[-_ ]+", apart.lower())


def class_of(module: str) -> str:
    """The name of the class in a module of that name."""
    return "".join(word.capitalize() for word in module.split("_"))


def check_module(module: str, folder: Path) -> None:
    """Raise a ValueError where a module cannot have that name, or its folder is there."""
    check_absent(folder, "new task")
    if keyword.iskeyword(module) or find_spec(module) is not None:
        raise ValueError(
            f"new task: Python has a module {module!r} already, which would be imported in its "
            "place. Choose another name."
        )


def check_class(name: str) -> None:
    """Raise a ValueError where a class of that name would hide what the files of a task use."""
    if keyword.iskeyword(name) or name in {*dir(builtins), *_names_of_templates()}:
        raise ValueError(
            f"new task: its class would be called {name!r}, which the files of a task use for "
            "something else. Choose another name."
        )
    if is_registered(f"{name}-v0"):
        raise ValueError(
            f"new task: dialgym has an environment {name}-v0 already. Choose another name."
        )


def _names_of_templates() -> Iterator[str]:
    """The names that the files of a task import, define and use."""
    for path, text in templates_in(TEMPLATES).items():
        if not path.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.alias | ast.ClassDef | ast.FunctionDef):
                yield node.name


def write_task(folder: Path, module: str) -> None:
    """Write the files of a task into a new folder, whole or not at all."""
    name = class_of(module)
    values = {
        "UTTERANCE": f"{name}-utterance-v0",
        "MODULE": module,
        "CLASS": name,
        "ID": f"{name}-v0",
    }
    write_templates(folder, templates_in(TEMPLATES), values)
