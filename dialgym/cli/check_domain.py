"""``dialgym check-domain``: check the files of a slot-filling domain."""

from typing import Annotated

import typer

from dialgym.cli.common import complain, console


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
    """Check a domain of slot filling, and say how large it is.

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
