"""Questions about generated scenes: what they mean, how they are put, how free text is understood.

A question asks about things of a `Description`: *how many (large) (red) (wooden) (balls) are
there (on the left)*. `text` puts a question in words, `parse` understands these words and many
others; what it does not understand it gives up on as a whole.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import permutations
from typing import NamedTuple

from dialgym.tasks.visual_dialogue.captions import ADJECTIVES, article
from dialgym.tasks.visual_dialogue.scenes import (
    CATEGORIES,
    COLOURS,
    COLUMNS,
    GROUNDS,
    MATERIALS,
    ROWS,
    SIZES,
    TIMES,
)


class Description(NamedTuple):
    """What a thing is to have to be meant; None where it does not matter."""

    size: str | None = None
    colour: str | None = None
    material: str | None = None
    category: str | None = None
    row: str | None = None
    column: str | None = None

    @property
    def noun(self) -> str:
        """What the things are called: ``red ball``, ``thing``."""
        made = self.material and ADJECTIVES[self.material]
        words = (self.size, self.colour, made, self.category or "thing")
        return " ".join(word for word in words if word)

    @property
    def place(self) -> str:
        """Where they are to be: `` on the left``, or nothing."""
        if self.row and self.column:
            return f" at the {self.row} {self.column}"
        if self.row:
            return f" at the {self.row}"
        if self.column:
            return f" {'in' if self.column == 'middle' else 'on'} the {self.column}"
        return ""

    @property
    def only_place(self) -> bool:
        """Whether a place is all that is said."""
        return not any(self[:4]) and any(self[4:])


class Question(NamedTuple):
    """The meaning of a question, by its kind.

    - ``exist``, ``count``: whether there are things of `about`, and how many.
    - ``ask``: which `attribute` (category, colour, size, material, place) the things have.
    - ``check``: whether they have `value` as this attribute.
    - ``describe``: what they look like.
    - ``relation``: whether one of them is left of, right of, behind or in front of one of `other`.
    - ``ask``, ``check`` of the attributes ``ground`` and ``time``: about the scene as a whole.
    """

    kind: str
    about: Description = Description()
    attribute: str | None = None
    value: str | None = None
    relation: str | None = None
    other: Description | None = None

    @property
    def yes_no(self) -> bool:
        """Whether it can be answered by yes and no."""
        return self.kind in ("exist", "check", "relation")


RELATIONS = ("left of", "right of", "behind", "in front of")


def place_of(words: str) -> Description:
    """A place by its words: ``left``, ``back``, ``back left``."""
    named = words.split()
    row = next((row for row in ROWS if row in named), None)
    return Description(row=row, column=next((c for c in COLUMNS if c in named), None))


def text(question: Question) -> str:
    """The question in words; `parse` gives the question back."""
    kind, about, attribute, value, relation, other = question
    the = f"the {about.noun}{about.place}"
    if attribute == "ground":
        return f"is there {value} on the ground" if value else "what is on the ground"
    if attribute == "time":
        return f"is it {value}" if value else "is it day or night"
    if kind == "exist":
        return f"is there {article(about.noun)}{about.place}"
    if kind == "count":
        return f"how many {about.noun}s are there{about.place}"
    if kind == "describe":
        return f"what does {the} look like"
    if kind == "relation":
        return f"is {the} {relation} the {other.noun}" if other else ""
    return _asked(the, about, attribute) if kind == "ask" else _checked(the, attribute, value)


def _asked(the: str, about: Description, attribute: str | None) -> str:
    if attribute == "colour":
        return f"what colour is {the}"
    if attribute == "size":
        return f"how big is {the}"
    if attribute == "material":
        return f"what is {the} made of"
    if attribute == "place":
        return f"where is {the}"
    return f"what is{about.place}" if about.only_place else f"what is {the}"


def _checked(the: str, attribute: str | None, value: str | None) -> str:
    if attribute == "material":
        return f"is {the} made of {value}"
    if attribute == "category":
        return f"is {the} {article(str(value))}"
    if attribute == "place":
        return f"is {the}{place_of(str(value)).place}"
    return f"is {the} {value}"


@cache
def all_questions() -> tuple[Question, ...]:
    """The questions that scripted questioners choose from, each as `text` puts it once."""
    return tuple(dict.fromkeys(_questions()))


def _questions() -> Iterator[Question]:
    yield Question("ask", attribute="ground")
    yield Question("ask", attribute="time")
    yield from (Question("check", attribute="ground", value=ground) for ground in GROUNDS)
    yield from (Question("check", attribute="time", value=time) for time in TIMES)
    kinds = [Description(category=c) for c in CATEGORIES]
    coloured = [Description(colour=c) for c in COLOURS]
    others = [Description(size=s) for s in SIZES] + [Description(material=m) for m in MATERIALS]
    sides = [Description(column=c) for c in COLUMNS] + [Description(row=r) for r in ROWS]
    cells = [Description(row=r, column=c) for r in ROWS for c in COLUMNS]
    exact = [Description(colour=c, category=k) for c in COLOURS for k in CATEGORIES]
    for about in (Description(), *kinds, *coloured, *others, *sides):
        yield Question("count", about)
    for about in (*kinds, *coloured, *others, *sides, *cells, *exact):
        yield Question("exist", about)
    for about in (*kinds, *coloured, *cells):
        yield from (Question("ask", about, a) for a in ("size", "material"))
        yield Question("describe", about)
    yield from (Question("ask", about, "colour") for about in (*kinds, *cells))
    yield from (Question("ask", about, "category") for about in (*coloured, *sides, *cells))
    yield from (Question("ask", about, "place") for about in (*kinds, *coloured, *exact))
    for about in kinds:
        values = {
            "colour": COLOURS,
            "size": SIZES,
            "material": MATERIALS,
            "place": (*COLUMNS, *ROWS),
        }
        for attribute, known in values.items():
            yield from (Question("check", about, attribute, value) for value in known)
    for first, second in permutations(kinds, 2):
        yield from (Question("relation", first, relation=r, other=second) for r in RELATIONS[::2])


NOUNS = {name: name for name in CATEGORIES} | {
    "cube": "block", "box": "block", "brick": "block", "sphere": "ball", "mug": "cup",
    "ship": "boat", "hut": "house", "home": "house", "pyramid": "cone", "hoop": "ring",
}  # fmt: skip
ANY = ("thing", "toy", "object", "item", "one", "anything", "something", "shape")
WORDS: dict[str, tuple[str, str]] = (
    {c: ("colour", c) for c in COLOURS}
    | {s: ("size", s) for s in SIZES}
    | {"big": ("size", "large"), "little": ("size", "small"), "tiny": ("size", "small")}
    | {"huge": ("size", "large"), "wooden": ("material", "wood"), "metallic": ("material", "metal")}
    | {m: ("material", m) for m in MATERIALS}
    | {noun: ("category", category) for noun, category in NOUNS.items()}
)
_SKIPPED = re.compile(
    r"\b(the|a|an|any|some|please|there's|in (the )?(picture|image|scene|photo)|of them|all)\b"
)
_SYNONYMS = (
    (r"\bcolor\b", "colour"), (r"\bcentre\b|\bcenter\b", "middle"), (r"\bare\b", "is"),
    (r"\bbackground\b", "back"), (r"\bforeground\b", "front"), (r"\brear\b", "back"),
    (r"\b(made )?(out )?of (wood|metal|glass)\b", r"of \3"), (r"\b(left|right) side\b", r"\1"),
    (r"\bnight ?time\b", "night"), (r"\bday ?time\b", "day"),
    (r"\b(to|on) (left|right) of\b", r"\2 of"),
    (r"\b(do|can) you see\b", "is there"), (r"\bin back of\b", "behind"),
    (r"\b(there )?exists?\b", "is there"),
)  # fmt: skip
_PLACE = re.compile(
    r" (?:on|at|in|to|from|toward) (?:(?P<row>back|front)(?: (?:on|in|at|and))?)? ?"
    r"(?P<column>left|middle|right)?$"
)
_FORMS = (
    ("ground", r"what is (on )?ground|what kind of ground is it|what is (it|they|things?|toys?) "
               r"(standing )?on"),
    ("ground?", rf"is (it|there|they|things|toys|ground) (on )?(?P<value>{'|'.join(GROUNDS)})"
                r"( on ground)?"),
    ("time", r"is it day or night|is it night or day|what time (of day )?is it"),
    ("time?", rf"is it (?P<value>{'|'.join(TIMES)})|is it (?P<dark>dark|light)( outside)?"),
    ("count", r"how many (?P<d>.+?)( is there)?(?P<p> (on|in|at) .+)?"),
    ("exist", r"is there (?P<d>.+)"),
    ("colour", r"what colour is (?P<d>.+)"),
    ("size", r"how (big|large|small) is (?P<d>.+)|what size is (?P<d2>.+)"),
    ("material", r"what is (?P<d>.+) made (out )?(of|from)|what material is (?P<d2>.+)"),
    ("describe", r"what (does|do|is) (?P<d>.+) look like|(can you )?describe (?P<d2>.+)"),
    ("place", r"where is (?P<d>.+)"),
    ("category", r"what (is )?(there )?(?P<d>.+)"),
    ("relation", r"is (?P<d>.+) (?P<rel>left of|right of|behind|in front of) (?P<d2>.+)"),
    ("check", rf"is (?P<d>.+?) (?P<value>(on|in|at) ({'|'.join(ROWS + COLUMNS)})( \w+)*)"),
    ("check", r"is (?P<d>.+?) (?P<value>(of )?\w+)"),
)  # fmt: skip
_COMPILED = tuple((name, re.compile(form)) for name, form in _FORMS)


@lru_cache(maxsize=65536)
def parse(said: str) -> Question | None:
    """The meaning of what was said, or None where it is not understood."""
    words = _plain(said)
    for name, form in _COMPILED:
        found = form.fullmatch(words)
        question = _read(name, found.groupdict()) if found else None
        if question is not None:
            return question
    return None


def _plain(said: str) -> str:
    """In lower case, without punctuation and articles, synonyms replaced."""
    words = re.sub(r"[^a-z ]", " ", said.lower().replace("'s", " is"))
    words = _SKIPPED.sub(" ", words)
    words = re.sub(r" +", " ", words).strip()
    for pattern, instead in _SYNONYMS:
        words = re.sub(pattern, instead, words)
    return words


def _read(name: str, found: dict[str, str | None]) -> Question | None:
    """The question of a form that fits, unless a part of it makes no sense."""
    if name in ("ground", "time"):
        return Question("ask", attribute=name)
    if name in ("ground?", "time?"):
        dark = {"dark": "night", "light": "day"}
        value = found["value"] or dark[str(found.get("dark"))]
        return Question("check", attribute=name[:-1], value=value)
    about = read_description(str(found.get("d") or found.get("d2")) + (found.get("p") or ""))
    if about is None:
        return None
    if name in ("count", "exist", "describe"):
        return Question(name, about)
    if name == "relation":
        other = read_description(str(found["d2"]))
        return other and Question(name, about, relation=found["rel"], other=other)
    if name == "check":
        return _read_check(about, str(found["value"]))
    return Question("ask", about, name)


def _read_check(about: Description, value: str) -> Question | None:
    """``red``, ``ball``, ``of wood``, ``on left`` as what is to be checked."""
    place = _PLACE.fullmatch(f" {value}")
    if place:
        side = " ".join(part for part in place.groups() if part)
        return Question("check", about, "place", side) if side else None
    field, known = WORDS.get(value.removeprefix("of "), (None, None))
    return Question("check", about, field, known) if field else None


def read_description(words: str) -> Description | None:
    """The description of `words` without articles, or None where a word is none of ours."""
    found: dict[str, str] = {}
    place = _PLACE.search(f" {words}")
    if place and (place["row"] or place["column"]):
        found |= {name: part for name, part in place.groupdict().items() if part}
        words = f" {words}"[: place.start()]
    anything = bool(found)
    for word in words.split():
        single = _singular(word)
        if single in ANY or word in ("of", "is", "there"):
            anything |= single in ANY
        elif single not in WORDS:
            return None
        else:
            field, value = WORDS[single]
            if found.setdefault(field, value) != value:
                return None
    return Description(**found) if found or anything else None


def _singular(word: str) -> str:
    if word in WORDS or word in ANY:
        return word
    return word.removesuffix("es") if word.endswith("xes") else word.removesuffix("s")


def words_of(questions: Sequence[Question]) -> list[str]:
    """The words that these questions are made of, in order of their first use."""
    return list(dict.fromkeys(word for q in questions for word in text(q).split()))
