"""The doors that must play the same dialogues: a line for each, and its player in a file beside.

A player is a function ``(env_id, settings, seed, texts) -> PlayedChat``; ``record_of`` and
``played`` of `dialgym.testing.agreement` make the record. Its module imports the library,
so it is named here as text, and loaded where the library is installed.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Door:
    """A way into a dialogue.

    Attributes:
        player: ``module:name`` of what plays.
        needs: the package without which it is skipped.
        lacks: parts of a `PlayedChat` that the library has no place for.
        user: True where the learner may be the user.
    """

    player: str
    needs: str = "dialgym"
    lacks: tuple[str, ...] = ()
    user: bool = True


DOORS = {
    "utterance": Door("dialgym.testing.agreement:by_view"),
    "chat": Door("dialgym.testing.agreement:by_chat"),
    "chat batch": Door("dialgym.testing.agreement:by_batch"),
    "tokens": Door("tests.doors.tokens_player:play", needs="transformers"),
    "openenv": Door("tests.doors.openenv_player:play", needs="openenv", lacks=("said",)),
    "skyrl": Door("tests.doors.skyrl_player:play", needs="skyrl_gym", lacks=("said",)),
    "verifiers": Door("tests.doors.verifiers_player:play", needs="verifiers"),
    "trl": Door("tests.doors.trl_player:play", needs="transformers"),
    "trl tools": Door("tests.doors.trl_tools_player:play", lacks=("said",)),
    "verl": Door("tests.doors.verl_player:play", needs="transformers"),
    "nemo-gym": Door("tests.doors.nemo_gym_player:play", lacks=("said",)),
    "tinker": Door("tests.doors.tinker_player:play", needs="tinker_cookbook"),
}
