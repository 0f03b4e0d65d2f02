"""Speakers, logs and a guesser for the images of VisDial, from what people said about them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.errors import finite_number, whole_number
from dialgym.io.cache import PerTask
from dialgym.simulators import EachReplies
from dialgym.tasks.generators import Log
from dialgym.tasks.hidden import reveal
from dialgym.tasks.visual_dialogue.guessers import Held, by_distance
from dialgym.tasks.visual_dialogue.hashing import inverse_frequencies, words_of
from dialgym.tasks.visual_dialogue.pool import Pool
from dialgym.tasks.visual_dialogue.types import ANSWERER, QUESTIONER, STOP
from dialgym.tasks.visual_dialogue.visdial import CANNOT_TELL, VisDialPool

ASKING = ("how many", "how", "what", "which", "where", "who", "why", "when")
"""Beginnings of questions that cannot be answered by yes or no; the longer ones first."""
_COMMON = """
a an the this that these those it its is are was were be there any some of in on at to and or can
could you i see tell do does did have has picture photo image visible here
"""
STOP_WORDS = frozenset(_COMMON.split()).union(*map(str.split, ASKING))
"""Words that say little of what a question is about, or are compared as its kind."""
ELSE = "what else do you see?"
"""Question for when there is none left."""
Vector = Mapping[str, float]


def content_words(text: str) -> list[str]:
    """The words of a question without those of `STOP_WORDS`; all of them where no other is left."""
    words = words_of(text)
    return [word for word in words if word not in STOP_WORDS] or words


def kind(question: str) -> str:
    """That of `ASKING` which a question begins with; nothing for one of yes or no."""
    text = " ".join(words_of(question))
    return next((start for start in ASKING if text.startswith(start)), "")


class RetrievalAnswerer(EachReplies):
    """Finds the answer to a question in the dialogue that people had about the image.

    A question is compared with the image's own questions of its `kind`, by the cosine of their
    TF-IDF vectors, the commonest words left out. The answer to the most similar one is given where
    they are similar enough; else the image is not known to tell, and that round's list of answer
    options says how to put it ("can't tell", "hard to tell"). So nothing is said of an image that
    people did not say of it. But words are all that is compared: a paraphrase in other words is
    not understood, and a question may get the answer to another one that differs in a word.

    Args:
        pool: the images.
        threshold: least cosine at which two questions count as the same, from 0 to 1.

    Raises:
        ValueError: the images are not VisDial's, or the threshold is not from 0 to 1.
    """

    def __init__(self, pool: Pool, threshold: float = 0.7) -> None:
        self.pool = of_visdial(pool, "answerer 'retrieval'")
        self.threshold = finite_number("threshold of the retrieval", threshold)
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold of the retrieval: expected 0 to 1; got {threshold!r}.")
        asked = (content_words(q) for dialogue in self.pool.dialogues for q, _ in dialogue.rounds)
        self._weights = inverse_frequencies(asked)
        self._rarest = max(self._weights.values(), default=1.0)
        self._known: dict[int, Sequence[tuple[str, Vector]]] = {}

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """See `dialgym.simulators.Speaker`; nothing is drawn."""
        return self.answer(state.image, state.asked)

    def answer(self, image: int, question: str) -> str:
        """Answer to a question about an image, by its place in the pool."""
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


class RetrievalQuestioner(EachReplies):
    """Asks what people asked about the images whose captions are most like this one.

    A question that the dialogue has already is passed over. The image itself counts only if
    `own`: then its own dialogue comes first, which is what people asked about it.

    Args:
        nearest: so many of the most similar captions give the questions.
        own: whether the questions about the image itself are asked.
    """

    def __init__(self, nearest: int = 20, own: bool = False) -> None:
        self.nearest, self.own = whole_number("nearest", nearest, "RetrievalQuestioner"), own
        self.oracle = own
        self._found: PerTask = PerTask()

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        pool = of_visdial(task.pool, "questioner")
        if task not in self._found:
            self._found[task] = _Captions(pool)
        asked = {tuple(words_of(question)) for question, _ in state.history}
        image = reveal(state.image)  # it has the caption that was heard, and else is left out
        near = self._found[task].alike(pool.captions[image], image, self.nearest)
        images = [image, *near] if self.own else near
        return next(_new_questions([pool.dialogues[i].rounds for i in images], asked), ELSE)


class _Captions:
    """The captions of a pool by their words."""

    def __init__(self, pool: VisDialPool) -> None:
        self.words = [frozenset(words_of(caption)) for caption in pool.captions]
        self.weights = inverse_frequencies(self.words)

    def alike(self, caption: str, image: int, count: int) -> list[int]:
        """Other images by how much of the caption's weight their own captions share."""
        words = frozenset(words_of(caption))
        shares = [self._share(words, other) for other in self.words]
        order = sorted(range(len(shares)), key=lambda other: -shares[other])
        return [other for other in order if other != image][:count]

    def _share(self, words: frozenset[str], other: frozenset[str]) -> float:
        return sum(self.weights[word] for word in words & other) / math.sqrt(len(other) or 1)


def _new_questions(
    dialogues: Sequence[Sequence[tuple[str, str]]], asked: set[tuple[str, ...]]
) -> Iterator[str]:
    """The questions of the dialogues, one dialogue after another, that were not asked yet."""
    for rounds in dialogues:
        for question, _ in rounds:
            if tuple(words_of(question)) not in asked:
                yield question


class VisDialCorpus:
    """The dialogues of people about the images of VisDial, one of each image in their order.

    They are held again under the rules of the task: one is over where the task says so, and a
    shorter one is truncated.

    Args:
        stops: whether each dialogue gives one for every number of its rounds, from none to all,
            after which the questioner says ``<stop>``; ``mode="agent_stops"`` alone lets it.
    """

    def __init__(self, stops: bool = False) -> None:
        self.stops = stops
        self._ends: PerTask = PerTask()

    def count(self, task: Any) -> int:
        """See `dialgym.tasks.generators.Logs`.

        Raises:
            ValueError: the images are not VisDial's, or the questioner may not stop.
        """
        return int(self._ends_of(task)[-1])

    def log(self, task: Any, number: int) -> Log:
        """See `dialgym.tasks.generators.Logs`."""
        ends = self._ends_of(task)
        image = int(np.searchsorted(ends, number, "right"))
        rounds = task.pool.dialogues[image].rounds
        if self.stops:
            rounds = rounds[: number - int(ends[image - 1] if image else 0)]
        said = [turn for pair in rounds for turn in zip((QUESTIONER, ANSWERER), pair)]
        return Log({"image": image}, [*said, *([(QUESTIONER, STOP)] if self.stops else [])])

    def _ends_of(self, task: Any) -> np.ndarray:
        """(n,) int64: how many dialogues there are up to that of each image, itself included."""
        if task not in self._ends:
            dialogues = of_visdial(task.pool, "policy 'corpus'").dialogues
            if self.stops and (mode := task.scoring.mode) != "agent_stops":
                raise ValueError(
                    f"stops of the policy 'corpus': expected mode='agent_stops'; got {mode!r}. "
                    "Set it (env_kwargs, --set), or leave stops out."
                )
            each = [len(d.rounds) + 1 if self.stops else min(1, len(d.rounds)) for d in dialogues]
            self._ends[task] = np.cumsum(each)
        ends: np.ndarray = self._ends[task]
        return ends


class WordGuesser:
    """Ranks images by the words of the dialogue: ``guesser="words"``, for hashed features.

    The image's features are those of what people said about it (`Hashing`), and a dialogue's
    are made likewise; nothing is learned. The caption does not count.

    Raises:
        ValueError: the images are not VisDial's, or have features of their own.
    """

    def __init__(self, pool: Pool) -> None:
        hashing = of_visdial(pool, "guesser 'words'").hashing
        if hashing is None:
            raise ValueError(
                "guesser 'words': the images have features from a file, which words do not tell. "
                "Leave the features out, or give 'learned:PATH' or 'remote:URL'."
            )
        self.pool, self._hashing = pool, hashing

    def imagine(self, dialogues: Sequence[Held]) -> np.ndarray:
        """(m, F) float32, the features that the dialogues tell of."""
        return self._hashing([held.history for held in dialogues])

    def percentiles(self, dialogues: Sequence[Held]) -> np.ndarray:
        """See `Guesser`."""
        images = np.array([held.image for held in dialogues], np.int64)
        return by_distance(self.imagine(dialogues), self.pool.features, images)


def of_visdial(pool: Pool, who: str) -> VisDialPool:
    """The pool; a ValueError where it is none of VisDial's."""
    if isinstance(pool, VisDialPool):
        return pool
    raise ValueError(
        f"{who}: expected the images of VisDial, pool='visdial:PATH'; got {type(pool).__name__}."
    )
