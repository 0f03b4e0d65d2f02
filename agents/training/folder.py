"""The folder of a run: whether there is room in it, and `run.json`, which says what the run is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from agents.training.checkpoint import BEFORE
from agents.training.checkpoint import FILE as CHECKPOINT
from dialgym.io.files import read_json, write_text

RECORD = "run.json"
MODEL = "model.zip"
WORTH = (MODEL, CHECKPOINT, "best_model.zip", "checkpoints")
"""What training has taken time to make."""
WRITTEN = (
    *WORTH, BEFORE, RECORD, "learning_curve.csv", "config.yml", "tensorboard", "hub.json",
    "samples", "evaluations.npz", "dialogues.csv", "wandb_id.txt", "report.html",
)  # fmt: skip


def make_room(folder: Path, resume: bool, force: bool) -> None:
    """See that a run that begins destroys no other.

    Args:
        folder: of the run.
        resume: it goes on from the checkpoint that is there.
        force: what the run there has written is removed.

    Raises:
        FileExistsError: there is a run that would be lost.
        ValueError: both are asked for.
    """
    if resume and force:
        raise ValueError("force: expected either resume (go on) or force (begin anew), got both")
    if force:
        for name in WRITTEN:
            _remove(folder / name)
    found = [name for name in WORTH if (folder / name).exists()]
    if not found or (resume and (CHECKPOINT in found or MODEL not in found)):
        return
    go_on = "Go on with it by --resume" if CHECKPOINT in found else "It left no checkpoint to go on"
    raise FileExistsError(
        f"{str(folder)!r} holds a run already ({_about(folder)}{', '.join(found)}). {go_on}; begin "
        "anew with --force, which removes it; or choose another folder (--out). In Python: "
        "resume=True, force=True, log_dir=..."
    )


def _about(folder: Path) -> str:
    try:
        record = read_json(folder / RECORD, "a run")
        return f"{record['algorithm']} on {record['id']}; "
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write what a run is, and what came of it."""
    write_text(folder / RECORD, json.dumps(record, indent=1, default=str) + "\n")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
