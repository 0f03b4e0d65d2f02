"""METEOR, ROUGE and BLEU against their reference libraries and slow versions of their own."""

import pickle
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.rewards import Reply, make_reward
from dialgym.rewards.overlap import Meteor, Rouge, SacreBLEU
from dialgym.rewards.words import Treebank, sentences
from tests.support.reward_pairs import ODD, generated, real_turns, shuffled

meteor_score = pytest.importorskip("nltk.translate.meteor_score")
rouge_scorer = pytest.importorskip("rouge_score.rouge_scorer")
sacrebleu = pytest.importorskip("sacrebleu")
nltk = pytest.importorskip("nltk")

MADE = generated(random.Random(0), 80)
TEXTS = st.lists(st.sampled_from([*"abcd", "running", "runs", ".", "don't"]), max_size=9).map(
    " ".join
)


@pytest.fixture(scope="module")
def real(data):
    return shuffled(real_turns(data, "validation"), random.Random(1), 200)


class NoWordNet:
    def synsets(self, word):
        return []


def by_nltk(reply, tokenize, **weights):
    refs = [tokenize(reference) for reference in reply.references]
    return meteor_score.meteor_score(refs, tokenize(reply.text), wordnet=NoWordNet(), **weights)


def treebank(text):
    """nltk's word_tokenize, where the sentences are known: it needs no data then."""
    return [
        token for part in sentences(text) for token in nltk.word_tokenize(part, preserve_line=True)
    ]


def by_rouge(reply, kind, measure="fmeasure", **options):
    scorer = rouge_scorer.RougeScorer([kind], **options)
    return getattr(scorer.score_multi(reply.references, reply.text)[kind], measure)


def same(reward, replies, reference):
    assert len(replies) >= 200
    found, wanted = reward.score(replies), [reference(reply) for reply in replies]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, atol=1e-12, rtol=0)
    assert 0 <= found.min() < found.max() <= 1
    return found


CASES = [
    (Meteor(), lambda r: by_nltk(r, treebank)),
    (Meteor(tokenizer="split"), lambda r: by_nltk(r, str.split)),
    (Meteor(tokenizer="wordpunct", alpha=0.8, beta=2.0, gamma=0.3),
     lambda r: by_nltk(r, nltk.wordpunct_tokenize, alpha=0.8, beta=2.0, gamma=0.3)),
    *[(make_reward(kind), lambda r, kind=kind: by_rouge(r, kind))
      for kind in ("rouge1", "rouge2", "rougeL", "rougeLsum")],
    (Rouge(kind="rouge3", stemmer=True), lambda r: by_rouge(r, "rouge3", use_stemmer=True)),
    (Rouge(kind="rougeL", measure="recall"), lambda r: by_rouge(r, "rougeL", "recall")),
    (Rouge(kind="rouge1", measure="precision"), lambda r: by_rouge(r, "rouge1", "precision")),
    (SacreBLEU(),
     lambda r: sacrebleu.sentence_bleu(r.text, list(r.references)).score / 100),
    (SacreBLEU(lowercase=True, smooth="add-k", tokenize="intl"),
     lambda r: sacrebleu.sentence_bleu(
         r.text, list(r.references), "add-k", lowercase=True, tokenize="intl").score / 100),
]  # fmt: skip
IDS = [str(reward)[:40] for reward, _ in CASES]


@pytest.mark.parametrize(("reward", "reference"), CASES, ids=IDS)
def test_made_pairs_score_as_in_the_reference_library(reward, reference):
    same(reward, MADE, reference)


@pytest.mark.parametrize(("reward", "reference"), CASES, ids=IDS)
def test_real_pairs_score_as_in_the_reference_library(reward, reference, real):
    same(reward, real, reference)


PLAIN = st.text("abcdefnotsmle ,.?!'-3", max_size=24)
CLITICS = st.lists(
    st.sampled_from([
        "cannot", "can't", "gonna", "'tis", "'twas", "d'ye", "more'n", "gimme", "I'm", "cats'",
        "'ll", "don't", "DON'T", "ain't", "'s", "end.", "Mr.", "U.S.", "...", "--", ",", ".", "''",
        "3,000", "3.5", "a,b", "x.y", "wanna", "it's,", "no?!", "'quoted'", '"so"', "(yes)",
    ]),
    max_size=7,
).map(" ".join)  # fmt: skip


@given(text=st.one_of(PLAIN, CLITICS))
def test_words_cut_one_by_one_are_those_of_nltk(text):
    assert Treebank()(text) == treebank(text)


def test_real_words_cut_one_by_one_are_those_of_nltk(data):
    cut = Treebank()
    for reply, _ in real_turns(data, "test")[:100]:
        assert cut(reply.text) == treebank(reply.text)


def test_lsum_by_marks_is_that_of_lines(real):
    lines = [
        reply._replace(
            text="\n".join(sentences(reply.text)),
            references=tuple("\n".join(sentences(text)) for text in reply.references),
        )
        for reply in real
    ]
    found = Rouge(kind="rougeLsum", sentences="marks").score(real)
    np.testing.assert_array_equal(found, make_reward("rougeLsum").score(lines))
    assert (found != make_reward("rougeLsum").score(real)).any()


def slow_meteor(text, reference, alpha=0.9, beta=3.0, gamma=0.5):
    """By the paper: greedy matches from the right, as they are and then by stem."""
    stem = nltk.stem.porter.PorterStemmer().stem
    said, wanted, pairs = text.lower().split(), reference.lower().split(), []
    for form in (str, stem):
        for i in reversed(range(len(said))):
            free = [
                j for j in range(len(wanted))
                if form(wanted[j]) == form(said[i]) and j not in [b for _, b in pairs]
            ]  # fmt: skip
            if free and i not in [a for a, _ in pairs]:
                pairs.append((i, free[-1]))
    if not pairs:
        return 0.0
    pairs.sort()
    chunks = 1 + sum((c, d) != (a + 1, b + 1) for (a, b), (c, d) in pairwise(pairs))
    p, r = len(pairs) / len(said), len(pairs) / len(wanted)
    return (1 - gamma * (chunks / len(pairs)) ** beta) * p * r / (alpha * p + (1 - alpha) * r)


@given(text=TEXTS, reference=TEXTS)
def test_meteor_is_the_formula_of_the_paper(text, reference):
    found = Meteor(tokenizer="split").score([Reply(text, references=(reference,))]).item()
    assert found == pytest.approx(slow_meteor(text, reference), abs=1e-12)


def lcs(a, b):
    if not a or not b:
        return 0
    if a[0] == b[0]:
        return 1 + lcs(a[1:], b[1:])
    return max(lcs(a[1:], b), lcs(a, b[1:]))


@given(text=st.text("abc ", max_size=12), reference=st.text("abc ", max_size=12))
def test_rouge_l_is_twice_the_subsequence_over_both_lengths(text, reference):
    a, b = text.split(), reference.split()
    wanted = 2 * lcs(a, b) / (len(a) + len(b)) if a and b else 0
    found = make_reward("rougeL").score([Reply(text, references=(reference,))]).item()
    assert found == pytest.approx(wanted, abs=1e-12)


def test_closed_forms():
    reply = Reply("the cat sat on the mat", references=("the cat sat on the mat",))
    assert Meteor().score([reply]).item() == pytest.approx(1 - 0.5 / 6**3)
    assert SacreBLEU().score([reply]).item() == pytest.approx(1)
    assert make_reward("rouge2").score([reply]).item() == 1
    half = Reply("the cat", references=("the cat sat down",))
    assert make_reward("rouge1").score([half]).item() == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", ["meteor", "rouge1", "rougeLsum", "sacrebleu"])
def test_the_best_of_several_references_counts(name):
    reward, texts = make_reward(name), [text for text in ODD if text.strip()]
    reply = Reply("yes really", references=("no", "yes really", "never"))
    assert reward.score([reply]) == reward.score([reply._replace(references=("yes really",))])
    assert reward.score([Reply("", references=tuple(texts))]).item() == 0


@pytest.mark.parametrize("name", ["meteor", "rouge1", "sacrebleu"])
def test_replies_are_scored_alike_in_any_company_and_after_pickling(name):
    reward = make_reward(name)
    together = reward.score(MADE)
    assert together.tolist() == [reward.score([reply]).item() for reply in MADE]
    assert reward.score([]).shape == (0,)
    copy = pickle.loads(pickle.dumps(reward))
    assert copy == reward
    assert copy.score(MADE).tolist() == together.tolist()


@pytest.mark.parametrize("name", ["meteor", "rouge1", "sacrebleu"])
def test_a_reply_without_references_is_one_clear_error(name):
    with pytest.raises(ValueError, match=r"compares a reply with references, and 'hi' has none"):
        make_reward(name).score([Reply("hi")])


def test_synonyms_need_wordnet_and_say_so():
    reply = Reply("my auto", references=("my car",))
    try:
        nltk.corpus.wordnet.ensure_loaded()
    except (LookupError, OSError):
        with pytest.raises(ValueError, match="found no whole WordNet among nltk's data"):
            Meteor(wordnet=True).score([reply])
        pytest.skip("nltk's WordNet is not here; its scores were not compared")
    found = Meteor(wordnet=True).score([reply, *MADE])
    wanted = [
        meteor_score.meteor_score([treebank(text) for text in r.references], treebank(r.text))
        for r in (reply, *MADE)
    ]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert wanted[0] > Meteor().score([reply]).item()
