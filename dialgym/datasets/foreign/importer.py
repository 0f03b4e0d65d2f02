"""Import of files or rows of any form as a folder of dialogues."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.datasets.foreign.conversations import ImportedConversation
from dialgym.datasets.foreign.import_report import ImportReport
from dialgym.datasets.foreign.input_files import Choices, Source, read_conversations
from dialgym.datasets.foreign.sizes import BPE, PARTIES, sized, within_reach
from dialgym.datasets.foreign.speakers import ImportedDialogue, dialogues_of, is_rated
from dialgym.datasets.packing import layout_of
from dialgym.datasets.schema import (
    FOLDER,
    IMPORTED,
    Origin,
    Recorder,
    arrow,
    settings_beside,
    write_table,
)
from dialgym.io.archives import SPLITS
from dialgym.io.files import parse_json, write_folder_atomically, write_text
from dialgym.registry import entry_of
from dialgym.rollouts.episode_batch import EpisodeBatch, RecordedTurns, Role
from dialgym.tasks.base import SYSTEM
from dialgym.tasks.logged.corpus import CARD

LOGGED = "dialgym/Logged-v0"
TABLE = "dialogues.parquet"


def import_dialogues(
    source: Source | Sequence[Source], out: str | PathLike[str], choices: Choices | None = None
) -> ImportReport:
    """Read dialogues of any form, and write them into a new folder.

    Args:
        source: a file, folder or zip of JSONL, JSON, CSV, TSV or Parquet, or ``hf:NAME``; or rows,
            each a mapping or a list of utterances. Several files are given as a list of paths.
        out: the folder: `load_dataset` and ``--data`` take it.
        choices: what to go by where the data does not tell.

    Returns:
        What was understood, and what was left out and why.

    Raises:
        ValueError: nothing there is a dialogue, a choice does not fit it, or the folder is in use.
        OSError: the folder cannot be written.
        ImportError: pyarrow or tokenizers is not installed.
    """
    arrow()
    choices, folder, report = choices or Choices(), Path(out), ImportReport()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(
            f"import: {str(folder)!r} holds something already. Choose another folder, or remove it."
        )
    conversations = read_conversations(source, choices, report)
    if choices.rejected:
        conversations = _preferences(conversations, choices.reward)
    rated = choices.reward != "none" and any(map(is_rated, conversations))
    if choices.reward not in (None, "none") and not rated:
        raise ValueError(
            f"import: no dialogue has a reward in {choices.reward!r}. Name a column with "
            "numbers, with dots into what is nested (outcome.reward), or none."
        )
    dialogues = list(dialogues_of(_of_splits(conversations, report), choices.system, rated, report))
    if not dialogues:
        raise report.nothing_left()
    write_folder_atomically(folder, lambda new: _write(new, dialogues, choices, report))
    if not rated:
        report.add("rewards", "none: every return is 0 (name a column with --reward)")
    return report


def _preferences(
    conversations: Sequence[ImportedConversation], reward: str | None
) -> list[ImportedConversation]:
    """Conversations of which some are rejected; without a reward one is as good as a chosen one."""
    if not any(one.rejected for one in conversations):
        raise ValueError(
            "import: no row has a rejected answer beside a chosen one, in columns 'chosen' and "
            "'rejected'. Rename them, or leave --rejected out."
        )
    if reward is not None:
        return list(conversations)
    return [one if is_rated(one) else one._replace(reward=1.0) for one in conversations]


def _of_splits(
    conversations: Sequence[ImportedConversation], report: ImportReport
) -> list[ImportedConversation]:
    """The conversations of the splits that data sets have; all are ``train`` without names."""
    of_splits = []
    for one in conversations:
        split = one.split or "train"
        if split in SPLITS.values():
            of_splits.append(one._replace(split=split))
        else:
            report.leave_out(f"dialogues of the split {split!r} (--split takes them)", one.where)
    return of_splits


# Writing


def _write(
    folder: Path, dialogues: Sequence[ImportedDialogue], choices: Choices, report: ImportReport
) -> None:
    """Fill a folder with dialogues and the files that tell how to read them."""
    if choices.task is not None:
        _write_tables(folder, *_for_task(dialogues, choices, report), report)
        return
    fitted = sized(
        dialogues, choices.tokenizer, choices.vocabulary, choices.utterance_tokens, choices.window,
        report,
    )  # fmt: skip
    if fitted.bpe is not None:
        write_text(folder / BPE, fitted.bpe)
    write_text(folder / CARD, json.dumps(fitted.sizes.to_json(), indent=1) + "\n")
    report.add(
        "window", f"{fitted.window} tokens, most of {fitted.sizes.turns} turns of the system"
    )
    settings = {"data": FOLDER, "window": fitted.window}
    _write_tables(folder, fitted.dialogues, Origin(LOGGED, settings, SYSTEM, IMPORTED), report)


def _for_task(
    dialogues: Sequence[ImportedDialogue], choices: Choices, report: ImportReport
) -> tuple[list[ImportedDialogue], Origin]:
    """The dialogues that a task's own layout has room for."""
    entry = entry_of(choices.task)  # type: ignore[arg-type]
    settings = {**settings_beside(entry), **choices.settings}
    layout = layout_of(entry, **settings)
    fitting = []
    limits = {party: layout.limit(party) for party in PARTIES}
    for dialogue in within_reach(map(_on_one_line, dialogues), limits, report):
        turns = dialogue.turns
        texts = np.array([turn.text for turn in turns], np.str_)
        sizes = layout.tokenizer.encode_many(texts)[1]
        room = [limits[turn.party] for turn in turns]
        if sum(1 + np.minimum(sizes + 1, room)) > layout.window:
            report.leave_out(f"dialogues longer than the window of {entry.id}", dialogue.where)
            continue
        fitting.append(dialogue)
    if not fitting:
        raise ValueError(
            f"import: no dialogue fits into {entry.id}, whose window is {layout.window} tokens. "
            "Give it a larger one (--set window=...), or leave --task out."
        )
    return fitting, Origin(entry.id, settings, layout.party, IMPORTED)


def _on_one_line(dialogue: ImportedDialogue) -> ImportedDialogue:
    turns = [turn._replace(text=" ".join(turn.text.split())) for turn in dialogue.turns]
    return dialogue._replace(turns=turns)


def _write_tables(
    folder: Path, dialogues: Sequence[ImportedDialogue], origin: Origin, report: ImportReport
) -> None:
    """Write a file of all dialogues, or one for each split where there are several."""
    dialogues = _in_pairs(dialogues, report)
    returns = np.array([sum(turn.reward for turn in one.turns) for one in dialogues])
    middle = float(returns.min() + returns.max()) / 2
    splits = by_split(dialogues)
    for split, own in splits.items():
        name, logged = TABLE, origin.env == LOGGED
        settings = dict(origin.settings)
        if len(splits) > 1:
            report.add("splits", split, len(own))
            name = f"{split}.parquet"
            settings |= {"split": split} if logged else {}
        recorder = Recorder(replace(origin, settings=settings))
        recorder.add(played(own, middle, logged))
        write_table(folder / name, recorder.table())
        report.files.append(name)
    report.kept, report.returns = len(dialogues), (float(returns.min()), float(returns.max()))
    low, high = report.returns
    report.add("returns", f"{low:g} to {high:g}, mean {returns.mean():.3f}")


def _in_pairs(
    dialogues: Sequence[ImportedDialogue], report: ImportReport
) -> list[ImportedDialogue]:
    """The dialogues without rejected ones that do not begin as the chosen one before them."""
    kept: list[ImportedDialogue] = []
    for one in dialogues:
        if one.rejected:
            chosen = kept[-1] if kept and kept[-1].where == one.where else None
            if chosen is None or chosen.turns[0][:2] != one.turns[0][:2]:
                reason = "rejected answers in dialogues that do not begin as the chosen one's"
                report.leave_out(reason, one.where)
                continue
            report.add("pairs", "a chosen answer and a rejected one; clone successes alone")
        kept.append(one)
    if not kept:
        raise report.nothing_left()
    return kept


def by_split(dialogues: Sequence[ImportedDialogue]) -> dict[str, list[ImportedDialogue]]:
    """The dialogues of each split, ``train`` first."""
    splits: dict[str, list[ImportedDialogue]] = {}
    for split in dict.fromkeys(SPLITS.values()):
        if own := [one for one in dialogues if one.split == split]:
            splits[split] = own
    return splits


def played(dialogues: Sequence[ImportedDialogue], middle: float, replayed: bool) -> EpisodeBatch:
    """Imported dialogues as ones that were played.

    A success is what the data calls one, else a return in the upper half of the data's. A rejected
    dialogue is a branch of the chosen one, which begins alike: `Dataset.pairs` finds the two.

    Args:
        dialogues: of the parties, in turns; a rejected one after its chosen one.
        middle: of the returns of all data.
        replayed: whether an option of reset begins each of them.
    """
    turns = RecordedTurns()
    for dialogue in dialogues:
        own = [i for i, turn in enumerate(dialogue.turns) if turn.party == SYSTEM]
        lines = [(turn.party, turn.text, False) for turn in dialogue.turns]
        turns.add(lines, own, [dialogue.turns[i].reward for i in own])
    returns = np.array([sum(turn.reward for turn in d.turns) for d in dialogues])
    known = [d.success if d.success is not None else r > middle for d, r in zip(dialogues, returns)]
    cut_off = np.array([d.truncated for d in dialogues], bool)
    starts = (np.cumsum([not d.rejected for d in dialogues]) - 1).tolist()
    return EpisodeBatch(
        seeds=starts,
        episodes=starts,
        returns=returns,
        lengths=np.array([sum(t.party == SYSTEM for t in d.turns) for d in dialogues]),
        success=np.array(known, bool),
        terminated=~cut_off,
        truncated=cut_off,
        turns=turns,
        options=[{"dialogue": i} if replayed else {} for i in starts],
        roles=[_role(dialogues, i) for i in range(len(dialogues))],
    )


def _role(dialogues: Sequence[ImportedDialogue], index: int) -> Role:
    if not dialogues[index].rejected:
        return Role()
    both = zip(dialogues[index - 1].turns, dialogues[index].turns)
    shared = takewhile(lambda turns: turns[0].text == turns[1].text, both)
    return Role("rejected", 0, sum(turn.party == SYSTEM for turn, _ in shared))


# Copies of imported dialogues in other folders, with the files beside them


def beside(table: Any) -> Path | None:
    """The folder of dialogues that a table's settings name, or None."""
    folders = {
        settings.get("data")
        for text in table["settings"].unique().to_pylist()
        if isinstance(settings := parse_json(text, "settings"), dict)
    }
    folder = Path(str(folders.pop())) if len(folders) == 1 else None
    return folder if folder is not None and (folder / CARD).is_file() else None


def copy_beside(source: Path, target: Path) -> None:
    """Copy the files that tell how to read dialogues into another folder."""
    for name in (CARD, BPE):
        if (source / name).is_file():
            target.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target / name)


def relative(table: Any) -> Any:
    """A table whose settings name its own folder, and its dialogues by their index.

    Those that begin alike, such as pairs of preferences, have one index.
    """
    pa = arrow()
    texts = table["settings"].to_pylist()
    known = {}
    for text in set(texts):
        settings = {**parse_json(text, "settings"), "data": FOLDER}
        settings.pop("split", None)  # the folder has these dialogues alone
        known[text] = json.dumps(settings)
    starts = list(zip(texts, *(table[name].to_pylist() for name in ("options", "seed"))))
    index = {start: number for number, start in enumerate(dict.fromkeys(starts))}
    options = [json.dumps({"dialogue": index[start]}) for start in starts]
    columns = {"settings": [known[text] for text in texts], "options": options}
    for name, values in columns.items():
        column = table.column_names.index(name)
        table = table.set_column(column, table.schema.field(name), pa.array(values, pa.string()))
    return table
