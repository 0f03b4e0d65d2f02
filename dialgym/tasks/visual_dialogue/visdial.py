"""The images of VisDial: captions, ten rounds of questions and answers each, and features.

The data of Das et al. (2017), "Visual Dialog": one JSON file a split. In that of v1.0 questions and
answers are numbers into lists of texts; that of v0.5 is a list of dialogues. The pictures
themselves are not needed.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from dialgym.errors import unknown, whole_number
from dialgym.io.archives import SPLITS, ArchiveMember, parts_of
from dialgym.io.files import parse_json
from dialgym.io.tables import fingerprint, locate
from dialgym.language.text import plain
from dialgym.tasks.visual_dialogue.hashing import Hashing
from dialgym.tasks.visual_dialogue.image_features import read_features
from dialgym.tasks.visual_dialogue.pool import Pool

PATTERNS = ("*visdial*.json", "*visdial*.json.gz", "*visdial*.zip")
"""The files that a data set of the hub is asked for."""
CANNOT_TELL = (
    "can't tell",
    "i can't tell",
    "cannot tell",
    "i cannot tell",
    "hard to tell",
    "it's hard to tell",
    "not sure",
    "i'm not sure",
)
"""Answers that mean that the picture does not say."""

Rounds = tuple[tuple[str, str], ...]


class VisDialDialogue(NamedTuple):
    """A dialogue about an image.

    Attributes:
        image_id: of the image, as COCO and Flickr number them; its place in a file of v0.5.
        caption: what both parties know at the start.
        rounds: questions, which end in ``?``, and their answers.
        evasions: for each round, how its list of answer options says that the picture does not
            tell.
    """

    image_id: int
    caption: str
    rounds: Rounds
    evasions: tuple[str, ...]


class VisDialPool(Pool):
    """The images of one split of VisDial, each with the dialogue that people had about it.

    Args:
        data: a JSON of VisDial v1.0 or v0.5, ``.gz`` or not; a zip or folder of some; or
            ``hf:NAME`` or ``hf:NAME@REVISION``. Other files are passed over, and an image that two
            files have is taken from the first. A file of v0.5 has neither a split, which its name
            tells, nor image ids: its row i goes with row i of the features.
        split: "train", "validation" or "test"; None where the data has but one.
        features: a file of image features, see `read_features`. Without one, features are made of
            the dialogues' words by hashing (`Hashing`): they say what was *talked* about in an
            image, and are no substitute for what is to be seen in it.
        size: so many images, the first; None for all.
        hashed: length of hashed features.

    Attributes:
        dialogues: (n,), one of each image.
        split_size: number of images of the split, of which these are the first.
        hashing: what made the features of words; None where they are of a file.

    Raises:
        ValueError: there is no such data or split, or something is broken; it says where.
    """

    answerer = "retrieval"

    def __init__(
        self,
        data: Any,
        split: str | None = None,
        features: Any = None,
        size: int | None = None,
        hashed: int = 512,
    ) -> None:
        self._made_with = (data, split, features, size, hashed)
        name, found = dialogues_of(data, split)
        self.split_size = len(found)
        if size is not None:
            found = found[: whole_number("size", size, "VisDialPool", 2, len(found))]
        self.dialogues: Sequence[VisDialDialogue] = found
        self.captions = tuple(dialogue.caption for dialogue in found)
        self.hashing: Hashing | None = None
        if features is None:
            said = [dialogue.rounds for dialogue in found]
            self.hashing = Hashing(said, hashed)
            self.features = self.hashing(said)
        else:
            ids = [dialogue.image_id for dialogue in found]
            self.features = read_features(features, ids, name)

        self.most_lines = max(len(dialogue.rounds) for dialogue in found)
        texts = [text for image in range(len(found)) for text in self.description(image)]
        self.longest = max(map(len, [*texts, *self.captions]))

    def description(self, image: int) -> Sequence[str]:
        """Questions and answers of people about an image, a line for each round."""
        return [f"{question} {answer}" for question, answer in self.dialogues[image].rounds]

    def __reduce__(self) -> tuple[type["VisDialPool"], tuple[Any, ...]]:
        """By its arguments: the other process reads the data itself."""
        return type(self), self._made_with


def dialogues_of(data: Any, split: str | None = None) -> tuple[str, Sequence[VisDialDialogue]]:
    """The name of a split and its dialogues; see `VisDialPool`."""
    folder = locate(data, "VisDial", built_in=False, patterns=PATTERNS)
    splits = _load(folder, fingerprint(folder))
    if split is None and len(splits) > 1:
        raise ValueError(f"data {str(data)!r} has the splits {', '.join(splits)}: give split=.")
    name = next(iter(splits)) if split is None else SPLITS.get(split, split)
    if name not in splits:
        raise unknown("split", split, splits, str(data))
    return name, splits[name]


@lru_cache(maxsize=2)
def _load(place: Path, version: str) -> Mapping[str, Sequence[VisDialDialogue]]:
    """The dialogues by split, without images that came before."""
    splits: dict[str, dict[int, VisDialDialogue]] = {}
    seen = []
    for part in parts_of(place):
        seen.append(part.name)
        if part.suffix == ".json" and (content := _content(part)) is not None:
            name = str(content.get("split", part.split or "validation"))
            own = splits.setdefault(SPLITS.get(name, name), {})
            for dialogue in _dialogues(content["data"], part.name, len(own)):
                own.setdefault(dialogue.image_id, dialogue)
    if not any(splits.values()):
        got = ", ".join(seen[:5]) or "nothing"
        raise ValueError(
            f"data {str(place)!r}: expected a VisDial v1.0 JSON with data.dialogs, data.questions "
            f"and data.answers, or that of v0.5, a list of dialogues; got {got}. Give the file, or "
            "a folder or zip that has it."
        )
    return {name: tuple(found.values()) for name, found in splits.items() if found}


def _content(part: ArchiveMember) -> Mapping[str, Any] | None:
    """The JSON of a part if it is of dialogues, v0.5 as v1.0; None for a file of something else."""
    content = parse_json(part.text(), part.name)
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        listed = "caption" in content[0] and "dialog" in content[0]
        return {"data": {"dialogs": content, "questions": [], "answers": []}} if listed else None
    data = content.get("data") if isinstance(content, Mapping) else None
    return content if isinstance(data, Mapping) and "dialogs" in data else None


def _dialogues(data: Mapping[str, Any], where: str, first: int) -> Iterator[VisDialDialogue]:
    """Those of a file; images without an id are numbered from `first`."""
    for name in ("questions", "answers", "dialogs"):
        if not isinstance(data.get(name), list):
            raise ValueError(
                f"{where}: expected a list as data.{name}; got {data.get(name)!r:.80}."
            )
    for name in ("questions", "answers"):
        if odd := [text for text in data[name] if not isinstance(text, str)]:
            raise ValueError(f"{where}: expected texts in data.{name}; got {odd[0]!r:.80}.")
    texts = _Texts(data["questions"], data["answers"])
    for number, row in enumerate(data["dialogs"]):
        try:
            yield texts.dialogue({"image_id": first + number, **row})
        except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"{where}, dialogs[{number}]: expected image_id (v1.0), caption and a dialog of "
                f"question, answer and answer_options ({type(error).__name__}: {error})."
            ) from error


class _Texts:
    """The texts of a file, brought to the charset when they are first used."""

    def __init__(self, questions: Sequence[str], answers: Sequence[str]) -> None:
        self._questions, self._answers = questions, answers
        self._made: dict[tuple[bool, int | str], str] = {}
        plain_ones = {_plain(text): number for number, text in enumerate(answers)}
        self._evasions = {plain_ones[text] for text in CANNOT_TELL if text in plain_ones}

    def dialogue(self, row: Mapping[str, Any]) -> VisDialDialogue:
        # the last round of the test split has a question alone
        answered = [turn for turn in row["dialog"] if "answer" in turn]
        rounds = tuple(
            (self._question(turn["question"]), self._answer(turn["answer"])) for turn in answered
        )
        evasions = tuple(self._evasion(turn.get("answer_options", ())) for turn in answered)
        return VisDialDialogue(int(row["image_id"]), _plain(row["caption"]), rounds, evasions)

    def _question(self, given: int | str) -> str:
        """A question by its number, or by its text as v0.5 has it."""
        if (True, given) not in self._made:
            self._made[True, given] = _plain(_at(self._questions, given)).rstrip("? ") + "?"
        return self._made[True, given]

    def _answer(self, given: int | str) -> str:
        if (False, given) not in self._made:
            self._made[False, given] = _plain(_at(self._answers, given))
        return self._made[False, given]

    def _evasion(self, options: Sequence[int]) -> str:
        found = next((number for number in options if number in self._evasions), None)
        return CANNOT_TELL[0] if found is None else self._answer(found)


def _at(texts: Sequence[str], given: int | str) -> str:
    if isinstance(given, str):
        return given
    if given < 0:
        raise IndexError(f"number {given} of a text")
    return texts[given]


def _plain(text: str) -> str:
    """`plain`, quicker for the many texts that need little of it."""
    return " ".join(text.split()) if text.isascii() and text.isprintable() else plain(text)
