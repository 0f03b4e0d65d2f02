"""``dialgym data``: describe, merge, split and export stored dialogues."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.common import Trust, console

data = typer.Typer(no_args_is_help=True, help="Describe, merge, split and export stored dialogues.")
Where = Annotated[
    str, typer.Argument(metavar="DATA", help="A folder or file of stored dialogues, or hf:NAME.")
]
Out = Annotated[Path, typer.Option(help="A new folder.")]


@data.command("describe")
def describe(
    source: Where,
    plot: Annotated[
        Path | None, typer.Option(help="A PNG file for histograms of returns and lengths.")
    ] = None,
    show: Annotated[int, typer.Option(min=0, help="So many dialogues to look at.")] = 1,
    trust: Trust = False,
) -> None:
    """Say what is in stored dialogues: counts, returns, lengths, and one to look at."""
    dataset = _load(source, trust)
    console.print(str(dataset.describe(plot)), markup=False, soft_wrap=True)
    for row in [dataset[i] for i in range(min(show, len(dataset)))]:
        console.print()
        for turn in row["turns"]:
            earned = f"  ({turn['reward']:g})" if turn["said"] and turn["reward"] else ""
            line = f"{turn['party']}: {turn['text']}{earned}"
            console.print(line, markup=False, soft_wrap=True)


@data.command("merge")
def merge(
    sources: Annotated[list[str], typer.Argument(metavar="DATA...", help="Two or more.")],
    out: Out,
    trust: Trust = False,
) -> None:
    """Put stored dialogues of one environment into one folder."""
    from dialgym.datasets import concatenate

    _check_new(out)
    whole = concatenate([_load(source, trust) for source in sources])
    try:
        whole.environment()
    except ValueError as error:
        raise ValueError(
            f"merge: {error} Imported dialogues have a vocabulary of their own: import their files "
            "together instead (dialgym import FILE FILE --out FOLDER)."
        ) from error
    console.print(f"{len(whole):,} dialogues in {whole.save(out).parent}", soft_wrap=True)


@data.command("split")
def split(
    source: Where,
    out: Annotated[Path, typer.Option(help="A folder for the folders train and test.")],
    share: Annotated[float, typer.Option(help="Of the dialogues that go into train.")] = 0.9,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw.")] = 0,
    trust: Trust = False,
) -> None:
    """Split stored dialogues in two, by their hidden state."""
    dataset = _load(source, trust)
    for name, part in zip(("train", "test"), dataset.split(share, seed)):
        _check_new(out / name)
        if not len(part):
            raise ValueError(f"split: nothing is left for {name}. Give another --share or --seed.")
        part.save(out / name)
        console.print(f"{len(part):,} dialogues in {out / name}", soft_wrap=True)


@data.command("export")
def export(
    source: Where,
    out: Annotated[Path, typer.Option(help="A file: .jsonl of messages, .csv a row a turn.")],
    trust: Trust = False,
) -> None:
    """Write stored dialogues as files that other tools read; `dialgym import` reads them again."""
    dataset = _load(source, trust)
    count = dataset.export(out)
    console.print(f"{count:,} dialogues in {out}", soft_wrap=True)


def _load(source: str, trust: bool) -> Any:
    from dialgym.datasets import load_dataset

    return load_dataset(source, trust=trust)


def _check_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{str(folder)!r} holds something already. Choose another folder.")
