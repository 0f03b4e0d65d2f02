"""A person at the terminal as a speaker, and how utterances look there."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dialgym.language import Constraint, Utterance
from dialgym.simulators.base import Speaker, shown_to

if TYPE_CHECKING:
    from rich.text import Text

_STYLES = {"system": "bold cyan", "user": "bold magenta"}


class HumanSpeaker:
    """Shows what its party has heard, and asks the person for the next utterance.

    A text that the rules do not foresee is pointed out; said again, it counts. At the end of the
    input `EOFError` is raised.

    Args:
        hints: who is asked what it would say, and shown before each utterance; None for nobody.
        ask: reads a line, given a prompt; None for the terminal.
    """

    def __init__(
        self, hints: Speaker | None = None, ask: Callable[[str], str] | None = None
    ) -> None:
        from rich.console import Console

        self.console = Console(highlight=False)
        self.hints = hints
        self._ask = ask or self.console.input
        self._rng = np.random.default_rng(0)  # the hints'; the dialogue's own stays untouched
        self._shown: Sequence[Utterance] = ()
        self._said: set[str] = set()

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        party = task.speaker(state)
        self.show(task, state, party)
        if self.hints is not None:
            self._hint(task, state)
        constraint = task.constraint(state, party)
        refused = None
        while True:
            text = self._normal(task, self._ask(f"[{speaker_style(party)}]{party}:[/] "))
            if text == refused or allows(constraint, text):
                self._said.add(text)
                return text
            self.console.print(
                f"[yellow]{text!r} is not what the rules foresee here. Enter it again to say it.[/]"
            )
            refused = text

    def show(self, task: Any, state: Any, party: str) -> None:
        """Print what `party` has seen since the last time, but for what the person has said."""
        lines = tuple(task.transcript(state, party))
        known = len(self._shown) if lines[: len(self._shown)] == self._shown else 0
        for line in lines[known:]:
            if line.speaker != party or line.text not in self._said:
                self.console.print(styled_line(task, line))
        self._shown = lines

    def _hint(self, task: Any, state: Any) -> None:
        parts = []
        if hasattr(task, "candidates"):
            parts.append(f"{len(task.candidates(state)):,} possible")
        assert self.hints is not None
        parts.append(
            f"hint: {self.hints.reply(task, shown_to(self.hints, task, state), self._rng)}"
        )
        self.console.print(", ".join(parts), style="dim", markup=False)

    @staticmethod
    def _normal(task: Any, text: str) -> str:
        """Without the space around it, and in lower case where the task knows no other."""
        text = text.strip()
        return text.lower() if task.facts.charset == task.facts.charset.lower() else text


def allows(constraint: Constraint, text: str) -> bool:
    """Whether a constraint admits the whole text."""
    state = constraint.start
    for char in text:
        state = constraint.advance(state, char)
        if state is None:
            return False
    return constraint.accepts(state)


def speaker_style(party: str) -> str:
    """The style of a party's name, in rich's words."""
    return _STYLES.get(party, "bold")


def styled_line(task: Any, utterance: Any) -> "Text":
    """``speaker: text`` in colour, the text as `task.styled` paints it."""
    from rich.text import Text

    name = (f"{utterance.speaker}: ", speaker_style(utterance.speaker))
    return Text.assemble(name, *task.styled(utterance))
