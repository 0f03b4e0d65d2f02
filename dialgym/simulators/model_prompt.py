"""Prompts of language models that play a party, and the words that are heard of their texts."""

from dataclasses import dataclass
from typing import Any

from dialgym.errors import one_of
from dialgym.language.messages import Message, opening
from dialgym.language.model_text import READINGS, REQUESTS
from dialgym.language.text import UNKNOWN, as_typed

VERSION = 1
"""Version of the composition below; texts that a task has are in its own version."""
BRIEF, PERSONA = "{brief}", "{persona}"
"""Places of a prompt."""
FAREWELL = "bye"
"""Words in the place of a text that is the marker alone."""


@dataclass(frozen=True)
class PromptForm:
    """Form of the first message of a party's chat, and of how the model's texts are read.

    Attributes:
        answer: what of a text is said, as of `dialgym.Chat`: ``whole``, ``last line``, ``tag``.
        persona: manner of the party in words, such as "You are in a hurry."; "" for none.
        prompt: the first message, with ``{brief}`` where the task's brief stands, and ``{persona}``
            where the persona does.
        done_marker: by it the model says that it has all it wanted. The task ends a dialogue, not
            the model: the marker is not said, and a text that has no other words is ``bye``, by
            which the rules may end it or not. "" for none.

    Raises:
        ValueError: the answer is of no known form, or the prompt lacks a place.
    """

    answer: str = "whole"
    persona: str = ""
    prompt: str = ""
    done_marker: str = ""

    def __post_init__(self) -> None:
        one_of("answer", self.answer, READINGS, "a language model")
        needed = [BRIEF, *([PERSONA] if self.persona else [])]
        missing = [place for place in needed if self.prompt and place not in self.prompt]
        if missing:
            raise ValueError(
                f"prompt of a language model: expected {', '.join(missing)} in it, where that is "
                f"to stand; got {self.prompt[:80]!r}. Leave the prompt out for the usual one."
            )

    def facts(self) -> dict[str, Any]:
        """The form as plain values, with its version; what is not set is left out."""
        changed = {name: text for name, text in vars(self).items() if text}
        return {**changed, "version": VERSION}

    def first_message(self, task: Any, state: Any, party: str) -> str:
        """The brief of `party` in this form.

        Args:
            task: the rules.
            state: a dialogue, or what the party may know of it.
            party: of the model.
        """
        brief = task.brief(state, party)
        if self.prompt:
            text = self.prompt.replace(PERSONA, self.persona).replace(BRIEF, brief)
        else:
            text = "\n\n".join(filter(None, (brief, self.persona)))
        done = f"When you have all that you wanted, write {self.done_marker}."
        more = (done if self.done_marker else "", REQUESTS.get(self.answer, ""))
        return "\n\n".join(filter(None, (text, *more)))

    def messages(self, task: Any, state: Any, party: str) -> tuple[list[Message], int]:
        """Messages for the next turn of `party`, and the number of its turns so far."""
        lines = task.transcript(state, party)[task.notes(state, party) :]
        turns = sum(line.speaker == party for line in lines)
        return opening(self.first_message(task, state, party), lines, party), turns

    def heard(self, text: str, task: Any, party: str) -> str:
        """Words that the rules hear of a text: in the task's characters, cut to its limit."""
        text = READINGS[self.answer](text)
        if self.done_marker and self.done_marker in text:
            text = text.replace(self.done_marker, " ").strip() or FAREWELL
        facts = task.facts
        joined = text if "\n" in facts.charset else " ".join(text.split())
        typed = as_typed(joined, facts.charset)[: facts.limit(party)]
        return "".join([c if c in facts.charset else UNKNOWN for c in typed])
