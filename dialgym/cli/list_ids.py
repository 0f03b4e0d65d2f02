"""``dialgym list``: the registered ids."""

import json as json_format
from typing import Annotated, Any

import typer

from dialgym import registry
from dialgym.cli.common import console


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
