"""Rewards put together: names, settings, weights, bounds, caches, and their errors."""

import pickle
from dataclasses import dataclass
from functools import cached_property

import gymnasium as gym
import numpy as np
import pytest

from dialgym.io.cache import LRU
from dialgym.rewards import Reply, Reward, make_reward, make_rewards
from dialgym.rewards.compose import reward_rows

REPLIES = [Reply("one two three"), Reply("one"), Reply("one two three", ("before",))]


@dataclass(frozen=True, kw_only=True)
class Letters(Reward):
    """The number of letters `letter` of a reply; keeps the replies that it was asked for."""

    name = "letters"
    bounds = (0.0, 100.0)
    letter: str = "e"

    @cached_property
    def asked(self) -> list[list[Reply]]:
        return []

    def score(self, replies):
        self.asked.append(list(replies))
        return np.array([reply.text.count(self.letter) for reply in replies], float)


class Constant(Reward):
    name = "constant"

    def __init__(self, value=float("nan"), examples=None):
        self.value, self.examples = value, examples

    def score(self, replies):
        return np.array([self.value if reply.text == "bad" else 1.0 for reply in replies])


class Flat(Reward):
    name = "flat"

    def score(self, replies):
        return np.ones((len(replies), 1))


HERE = f"{__name__}:"


def test_scores_are_weighted_and_named():
    composite = make_rewards({"length": {"weight": 2, "target": 3, "margin": 2}, "distinct1": -1})
    scores = composite.score(REPLIES)
    assert list(scores) == ["length", "distinct1"]
    assert scores["length"].tolist() == [2.0, 0.0, 2.0]
    assert scores["distinct1"].tolist() == [-1.0, -1.0, -1.0]
    assert all(column.dtype == np.float64 for column in scores.values())
    assert composite.bounds == (-1.0, 2.0)


def test_no_replies_give_empty_columns():
    assert make_rewards({"length": 1}).score([])["length"].shape == (0,)


def test_a_reward_may_be_an_object_a_class_or_a_row_under_another_name():
    letters = Letters(letter="o")
    spec = {
        "mine": letters,
        HERE + "Letters": {"weight": 0.5, "letter": "t"},
        "again": {"reward": HERE + "Letters", "weight": -1},
        "third": {"reward": letters, "weight": 3},
        "short": {"reward": "length", "target": 1},
    }
    scores = make_rewards(spec).score(REPLIES[:1])
    assert {name: column.item() for name, column in scores.items()} == {
        "mine": 2.0, HERE + "Letters": 1.0, "again": -3.0, "third": 6.0, "short": 0.6,
    }  # fmt: skip


def test_unbounded_rewards_and_weights_of_nothing_have_bounds():
    class Unbounded(Letters):
        bounds = (-np.inf, np.inf)

    assert make_rewards({"a": {"reward": Unbounded(), "weight": 0}}).bounds == (0, 0)
    assert make_rewards({"a": {"reward": Unbounded(), "weight": -2}}).bounds == (-np.inf, np.inf)


def test_each_reward_is_asked_once_for_what_it_has_not_scored():
    letters = Letters()
    composite = make_rewards({"letters": letters})
    first = composite.score([*REPLIES, REPLIES[0]])["letters"]
    assert letters.asked == [REPLIES]
    again = composite.score([Reply("new"), *REPLIES])["letters"]
    assert letters.asked == [REPLIES, [Reply("new")]]
    assert first.tolist() == [3, 1, 3, 3]
    assert again.tolist() == [1, 3, 1, 3]


def test_labels_tell_replies_apart_even_where_they_cannot_be_hashed():
    letters = Letters()
    composite = make_rewards({"letters": letters})
    places = [Reply("x", labels={"act": a}) for a in ("inform", "question", ["a"], ["b"], ["a"])]
    composite.score(places)
    assert [len(asked) for asked in letters.asked] == [4]
    zeros, one = np.zeros(3000), np.eye(1, 3000, 1500)[0]  # printed, they are alike
    composite.score([Reply("x", labels={"act": "inform", 3: each}) for each in (zeros, one)])
    assert [len(asked) for asked in letters.asked] == [4, 2]
    composite.score([Reply("x", labels={"act": "inform", 3: "four"})])  # keys of several types


@pytest.mark.parametrize(
    "reply", [Reply(None), Reply("x", "a bare text"), Reply("x", (), "a bare text")]
)
def test_what_is_no_reply_is_one_clear_error(reply):
    with pytest.raises(ValueError, match=r"got text=|has the text 'a bare text' alone"):
        make_rewards({"f1": 1}).score([reply])


def test_the_cache_is_bounded_and_forgets_the_oldest():
    cache: LRU[int] = LRU(3)
    calls = []

    def compute(places):
        calls.append(places)
        return [place * 10 for place in places]

    assert cache.get_many("abca", compute) == [0, 10, 20, 0]
    assert cache.get_many("ad", compute) == [0, 10]
    assert cache.get_many("acd", compute) == [0, 20, 10]
    assert cache.get_many("b", compute) == [0]
    assert calls == [[0, 1, 2], [1], [0]]
    assert len(cache) == 3
    assert cache.get_many("stuvw", compute) == [0, 10, 20, 30, 40]
    assert len(cache) == 3


def test_a_used_composite_is_pickled_without_what_it_holds():
    letters = Letters()
    composite = make_rewards({"letters": {"reward": letters, "weight": 2}})
    before = composite.score(REPLIES)["letters"]
    copy = pickle.loads(pickle.dumps(composite))
    assert "asked" not in vars(copy.parts[0].reward)
    assert len(copy.parts[0].cache) == 0
    assert copy.score(REPLIES)["letters"].tolist() == before.tolist()


def test_examples_go_to_those_that_learn():
    def examples():
        raise AssertionError("asked too early")

    composite = make_rewards({HERE + "Constant": {"value": 2.0}, HERE + "Letters": 1}, examples)
    assert composite.parts[0].reward.examples is examples


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "rewards must be a mapping such as"),
        (["length"], "rewards must be a mapping such as"),
        ({"lenght": 1}, r"unknown reward 'lenght'\. Did you mean 'length'\?"),
        ({"length": {"tarlet": 3}},
         r"unknown setting 'tarlet' in reward 'length'\. Did you mean 'target'\?"),
        ({"length": {"wieght": 3}}, r"Did you mean 'weight'\?"),
        ({"polite": {"reward": len, "bonds": (0, 1)}}, "Did you mean 'bounds'"),
        ({"polite": {"reward": len, "bounds": 1}}, "bounds of reward 'polite' must be two numbers"),
        ({"polite": {"reward": len, "bounds": (1, 0)}}, "the lowest and the highest score"),
        ({"polite": str}, "weight of reward 'polite' must be a finite number; got <class 'str'>"),
        ({HERE + "Constant": {"examples": 3}}, "unknown setting 'examples'"),
        ({"length": "1"}, "weight of reward 'length' must be a finite number; got '1'"),
        ({"length": True}, "must be a finite number; got True"),
        ({"length": float("inf")}, "must be a finite number; got inf"),
        ({"length": {"low": 9, "high": 3}}, "expects 0 <= low <= high"),
        ({"distinct1": {"n": 0}}, "n of reward 'distinct' must be a whole number from 1; got 0"),
        ({"sacrebleu": {"order": 0}}, "order of reward 'sacrebleu' must be a whole number from 1"),
        ({"meteor": {"alpha": "1"}}, "alpha of reward 'meteor' must be a number; got '1'"),
        ({"meteor": {"tokenizer": "treebnk"}}, "tokenizer of reward 'meteor' must be one of"),
        ({"rouge1": {"kind": "rouge0"}}, "kind of reward 'rouge' must be one of 'rouge1'"),
        ({"rouge1": {"measure": "f1"}}, "measure of reward 'rouge' must be one of 'fmeasure'"),
        ({"rouge1": {"sentences": "dots"}}, "sentences of reward 'rouge' must be one of 'lines'"),
        ({"sacrebleu": {"smooth": "exponential"}}, "smooth of reward 'sacrebleu' must be one of"),
        ({"sacrebleu": {"tokenize": "14a"}}, "tokenize of reward 'sacrebleu' must be one of"),
        ({"similarity": {"to": "reference"}}, "to of reward 'similarity' must be one of 'referen"),
        ({"toxicity": {"values": (0, 1)}}, "needs three finite values"),
        ({"toxicity": {"values": (0, 1, float("nan"))}}, "needs three finite values"),
        ({"toxicity": {"measure": "labels"}}, "measure of reward 'toxicity' must be one of"),
        ({"toxicity": {"data": "a.csv", "model": "b"}}, "takes data or a model, not both"),
        ({"meteor": {"wordnet": 1}}, "wordnet of reward 'meteor' must be true or false; got 1"),
        ({"length": {"target": "long"}}, "must be a number or null; got 'long'"),
        ({"learned": {"model": "x", "turns": 1.5}}, "must be a whole number or null; got 1.5"),
        ({"learned": {"model": "x", "turns": -1}}, "must be a whole number from 0; got -1"),
        ({"learned": {"model": "x", "batch_size": 0}}, "must be a whole number from 1; got 0"),
        ({"intent": {"model": "x", "turns": -2}}, "must be a whole number from 0; got -2"),
        ({"similarity": {"batch_size": 0}}, "must be a whole number from 1; got 0"),
        ({"learned": {"model": "x", "clip": [1]}}, r"must be two numbers; got \[1\]"),
        ({"learned": {"model": "x", "clip": [1, "a"]}}, r"must be two numbers; got \[1, 'a'\]"),
        ({"learned": {"model": "x", "clip": [float("nan"), 1]}}, "must be two numbers; got"),
        ({"meteor": {"gamma": 5.0}}, "gamma of reward 'meteor' must be from 0 to 1; got 5"),
        ({"meteor": {"alpha": 3.0}}, "alpha of reward 'meteor' must be from 0 to 1; got 3"),
        ({"meteor": {"beta": -1.0}}, "beta of reward 'meteor' must be 0 or more; got -1"),
        ({"length": {"margin": float("nan")}}, "expects 0 <= low <= high and margin >= 0"),
        ({"toxicity": {"values": "abc"}}, "needs three finite values; got 'abc'"),
        ({"no.such.module:Thing": 1}, "there is no module 'no' here"),
        ({"dialgym.rewards.shape:Thing": 1}, "'dialgym.rewards.shape' has no 'Thing'"),
        ({"dialgym.rewards.base:Cost": 1}, "must be a subclass of dialgym.rewards.Reward"),
        ({"a": {"reward": Letters(), "letter": "x"}}, "is an object, which has its settings"),
    ],
)  # fmt: skip
def test_bad_specifications_are_one_clear_error(spec, message):
    with pytest.raises(ValueError, match=message):
        make_rewards(spec)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_score_that_is_no_number_names_reward_and_reply(value):
    composite = make_rewards({"odd": {"reward": HERE + "Constant", "value": value}})
    with pytest.raises(ValueError, match=f"reward 'odd' gave {value} for the reply 'bad'"):
        composite.score([Reply("fine"), Reply("bad")])
    assert composite.score([Reply("fine")])["odd"].tolist() == [1.0]


def polite(text):
    return float("please" in text)


def test_a_function_of_the_text_is_a_reward():
    spec = {"polite": polite, "long": {"reward": len, "weight": 0.5, "bounds": (0, 99)}}
    composite = make_rewards(spec)
    scores = composite.score([Reply("tea please"), Reply("tea")])
    assert {name: values.tolist() for name, values in scores.items()} == {
        "polite": [1.0, 0.0],
        "long": [5.0, 1.5],
    }
    assert make_rewards({"long": spec["long"]}).bounds == (0.0, 49.5)
    again = pickle.loads(pickle.dumps(composite))
    assert again.score([Reply("tea please")])["polite"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("high", "must return a number; got 'high' for the reply 'tea'"),
        (None, "must return a number; got None"),
        (float("nan"), "reward 'odd' gave nan for the reply 'tea'"),
    ],
)
def test_a_function_that_returns_no_number_is_told(value, message):
    with pytest.raises(ValueError, match=message):
        make_rewards({"odd": lambda text: value}).score([Reply("tea")])


def test_functions_reward_in_every_view():
    text, kwargs = "yes please, that would be nice", {"rewards": {"polite": polite}}
    env = gym.make("dialgym/DailyDialog-utterance-v0", **kwargs)
    env.reset(seed=0)
    *_, info = env.step(text)
    assert info["reward_components"]["polite"] == 1.0
    gains = []
    for workers in (0, 1):
        batch = gym.make_vec("dialgym/DailyDialog-v0", 2, rewards={"n": len}, workers=workers)
        batch.reset(seed=0)
        batch.action_space.seed(0)
        gains.append([batch.step(batch.action_space.sample())[1].tolist() for _ in range(60)])
        batch.close()
    assert gains[0] == gains[1]
    assert np.any(gains[0])


def test_scores_of_a_wrong_shape_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2,\); got shape \(2, 1\)"):
        make_rewards({HERE + "Flat": 1}).score(REPLIES[:2])


def test_every_row_can_be_loaded_and_says_what_it_is():
    for name, row in reward_rows().items():
        assert row.description.endswith("."), name
        module, _, cls = row.reward.partition(":")
        found = getattr(__import__(module, fromlist=[cls]), cls)
        assert issubclass(found, Reward), name
        assert found.__doc__, name


def test_a_single_reward_can_be_made():
    assert make_reward("distinct2").n == 2
