"""Text to tokens and back."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.language import (
    END,
    PAD,
    UNK,
    AnyText,
    BPETokenizer,
    CharTokenizer,
    HFTokenizer,
    Tokenizer,
    WordTokenizer,
    compile_constraint,
    make_tokenizer,
)
from dialgym.language.text import UNKNOWN
from dialgym.language.tokenizers import FIRST_TEXT
from dialgym.rollouts import make_dialogue

LETTERS = "abcdefghijklmnopqrstuvwxyz "
CHARS = CharTokenizer(LETTERS)
WORDS = WordTokenizer(["b", "y", "g", "crane", "slate"])


@given(st.text(LETTERS))
def test_characters_come_back(text):
    assert CHARS.decode(CHARS.encode(text)) == text


@given(st.lists(st.sampled_from(WORDS.words)))
def test_words_come_back(words):
    text = " ".join(words)
    assert WORDS.decode(WORDS.encode(text)) == text


@given(st.text())
def test_no_text_forges_a_special_token(text):
    for tokenizer in (CHARS, WORDS):
        assert all(token >= 5 or token == UNK for token in tokenizer.encode(text))


@given(st.lists(st.text(LETTERS + "é<", max_size=9), min_size=1, max_size=6))
def test_many_at_once_are_as_one_by_one(texts):
    ids, lengths = CHARS.encode_many(np.array(texts))
    # NumPy's fixed-width strings cannot end in NUL; nothing else is lost
    assert [row[:n].tolist() for row, n in zip(ids, lengths)] == [CHARS.encode(t) for t in texts]
    assert (ids[np.arange(ids.shape[1]) >= lengths[:, None]] == PAD).all()
    decoded = CHARS.decode_many(ids, lengths)
    assert decoded.tolist() == [CHARS.decode(CHARS.encode(t)) for t in texts]


def test_special_tokens_decode_to_the_replacement_character():
    assert CHARS.decode([PAD, END, 5, 3]) == f"{UNKNOWN}{UNKNOWN}a{UNKNOWN}"
    assert WORDS.decode([4, 5]) == f"{UNKNOWN} b"


def test_equal_tokenizers_are_interchangeable():
    assert CharTokenizer(LETTERS) == CHARS
    assert hash(CharTokenizer(LETTERS)) == hash(CHARS)
    assert CharTokenizer("ab") != CHARS
    assert pickle.loads(pickle.dumps(CHARS)) == CHARS


@pytest.mark.parametrize("bad", ["", "aa", f"a{UNKNOWN}"])
def test_alphabet_is_checked(bad):
    with pytest.raises(ValueError, match="distinct characters"):
        CharTokenizer(bad)


@pytest.mark.parametrize("bad", [[], ["a b"], ["a", "a"], [""]])
def test_words_are_checked(bad):
    with pytest.raises(ValueError, match="words must be distinct"):
        WordTokenizer(bad)


def test_unknown_tokenizer_names_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown tokenizer 'chars'\. Did you mean 'char'\?"):
        make_tokenizer("chars", LETTERS)
    with pytest.raises(ValueError, match="must be a name or meet"):
        make_tokenizer(3, LETTERS)


@pytest.fixture(scope="module")
def hugging_face(tmp_path_factory):
    """A tiny byte-level BPE tokenizer in a local folder, as a user would name it."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    bpe = tokenizers.ByteLevelBPETokenizer()
    bpe.train_from_iterator(["the crane ate the slate", "crane crane late"], vocab_size=300)
    folder = tmp_path_factory.mktemp("bpe")
    bpe._tokenizer.add_special_tokens(["<|tool|>"])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer, eos_token="<|im_end|>", unk_token="<|unknown|>"
    )
    fast.save_pretrained(folder)
    return HFTokenizer(str(folder))


def test_hugging_face_tokens_are_shifted_by_the_special_ones(hugging_face):
    assert isinstance(hugging_face, Tokenizer)
    ids = hugging_face.encode("the crane")
    assert min(ids) >= 5
    assert hugging_face.decode(ids) == "the crane"
    assert hugging_face.decode([*ids, END]) == "the crane" + UNKNOWN
    assert hugging_face.vocab_size == len(hugging_face.tokens)


def test_hugging_face_pieces_add_up(hugging_face):
    ids = hugging_face.encode("the crane ate")
    pieces = [hugging_face.piece(token, i == 0) for i, token in enumerate(ids)]
    assert "".join(pieces) == "the crane ate"


def test_ids_without_a_token_are_no_text():
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "?": 1, "b": 9}, "?"))
    core.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    text = BPETokenizer.from_json(core.to_str())
    own = transformers.PreTrainedTokenizerFast(tokenizer_object=core, unk_token="?")
    for tokenizer in (text, HFTokenizer(own)):
        assert tokenizer.vocab_size == len(tokenizer.tokens) == FIRST_TEXT + 10
        assert tokenizer.decode(tokenizer.encode("a b")) == "a b"
        allowed = compile_constraint(AnyText(), tokenizer).allowed[0]
        assert not allowed[FIRST_TEXT + 2 : FIRST_TEXT + 9].any()


def test_special_tokens_of_hugging_face_are_no_text(hugging_face):
    names = ("<|im_end|>", "<|unknown|>", "<|tool|>")
    own = {hugging_face.tokens.index(name) for name in names}
    assert hugging_face.own_specials == own
    crane = hugging_face.encode("crane")
    for token in own:
        assert hugging_face.decode([*crane, token, *crane]) == f"crane{UNKNOWN}crane"
        assert hugging_face.piece(token, True) == hugging_face.piece(token, False) == ""
    assert own.isdisjoint(hugging_face.encode("crane<|im_end|><|tool|>"))
    allowed = compile_constraint(AnyText(), hugging_face).allowed[0]
    assert not allowed[[*own]].any()
    assert allowed[[END, *crane]].all()


@pytest.mark.parametrize("kind", ["byte level", "sentence piece", "unigram"])
def test_a_space_that_a_tokenizer_writes_before_each_text_is_no_part_of_it(kind):
    pytest.importorskip("transformers")
    from tests.support.spaced_tokenizers import spaced

    tokenizer = HFTokenizer(spaced(kind))
    for text in ("crane", "is it alive?", "zebra, no.", ""):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert tokenizer.decode([*ids, END, *ids]) == text + UNKNOWN + text
        pieces = [tokenizer.piece(token, i == 0) for i, token in enumerate(ids)]
        assert "".join(pieces) == text


def test_tokenizers_that_differ_in_such_a_space_are_not_equal():
    pytest.importorskip("transformers")
    from tests.support.spaced_tokenizers import spaced

    before, none = (spaced("byte level") for _ in range(2))
    byte_level = before.backend_tokenizer.pre_tokenizer.__class__
    none.backend_tokenizer.pre_tokenizer = byte_level(add_prefix_space=False)
    assert HFTokenizer(before).tokens == HFTokenizer(none).tokens
    assert HFTokenizer(before) != HFTokenizer(none)
    assert HFTokenizer(before) == HFTokenizer(pickle.loads(pickle.dumps(before)))


@pytest.mark.parametrize("kind", ["byte level", "sentence piece", "unigram"])
@pytest.mark.parametrize("id", ["Wordle-20-v0", "TwentyQuestions-16-v0"])
def test_masks_allow_what_a_tokenizer_with_such_a_space_writes(id, kind):
    pytest.importorskip("transformers")
    from tests.support.spaced_tokenizers import spaced

    tokenizer = HFTokenizer(spaced(kind))
    words = make_dialogue(id, {}).task.static_constraint("system")
    automaton = compile_constraint(words, tokenizer)
    for text in words.words:
        state = 0
        for token in [*tokenizer.encode(text), END]:
            assert automaton.allowed[state, token], text
            state = automaton.transitions[state, token]


def test_a_missing_hugging_face_tokenizer_is_one_clear_error(tmp_path):
    pytest.importorskip("transformers")
    with pytest.raises(ValueError, match=r"tokenizer: there is no file or folder '.*/nothing'"):
        make_tokenizer(f"hf:{tmp_path / 'nothing'}", LETTERS)
    with pytest.raises(ValueError, match=r"expected the files of a tokenizer of transformers in"):
        make_tokenizer(f"hf:{tmp_path}", LETTERS)


def test_a_hugging_face_tokenizer_of_a_revision(hugging_face, tmp_path, pretend_hub):
    hugging_face.own.save_pretrained(tmp_path)
    pretend_hub.add("who/words", tmp_path, "v1")
    for name in ("who/words@v1", tmp_path):
        assert make_tokenizer(f"hf:{name}", LETTERS).tokens == hugging_face.tokens
    with pytest.raises(ValueError, match="'hf:who/words' could not be fetched"):
        make_tokenizer("hf:who/words", LETTERS)
