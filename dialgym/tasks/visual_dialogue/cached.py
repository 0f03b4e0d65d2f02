"""A guesser that knows the percentile ranks of people's dialogues from a file."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.io.files import parse_json, read_file
from dialgym.tasks.visual_dialogue.guessers import Held
from dialgym.tasks.visual_dialogue.pool import Pool
from dialgym.tasks.visual_dialogue.retrieval import of_visdial
from dialgym.tasks.visual_dialogue.visdial import VisDialDialogue

SLACK = 1e-6
"""Rounding that sums of changes may be off by."""


class CachedGuesser:
    """Percentile ranks of the dialogues of people, in ILQL's form: ``guesser="cached:PATH"``.

    The file is a JSON list with a row for each image of the split: the percentile rank by the
    caption, then the change of it by each answer. Dialogues of anybody else are not in it.

    Args:
        pool: the images, of VisDial.
        path: the file, such as the original's ``train_rank_reward_cache1.json``.

    Raises:
        ValueError: there is no such file, or it is not of these images.
    """

    def __init__(self, pool: Pool, path: Any) -> None:
        self.pool = of_visdial(pool, "guesser 'cached'")
        where = f"guesser 'cached', {str(path)!r}"
        rows = _read(path, where)
        if len(rows) != self.pool.split_size:
            raise ValueError(
                f"{where}: expected {self.pool.split_size} rows, one of each image of the split; "
                f"got {len(rows)}. Give the file of this split."
            )
        pairs = enumerate(zip(rows, self.pool.dialogues))
        self._known = [_ranks(row, own, f"{where}, row {i}") for i, (row, own) in pairs]

    def percentiles(self, dialogues: Sequence[Held]) -> np.ndarray:
        """See `ImageGuesser`.

        Raises:
            ValueError: a dialogue is none of the people's.
        """
        return np.array([self._percentile(held) for held in dialogues], np.float64)

    def _percentile(self, held: Held) -> float:
        turns = len(held.history)
        if held.history != self.pool.dialogues[held.image].rounds[:turns]:
            raise ValueError(
                "guesser 'cached': it knows what people said about the images, and not "
                f"{' '.join(held.history[-1])!r}. Collect the policy 'corpus', or give "
                "guesser='remote:URL' or 'learned:PATH' for dialogues of anybody else."
            )
        return self._known[held.image][turns]


def _read(path: Any, where: str) -> Sequence[Any]:
    try:
        rows = parse_json(read_file(Path(str(path)).expanduser()).decode(), where)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{where}: expected a JSON file ({error}). Check the path.") from error
    if isinstance(rows, list):
        return rows
    raise ValueError(f"{where}: expected a list of rows; got {type(rows).__name__}.")


def _ranks(row: Any, dialogue: VisDialDialogue, where: str) -> list[float]:
    """Percentile ranks by the caption and after each answer, of the changes in a row."""
    least = 1 + len(dialogue.rounds)
    numbers = isinstance(row, list) and all(type(item) in (int, float) for item in row)
    if not numbers or len(row) < least:
        raise ValueError(
            f"{where}: expected {least} numbers, the percentile rank by the caption and the change "
            f"of it by each answer; got {row!r:.80}."
        )
    ranks = list(accumulate(row[:least]))
    if not all(-SLACK <= rank <= 1 + SLACK for rank in ranks):
        raise ValueError(
            f"{where}: expected sums from 0 to 1, which percentile ranks are; got "
            f"{', '.join(f'{rank:.3g}' for rank in ranks)}. Give the cache of rank rewards."
        )
    return ranks
