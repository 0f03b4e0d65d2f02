"""Answers about the images of VisDial, found among what people answered about the same image."""

import math
from collections.abc import Mapping, Sequence

from dialgym.errors import finite_number
from dialgym.tasks.visual_dialogue.hashing import inverse_frequencies, words_of
from dialgym.tasks.visual_dialogue.visdial import CANNOT_TELL, VisDialPool

ASKING = ("how many", "how", "what", "which", "where", "who", "why", "when")
"""What questions begin with that cannot be answered by yes or no; the longer ones first."""
STOP = frozenset(
    "a an the this that these those it its is are was were be there any some of in on at to and or "
    "can could you i see tell do does did have has picture photo image visible here".split()
).union(*map(str.split, ASKING))
"""Words that say little of what a question is about, or are compared as its kind."""
Vector = Mapping[str, float]


def content_words(text: str) -> list[str]:
    """The words of a question without those of `STOP`; all of them where no other is left."""
    words = words_of(text)
    return [word for word in words if word not in STOP] or words


def kind(question: str) -> str:
    """That of `ASKING` which a question begins with; nothing for one of yes or no."""
    text = " ".join(words_of(question))
    return next((start for start in ASKING if text.startswith(start)), "")


class Retrieval:
    """Finds the answer to a question in the dialogue that people had about the image.

    A question is compared with the image's own questions of its `kind`, by the cosine of their
    TF-IDF vectors, the commonest words left out. The answer to the most similar one is given where they are similar enough; else the
    image is not known to tell, and that round's list of answer options says how to put it ("can't
    tell", "hard to tell"). So nothing is said of an image that people did not say of it, but:
    words are all that is compared. A paraphrase in other words is not understood, and a question
    that differs from a known one in a word that matters less than the others gets its answer.

    Args:
        pool: the images.
        threshold: least cosine at which two questions count as the same, from 0 to 1.

    Raises:
        ValueError: the threshold is not from 0 to 1.
    """

    def __init__(self, pool: VisDialPool, threshold: float = 0.7) -> None:
        self.pool, self.threshold = pool, finite_number("threshold of the retrieval", threshold)
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold of the retrieval: expected 0 to 1; got {threshold!r}.")
        asked = (content_words(q) for dialogue in pool.dialogues for q, _ in dialogue.rounds)
        self._weights = inverse_frequencies(asked)
        self._rarest = max(self._weights.values(), default=1.0)
        self._known: dict[int, Sequence[tuple[str, Vector]]] = {}

    def answer(self, image: int, question: str) -> str:
        """What is said to a question about an image, by its place in the pool."""
        dialogue = self.pool.dialogues[image]
        if not dialogue.rounds:
            return CANNOT_TELL[0]
        scores = self.similarities(image, question)
        best = max(range(len(scores)), key=scores.__getitem__)
        if scores[best] >= self.threshold and scores[best] > 0:
            return dialogue.rounds[best][1]
        return dialogue.evasions[best]

    def similarities(self, image: int, question: str) -> list[float]:
        """The cosine of the question and each of the image's own; 0 for one of another kind."""
        if image not in self._known:
            rounds = self.pool.dialogues[image].rounds
            self._known[image] = [(kind(known), self._vector(known)) for known, _ in rounds]
        asked, own = self._vector(question), kind(question)
        return [
            sum(weight * known.get(word, 0.0) for word, weight in asked.items())
            if other == own
            else 0.0
            for other, known in self._known[image]
        ]

    def _vector(self, text: str) -> Vector:
        """Weights of its words, of length 1; a word that the data has not is as heavy as any."""
        weights = {word: self._weights.get(word, self._rarest) for word in content_words(text)}
        length = math.sqrt(sum(weight * weight for weight in weights.values()))
        return {word: weight / length for word, weight in weights.items()}


class RetrievalQuestions:
    """Asks what people asked about the images whose captions are most like this one.

    Args:
        pool: the images whose dialogues are known.
        nearest: so many of the most similar captions give the questions.
    """

    def __init__(self, pool: VisDialPool, nearest: int = 20) -> None:
        self.pool, self.nearest = pool, nearest
        self._caption_words = [frozenset(words_of(caption)) for caption in pool.captions]
        self._weights = inverse_frequencies(self._caption_words)

    def question(self, caption: str, asked: Sequence[str]) -> str:
        """The first question of the nearest images, round by round, that was not asked yet."""
        said = {" ".join(words_of(text)) for text in asked}
        near = [self.pool.dialogues[image].rounds for image in self._alike(caption)]
        for place in range(max(map(len, near), default=0)):
            for rounds in near:
                if place < len(rounds) and " ".join(words_of(rounds[place][0])) not in said:
                    return rounds[place][0]
        return "what else is there?"

    def _alike(self, caption: str) -> list[int]:
        """The images by how much of the caption's weight their own captions share."""
        words = set(words_of(caption))
        scores = [self._shared(words, other) for other in self._caption_words]
        return sorted(range(len(scores)), key=lambda image: -scores[image])[: self.nearest]

    def _shared(self, words: set[str], other: frozenset[str]) -> float:
        return sum(self._weights[word] for word in words & other) / math.sqrt(len(other) or 1)
