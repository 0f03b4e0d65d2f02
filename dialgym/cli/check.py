"""``dialgym check``"""

import os
import sys
from typing import Annotated

import typer

from dialgym.cli.common import Set, complain, console, settings
from dialgym.errors import did_you_mean
from dialgym.registry import entry_of, load, make_task
from dialgym.tasks import Task


def check(
    target: Annotated[
        str, typer.Argument(metavar="ID | MODULE:CLASS", help="An id, or a task of your own.")
    ],
    episodes: Annotated[int, typer.Option("--episodes", "-n", min=1, help="Dialogues.")] = 50,
    set_: Set = None,
) -> None:
    """Check a task: its rules, the agreement of its views, its batch.

    The exit code is 1 where a check fails.
    """
    from dialgym import testing

    task = find_task(target, settings(set_))
    checks = {
        "rules keep their word": lambda: testing.check_task(task, episodes),
        "views agree": lambda: testing.check_views(task, episodes),
        "a batch equals single envs": lambda: testing.check_batch(task, steps=6 * episodes),
    }
    for name, run in checks.items():
        try:
            run()
        except (AssertionError, ValueError) as error:
            complain(f"{task.name}: {name}: {error}")
            raise typer.Exit(1) from error
        console.print(f"[green]✓[/] {task.name}: {name}")


def find_task(target: str, changes: dict) -> Task:
    """The task of an id, or of ``module:Class``; modules of the current folder are found too.

    Raises:
        ValueError: there is no such id, module, class or setting.
    """
    module, _, name = target.partition(":")
    if not name or "/" in target:
        entry = entry_of(target)
        return make_task(entry, changes)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        task = load(target)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"check: there is no module {error.name!r} here. Run it from the folder of {module}."
        ) from error
    except AttributeError as error:
        hint = did_you_mean(name, vars(sys.modules[module]))
        raise ValueError(f"check: module {module!r} has no {name!r}.{hint}") from error
    try:
        made = task(**changes)
    except TypeError as error:
        raise ValueError(f"check: {target} could not be made: {error}.") from error
    if isinstance(made, Task):
        return made
    raise ValueError(f"check: expected a dialgym.tasks.Task at {target}; got {made!r}.")
