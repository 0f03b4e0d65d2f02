"""How utterances look on a terminal."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text

_STYLES = {"system": "bold cyan", "user": "bold magenta"}


def speaker_style(party: str) -> str:
    """The style of a party's name, in rich's words."""
    return _STYLES.get(party, "bold")


def styled_line(task: Any, utterance: Any) -> "Text":
    """``speaker: text`` in colour, the text as `task.styled` paints it."""
    from rich.text import Text

    name = (f"{utterance.speaker}: ", speaker_style(utterance.speaker))
    return Text.assemble(name, *task.styled(utterance))
