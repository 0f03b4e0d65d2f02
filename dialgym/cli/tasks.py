"""``dialgym list``, ``check``, ``check-domain``: list the ids, check a task, check a domain."""

import json as json_format
from typing import Annotated, Any

import typer

from dialgym import registry
from dialgym.cli.common import Set, complain, console, settings
from dialgym.registry import entry_of, make_task


def list_ids(
    tag: Annotated[str | None, typer.Option(help="Only those with this tag or view.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the rows of the registry as JSON.")
    ] = False,
) -> None:
    """List the environments."""
    chosen = [registry.entries()[env_id] for env_id in registry.list_ids(tag)]
    if json:
        typer.echo(json_format.dumps([as_dict(entry) for entry in chosen], indent=2))
        return
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("id", no_wrap=True)
    table.add_column("what")
    firsts = {entry.row.name: entry for entry in reversed(chosen)}  # the first view of each row
    for entry in reversed(firsts.values()):
        table.add_row(entry.id, entry.row.description)
        table.add_row("", f"[dim]{', '.join(entry.row.tags)}[/]")
    console.print(table)
    others = {entry.view for entry in chosen} - {entry.view for entry in firsts.values()}
    for view in sorted(others):
        console.print(f"\nThe {view} view of each: dialgym list --tag {view}", style="dim")


def as_dict(entry: registry.Entry) -> dict[str, Any]:
    """An id and its row in plain values."""
    row = entry.row
    return {
        "id": entry.id,
        "view": entry.view,
        "description": row.description,
        "tags": list(row.tags),
        "task": row.task if isinstance(row.task, str) else repr(row.task),
        "settings": dict(row.settings),
        "scores": dict(row.scores),
        "builtin_scores": dict(row.builtin_scores),
    }


def check(
    target: Annotated[
        str, typer.Argument(metavar="ID | MODULE:CLASS", help="An id, or a task of your own.")
    ],
    episodes: Annotated[
        int, typer.Option("--episodes", "-n", min=1, help="Number of random dialogues.")
    ] = 50,
    set_: Set = None,
) -> None:
    """Check a task: rules against facts, views against each other, batch against single, rewards
    of who plays well against their bounds.

    The exit code is 1 where a check fails. A remark says where an agent that begins at random
    would find nothing to learn from.
    """
    from dialgym import testing

    entry = entry_of(target)
    task = make_task(entry, settings(set_))
    expert = entry.row.scores.get("expert_policy")
    checks = {
        "rules agree with facts": lambda: testing.check_task(task, episodes),
        "views agree": lambda: testing.check_views(task, episodes),
        "a batch equals single envs": lambda: testing.check_batch(task, steps=6 * episodes),
        "returns are within bounds": lambda: testing.check_returns(
            task, [expert] if expert else None, episodes
        ),
    }
    for name, run in checks.items():
        try:
            run()
        except (AssertionError, ValueError) as error:
            complain(f"{task.name}: {name}: {error}")
            raise typer.Exit(1) from error
        console.print(f"[green]✓[/] {task.name}: {name}")
    if remark := testing.start_remark(task, episodes):
        console.print("!", style="yellow", end=" ")
        console.print(f"{task.name}: {remark}", markup=False, soft_wrap=True)


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
