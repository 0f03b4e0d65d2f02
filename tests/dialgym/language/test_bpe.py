"""Byte-pair encodings: trained on the texts at hand, and as a tokenizer of views."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.language import BPETokenizer, make_tokenizer
from dialgym.language.text import CHARSET
from dialgym.language.tokenizers import FIRST_TEXT, SPECIALS, train_bpe
from dialgym.tasks import Facts
from dialgym.views.spaces import tokenizer_of

TEXTS = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog"] * 20


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    train_bpe(TEXTS, 130).save(str(path))
    return make_tokenizer(f"bpe:{path}", "")


def test_it_learns_the_words_it_sees_often(tokenizer):
    assert tokenizer.vocab_size == len(tokenizer.tokens) <= FIRST_TEXT + 130
    assert tokenizer.tokens[: len(SPECIALS)] == SPECIALS
    assert len(tokenizer.encode("the cat sat")) < len("the cat sat") / 2
    assert tokenizer.encode("the")[0] >= FIRST_TEXT


@given(st.text(CHARSET))
def test_what_is_printable_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_pieces_add_up_to_the_text(tokenizer):
    ids = tokenizer.encode("the dog, and a cat")
    pieces = [tokenizer.piece(token, i == 0) for i, token in enumerate(ids)]
    assert "".join(pieces) == "the dog, and a cat"


def test_texts_are_neither_cut_nor_filled_up(tokenizer, tmp_path):
    core = train_bpe(TEXTS, 130)
    core.enable_truncation(2)
    core.enable_padding(length=16)
    core.save(str(tmp_path / "batches.json"))
    for text in ("a", "the cat sat on the mat"):
        found = BPETokenizer(tmp_path / "batches.json").encode(text)
        assert found == tokenizer.encode(text)


def test_copies_are_equal(tokenizer):
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again == tokenizer
    assert again.encode("a mat") == tokenizer.encode("a mat")
    assert hash(again) == hash(BPETokenizer(tokenizer.path))


def test_no_file_is_one_clear_error(tmp_path):
    (tmp_path / "broken.json").write_text("{}", encoding="utf-8")
    for path in (tmp_path / "none.json", tmp_path / "broken.json"):
        with pytest.raises(ValueError, match=r"expected a tokenizer\.json .* Check the path"):
            make_tokenizer(f"bpe:{path}", "")


def test_limits_of_utterances_are_of_pieces(tokenizer):
    """One place says how long an utterance may be in whatever it is written in."""
    from dialgym.views.spaces import token_limit

    class Talk:
        name = "Talk"
        facts = Facts(
            1,
            {"system": 60, "user": 60},
            {},
            {},
            CHARSET,
            words={"system": {"user": 8}},
            pieces={"system": 20, "user": 30},
        )
        tokenizer = "char"

        def words(self):
            return ["the"]

    talk = Talk()
    assert token_limit(talk, tokenizer, "system", "user") == 30
    assert token_limit(talk, tokenizer_of(talk, "word"), "system", "user") == 9
    assert token_limit(talk, tokenizer_of(talk), "system", "user") == 61
