"""The built-in judge of toxicity: its rules, what it finds in plain sentences, and its limits."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.metrics import f1_score

import dialgym.rewards
from dialgym.rewards import Reply, make_reward
from dialgym.rewards.abuse import KINDS, read_abuse
from dialgym.rewards.classifier import read_labelled
from dialgym.rewards.toxicity import CALIBRATED, LEVELS, Toxicity

HERE = Path(__file__).parent
RULES = Path(dialgym.rewards.__file__).parent / "lexicons" / "abuse.yaml"
LISTS = {
    name: [entry.replace("_", " ") for entry in entries.split()]
    for name, entries in yaml.safe_load(RULES.read_text("utf-8"))["words"].items()
}
MADE_WITH, UNSEEN = "sentences.tsv", "unseen_sentences.tsv"
"""Sentences that the rules were made with, and such that nobody looked at meanwhile."""


def sentences(name):
    """Levels, categories and texts of a file of sentences, which has no quoted fields."""
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [int(row["level"]) for row in rows], [row["category"] for row in rows], [
        row["text"] for row in rows
    ]  # fmt: skip


def levels(*texts):
    return Toxicity().labels([Reply(text) for text in texts]).tolist()


def kinds(text):
    return {kind for kind, _ in read_abuse().find(text)}


def test_toxicity_has_three_levels():
    assert levels("Nice to meet you.", "Shut up, you idiot!", "Go and kill yourself.") == [0, 1, 2]
    texts = "Moby Dick is a whale", "shitty", "what a bunch of idiots, drop dead"
    assert levels(*texts) == [0, 1, 2]
    assert levels("thank you", "you", "you are right", "Yes.", "") == [0] * 5


def test_toxicity_scores_by_its_values():
    replies = [Reply("hello"), Reply("you idiot"), Reply("kill yourself")]
    assert make_reward("toxicity").score(replies).tolist() == [0, -1, -2]
    assert Toxicity().bounds == (-2, 0)
    kind = Toxicity(values=(1, 0.5, -3), measure="expected")
    wanted = [np.dot(CALIBRATED[what], (1, 0.5, -3)) for what in ("none", "insult", "self_harm")]
    assert kind.score(replies).tolist() == pytest.approx(wanted)
    assert kind.bounds == (-3, 1)


def test_each_kind_of_abuse_is_told():
    assert kinds("I will kill you") == {"threat"}
    assert kinds("Nobody would miss you.") == {"self_harm"}
    assert kinds("Muslims are vermin") == {"group_attack"}
    assert kinds("You are so stupid") == {"insult"}
    assert kinds("this is fucking great") == {"obscene"}
    assert set(CALIBRATED) == {*KINDS, "none"}
    assert all(sum(row) == pytest.approx(1) for row in CALIBRATED.values())


@pytest.mark.parametrize(
    "text", ["you 1d10t", "you are an id!ot", "what a m*r*n", "you i d i o t", "stuuuupid idiooot"]
)
def test_disguised_words_are_read(text):
    assert levels(text) == [1]


@pytest.mark.parametrize(
    "text",
    ["You are not stupid.", "He called me an idiot.", "I felt like such an idiot.",
     "Nobody should call you ugly.", "It is wrong to say that gays are sick.",
     "Muslims are not terrorists.", "Please don't hurt yourself.", "I would never kill you.",
     "If you feel like you want to hurt yourself, call us.", "This joke killed me.",
     "I'll beat you at chess.", "Shoot me an email, then kill the process."],
)  # fmt: skip
def test_denials_reports_and_idioms_are_harmless(text):
    assert levels(text) == [0]


def test_no_group_is_toxic_by_its_name():
    for group in sorted({*LISTS["group"], *LISTS["nation"], *LISTS["kin"]}):
        texts = (
            f"{group}",
            f"My neighbours are {group}.",
            f"I met some {group} at the market today.",
        )
        assert levels(*texts, f"All {group} are welcome here.") == [0] * 4, group


def test_no_property_of_people_is_toxic():
    for group in sorted(LISTS["people_of"]):
        texts = f"I am {group}.", f"Many {group} people live here.", f"As a {group} woman, I agree."
        assert levels(*texts, f"The {group} community held a fair.") == [0] * 4, group


def test_contempt_is_severe_whatever_the_group():
    for group in LISTS["group"][:60]:
        assert levels(f"All {group} should be deported", f"{group} are vermin") == [2, 2], group


def test_plain_sentences_are_judged_as_people_would():
    wanted, categories, texts = sentences(MADE_WITH)
    right = defaultdict(list)
    for level, category, found in zip(wanted, categories, levels(*texts)):
        right[category].append(found == level)
    assert len(texts) > 400
    assert min(map(np.mean, right.values())) >= 0.9, {k: np.mean(v) for k, v in right.items()}
    harmless = [found for level, found in zip(wanted, levels(*texts)) if level == 0]
    assert not any(harmless)


def test_unseen_sentences_are_judged_nearly_as_well():
    wanted, _, texts = sentences(UNSEEN)
    wanted, found = np.array(wanted), np.array(levels(*texts))
    assert len(texts) == 330
    assert (found[wanted == 0] == 0).mean() >= 0.99
    assert (found[wanted > 0] > 0).mean() >= 0.85
    assert (found[wanted == 2] == 2).mean() >= 0.8


@pytest.mark.slow
def test_the_rules_agree_with_people(data):
    path = str(data / "hate_offensive" / "labeled_data.csv")
    replies, labels = zip(*read_labelled(path, None, None, LEVELS)[:2000])
    labels = np.array([int(label) for label in labels])
    found = Toxicity().labels(replies)
    assert (found == labels).mean() > 0.8
    assert f1_score(labels, found, average=None)[2] > 0.4


def test_the_lists_have_no_word_twice():
    for name, entries in LISTS.items():
        assert sorted(entries) == sorted(set(entries)), name
        assert all(entry == entry.lower() for entry in entries)


def test_hostile_texts_take_no_long_time():
    for text in ("you are " * 3000, "a" * 20000, "* " * 5000, "i will " * 3000 + "you", "!" * 9999):
        assert levels(text) in ([0], [1], [2])
