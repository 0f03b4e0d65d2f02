"""Questions in free text, understood by rules: as a whole, or not at all."""

import re
from functools import lru_cache

from dialgym.tasks.visual_dialogue.questions import Description, Question
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
