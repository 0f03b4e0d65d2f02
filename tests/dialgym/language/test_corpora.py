"""The built-in dialogues, comments and encoding: what they hold, and that the scripts make them."""

import importlib
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from random import Random

import numpy as np
import pytest

from dialgym.language import UNK, make_tokenizer
from dialgym.language.text import CHARSET

ROOT = Path(__file__).parents[3]
DIALOGUES = "dialgym/tasks/daily_dialog/everyday.jsonl.gz"
COMMENTS = "dialgym/tasks/comments/comments.jsonl.gz"
BPE = "dialgym/language/everyday.json"
ACTS = {"inform", "question", "directive", "commissive"}
EMOTIONS = {"no emotion", "happiness", "surprise", "sadness", "anger", "fear", "disgust"}

# unfilled marks, stray spaces, doubled words, small first letters, no end mark, clashing marks
SLIPS = re.compile(
    r"[\[\]{}|<>]|  |\.\.|,,|[,;:] ?[.!?]|\b(\w+) \1\b|^[^A-Z\"0-9]|[^.!?\"]$|[.!?],"
    r"| [,.!?]|[.!?] [a-z]|\ba (?!uni|us[eu]|eu|one\b|once)[aeiou]"
    r"|\b[Aa]n [bcdfgjklmnpqrstvwxyz]"
    r"|\.\?|!\.|\?\."
)


@pytest.fixture(scope="module")
def scripts():
    folder = str(ROOT / "scripts")
    sys.path.insert(0, folder)
    yield importlib.import_module
    sys.path.remove(folder)


@pytest.fixture(scope="module")
def dialogues(scripts):
    return scripts("corpus_figures").read_rows(ROOT / DIALOGUES)


@pytest.fixture(scope="module")
def comments(scripts):
    return scripts("corpus_figures").read_rows(ROOT / COMMENTS)


@pytest.fixture(scope="module")
def texts(dialogues, comments):
    turns = {turn for row in dialogues for turn in row["turns"]}
    return sorted(turns | {row[key] for row in comments for key in ("parent", "comment")})


@pytest.mark.slow
def test_the_scripts_make_the_files_of_the_package(tmp_path):
    script = ROOT / "scripts" / "build_corpora.py"
    subprocess.run([sys.executable, script, "--out", tmp_path], check=True, cwd=ROOT)
    for name in (DIALOGUES, COMMENTS, BPE):
        assert (tmp_path / name).read_bytes() == (ROOT / name).read_bytes(), name


def test_each_dialogue_is_whole(dialogues):
    for row in dialogues:
        assert list(row) == ["split", "topic", "turns", "acts", "emotions"]
        assert 4 <= len(row["turns"]) == len(row["acts"]) == len(row["emotions"]) <= 12
        assert set(row["acts"]) <= ACTS
        assert set(row["emotions"]) <= EMOTIONS


def test_each_comment_is_whole(comments):
    for row in comments:
        assert list(row) == ["split", "parent", "comment", "score", "toxicity"]
        assert isinstance(row["score"], int)
        assert row["toxicity"] in (0, 1, 2)


def test_the_splits_have_their_sizes(dialogues, comments):
    for rows, slack in ((dialogues, 0), (comments, 60)):
        sizes = defaultdict(int)
        for row in rows:
            sizes[row["split"]] += 1
        for split, size in {"train": 3200, "validation": 400, "test": 400}.items():
            assert abs(sizes[split] - size) <= slack


def test_texts_are_clean(texts):
    assert set("".join(texts)) <= set(CHARSET)
    assert [text for text in texts if SLIPS.search(text)] == []


def test_no_context_of_one_split_has_its_reply_in_another(dialogues, comments):
    splits = defaultdict(set)
    for row in dialogues:
        for end in range(2, len(row["turns"]) + 1):
            splits[tuple(row["turns"][:end])].add(row["split"])
    for row in comments:
        splits[row["parent"]].add(row["split"])
    assert all(len(found) == 1 for found in splits.values())


DIALOGUE_BOUNDS = {
    "dialogues": (4000, 4000), "topics": (25, np.inf), "distinct texts": (0.6, 1),
    "distinct-2": (0.05, 1), "test texts in train": (0, 0.5), "no emotion": (0, 0.85),
    **dict.fromkeys(ACTS, (0.08, 1)),
}  # fmt: skip
COMMENT_BOUNDS = {
    "distinct texts": (0.8, 1), "test texts in train": (0, 0.3), "toxicity 1": (0.1, 1),
    "toxicity 2": (0.08, 1), "score with toxicity": (-0.85, -0.5),
}  # fmt: skip
"""Varied and balanced texts; the score goes with toxicity, and is not the same."""


def test_figures_are_within_their_bounds(scripts, dialogues, comments):
    tools = scripts("corpus_figures")
    figures = tools.of_dialogues(dialogues), tools.of_comments(comments)
    for found, bounds in zip(figures, (DIALOGUE_BOUNDS, COMMENT_BOUNDS)):
        for name, (low, high) in bounds.items():
            assert low <= found[name] <= high, name
    liked = [figures[1][f"score above 0 at {level}"] for level in (2, 1, 0)]
    assert 0 < liked[0] < liked[1] < liked[2] < 1


# The encoding


@pytest.fixture(scope="module")
def bpe():
    pytest.importorskip("tokenizers")
    return make_tokenizer("bpe", CHARSET)


def test_every_text_comes_back(bpe, texts):
    for text in texts:
        ids = bpe.encode(text)
        assert UNK not in ids
        assert bpe.decode(ids) == text


def test_a_word_is_under_two_tokens(bpe, texts):
    tokens = sum(len(bpe.encode(text)) for text in texts)
    assert tokens < 2 * sum(len(text.split()) for text in texts)


def test_the_encoding_is_of_the_size_it_says(bpe):
    assert bpe.vocab_size == 5 + 1024 == len(bpe.tokens)


def test_unknown_characters_become_unk(bpe):
    assert bpe.encode("é") == [UNK] * len(bpe.encode("é"))
    assert UNK in bpe.encode("a café")
    assert all(UNK not in bpe.encode(char) for char in CHARSET)


def test_many_texts_at_once_are_as_one_by_one(bpe, texts):
    some = texts[::200]
    ids, lengths = bpe.encode_many(np.array(some))
    assert bpe.decode_many(ids, lengths).tolist() == some


# The scripts


def speech(scripts, phrases="", seed=0):
    tools = scripts("phrases")
    lexicon = tools.read_lexicon(tools.read_blocks(phrases.splitlines()))
    return tools.Speech(lexicon, scripts("domain_texts").Draw(Random(seed)))


@pytest.mark.parametrize("phrase", ["{nothing}", "<nothing>", "[a|b", "a]"])
def test_a_phrase_that_names_nothing_is_an_error(scripts, phrase):
    with pytest.raises(ValueError, match=r"no list is called|no phrase is called|do not match"):
        speech(scripts).write(phrase)


def test_speakers_who_do_not_alternate_are_an_error(scripts):
    everyday = scripts("build_everyday")
    lexicon = scripts("phrases").Lexicon({}, {})
    turns = [everyday.Turn(who, "inform", "no emotion", "Yes.") for who in "ABBA"]
    scenario = everyday.Scenario("food", "at home", turns, lexicon)
    with pytest.raises(ValueError, match="food, at home: speakers ABBA"):
        everyday.write_dialogue(scenario, speech(scripts).draw)


def test_alternative_turns_are_read(scripts):
    everyday = scripts("build_everyday")
    lines = ["A q: One?", "(", "B i happiness: Two.", "|", ")", "A i: Three."]
    steps = everyday.read_steps(scripts("phrases").read_blocks(lines))
    assert [len(alternative) for alternative in steps[1]] == [1, 0]
    assert steps[1][0][0].emotion == "happiness"
    with pytest.raises(ValueError, match="is not closed"):
        everyday.read_steps([("(", ""), ("A i", "One.")])
    with pytest.raises(ValueError, match=r"expected 'A\|B i\|q\|d\|c"):
        everyday.read_turn("A x", "One.")
