"""``dialgym import``: dialogues of one's own, from files of any form."""

from pathlib import Path
from typing import Annotated

import typer

from dialgym.cli.common import Set, console, settings


def import_(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Files, folders or zips of JSONL, JSON, CSV, TSV or Parquet; or hf:NAME.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="A new folder for the dialogues.")],
    task: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Whose dialogues they are; by default dialgym/Logged-v0."),
    ] = None,
    reward: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The reward, by turn or of the whole: rating, outcome.reward; none for none.",
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option(metavar="SPEAKER", help="Who is the system, which learns.")
    ] = None,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="What was said.")] = None,
    speaker: Annotated[str | None, typer.Option(metavar="COLUMN", help="Who said it.")] = None,
    dialogue: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The dialogue's name, in a table of utterances."),
    ] = None,
    outcomes: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A table of rewards, by the dialogue's name."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=VALUE", help="Which rows of the outcomes count."),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="One split alone: train, validation, test ...")
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="char, bpe, bpe:PATH, hf:NAME; by default one is made.")
    ] = None,
    vocabulary: Annotated[int, typer.Option(help="Tokens of one that is made.")] = 2048,
    utterance_tokens: Annotated[int, typer.Option(help="Most tokens of an utterance.")] = 96,
    window: Annotated[int, typer.Option(help="Most tokens of a dialogue.")] = 512,
    set_: Set = None,
) -> None:
    """Read dialogues of your own, and make a data set that every offline agent learns from.

    It understands messages with roles, lists of turns, logs of events, prompts with responses, and
    tables with a row for each utterance; says what it understood, and what it left out and why.
    """
    from dialgym.datasets.foreign import Choices, import_dialogues
    from dialgym.datasets.readme import advised

    choices = Choices(
        reward=reward,
        system=system,
        text=text,
        speaker=speaker,
        dialogue=dialogue,
        outcomes=outcomes,
        where=settings(where, "--where"),
        split=split,
        task=task,
        settings=settings(set_),
        tokenizer=tokenizer,
        vocabulary=vocabulary,
        utterance_tokens=utterance_tokens,
        window=window,
    )
    report = import_dialogues(files, out, choices)
    console.print(report.to_text(), markup=False, soft_wrap=True)
    env = "dialgym/Logged-v0" if task is None else task
    algorithm, why = advised(*report.returns)
    text = f"Learn from them{why}: dialgym train {algorithm} {env} --data {out}"
    console.print(f"\n{text}", style="dim", soft_wrap=True)
