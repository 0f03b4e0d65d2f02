"""Dialogues that people have held, kept as a data set."""

from pathlib import Path

from dialgym.datasets.schema import Origin, Recorder, check_json, played_settings, write_table
from dialgym.rollouts.games import as_played
from dialgym.viewer.seats import Seat

PERSON = "person"
"""What the data set calls the policy."""


def keep_game(seat: Seat, folder: Path, name: str) -> Path:
    """Write a dialogue that is over into a folder, as a file of its own; the file.

    Args:
        seat: in which a person held it.
        folder: of the data set.
        name: of the dialogue; a second one of that name replaces it.

    Raises:
        ValueError: a setting cannot be stored.
        OSError: the folder cannot be written.
        ImportError: pyarrow is not installed.
    """
    dialogue = seat.game.dialogue
    settings = played_settings(seat.settings, dialogue)
    check_json(settings, "view")
    recorder = Recorder(Origin(seat.entry.id, settings, seat.wanted.party, PERSON))
    recorder.add(as_played(seat.game))
    file = folder / f"{name}.parquet"
    write_table(file, recorder.table())
    return file
