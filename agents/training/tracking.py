"""Weights & Biases, by a flag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

from dialgym.io.files import write_text
from dialgym.optional import require

ID_FILE = "wandb_id.txt"


@contextmanager
def wandb_run(
    options: bool | Mapping[str, Any],
    directory: Path,
    config: Mapping[str, Any],
    resumed: bool = False,
) -> Iterator[Any]:
    """A Weights & Biases run while the block lasts, to which TensorBoard events are copied.

    The writer of the events must be opened inside. The run's id lies in `directory`: a training
    that is resumed goes on in the same W&B run, one that begins again takes another.

    Args:
        options: False for no run; True, or arguments of `wandb.init` that replace ours.
        directory: the run's folder, which exists; its name is that of the W&B run.
        config: hyperparameters to show.
        resumed: whether the training goes on from a checkpoint.

    Yields:
        The run; None without one.

    Raises:
        ImportError: wandb is not installed.
    """
    if options is False:
        yield None
        return
    wandb = require("wandb", "wandb", "wandb=True (Weights & Biases)")
    given = {} if options is True else dict(options)
    arguments = {
        "project": "dialgym",
        "name": directory.resolve().name,
        "config": dict(config),
        "sync_tensorboard": True,
        "dir": str(directory),
        "resume": "allow",
        "id": _run_id(directory / ID_FILE, resumed),
    }
    run = wandb.init(**{**arguments, **given})
    exit_code = 1
    try:
        yield run
        exit_code = 0
    finally:
        run.finish(exit_code)
        wandb.tensorboard.unpatch()  # else the next run's events would count as this one's


def log_dialogues(run: Any, infos: Sequence[Mapping[str, Any]], seed: int, timesteps: int) -> None:
    """Give the table `samples` to a W&B run: the seed, return, success and transcript of each."""
    wandb = require("wandb", "wandb", "a table of dialogues")
    rows = [
        [timesteps, seed + row, info["episode"]["r"], info.get("is_success"), info["transcript"]]
        for row, info in enumerate(infos)
    ]
    columns = ["timesteps", "seed", "return", "success", "transcript"]
    run.log({"samples": wandb.Table(columns=columns, data=rows), "global_step": timesteps})


def _run_id(path: Path, resumed: bool) -> str:
    if not (resumed and path.is_file()):
        write_text(path, token_hex(8))
    return path.read_text("utf-8")
