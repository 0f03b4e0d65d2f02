"""Sentiment by word lists."""

from pathlib import Path

import pytest

import dialgym.rewards
from dialgym.rewards import Reply
from dialgym.rewards.judges import NEGATIONS, STRONGER, WEAKER, Sentiment
from dialgym.rewards.words import WeightedLexicon, base_forms, read_lexicon, tokens_of

LISTS = Path(dialgym.rewards.__file__).parent / "lexicons"


def score(text):
    return Sentiment().score([Reply(text)]).item()


@pytest.mark.parametrize(
    ("word", "base"),
    [("stopped", "stop"), ("hating", "hate"), ("happily", "happy"), ("worries", "worry"),
     ("nicer", "nice"), ("biggest", "big"), ("boss's", "boss"), ("kisses", "kiss")],
)  # fmt: skip
def test_inflections_are_found(word, base):
    assert base in list(base_forms(word))


def test_short_words_are_left_alone():
    assert list(base_forms("as")) == ["as"]
    assert list(base_forms("bed")) == ["bed"]


def test_the_longest_phrase_counts_and_zero_hides_it():
    lexicon = WeightedLexicon({"kind": 1.0, "kind_of": 0.0, "good_for_nothing": -1.0, "good": 1.0})
    found = [hit.value for hit in lexicon.find(tokens_of("Kind of good, good for nothing, kind!"))]
    assert found == [0.0, 1.0, -1.0, 1.0]


def test_the_list_has_no_word_twice():
    lexicon = read_lexicon("sentiment")
    lines = (LISTS / "sentiment.txt").read_text("utf-8").splitlines()
    entries = [entry for line in lines if line[0] != "#" for entry in line.split()[1:]]
    assert sorted(entries) == sorted(set(entries))
    assert len(lexicon.values) == len(entries) > 200
    assert set(lexicon.values.values()) <= {-2.0, -1.0, 0.0, 1.0, 2.0}
    for entry in entries:  # an entry that its own tokens do not spell would never be found
        assert "_".join(tokens_of(entry.replace("_", " "))) == entry


def test_helpers_of_sentiment_are_no_entries_of_the_list():
    values = read_lexicon("sentiment").values
    assert not [w for w in (*NEGATIONS, *STRONGER, *WEAKER) if values.get(w)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", -1), ("Great wonderful lovely amazing", -1),
        ("The train leaves at nine.", 0), ("good", 1 / 2), ("It is awful", -2 / 3),
        ("not good", -0.75 / 1.75), ("not very good", -1.125 / 2.125), ("very good", 1.5 / 2.5),
        ("No, I like it", 1 / 2), ("good but awful", -1 / 4), ("a bit sad", -0.5 / 1.5),
        ("It isn't bad", 1.5 / 2.5), ("That is kind of you, and kind", 1 / 2),
    ],
)  # fmt: skip
def test_sentiment_has_a_closed_form(text, wanted):
    assert score(text) == pytest.approx(wanted)


def test_sentiment_tells_kind_from_unkind():
    good = ["That's wonderful, I love it!", "Thanks, you are so kind.", "What a beautiful day!"]
    bad = ["I hate this awful place.", "That's terrible, I'm so sorry.", "What a boring mess."]
    assert min(map(score, good)) > 0.3 > -0.3 > max(map(score, bad))
    assert score("I don't like it at all") < 0 < score("I like it")
