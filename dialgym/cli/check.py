"""``dialgym check`` a task and its views; ``dialgym check-domain``, the files of a domain."""

from typing import Annotated

import typer

from dialgym.cli.common import Set, complain, console, settings
from dialgym.registry import entry_of, make_task


def check(
    target: Annotated[
        str, typer.Argument(metavar="ID | MODULE:CLASS", help="An id, or a task of your own.")
    ],
    episodes: Annotated[
        int, typer.Option("--episodes", "-n", min=1, help="Number of random dialogues.")
    ] = 50,
    set_: Set = None,
) -> None:
    """Check a task: rules against facts, views against each other, batch against single.

    The exit code is 1 where a check fails.
    """
    from dialgym import testing

    task = make_task(entry_of(target), settings(set_))
    checks = {
        "rules agree with facts": lambda: testing.check_task(task, episodes),
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


def check_domain(
    target: Annotated[
        str,
        typer.Argument(
            metavar="PATH | NAME",
            help="path/to/Bars, for Bars-rules.json and Bars-dbase.db; or a domain's name.",
        ),
    ],
    shared_names: Annotated[
        bool, typer.Option("--shared-names", help="Several rows may have one name.")
    ] = False,
) -> None:
    """Check the files of a slot-filling domain, and print its size.

    The exit code is 1 where something is wrong with it.
    """
    from dialgym.domains.domain import find_faults, load_domain, sizes
    from dialgym.tasks.slot_filling.acts import act_names
    from dialgym.tasks.slot_filling.tracker import Layout

    try:
        domain = load_domain(target)
    except ValueError as error:
        complain(str(error))
        raise typer.Exit(1) from error
    figures = {
        **sizes(domain),
        "belief vector": str(Layout(domain.ontology).vector_size),
        "summary acts": str(len(act_names(domain.ontology))),
    }
    width = max(map(len, figures))
    for what, figure in figures.items():
        console.print(f"{what:<{width}}  {figure}", markup=False, soft_wrap=True)
    faults = find_faults(domain, shared_names)
    for fault in faults:
        complain(fault)
    if faults:
        raise typer.Exit(1)
    console.print(f"[green]✓[/] {domain.ontology.domain} is sound")
