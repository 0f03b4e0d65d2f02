"""Generated scenes, their captions, features and pool; guessers by name; percentile ranks."""

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.tasks.visual_dialogue.captions import caption_likelihood, captions
from dialgym.tasks.visual_dialogue.guessers import Held, make_guesser, percentile_ranks
from dialgym.tasks.visual_dialogue.pool import Pool, SceneBook, make_pool
from dialgym.tasks.visual_dialogue.scenes import SPLITS, generate
from tests.support.toy_visdial import Same

BOOK = SceneBook(40)


def contents(scenes):
    """The visible content of each scene, in a form that can be compared."""
    return {tuple(np.r_[tuple(array[i] for array in scenes[:6])]) for i in range(len(scenes[4]))}


def test_splits_share_no_scene_and_no_two_scenes_are_alike():
    parts = [contents(SceneBook(None, split).scenes) for split in SPLITS]
    assert [len(part) for part in parts] == [3000, 1000, 1000]
    assert len(set.union(*parts)) == 5000
    assert contents(SceneBook(40, seed=1).scenes).isdisjoint(contents(BOOK.scenes))


def test_a_smaller_book_has_the_first_scenes_of_a_larger_one():
    assert BOOK.captions == SceneBook(100).captions[:40]
    assert (BOOK.features == SceneBook(100).features[:40]).all()


def test_scenes_have_two_to_five_whole_objects():
    scenes = generate(0)
    there = scenes.category >= 0
    assert set(there.sum(1).tolist()) == {2, 3, 4, 5}
    for attribute in scenes[1:4]:
        assert ((attribute >= 0) == there).all()


def test_features_are_of_length_one_and_tell_scenes_apart():
    features = SceneBook(None).features
    assert features.dtype == np.float32
    assert np.allclose(np.linalg.norm(features, axis=1), 1)
    assert len(np.unique(features.round(5), axis=0)) > 0.99 * len(features)


def test_captions_are_as_likely_as_they_are_drawn():
    """Of one scene drawn many times, each caption comes as often as its likelihood says."""
    times = 8000
    one = BOOK.scenes.part(3, 4)
    many = type(one)(*[np.repeat(array, times, axis=0) for array in one])
    many = many._replace(told=np.random.default_rng(0).random((times, 2)))
    counted = Counter(captions(many))
    said = {caption: float(caption_likelihood(one, caption)[0]) for caption in counted}
    assert sum(said.values()) == pytest.approx(1)
    for caption, count in counted.items():
        assert count / times == pytest.approx(said[caption], abs=0.02), caption


def test_a_caption_is_possible_of_its_own_scene_and_impossible_of_most():
    book = SceneBook(300)
    likelihoods = np.array([caption_likelihood(book.scenes, c) for c in book.captions])
    assert (np.diag(likelihoods) > 0).all()
    assert (likelihoods > 0).mean() < 0.2
    assert (caption_likelihood(book.scenes, "two dogs in a park") == 1).all()


def test_descriptions_tell_all_and_fit():
    book = SceneBook(None)
    told = [book.description(i) for i in range(len(book))]
    assert len(set(told)) == len(book)
    for lines in (*told, book.captions):
        assert max(map(len, lines)) <= book.longest
        assert max(len(line.split()) for line in lines) <= book.most_words
    assert max(map(len, told)) == book.most_lines
    assert BOOK.description(3) == (
        "day on snow",
        "a small green glass block at the back left",
        "a large red wooden boat at the back right",
        "a small green metal star at the front right",
    )


def test_a_pickled_book_is_small_and_the_same():
    BOOK.features  # noqa: B018
    text = pickle.dumps(BOOK)
    assert len(text) < 500
    assert pickle.loads(text).captions == BOOK.captions


def test_pools_by_name_settings_and_object():
    assert len(make_pool()) == len(make_pool("scenes")) == 1000
    assert len(make_pool({"name": "scenes", "split": "test", "scenes": None})) == 1000
    assert make_pool(BOOK) is BOOK
    assert isinstance(BOOK, Pool)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_pool("scene"), "unknown pool 'scene'.*Did you mean 'scenes'"),
        (lambda: make_pool(3), "unknown pool 3.*a name, a mapping"),
        (lambda: make_pool({"name": "scenes", "size": 3}), "unknown setting 'size'"),
        (lambda: SceneBook(split="dev"), "split of SceneBook must be one of 'train'"),
        (lambda: SceneBook(2000, "test"), "from 2 to 1000; got 2000"),
        (lambda: SceneBook(1), "from 2 to 3000; got 1"),
        (lambda: make_guesser("exakt", BOOK), "unknown guesser 'exakt'.*Did you mean 'exact'"),
        (lambda: make_guesser(None, BOOK), "unknown guesser None.*learned:PATH"),
    ],
)
def test_bad_arguments_are_one_clear_error(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_object_that_ranks_is_a_guesser():
    guesser = Same()
    assert make_guesser(guesser, BOOK) is guesser
    assert guesser.percentiles([Held("", (), 0)]) == 0.5


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=9),
    st.integers(0, 8),
)
def test_a_percentile_rank_is_the_mean_over_ways_to_break_ties(scores, image):
    image %= len(scores)
    own = scores[image]
    others = [s for i, s in enumerate(scores) if i != image]
    above, alike = sum(s > own for s in others), sum(s == own for s in others)
    ranks = range(above, above + alike + 1)  # where ties may put it
    expected = 1 - sum(ranks) / len(ranks) / len(scores)
    assert percentile_ranks(np.array([scores]), np.array([image]))[0] == pytest.approx(expected)
