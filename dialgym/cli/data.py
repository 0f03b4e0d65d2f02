"""``dialgym data``, ``import`` and ``push``: stored dialogues as files and on the hub."""

from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.common import Trust, console, require_agents, settings
from dialgym.cli.options import command_of, set_parameters

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
    console.print(str(dataset.describe(plot)), soft_wrap=True)
    for row in [dataset[i] for i in range(min(show, len(dataset)))]:
        console.print()
        for turn in row["turns"]:
            earned = f"  ({turn['reward']:g})" if turn["said"] and turn["reward"] else ""
            line = f"{turn['party']}: {turn['text']}{earned}"
            console.print(line, soft_wrap=True)


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
    form: Annotated[str | None, typer.Option(help="lmrl-gym: for LMRL-Gym's loaders.")] = None,
    trust: Trust = False,
) -> None:
    """Write stored dialogues as files that other tools read; `dialgym import` reads them again.

    Of a .csv it takes dialogues of two speakers alone: where tools speak too, write a .jsonl. With
    --form lmrl-gym those of Wordle are a .jsonl, of twenty questions and cities a .json.
    """
    dataset = _load(source, trust)
    count = dataset.export(out, form)
    console.print(f"{count:,} dialogues in {out}", soft_wrap=True)


def _load(source: str, trust: bool) -> Any:
    from dialgym.datasets import load_dataset

    return load_dataset(source, trust=trust)


def _check_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{str(folder)!r} holds something already. Choose another folder.")


def import_(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Files, folders or zips of JSONL, JSON, CSV, TSV or Parquet; or hf:NAME.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="A new folder for the dialogues.")],
    **options: Any,
) -> None:
    """Read dialogues of your own, and make a data set that every offline agent learns from.

    It understands messages with roles, lists of turns, logs of events, prompts with responses, and
    tables with a row for each utterance; says what it understood, and what it left out and why.
    """
    from dialgym.datasets.foreign import Choices, import_dialogues
    from dialgym.datasets.readme import advised

    options["where"] = settings(options["where"], "--where")
    options["settings"] = settings(options["settings"])
    choices = Choices(**options)
    report = import_dialogues(files, out, choices)
    console.print(report.to_text(), soft_wrap=True)
    env = choices.task or "dialgym/Logged-v0"
    algorithm, why = ("dpo", "") if choices.rejected else advised(*report.returns)
    text = f"Learn from them{why}: dialgym train {algorithm} {env} --data {out}"
    text += " -p pairs=start" * choices.rejected
    console.print(f"\n{text}", style="dim", soft_wrap=True)


def push(
    source: Annotated[
        str, typer.Argument(metavar="RUN | DATA", help="A run, a saved agent, or a data set.")
    ],
    name: Annotated[
        str, typer.Argument(metavar="hf:NAME | PATH", help="Of the hub, or of a new folder.")
    ],
    scores: Annotated[
        list[Path] | None,
        typer.Option(exists=True, help="What `dialgym evaluate --json` wrote; may be repeated."),
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = (
        False
    ),
    trust: Trust = False,
) -> None:
    """Publish an agent or dialogues on the Hugging Face hub, with a card that has the scores.

    `hf:NAME` is then taken wherever a policy or a data set is.
    """
    from dialgym.datasets import load_dataset
    from dialgym.experiments import Result
    from dialgym.io.saved_models import find_checkpoint

    if find_checkpoint(source) is None and Path(source).exists():
        if scores:
            raise ValueError(f"push: {source!r} is no agent, so that --scores has no place there.")
        where = load_dataset(source, trust=trust).push_to_hub(name, private)
    else:
        results = [Result.from_json(path) for path in scores or ()]
        where = require_agents().push_to_hub(source, name, results, private, trust)
    console.print(where, soft_wrap=True, highlight=False)


set_parameters(import_)


@cache
def import_command() -> Any:
    """The command `import` with its options, the fields of `Choices`."""
    from dialgym.datasets.foreign import Choices

    return command_of("import", import_, fields(Choices))
