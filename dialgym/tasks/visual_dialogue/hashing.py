"""Text as vectors by hashing: features of images of which only the talk is known, and a guesser.

Feature hashing after Weinberger et al. (2009), "Feature Hashing for Large Scale Multitask
Learning": a term adds its weight, with a sign of its own, to one place of the vector.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from zlib import crc32

import numpy as np

_WORD = re.compile(r"[a-z]+|[0-9]+")


def words_of(text: str) -> list[str]:
    """The words of a text, in small letters; a plural's last ``s`` is left out.

    Of a contraction nothing but the letters counts: ``can't`` is ``cant``.
    """
    found = _WORD.findall(text.lower().replace("'", ""))
    return [word[:-1] if len(word) > 3 and word.endswith("s") else word for word in found]


def inverse_frequencies(documents: Iterable[Iterable[str]]) -> dict[str, float]:
    """ln((1 + n) / (1 + n_t)) + 1 for each term t, in n documents and in n_t of them."""
    counts: Counter[str] = Counter()
    total = 0
    for document in documents:
        counts.update(set(document))
        total += 1
    return {term: math.log((1 + total) / (1 + n)) + 1 for term, n in counts.items()}


class Hashing:
    """Rounds of questions and answers as a vector of length 1.

    A round's terms are the words of its question, those of its answer, and each word of the
    question together with the answer's first word, so that ``is it sunny? no`` is not
    ``is it sunny? yes``. The order of rounds does not matter.

    Args:
        dialogues: what terms are weighted by: the rarer in them, the heavier.
        size: length of the vectors.

    Raises:
        ValueError: `size` is less than 1.
    """

    def __init__(self, dialogues: Sequence[Sequence[tuple[str, str]]], size: int = 512) -> None:
        if size < 1:
            raise ValueError(f"hashed features: expected a length of 1 or more; got {size!r}.")
        self.size = size
        self.weights: Mapping[str, float] = inverse_frequencies(map(terms_of, dialogues))
        self._places: dict[str, tuple[int, float]] = {}

    def __call__(self, dialogues: Sequence[Sequence[tuple[str, str]]]) -> np.ndarray:
        """(m, size) float32; all zero where nothing was said that the data knows."""
        vectors = np.zeros((len(dialogues), self.size))
        for vector, rounds in zip(vectors, dialogues):
            for term in terms_of(rounds):
                if term in self.weights:
                    place, weight = self._place(term)
                    vector[place] += weight
        return normalised(vectors)

    def _place(self, term: str) -> tuple[int, float]:
        if term not in self._places:
            number = crc32(term.encode())
            weight = self.weights[term]
            self._places[term] = (number >> 1) % self.size, weight if number & 1 else -weight
        return self._places[term]


def terms_of(rounds: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The terms of some rounds; see `Hashing`."""
    for question, answer in rounds:
        asked, answered = words_of(question), words_of(answer)
        head = answered[0] if answered else ""
        yield from asked
        yield from (f"={word}" for word in answered)
        yield from (f"{word}={head}" for word in asked)


def normalised(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1, float32; a row of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)
