"""``dialgym tape``: recorded answers of language models."""

from pathlib import Path
from typing import Annotated

import typer

from dialgym.cli.common import complain, console

tape = typer.Typer(
    no_args_is_help=True, help="Describe, verify and merge recorded answers of language models."
)
Where = Annotated[Path, typer.Argument(metavar="TAPE", help="A file of recorded answers.")]


@tape.command("describe")
def describe(file: Where) -> None:
    """Say what is on a tape: models, answers, turns, tokens, and its hash."""
    from dialgym.io.tape_report import describe_tape

    console.print(str(describe_tape(file)), soft_wrap=True)


@tape.command("verify")
def verify(
    files: Annotated[list[Path], typer.Argument(metavar="TAPE...", help="One or more.")],
) -> None:
    """Check that each record is whole, as it was written, and of its request."""
    from dialgym.io.tape_report import describe_tape

    bad = 0
    for file in files:
        try:
            found = describe_tape(file)
            wrong = list(found.problems)
        except (ValueError, OSError) as error:
            wrong = [str(error)]
        bad += bool(wrong)
        for text in wrong:
            complain(f"{file}: {text}")
        if not wrong:
            torn = f", {found.torn} unfinished lines are left out" if found.torn else ""
            told = f"{file}: {found.answers:,} answers hold{torn}"
            console.print(told, soft_wrap=True)
    if bad:
        raise typer.Exit(2)


@tape.command("merge")
def merge(
    files: Annotated[list[Path], typer.Argument(metavar="TAPE...", help="The first counts most.")],
    out: Annotated[Path, typer.Option(help="A new file.")],
) -> None:
    """Put the answers of several tapes on one; the same answers make the same file."""
    from dialgym.io.tape_report import merge_tapes

    counts = merge_tapes(out, files)
    told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    console.print(f"wrote {out}: {told}", style="dim", soft_wrap=True)
