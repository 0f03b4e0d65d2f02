"""Batched answering of requests by one model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from dialgym.io.cache import LRU
from dialgym.language import Utterance
from dialgym.simulators import Speaker
from dialgym.tasks.visual_dialogue.guessers import Held
from dialgym.tasks.visual_dialogue.hashing import normalised
from dialgym.tasks.visual_dialogue.types import ANSWERER, QUESTIONER, VisualState

SAME = 1e-4
"""Squared distance up to which features are those of an image; both have the length 1."""
REMEMBERED = 50_000  # dialogues


class BadRequest(ValueError):
    """A request that cannot be served, and why."""


class Endpoint(NamedTuple):
    """Answer of a path of the protocol.

    Attributes:
        answers: an answer, to the question that the history ends with.
        asks: a question, to go on with.
        measure: how the dialogue's progress is told: "rank", "distance", or nothing.
    """

    answers: bool = False
    asks: bool = False
    measure: str = ""


ENDPOINTS = {
    "step": Endpoint(answers=True, measure="distance"),
    "step_rank": Endpoint(answers=True, measure="rank"),
    "fetch_reward": Endpoint(measure="distance"),
    "fetch_reward_rank": Endpoint(measure="rank"),
    "fetch_a_bot_response": Endpoint(answers=True),
    "fetch_q_bot_response": Endpoint(asks=True),
}


class Ask(NamedTuple):
    """A request."""

    endpoint: Endpoint
    held: Held  # without the question that waits
    asked: str | None = None


class Bots:
    """The answerer, the questioner and the guesser of a task, for dialogues that others keep.

    Equal requests have equal answers: where a speaker draws, its generator is seeded by the
    dialogue. One thread at a time may call `serve`.

    Args:
        task: with `pool` and `guesser`.
        answerer: who answers.
        questioner: who asks, if anybody is to be asked to.
    """

    def __init__(self, task: Any, answerer: Speaker, questioner: Speaker | None = None) -> None:
        self.task, self.answerer, self.questioner = task, answerer, questioner
        self.features = normalised(np.asarray(task.pool.features, np.float64))
        self._exactly = {row.tobytes(): i for i, row in reversed(list(enumerate(self.features)))}
        self._measures: Mapping[str, tuple[Callable[[list[Held]], np.ndarray], LRU[float]]] = {
            "rank": (task.guesser.percentiles, LRU(REMEMBERED)),
            "distance": (self._distances, LRU(REMEMBERED)),
        }

    @property
    def tells_distance(self) -> bool:
        """Return True if the guesser imagines features, so that there is a distance."""
        return hasattr(self.task.guesser, "imagine")

    def image(self, features: np.ndarray) -> int:
        """The place of the image that has the features (F,).

        Raises:
            BadRequest: they are of another length, or of no image of the pool.
        """
        if features.shape != self.features.shape[1:]:
            raise BadRequest(
                f"img_features: expected {self.features.shape[1]} numbers; got {features.size}."
            )
        own = normalised(features[None])[0]
        found = self._exactly.get(own.tobytes())
        if found is not None:
            return found
        distances = np.square(self.features - own).sum(1)
        nearest = int(distances.argmin())
        if not distances[nearest] <= SAME:
            raise BadRequest(
                f"img_features: they are of none of the {len(self.features):,} images of this "
                f"server; the nearest is at a squared distance of {distances[nearest]:.3g}."
            )
        return nearest

    def serve(self, asks: Sequence[Ask]) -> list[Any]:
        """Answers of the protocol to each request, as JSON has it."""
        said: list[str | None] = [None] * len(asks)
        for place, ask in enumerate(asks):
            if ask.endpoint.answers:
                said[place] = self._speak(self.answerer, ask)
            elif ask.endpoint.asks and self.questioner is not None:
                said[place] = self._speak(self.questioner, ask)
        changes = self._changes(asks, said)
        return [
            change if text is None else text if change is None else [text, change]
            for text, change in zip(said, changes)
        ]

    def _speak(self, speaker: Speaker, ask: Ask) -> str:
        caption, history, image = ask.held
        lines = [Utterance(ANSWERER, caption)]
        for question, answer in history:
            lines += [Utterance(QUESTIONER, question), Utterance(ANSWERER, answer)]
        if ask.asked is not None:
            lines.append(Utterance(QUESTIONER, ask.asked))
        state = VisualState(image, (), lines, [], history, ask.asked)
        seed = crc32(repr((ask.held, ask.asked)).encode())
        return speaker.reply(self.task, state, np.random.default_rng(seed))

    def _changes(self, asks: Sequence[Ask], said: Sequence[str | None]) -> list[float | None]:
        """Reward of the last turn of each; at the start, the rank of the image."""
        changes: list[float | None] = [None] * len(asks)
        for measure in {ask.endpoint.measure for ask in asks} - {""}:
            own = [i for i, ask in enumerate(asks) if ask.endpoint.measure == measure]
            after = [_after(asks[i], said[i]) for i in own]
            before = [held._replace(history=held.history[:-1]) for held in after]
            found = self._measured(measure, [*after, *before])
            sign = 1 if measure == "rank" else -1  # a distance is to become less
            for place, held, now, then in zip(own, after, found, found[len(own) :]):
                changes[place] = sign * (now - then) if held.history else now
        return changes

    def _measured(self, measure: str, dialogues: Sequence[Held]) -> list[float]:
        """Rank or distance after each dialogue; computed for those that are not remembered."""
        compute, kept = self._measures[measure]
        return kept.get_many(dialogues, lambda new: compute([dialogues[i] for i in new]).tolist())

    def _distances(self, dialogues: Sequence[Held]) -> np.ndarray:
        """(m,) the mean squared difference of predicted and true features."""
        images = np.array([held.image for held in dialogues])
        predicted = self.task.guesser.imagine(dialogues)
        return np.asarray(np.square(predicted - self.features[images]).mean(1), np.float64)


def _after(ask: Ask, said: str | None) -> Held:
    """The dialogue once the question that waits is answered."""
    if said is None or ask.asked is None:
        return ask.held
    return ask.held._replace(history=(*ask.held.history, (ask.asked, said)))
