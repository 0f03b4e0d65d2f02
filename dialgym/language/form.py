"""Length and vocabulary bounds of a task's language."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class TextForm(Protocol):
    """Form of a language's texts in token views: tokenizer and longest lengths."""

    @property
    def tokenizer(self) -> str:
        """The tokenizer of token views."""
        ...

    @property
    def charset(self) -> str:
        """The characters of its texts."""
        ...

    @property
    def longest(self) -> Mapping[str, int]:
        """Characters of the longest meaningful text of each party."""
        ...

    @property
    def ordinary(self) -> Mapping[str, int]:
        """Characters of a text of each party that ordinary dialogues stay within."""
        ...

    @property
    def words(self) -> Mapping[str, Mapping[str, int]] | None:
        """Most words of a text, by hearer and speaker; None where words are not counted."""
        ...

    @property
    def vocabulary(self) -> Sequence[str]:
        """All its words, where there is an end to them."""
        ...
