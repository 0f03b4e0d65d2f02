"""Classifiers trained here: intent and toxicity, their cache, and their errors."""

import json
import pickle
import random

import numpy as np
import pytest

from dialgym.io.cache import cache_dir
from dialgym.rewards import Reply, make_rewards
from dialgym.rewards.classifier import (
    BLOCKS,
    COLUMNS,
    Fit,
    TextClassifier,
    digest,
    hasher,
    read_labelled,
    train,
    trained_classifier,
)
from dialgym.rewards.judges import Intent
from dialgym.rewards.toxicity import LEVELS, Toxicity
from tests.support.reward_pairs import real_turns

pytest.importorskip("sklearn")

OPENINGS = {
    "question": ["do you know", "where is", "what about", "how much is"],
    "inform": ["it is", "we have", "they said", "I saw"],
    "directive": ["please bring", "go and get", "give me", "let us take"],
}
THINGS = ["the book", "a train", "some tea", "that house", "my bag", "an apple"]
MARKS = {"question": "?", "inform": ".", "directive": "!"}


def examples(count=240, acts=("question", "inform", "directive"), seed=0):
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        act = rng.choice(acts)
        text = f"{rng.choice(OPENINGS[act])} {rng.choice(THINGS)}{MARKS[act]}"
        before = (rng.choice(THINGS),) * rng.randint(0, 2)
        found.append((Reply(text, before, (), {"act": act}), act))
    return found


class Given:
    """Examples that count how often they are asked for."""

    def __init__(self, found):
        self.found, self.asked = found, 0

    def __call__(self):
        self.asked += 1
        return self.found


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALGYM_CACHE", str(tmp_path))
    return tmp_path / "classifiers"


@pytest.mark.parametrize("acts", [("question", "inform"), ("question", "inform", "directive")])
def test_probabilities_are_those_of_scikit_learn(acts):
    from sklearn.linear_model import LogisticRegression

    replies, labels = zip(*examples(acts=acts))
    others = [reply for reply, _ in examples(250, seed=1)]
    model = LogisticRegression(C=3.0, max_iter=100, tol=1e-3).fit(hasher()(replies), labels)
    found = train(replies, labels, Fit(3.0))
    assert found.classes == tuple(model.classes_)
    wanted = model.predict_proba(hasher()(others))
    np.testing.assert_allclose(found.probabilities(others), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.probabilities(others).sum(1), 1, atol=1e-12)


def test_features_are_the_ngrams_of_each_block():
    reply = Reply("Hi, you!", ("so long", "Bye"))
    wanted = [
        ["<s>", "hi", ",", "you", "!", "</s>", "<s> hi", "hi ,", ", you", "you !", "! </s>",
         "<s> hi ,", "hi , you", ", you !", "you ! </s>"],
        None,  # of characters, below
        ["<s>", "bye", "</s>", "<s> bye", "bye </s>"],
    ]  # fmt: skip
    assert [read(reply) for read, _ in BLOCKS][::2] == wanted[::2]
    text = " hi , you ! "
    windows = {text[a:b] for a in range(13) for b in range(a, 13) if 3 <= b - a <= 5}
    assert set(BLOCKS[1][0](reply)) == windows
    row = hasher()([reply, Reply("")]).toarray().reshape(2, len(BLOCKS), COLUMNS)
    scales = [scale for _, scale in BLOCKS]
    np.testing.assert_allclose(np.linalg.norm(row[0], axis=1), scales)
    np.testing.assert_allclose(np.linalg.norm(row[1], axis=1), [1.0, 0.0, 0.0])


def test_features_are_those_of_scikit_learns_vectorizer():
    from sklearn.feature_extraction.text import HashingVectorizer

    replies = [reply for reply, _ in examples(20, seed=3)]
    found = hasher()(replies).toarray()
    for place, (read, scale) in enumerate(BLOCKS):
        block = HashingVectorizer(analyzer=read, n_features=COLUMNS, alternate_sign=False)
        mine = found[:, place * COLUMNS : (place + 1) * COLUMNS]
        np.testing.assert_allclose(mine, scale * block.transform(replies).toarray(), atol=1e-12)


def test_intent_scores_the_act_of_the_place(empty_cache):
    given = Given(examples())
    probability, hit = Intent(examples=given), Intent(examples=given, measure="hit")
    assert given.asked == 0
    replies = [reply for reply, _ in examples(100, seed=2)]
    wrong = [r._replace(labels={"act": "inform" if "?" in r.text else "question"}) for r in replies]
    assert hit.score(replies).tolist() == [1.0] * 100
    assert hit.score(wrong).tolist() == [0.0] * 100
    found = probability.score([*replies, *wrong])
    assert found[:100].min() > 0.5 > found[100:].max() > 0
    assert given.asked == 2
    assert probability.score([]).shape == (0,)


def test_replies_are_scored_alike_in_any_company(empty_cache):
    intent = Intent(examples=lambda: examples())
    replies = [reply for reply, _ in examples(20, seed=2)]
    assert intent.score(replies).tolist() == [intent.score([r]).item() for r in replies]


def test_what_was_learnt_is_kept_and_loaded(empty_cache, monkeypatch):
    first = trained_classifier(examples())
    (path,) = empty_cache.glob("*.npz")
    monkeypatch.setattr("dialgym.rewards.classifier.train", None)
    again = trained_classifier(examples())
    assert path.suffix == ".npz"
    assert again.classes == first.classes
    np.testing.assert_array_equal(again.weights, first.weights)
    np.testing.assert_array_equal(again.biases, first.biases)


@pytest.mark.parametrize("broken", ["empty", "short", "other", "noise", "shape"])
def test_a_broken_file_is_made_again(empty_cache, broken):
    first = trained_classifier(examples())
    (path,) = empty_cache.glob("*.npz")
    whole = path.read_bytes()
    if broken == "other":
        np.savez(path, classes=np.array(["a"]))
    elif broken == "shape":
        np.savez(path, classes=np.array(["a", "b"]), weights=np.zeros((2, 2)), biases=np.zeros(2))
    else:
        middle = whole[:3000] + bytes(500) + whole[3500:]
        path.write_bytes({"empty": b"", "short": whole[:-300], "noise": middle}[broken])
    again = trained_classifier(examples())
    np.testing.assert_array_equal(again.weights, first.weights)
    assert [file.name for file in empty_cache.glob("*.npz")] == [path.name]
    with np.load(path, allow_pickle=False) as kept:
        np.testing.assert_array_equal(kept["weights"], first.weights)


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DIALGYM_CACHE", str(tmp_path / "file"))
    assert cache_dir().is_file()
    assert len(trained_classifier(examples()).classes) == 3


def test_the_digest_tells_data_and_settings_apart():
    base = examples(4)
    (reply, label), *rest = base
    others = [
        base[:3], base[::-1], [(reply, "other"), *rest],
        [(reply._replace(text="x"), label), *rest],
        [(reply._replace(context=("x",)), label), *rest],
        [(reply._replace(context=()), label), *rest],
        [(reply._replace(context=("",)), label), *rest],
    ]  # fmt: skip
    names = [digest(data, Fit()) for data in (base, *others)] + [digest(base, Fit(1.0))]
    assert len({*names}) == len(names)
    assert digest(list(base), Fit()) == names[0]


def test_pickling_takes_no_classifier_along(empty_cache):
    intent = Intent(examples=examples)
    replies = [reply for reply, _ in examples(5)]
    unused = pickle.loads(pickle.dumps(intent))
    before = intent.score(replies)
    size = len(pickle.dumps(intent))
    assert size < 1000
    assert pickle.loads(pickle.dumps(intent)).score(replies).tolist() == before.tolist()
    assert unused.score(replies).tolist() == before.tolist()


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: make_rewards({"intent": 1}), "needs labelled replies to learn from, or a model"),
        (lambda: Intent(examples=examples, measure="argmax"), "measure of reward 'intent' must be"),
        (lambda: Intent(examples=examples).score([Reply("hi")]),
         r"unknown act None in labels\['act'\] of the reply 'hi'"),
        (lambda: Intent(examples=examples).score([Reply("hi", labels={"act": "informs"})]),
         r"unknown act 'informs' .* Did you mean 'inform'\?"),
        (lambda: Intent(examples=list).score([Reply("hi", labels={"act": "a"})]),
         r"two classes or more; got 0 replies of the classes \[\]"),
        (lambda: trained_classifier(examples(5, ("inform",))), "got 5 replies of the classes"),
        (lambda: TextClassifier(("a", "b"), np.zeros((3, 2)), np.zeros(2)), "must have the shape"),
    ],
)  # fmt: skip
def test_bad_arguments_are_one_clear_error(run, message):
    with pytest.raises(ValueError, match=message):
        run()


def write(path, rows, header=("text", "label")):
    lines = [",".join(header), *(",".join(row) for row in rows)]
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


TOXIC = [("what a nice day", "0"), ("you silly thing", "1"), ("I will crush them all", "2")] * 10


def test_toxicity_is_learnt_from_a_file(tmp_path):
    toxicity = Toxicity(data=write(tmp_path / "toxic.csv", TOXIC), measure="expected")
    replies = [Reply("nice day", ("you silly thing",)), Reply("silly you"), Reply("crush them all")]
    assert toxicity.labels(replies).tolist() == [0, 1, 2]
    table = toxicity.probabilities(replies)
    np.testing.assert_allclose(toxicity.score(replies), table @ [0, -1, -2])
    assert toxicity.probabilities([Reply("nice day")]).tolist() == table[:1].tolist()


def test_two_levels_of_three_are_enough(tmp_path):
    toxicity = Toxicity(data=write(tmp_path / "toxic.csv", [r for r in TOXIC if r[1] != "1"]))
    assert toxicity.labels([Reply("nice day"), Reply("crush them all")]).tolist() == [0, 2]


def test_files_of_labelled_texts_in_each_form(tmp_path):
    wanted = [(Reply("a, b"), "2"), (Reply("c"), "0")]
    davidson = write(tmp_path / "a.csv", [('"a, b"', "0"), ("c", "2")], ("tweet", "class"))
    assert read_labelled(davidson, None, None, LEVELS) == wanted
    named = write(tmp_path / "b.csv", [('"a, b"', "hate"), ("c", "none")], ("body", "kind"))
    levels = {"hate": 2, "none": 0}
    assert read_labelled(named, ("body", "kind"), levels, LEVELS) == wanted
    marked = tmp_path / "d.csv"
    marked.write_bytes(b"\xef\xbb\xbftext,label\nc,0\n")  # with a byte order mark
    assert read_labelled(str(marked), None, None, LEVELS) == wanted[1:]
    lines = tmp_path / "c.jsonl"
    lines.write_text("\n".join(json.dumps({"text": r.text, "label": int(n)}) for r, n in wanted))
    assert read_labelled(str(lines), None, None, LEVELS) == wanted


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("none.csv", None, {}, "which is no file"),
        ("a.txt", "text,label\n", {}, r"a.txt': expected files of rows \(.jsonl.*; got a.txt"),
        ("a.csv", "", {}, "expected labelled texts; got none"),
        ("a.csv", "txt,label\nx,1\n", {}, r"unknown column 'text' .* Did you mean 'txt'\?"),
        ("a.csv", "text,label\nx\n", {}, "line 2: expected a cell for each of the first row's 2"),
        ("a.csv", "text,label\nx,3\n", {}, r"unknown label '3' in a.csv, line 2.*Known: 0, 1, 2"),
        ("a.csv", "text,label\nx,bad\n", {"levels": {"good": 0}}, r"unknown label 'bad'"),
        ("a.csv", "text,label\nx,bad\n", {"levels": {"bad": 5}}, r"level of .* must be one of"),
        ("a.csv", b"\xff\xfe", {}, r"a.csv: expected text in UTF-8"),
        ("a.tsv", "text\tlabel\n" + "x" * 200_000, {}, r"a.tsv, line 2: expected a cell for each"),
        ("a.jsonl", "{text", {}, r"a.jsonl, line 1: expected JSON"),
        ("a.jsonl", "[1]", {}, r"a.jsonl, line 1: expected an object with names"),
    ],
)  # fmt: skip
def test_bad_files_are_one_clear_error(tmp_path, name, content, options, message):
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message):
        Toxicity(data=str(tmp_path / name), **options).score([Reply("x")])


@pytest.mark.slow
def test_intent_on_real_dialogues_beats_the_most_common_act(data, empty_cache):
    turns = real_turns(data, "validation")
    taught, asked = turns[:2000], [reply for reply, _ in turns[2000:4000]]
    hits = Intent(examples=lambda: taught, measure="hit").score(asked)
    acts = [reply.labels["act"] for reply in asked]
    assert hits.mean() > max(acts.count(act) for act in set(acts)) / len(acts) + 0.2
