"""The images that may be hidden: what they have in common, and generated scenes."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from dialgym.errors import finite_number, one_of, unknown, whole_number, with_settings
from dialgym.io.objects import load
from dialgym.tasks.briefs import listed
from dialgym.tasks.visual_dialogue import scenes as generated
from dialgym.tasks.visual_dialogue.answers import AnswerBook
from dialgym.tasks.visual_dialogue.captions import captions, described
from dialgym.tasks.visual_dialogue.questions import all_questions, text
from dialgym.tasks.visual_dialogue.scenes import GROUNDS, SPLITS, TIMES, Scenes
from dialgym.tasks.visual_dialogue.vocabulary import vocabulary

ROOM = "dialgym.tasks.visual_dialogue"
POOLS = {"scenes": f"{ROOM}.pool:SceneBook", "visdial": f"{ROOM}.visdial:VisDialPool"}
"""Pools by name; a name may be followed by a colon and the first argument: ``visdial:PATH``."""


class Pool:
    """The images that may be hidden. A subclass has `features` and `captions`, and may have more.

    Attributes:
        features: (n, F) float32, rows of length 1.
        captions: (n,) what both parties are told of each image.
        answerer: who answers unless the task is told otherwise, a name of `ANSWERERS`.
        questions: what scripted questioners choose from.
        tokenizer: what token views read utterances with, unless they are told otherwise.
        words: what a word tokenizer has beside the words of the questions.
        longest: most characters of a caption, an answer or a line of a description.
        most_words: most words of the same, where token views read words.
        most_lines: most lines of a description.
        about: a sentence on what can be in the images, for who asks and who answers.
    """

    features: np.ndarray
    captions: Sequence[str]
    answerer: str
    questions: Sequence[str] = ()
    tokenizer: str = "bpe"
    words: Sequence[str] = ()
    longest: int = 200
    most_words: int | None = None
    most_lines: int = 0
    about: str = ""

    def __len__(self) -> int:
        return len(self.captions)

    def description(self, image: int) -> Sequence[str]:
        """Private brief of the answerer about an image, an utterance each."""
        return ()

    def told(self, image: int) -> str:
        """The same in one text."""
        return "\n".join(self.description(image))

    def picture(self, image: int) -> np.ndarray | None:
        """(H, W, 3) uint8, or None where there is no picture."""
        return None


class SceneBook(Pool):
    """Generated scenes: two to five toys on the ground, by day or night.

    Args:
        scenes: how many; None for all of the split (train 3,000, validation 1,000, test 1,000).
        split: ``train``, ``validation`` or ``test``: they share no scene.
        seed: another seed gives other scenes.
        vague: how often the rule answerer says that it cannot tell.

    Raises:
        ValueError: there is no such split, or it has fewer scenes; a rate is none.
    """

    answerer, tokenizer = "rules", "word"
    longest, most_words, most_lines = 48, 10, 1 + generated.MOST
    about = generated.ABOUT

    def __init__(
        self,
        scenes: int | None = 1000,
        split: str = "train",
        seed: int = 0,
        vague: float = 0.05,
    ) -> None:
        one_of("split", split, SPLITS, "SceneBook")
        start, stop = SPLITS[split]
        if scenes is not None:
            whole_number("scenes", scenes, f"SceneBook, split {split!r},", 2, stop - start)
            stop = start + scenes
        whole_number("seed", seed, "SceneBook", 0)
        self.split, self.seed, self._range = split, seed, (start, stop)
        self.vague = finite_number("vague of SceneBook", vague)
        if not 0 <= self.vague < 1:
            raise ValueError(f"vague of SceneBook must be from 0 to below 1; got {vague!r}.")

    def __len__(self) -> int:
        return self._range[1] - self._range[0]

    @cached_property
    def scenes(self) -> Scenes:
        """The scenes as arrays; not to be written into."""
        return generated.generate(self.seed).part(*self._range)

    @cached_property
    def features(self) -> np.ndarray:  # type: ignore[override]
        return generated.features(self.scenes)

    @cached_property
    def captions(self) -> Sequence[str]:  # type: ignore[override]
        return captions(self.scenes)

    @cached_property
    def answers(self) -> AnswerBook:
        """Answers of the rule answerer to any question about the scenes."""
        return AnswerBook(self.scenes, self.vague)

    @cached_property
    def questions(self) -> Sequence[str]:  # type: ignore[override]
        return tuple(text(question) for question in all_questions())

    @cached_property
    def words(self) -> Sequence[str]:  # type: ignore[override]
        return vocabulary()

    def description(self, image: int) -> Sequence[str]:
        """Time and ground, and then each thing, from the back left to the front right."""
        return (self.setting(image), *map(described, self.scenes.things(image)))

    def told(self, image: int) -> str:
        things = listed([described(thing) for thing in self.scenes.things(image)])
        return f"The picture: {self.setting(image)}, with {things}."

    def setting(self, image: int) -> str:
        """Time of day and ground: ``night on sand``."""
        return f"{TIMES[self.scenes.time[image]]} on {GROUNDS[self.scenes.ground[image]]}"

    def picture(self, image: int) -> np.ndarray:
        from dialgym.tasks.visual_dialogue.drawing import draw_scene

        return draw_scene(self.scenes, image)

    def __getstate__(self) -> dict[str, Any]:
        """Without the scenes, which the other process generates."""
        left_out = ("scenes", "features", "captions", "answers", "questions", "words")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}


def make_pool(spec: Any = None) -> Pool:
    """The pool of a setting.

    Args:
        spec: None for `SceneBook`; a name of `POOLS`, also with a first argument after a colon;
            a mapping of ``name`` and settings, ``{"name": "scenes", "split": "test"}``; or a
            `Pool`.

    Raises:
        ValueError: there is no such pool, or it has no such setting.
    """
    if isinstance(spec, Pool):
        return spec
    where = "VisualDialogue (a name, a mapping of it, or a Pool)"
    pool: Pool = make_part("pool", spec, "scenes", POOLS, where)
    return pool


def make_part(
    what: str, spec: Any, default: str | None, named: Mapping[str, str], where: str, *pool: Pool
) -> Any:
    """The part of a task that a setting names.

    Args:
        what: it is, for messages: a pool, a guesser, an answerer.
        spec: None for the `default`; a name, also with an argument after a colon; or a mapping of
            ``name`` and settings.
        default: a name.
        named: ``module:Class`` by name, each made as ``Class(*pool, ARGUMENT, **settings)``.
        where: names are looked for, for messages.
        pool: the images, for a part that is made for some.

    Raises:
        ValueError: there is no such part, or it has no such setting.
    """
    own = isinstance(spec, Mapping)
    settings = {"name": default, **spec} if own else {"name": spec or default}
    given = settings.pop("name")
    name, colon, argument = str(given).partition(":")
    if not isinstance(given, str) or name not in named:
        raise unknown(what, name if isinstance(given, str) else given, named, where)
    make = partial(load(named[name], what), *pool)
    if colon:
        return make(argument, **settings)
    return with_settings(make, f"{what} {name!r} of VisualDialogue", settings)


def scene_book(pool: Pool, who: str, others: str) -> SceneBook:
    """The pool, of generated scenes.

    Raises:
        ValueError: it is of other images, which `who` knows nothing of; `others` do.
    """
    if not isinstance(pool, SceneBook):
        raise ValueError(
            f"{who}: expected generated scenes; got {type(pool).__name__}. Give pool='scenes', or "
            f"another {who.split()[0]}: {others}."
        )
    return pool
