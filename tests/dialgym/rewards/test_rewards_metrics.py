"""Metrics of an evaluation, against the reference libraries, and their intervals."""

import random

import numpy as np
import pytest

from dialgym.rewards import Reply, make_reward
from dialgym.rewards.metrics import NAMES, ReplyMetrics, distinct, metrics_of
from dialgym.rewards.words import words
from tests.support.reward_pairs import generated, real_turns, shuffled

sacrebleu = pytest.importorskip("sacrebleu")
pytest.importorskip("rouge_score")
pytest.importorskip("nltk")

WITHOUT_INTENT = [name for name in NAMES if name != "intent"]
ONE = [r for r in generated(random.Random(7), 150) if len(r.references) == 1 and r.text.strip()]
THREE = [r for r in generated(random.Random(8), 400) if len(r.references) == 3]


def corpus_bleu(replies, **settings):
    streams = list(zip(*(reply.references for reply in replies)))
    texts = [reply.text for reply in replies]
    return sacrebleu.corpus_bleu(texts, streams, **settings).score / 100


@pytest.mark.parametrize("replies", [ONE, THREE, ONE[:1]], ids=["one", "three", "single"])
def test_bleu_is_that_of_the_corpus(replies):
    assert len(replies) >= 200 or len(replies) == 1
    assert metrics_of(replies, ["sacrebleu"])["sacrebleu"] == pytest.approx(
        corpus_bleu(replies), abs=1e-12
    )


@pytest.mark.parametrize("smooth", ["add-k", "floor", "none"])
def test_bleu_is_smoothed_once_for_the_whole_corpus(smooth):
    metrics = ReplyMetrics(["sacrebleu"], settings={"sacrebleu": {"smooth": smooth}})
    wanted = corpus_bleu(ONE[:60], smooth_method=smooth)
    assert metrics.values(ONE[:60])["sacrebleu"] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.slow
def test_measures_of_real_replies(data):
    replies = shuffled(real_turns(data, "validation"), random.Random(2), 300)
    found = metrics_of(replies, WITHOUT_INTENT)
    assert list(found) == WITHOUT_INTENT
    assert found["sacrebleu"] == pytest.approx(corpus_bleu(replies), abs=1e-12)
    for name in ("rouge1", "rougeL", "rougeLsum", "meteor"):
        assert found[name] == pytest.approx(make_reward(name).score(replies).mean(), abs=1e-12)
    tokens = [words(reply.text) for reply in replies]
    assert found["words"] == pytest.approx(np.mean([len(t) for t in tokens]))
    assert found["distinct1"] == len({w for t in tokens for w in t}) / sum(map(len, tokens))


def test_distinct_is_of_the_whole_set():
    replies = [Reply("a b a"), Reply("a b c"), Reply("d")]
    assert distinct(replies, 1) == 4 / 7
    assert distinct(replies, 2) == 3 / 4
    assert distinct([Reply("")], 1) == 0


def taught():
    said = [("where is it?", "question"), ("it is here.", "inform"), ("bring it!", "directive")]
    return [(Reply(text, labels={"act": act}), act) for text, act in said * 8]


def test_intent_is_the_share_of_hits():
    pytest.importorskip("sklearn")
    replies = [reply for reply, _ in taught()[:3]]
    replies.append(Reply("where is it?", labels={"act": "inform"}))
    assert metrics_of(replies, ["intent", "words"], taught) == {"intent": 0.75, "words": 2.75}


def test_other_rewards_and_settings_may_be_reported():
    metrics = ReplyMetrics(["sentiment", "rouge1"], settings={"rouge1": {"measure": "recall"}})
    replies = [Reply("good day", references=("good good",)), Reply("bad", references=("x",))]
    assert metrics.values(replies) == {"sentiment": pytest.approx(-1 / 12), "rouge1": 0.25}
    assert metrics.per_reply(replies)["rouge1"].tolist() == [0.5, 0.0]


def test_per_reply_values_have_the_reported_mean():
    metrics = ReplyMetrics(WITHOUT_INTENT)
    found, values = metrics.per_reply(ONE), metrics.values(ONE)
    assert set(found) == set(WITHOUT_INTENT) - {"sacrebleu", "distinct1", "distinct2"}
    for name, column in found.items():
        assert column.shape == (len(ONE),)
        assert column.mean() == pytest.approx(values[name])


def test_intervals_are_those_of_a_slow_bootstrap():
    metrics, names = (
        ReplyMetrics(["meteor", "sacrebleu", "words"]),
        ("meteor", "sacrebleu", "words"),
    )
    replies = ONE[:20]
    found = metrics.intervals(replies, np.random.default_rng(0), resamples=1000)
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(250):
        chosen = [replies[i] for i in rng.integers(len(replies), size=len(replies))]
        drawn.append([metrics.values(chosen)[name] for name in names])
    slow = np.percentile(drawn, [2.5, 97.5], axis=0)
    values = metrics.values(replies)
    for i, name in enumerate(names):
        low, high = found[name]
        assert low < values[name] < high
        width = slow[1, i] - slow[0, i]
        assert abs(low - slow[0, i]) < 0.2 * width
        assert abs(high - slow[1, i]) < 0.2 * width


def test_intervals_come_from_the_generator_alone():
    metrics = ReplyMetrics(["words"])
    first, again, other = (
        metrics.intervals(ONE, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert first == again != other
    narrow = metrics.intervals(ONE, np.random.default_rng(0), level=0.5)["words"]
    assert first["words"][0] < narrow[0] < narrow[1] < first["words"][1]
    assert "distinct1" not in ReplyMetrics(["distinct1"]).intervals(ONE, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: metrics_of([]), "needs labelled replies to learn from"),
        (lambda: metrics_of([], ["words"]), "metrics need one reply or more; got none"),
        (lambda: metrics_of(ONE, ["rogue1"]), r"unknown reward 'rogue1'\. Did you mean 'rouge1'\?"),
        (lambda: metrics_of([Reply("hi")], ["sacrebleu"]), "'hi' has none"),
        (lambda: ReplyMetrics(["words"], settings={"rouge1": {}}), "unknown measure 'rouge1'"),
    ],
)  # fmt: skip
def test_bad_arguments_are_one_clear_error(run, message):
    with pytest.raises(ValueError, match=message):
        run()
