"""Pictures of scenes and of dialogues: what they show can be found in them."""

import gymnasium as gym
import numpy as np
import pytest

from dialgym.language import Utterance
from dialgym.tasks.visual_dialogue import SceneBook, VisualDialogue
from dialgym.tasks.visual_dialogue.drawing import TINTS, _toy
from dialgym.tasks.visual_dialogue.scenes import CATEGORIES, COLOURS, MATERIALS, Thing
from dialgym.tasks.visual_dialogue.sheet import draw_dialogue
from tests.support.by_day import by_day
from tests.support.toy_visdial import PlainPool, Same

BOOK = SceneBook(60)


def nearest(tint):
    """The colour whose hue, without its brightness, is nearest."""

    def hue(rgb):
        rgb = np.asarray(rgb, float) - min(rgb)
        return rgb / np.linalg.norm(rgb)

    return min(TINTS, key=lambda name: np.abs(hue(TINTS[name]) - hue(tint)).sum())


@pytest.mark.parametrize("material", MATERIALS)
@pytest.mark.parametrize("time", ["day", "night"])
def test_a_toy_has_its_colour(material, time):
    for colour in COLOURS:
        for category in CATEGORIES:
            toy = np.asarray(
                _toy(Thing(category, colour, "large", material, "front", "left"), 90, time)
            )
            seen = toy[toy[..., 3] > 100][:, :3]
            assert nearest(np.median(seen, axis=0)) == colour, category


def test_toys_of_two_kinds_look_different():
    things = [Thing(c, "red", "large", m, "front", "left") for c in CATEGORIES for m in MATERIALS]
    toys = [np.asarray(_toy(thing, 90, "day")).astype(int) for thing in things]
    for i, first in enumerate(toys):
        for other in toys[:i]:
            assert np.abs(first - other).mean() > 4


def test_pictures_are_drawn_the_same_again_and_differ_between_scenes():
    pictures = [BOOK.picture(i) for i in range(3)]
    assert all(p.shape == (360, 480, 3) and p.dtype == np.uint8 for p in pictures)
    assert (BOOK.picture(2) == pictures[2]).all()
    assert len({p.tobytes() for p in pictures}) == 3


@pytest.mark.parametrize("image", by_day(range(6), 0, 3))
def test_toys_stand_where_they_should(image):
    """Empty places show the landscape alone."""
    scenes = BOOK.scenes
    bare = BOOK.picture(image).astype(int)
    bare -= np.asarray(_landscape_of(image)).astype(int)
    for row, height in (("back", 190), ("front", 285)):
        for place, column in enumerate(("left", "middle", "right")):
            there = any((t.row, t.column) == (row, column) for t in scenes.things(image))
            x = 240 + (128 if row == "back" else 150) * (place - 1)
            changed = np.abs(bare[height : height + 30, x - 30 : x + 30]).max(2) > 12
            assert there == (changed.mean() > 0.1), (row, column)


def _landscape_of(image):
    from PIL import Image

    from dialgym.tasks.visual_dialogue.drawing import HEIGHT, WIDTH, _landscape
    from dialgym.tasks.visual_dialogue.scenes import GROUNDS, TIMES

    scenes = BOOK.scenes
    landscape = _landscape(GROUNDS[scenes.ground[image]], TIMES[scenes.time[image]])
    return landscape.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def test_a_dialogue_is_drawn_with_its_curve():
    env = gym.make("dialgym/VisualDialogue-utterance-v0", render_mode="rgb_array")
    env.reset(seed=0, options={"image": 3})
    first = env.render()
    env.step("how many toys are there")
    assert first.shape == env.render().shape == (520, 920, 3)
    assert (first[:360, :480] == env.render()[:360, :480]).all()
    assert (first != env.render()).any()


def test_long_words_are_cut_and_a_flat_curve_is_drawn():
    lines = [Utterance("user", "w" * 300)] + [Utterance("system", "why " * 40)] * 40
    drawn = draw_dialogue(BOOK.picture(0), lines, [0.2])
    assert drawn.shape == (520, 920, 3)
    assert (drawn[:, -10:] == 255).all()


def test_a_pool_without_pictures_shows_its_dialogue_alone():
    task = VisualDialogue(PlainPool(), Same(), Same())
    assert task.picture(task.initial(np.random.default_rng(0))) is None
