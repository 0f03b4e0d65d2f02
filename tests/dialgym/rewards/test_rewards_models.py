"""Rewards by classifiers of Hugging Face, against the model called by hand, one reply at a time."""

import pickle
import random
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dialgym.io import hub
from dialgym.rewards import Reply, make_reward
from dialgym.rewards.judges import Intent, Sentiment
from dialgym.rewards.models import LearnedReward, pair_of
from dialgym.rewards.toxicity import Toxicity
from tests.support.close import assert_close
from tests.support.pretend_hub import COMMIT
from tests.support.tiny_judges import WINDOWS, WORDS, save, tokenizer

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("offline")

ACTS = ("inform", "question", "directive")
KINDS = ("bert", "roberta", "gpt2")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    base = tmp_path_factory.mktemp("judges")
    made = {kind: save(base / kind, kind) for kind in KINDS}
    made["broken"] = save(base / "broken")
    (base / "broken" / "model.safetensors").write_bytes(b"no weights at all")
    made["acts"] = save(base / "acts", "bert", ACTS)
    made["mood"] = save(base / "mood", "roberta", ("NEGATIVE", "Neutral", "positive"))
    made["levels"] = save(base / "levels", "gpt2", ("2", "0", "1"))
    made["tags"] = save(base / "tags", "bert", ("insult", "threat", "rude"), multi=True)
    return made


def replies(count, longest=30, seed=0):
    rng = random.Random(seed)

    def text():
        return " ".join(rng.choices("abcdefghij", k=rng.randint(0, longest)))

    return [
        Reply(
            text(), tuple(text() for _ in range(rng.randint(0, 3))), (), {"act": rng.choice(ACTS)}
        )
        for _ in range(count)
    ]


@cache
def loaded(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    if tokenizer.pad_token is None:
        model.config.pad_token_id = None  # the last token counts, whichever it is
    return tokenizer, model


def by_hand(folder, reply, turns=None):
    """Logits of one reply, nothing padded; the longer side is cut from its beginning."""
    tokenizer, model = loaded(folder)
    texts = [reply.text] if turns == 0 else pair_of(reply, turns)
    sides = [tokenizer(text, add_special_tokens=False).input_ids for text in texts]
    while sum(map(len, sides)) > 24:
        del max(sides, key=len)[0]
    ends = tokenizer("").input_ids  # the first and the last token of what is read, or none
    ids, types = ends[:1], [0] * len(ends[:1])
    for number, side in enumerate(sides):
        ids, types = ids + side + ends[1:], types + [number] * len(side + ends[1:])
    if not ids:
        ids, types = [tokenizer.eos_token_id], [0]
    more = {"token_type_ids": torch.tensor([types])} if model.config.model_type == "bert" else {}
    with torch.no_grad():
        return model(torch.tensor([ids]), **more).logits[0].double().numpy()


def test_a_model_reads_the_last_turns_or_all_that_there_are():
    reply = Reply("r", ("a", "b", "c"))
    read = {turns: pair_of(reply, turns)[0] for turns in (0, 1, 2, 3, 4, 9, None)}
    everything = "a\nb\nc"
    assert read == {0: "", 1: "c", 2: "b\nc", **dict.fromkeys((3, 4, 9, None), everything)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("turns", [None, 1])
def test_a_batch_is_what_one_at_a_time_gives(folders, kind, turns):
    asked = replies(50, longest=12, seed=1)
    reward = LearnedReward(model=folders[kind], turns=turns, batch_size=7)
    wanted = [by_hand(folders[kind], reply, turns)[0] for reply in asked]
    found = reward.score(asked)
    assert_close(found, wanted)
    assert found.std() > 0.01
    assert reward.bounds == (-np.inf, np.inf)
    assert reward.score([]).shape == (0,)


@pytest.mark.parametrize("kind", KINDS)
def test_long_pairs_are_cut_to_the_window(folders, kind):
    long = Reply("a b c " * 30, ("d e f " * 30, "g h"))
    reward = LearnedReward(model=folders[kind])
    assert np.isfinite(reward.score([long, Reply("a")])).all()
    assert reward.classifier.max_length == WINDOWS[kind]
    other = long._replace(context=("j " * 5 + long.context[0], "g h"))
    assert reward.score([other]).tolist() == reward.score([long]).tolist()
    short = LearnedReward(model=folders[kind], max_length=9)
    assert short.classifier.max_length == 9
    rows = short.classifier._encode([long], None)
    assert [len(row["input_ids"]) for row in rows] == [9]


def test_scores_may_be_squashed_and_clipped(folders):
    asked = replies(20)
    plain = LearnedReward(model=folders["bert"]).score(asked)
    squashed = LearnedReward(model=folders["bert"], sigmoid=True)
    np.testing.assert_allclose(squashed.score(asked), 1 / (1 + np.exp(-plain)))
    assert squashed.bounds == (0, 1)
    middle = float(np.median(plain))
    clipped = LearnedReward(model=folders["bert"], clip=(middle, middle + 0.01))
    np.testing.assert_allclose(clipped.score(asked), plain.clip(middle, middle + 0.01))
    assert clipped.bounds == (middle, middle + 0.01)


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum()


def test_intent_reads_the_pair(folders):
    asked = replies(40, longest=6)
    table = np.array([softmax(by_hand(folders["acts"], reply, 1)) for reply in asked])
    wanted = [row[ACTS.index(r.labels["act"])] for row, r in zip(table, asked)]
    found = Intent(model=folders["acts"], turns=1).score(asked)
    assert_close(found, wanted)
    hits = [ACTS[row.argmax()] == r.labels["act"] for row, r in zip(table, asked)]
    named = Intent(model=folders["acts"], turns=1, measure="hit", labels=ACTS[::-1])
    assert Intent(model=folders["acts"], turns=1, measure="hit").score(asked).tolist() == hits
    turned = [ACTS[::-1][row.argmax()] == r.labels["act"] for row, r in zip(table, asked)]
    assert named.score(asked).tolist() == turned


def test_a_model_comes_before_examples(folders):
    def examples():
        raise AssertionError("not needed")

    asked = replies(3)
    intent = make_reward("intent", {"model": folders["acts"]}, examples)
    assert intent.score(asked).shape == (3,)


def test_sentiment_is_the_expected_value_of_the_reply_alone(folders):
    asked = replies(40, longest=6)
    table = np.array([softmax(by_hand(folders["mood"], reply, 0)) for reply in asked])
    found = Sentiment(model=folders["mood"]).score(asked)
    assert_close(found, table @ [-1, 0, 1])
    values = {"negative": 0, "neutral": 0.5, "positive": 0.25}
    found = Sentiment(model=folders["mood"], values=values).score(asked)
    assert_close(found, table @ [0, 0.5, 0.25])


def test_sentiment_of_labels_that_hold_at_once_stays_within_its_bounds(folders):
    values = dict.fromkeys(("insult", "threat", "rude"), -1.0)
    asked = replies(40, longest=6)
    chances = np.array([1 / (1 + np.exp(-by_hand(folders["tags"], r, 0))) for r in asked])
    assert chances.sum(1).max() > 1
    found = Sentiment(model=folders["tags"], values=values).score(asked)
    assert_close(found, -chances.sum(1).clip(max=1))


def test_toxicity_adds_up_levels(folders):
    asked = replies(40, longest=6)
    table = np.array([softmax(by_hand(folders["levels"], reply, 0)) for reply in asked])
    toxicity = Toxicity(model=folders["levels"])
    assert_close(toxicity.probabilities(asked), table[:, [1, 2, 0]])
    two = Toxicity(model=folders["levels"], levels={"2": 2, "0": 0, "1": 2})
    wanted = np.stack([table[:, 1], np.zeros(40), table[:, 0] + table[:, 2]], 1)
    assert_close(two.probabilities(asked), wanted)
    assert (toxicity.score(asked) == -toxicity.labels(asked)).all()


def test_toxicity_by_labels_that_hold_at_once(folders):
    asked = replies(40, longest=6)
    chances = np.array([1 / (1 + np.exp(-by_hand(folders["tags"], r, 0))) for r in asked])
    levels = {"insult": 1, "threat": 2, "rude": 1}
    found = Toxicity(model=folders["tags"], levels=levels).probabilities(asked)
    any_at_all = chances.max(1)
    wanted = np.stack([1 - any_at_all, any_at_all - chances[:, 1], chances[:, 1]], 1)
    assert_close(found, wanted)


def test_pickling_takes_no_model_along(folders):
    reward, asked = LearnedReward(model=folders["gpt2"]), replies(5)
    before = reward.score(asked)
    stored = pickle.dumps(reward)
    assert len(stored) < 1000
    assert b"torch" not in stored
    copy = pickle.loads(stored)
    assert "classifier" not in vars(copy)
    assert copy == reward
    assert_close(copy.score(asked), before)


def test_making_a_reward_loads_nothing():
    code = (
        "import sys; from dialgym.rewards import make_rewards\n"
        "make_rewards({'meteor': 1, 'rougeL': 1, 'sacrebleu': 1, 'similarity': 1, 'sentiment': 1,"
        " 'toxicity': {'data': 'x.csv'}, 'intent': {'model': 'x'}, 'learned': {'model': 'x'}})\n"
        "heavy = {'torch', 'transformers', 'sklearn', 'scipy', 'nltk', 'rouge_score', 'sacrebleu',"
        " 'sentence_transformers'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda f: LearnedReward(), "reward 'learned' needs `model`"),
        (lambda f: LearnedReward(model="x", clip=(2, 1)), "clip of reward 'learned' leaves"),
        (lambda f: LearnedReward(model="no/such-model"),
         r"reward 'learned': there is no .* say 'hf:no/such-model'"),
        (lambda f: LearnedReward(model=f["acts"]), "expects a model with one output; .* has 3"),
        (lambda f: Intent(model=f["acts"], labels=("a", "b")), "expected 3; got"),
        (lambda f: Sentiment(model=f["acts"]), "a value from -1 to 1 for each label .* inform"),
        (lambda f: Sentiment(model=f["mood"], values={"positive": 3, "negative": 0, "neutral": 0}),
         "expects a value from -1 to 1"),
        (lambda f: Intent(model=f["bert"]), "reward 'intent' expects a model with an output for"),
        (lambda f: Toxicity(model=f["bert"], levels={"LABEL_0": 2}), "takes such a model"),
        (lambda f: LearnedReward(model=f["broken"]), "could not load the model .*broken"),
        (lambda f: Toxicity(model=f["acts"]), "a level from 0 to 2 for each label .* inform"),
    ],
)  # fmt: skip
def test_bad_models_are_one_clear_error_each_time(folders, make, message):
    with pytest.raises(ValueError, match=message):
        make(folders).score(replies(1))
    try:
        reward = make(folders)
    except ValueError:
        return
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            reward.score(replies(1))


def test_a_model_without_a_window_reads_all(tmp_path):
    config = transformers.BloomConfig(
        vocab_size=len(WORDS), hidden_size=16, n_layer=1, n_head=2, num_labels=1, pad_token_id=2
    )
    transformers.BloomForSequenceClassification(config).save_pretrained(tmp_path)
    tokenizer("gpt2", 10**30).save_pretrained(tmp_path)
    reward = LearnedReward(model=str(tmp_path))
    long = [Reply("a " * 100 + word) for word in "bc"]
    assert np.ptp(reward.score(long)) > 0
    assert reward.classifier.max_length is None


def test_a_model_without_a_head_is_refused(folders, tmp_path):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folders["bert"])
    model.bert.save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(folders["bert"]).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"is no trained classifier, it lacks .*classifier"):
        LearnedReward(model=str(tmp_path)).score(replies(1))


def test_a_model_of_a_revision(folders, pretend_hub):
    pretend_hub.add("who/judge", Path(folders["levels"]), "v1")
    named, here = (
        make_reward("toxicity", {"model": name}) for name in ("hf:who/judge@v1", folders["levels"])
    )
    replies = [Reply("the tea"), Reply("no")]
    np.testing.assert_array_equal(named.score(replies), here.score(replies))
    assert hub.commits() == {"hf:who/judge@v1": COMMIT}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_classifier_may_be_of_half_the_bytes(folders, dtype):
    settings = {"model": str(folders["mood"])}
    exact, small = (Sentiment(**settings, **more) for more in ({}, {"dtype": dtype}))
    some = replies(8)
    assert_close(small.score(some), exact.score(some), 0.05)
    assert next(small.classifier.model.parameters()).dtype == getattr(torch, dtype)
    with pytest.raises(ValueError, match="dtype"):
        _ = Sentiment(**settings, dtype="int4").classifier
