"""A person at the terminal as a speaker, and how utterances look there."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dialgym.language import Constraint, Utterance, allows
from dialgym.language.text import as_typed
from dialgym.simulators.base import Speaker, shown_to

if TYPE_CHECKING:
    from rich.text import Text

_STYLES = {"system": "bold cyan", "user": "bold magenta"}


class HumanSpeaker:
    """Shows what its party has heard, and asks the person for the next utterance.

    A text that the rules do not foresee or understand is pointed out; said again, it counts. At the
    end of the input `EOFError` is raised.

    Args:
        hints: who is asked what it would say, and shown before each utterance; None for nobody.
        ask: reads a line, given a prompt; None for the terminal.
        handle_command: called with a line that begins with a slash, the task and the state, in the
            place of saying it; None where such a line is an utterance.
        begin: called once, before anything is shown.
    """

    def __init__(
        self,
        hints: Speaker | None = None,
        ask: Callable[[str], str] | None = None,
        handle_command: Callable[[str, Any, Any], None] | None = None,
        begin: Callable[[], None] | None = None,
    ) -> None:
        from rich.console import Console

        self.console = Console(highlight=False, emoji=False)
        self.hints, self.handle_command, self.begin = hints, handle_command, begin
        self.history: list[str] = []
        self._ask = ask or self.console.input
        self._rng = np.random.default_rng(0)  # the hints'; the dialogue's own stays untouched
        self._shown: Sequence[Utterance] = ()
        self._said: set[str] = set()
        self._again: list[str] = []

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        text = self._again.pop(0) if self._again else self._asked(task, state)
        self._said.add(text)
        self.history.append(text)
        return text

    def take_back(self) -> str:
        """Forget the last utterance; the dialogue must then begin again, and goes on before it."""
        *self._again, forgotten = self.history
        self.history = []
        return forgotten

    def _asked(self, task: Any, state: Any) -> str:
        party = task.speaker(state)
        if self.begin is not None:
            self.begin()
            self.begin = None
        self.show(task, state, party)
        if self.hints is not None:
            self.hint(task, state, self.hints)
        constraint = task.constraint(state, party)
        refused = None
        while True:
            line = self._ask(self._prompt(task, party))
            if self.handle_command is not None and line.lstrip().startswith("/"):
                self.handle_command(line.strip(), task, state)
                continue
            text = as_typed(line, task.facts.charset)
            doubt = unclear(task, state, text) if allows(constraint, text) else ""
            if text == refused or doubt is None:
                return text
            why = f" {doubt}" if doubt else ""
            self.console.print(
                f"{text!r} is not what the rules foresee here.{why} Enter it again to say it.",
                style="yellow",
                markup=False,
            )
            refused = text

    def _prompt(self, task: Any, party: str) -> str:
        turn, most = len(self.history) + 1, turns_of(task, party)
        return f"[{speaker_style(party)}]{party}[/] [dim]{turn} of {most}[/]: "

    def show(self, task: Any, state: Any, party: str) -> None:
        """Print what `party` has seen since the last time, but for what the person has said."""
        lines = tuple(task.transcript(state, party))
        known = len(self._shown) if lines[: len(self._shown)] == self._shown else 0
        for line in lines[known:]:
            if line.speaker != party or line.text not in self._said:
                self.console.print(styled_line(task, line))
        self._shown = lines

    def hint(self, task: Any, state: Any, expert: Speaker) -> None:
        """Print what an expert would say, and how much is possible where the task can tell."""
        parts = []
        if hasattr(task, "candidates"):
            parts.append(f"{len(task.candidates(state)):,} possible")
        parts.append(f"hint: {expert.reply(task, shown_to(expert, task, state), self._rng)}")
        self.console.print(", ".join(parts), style="dim", markup=False)


def unclear(task: Any, state: Any, text: str) -> str | None:
    """Advice on a text that would have no effect, by `task.unclear`: what can be said instead.

    None where the text is understood, or the task has no such method.
    """
    advice: str | None = task.unclear(state, text) if hasattr(task, "unclear") else None
    return advice


def turns_of(task: Any, party: str) -> int:
    """Largest number of utterances of a party, as the learner, in a dialogue."""
    facts = task.facts
    return int(facts.turn_limit if party == task.parties[0] else facts.heard[party][party])


def examples(constraint: Constraint, most: int) -> list[str]:
    """Up to `most` texts that a constraint admits, in its order; none where it admits any text."""
    found: list[str] = []
    waiting: list[tuple[str, Any]] = [("", constraint.start)]
    while waiting and len(found) < most:
        text, state = waiting.pop()
        if text and constraint.accepts(state):
            found.append(text)
        choices = constraint.choices(state)
        if choices is None:
            return []
        after = [(text + char, constraint.advance(state, char)) for char in choices]
        waiting += [(longer, at) for longer, at in reversed(after) if at is not None]
    return found


def speaker_style(party: str) -> str:
    """The style of a party's name, in rich's words."""
    return _STYLES.get(party, "bold")


def styled_line(task: Any, utterance: Any) -> "Text":
    """``speaker: text``, or of a private one ``note: text``, as `task.styled` paints it."""
    from rich.text import Text

    speaker = "note" if utterance.private else utterance.speaker
    name = (f"{speaker}: ", speaker_style(utterance.speaker))
    return Text.assemble(name, *task.styled(utterance))
