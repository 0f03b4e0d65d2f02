"""Generated scenes in words: their captions, how likely each is of any scene, their things."""

import re

import numpy as np

from dialgym.tasks.visual_dialogue.scenes import (
    CATEGORIES,
    COLOURS,
    GROUNDS,
    TIMES,
    Scenes,
    Thing,
)

ADJECTIVES = {"wood": "wooden", "metal": "metal", "glass": "glass"}
"""Adjectives of materials."""

NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
_OTHERS = ("", "another one", "two others", "three others", "four others")
_FORMS = 4
_ONE_OF = "|"
_CAPTION = re.compile(
    f"(?P<count>{_ONE_OF.join(NUMBERS)}) toys by (?P<t0>{_ONE_OF.join(TIMES)})"
    f"|an? (?P<c1>{_ONE_OF.join(COLOURS)}) toy and (?P<others>{_ONE_OF.join(_OTHERS[1:])})"
    f"|an? (?P<n2>{_ONE_OF.join(CATEGORIES)}) on the (?P<g2>{_ONE_OF.join(GROUNDS)})"
    f"|an? (?P<c3>{_ONE_OF.join(COLOURS)}) toy by (?P<t3>{_ONE_OF.join(TIMES)})"
)


def article(words: str) -> str:
    """The words with ``a`` or ``an`` before them."""
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def described(thing: Thing) -> str:
    """A thing with all it has: ``a small red wooden ball at the back left``."""
    material = ADJECTIVES[thing.material]
    what = article(f"{thing.size} {thing.colour} {material} {thing.category}")
    return f"{what} at the {thing.row} {thing.column}"


def captions(scenes: Scenes) -> tuple[str, ...]:
    """A caption of each scene: one of four forms, about one of its objects, as `told` has it."""
    counts = (scenes.category >= 0).sum(1)
    forms = (scenes.told[:, 0] * _FORMS).astype(int)
    about = (scenes.told[:, 1] * counts).astype(int)
    return tuple(
        _caption(scenes, i, form, place)
        for i, (form, place) in enumerate(zip(forms.tolist(), about.tolist()))
    )


def _caption(scenes: Scenes, i: int, form: int, about: int) -> str:
    things, time = scenes.things(i), TIMES[scenes.time[i]]
    thing, ground = things[about], GROUNDS[scenes.ground[i]]
    if form == 0:
        return f"{NUMBERS[len(things)]} toys by {time}"
    if form == 1:
        return f"{article(thing.colour)} toy and {_OTHERS[len(things) - 1]}"
    if form == 2:
        return f"{article(thing.category)} on the {ground}"
    return f"{article(thing.colour)} toy by {time}"


def caption_likelihood(scenes: Scenes, caption: str) -> np.ndarray:
    """(n,) float64: how likely the caption is of each scene; all 1 where it is none of ours.

    Each of the four forms is as likely, and in it each object of the scene.
    """
    found = _CAPTION.fullmatch(caption)
    if found is None:
        return np.ones(len(scenes.ground))
    there = scenes.category >= 0
    counts = there.sum(1)
    said = {name[:-1] if name[-1].isdigit() else name: value
            for name, value in found.groupdict().items() if value is not None}  # fmt: skip
    fits = there.copy()
    if "n" in said:
        fits &= scenes.category == CATEGORIES.index(said["n"])
    if "c" in said:
        fits &= scenes.colour == COLOURS.index(said["c"])
    whole = np.ones(len(counts), bool)
    if "g" in said:
        whole &= scenes.ground == GROUNDS.index(said["g"])
    if "t" in said:
        whole &= scenes.time == TIMES.index(said["t"])
    if "count" in said:
        whole &= counts == NUMBERS.index(said["count"])
    if "others" in said:
        whole &= counts == _OTHERS.index(said["others"]) + 1
    likelihood: np.ndarray = whole * fits.sum(1) / counts / _FORMS
    return likelihood
