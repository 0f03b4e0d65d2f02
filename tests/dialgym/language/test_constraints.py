"""Constraints over text, and their automata over tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.language import (
    END,
    AnyText,
    CharTokenizer,
    Letters,
    WordTokenizer,
    WordTrie,
    compile_constraint,
)
from dialgym.language.automata import AutomatonCache, _rows, _tables, _without_dead_ends

CHARS = CharTokenizer("abc ")
WORD_LISTS = st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=12)


def sayable(automaton, tokenizer, longest):
    """Every text that the automaton lets end, by walking all of it."""
    found, frontier = set(), [((), 0)]
    for _ in range(longest + 1):
        found |= {ids for ids, state in frontier if automaton.allowed[state, END]}
        frontier = [
            ((*ids, t), automaton.transitions[state, t])
            for ids, state in frontier
            for t in np.flatnonzero(automaton.allowed[state])
            if t != END
        ]
    return {tokenizer.decode(ids) for ids in found}


@given(WORD_LISTS)
def test_a_lexicon_allows_its_words_and_nothing_else(words):
    automaton = compile_constraint(WordTrie(words), CHARS)
    assert sayable(automaton, CHARS, 4) == set(words)


@given(WORD_LISTS, st.text("abc", max_size=5))
def test_a_lexicon_knows_the_beginnings_of_its_words(words, text):
    lexicon, state = WordTrie(words), WordTrie(words).start
    for char in text:
        assert set(lexicon.choices(state)) == {
            c for c in "abc" if lexicon.advance(state, c) is not None
        }
        state = lexicon.advance(state, char)
        if state is None:
            break
    assert (state is not None) == any(word.startswith(text) for word in words)


def test_letters():
    automaton = compile_constraint(Letters("ab", 2), CHARS)
    assert sayable(automaton, CHARS, 3) == {"aa", "ab", "ba", "bb"}


def test_words_with_spaces_between():
    tokenizer = WordTokenizer(["new", "york", "city"])
    automaton = compile_constraint(WordTrie(["new york", "new city"]), tokenizer)
    assert sayable(automaton, tokenizer, 3) == {"new york", "new city"}


@given(st.lists(st.text("abc ", max_size=6), max_size=12))
def test_texts_are_compiled_word_by_word_to_what_they_are_letter_by_letter(texts):
    tokenizer, lexicon = WordTokenizer(["a", "ab", "b", "ba"]), WordTrie(["a b", *texts])
    slow = _tables(_without_dead_ends(_rows(lexicon, tokenizer)), tokenizer.vocab_size)
    quick = compile_constraint(lexicon, tokenizer)
    assert sayable(quick, tokenizer, 6) == sayable(slow, tokenizer, 6)


def test_beginnings_that_no_token_completes_are_not_allowed():
    tokenizer = WordTokenizer(["b", "brand", "crane"])
    automaton = compile_constraint(WordTrie(["brand", "crane"]), tokenizer)
    assert np.flatnonzero(automaton.allowed[0]).tolist() == tokenizer.encode("brand crane")


def test_a_constraint_that_cannot_be_met_is_one_clear_error():
    with pytest.raises(ValueError, match="no utterance that the tokenizer can write"):
        compile_constraint(WordTrie(["xyz"]), CHARS)


def test_any_text_rules_out_only_special_tokens():
    automaton = compile_constraint(AnyText(), CHARS)
    assert automaton.allowed[0].tolist() == [False, True, False, False, False] + [True] * 4


def test_no_mask_is_empty_even_after_a_forbidden_token():
    automaton = compile_constraint(WordTrie(["abc"]), CHARS)
    assert automaton.allowed.any(1).all()
    dead = automaton.walk([CHARS.encode("c")[0]])
    assert np.flatnonzero(automaton.allowed[dead]).tolist() == [END]
    assert automaton.walk([END], dead) == 0


def test_equal_constraints_share_an_automaton():
    first = compile_constraint(WordTrie(["a", "b"]), CHARS)
    assert compile_constraint(WordTrie(["b", "a"]), CharTokenizer("abc ")) is first


def test_an_empty_lexicon_is_refused():
    with pytest.raises(ValueError, match="the list of words is empty"):
        WordTrie([])


def test_automata_are_remembered_up_to_a_size():
    lexicons = [WordTrie(["a" * n]) for n in range(1, 5)]
    sizes = [compile_constraint(lexicon, CHARS).nbytes for lexicon in lexicons]
    cache = AutomatonCache(sum(sizes[1:]))
    made = [cache.automaton(lexicon, CHARS) for lexicon in lexicons]
    assert len(cache) == 3
    assert cache.held == sum(sizes[1:])
    assert cache.automaton(WordTrie(["aaaa"]), CharTokenizer("abc ")) is made[3]
    assert cache.automaton(lexicons[0], CHARS) is not made[0]


def test_an_automaton_of_any_size_is_remembered():
    cache = AutomatonCache(1)
    made = cache.automaton(WordTrie(["a"]), CHARS)
    assert cache.automaton(WordTrie(["a"]), CHARS) is made
    assert len(cache) == 1
