"""``dialgym check``: check a task and its views."""

from typing import Annotated

import typer

from dialgym.cli.common import Set, complain, console, settings
from dialgym.registry import entry_of, make_task


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

    task = make_task(entry_of(target), settings(set_))
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
