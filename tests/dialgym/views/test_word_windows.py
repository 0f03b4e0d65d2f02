"""Room in the window is made for words where words are the tokens."""

from dataclasses import replace

import numpy as np
import pytest

from dialgym.language import CharTokenizer, WordTokenizer, compile_constraint
from dialgym.language.constraints import WordTrie
from dialgym.language.tokenizers import FIRST_TEXT
from dialgym.tasks.wordle import Wordle
from dialgym.testing import check_batch, check_task, check_views
from dialgym.views.spaces import TokenLayout, token_limit, tokenizer_of
from dialgym.views.token_env import TokenEnv

WORDS = {"system": {"system": 1, "user": 5}, "user": {"system": 1, "user": 6}}


def counted(words=WORDS):
    """A Wordle of which each utterance is counted in words."""
    task = Wordle(words=20, guesses="answers", constraint="words")
    task.facts = replace(task.facts, words=words)
    task.tokenizer = "word"
    return task


def test_a_task_without_words_makes_room_for_characters():
    task = Wordle(words=20, guesses="answers")
    for tokenizer in (tokenizer_of(task), tokenizer_of(task, "word")):
        assert token_limit(task, tokenizer, "system", "system") == 6
        assert token_limit(task, tokenizer, "system", "user") == 10
        assert TokenLayout.of(task, tokenizer, "system", None).window == 108
    assert isinstance(tokenizer_of(task), CharTokenizer)


def test_a_task_with_words_makes_room_for_words_of_each_speaker_as_each_party_hears_them():
    task = counted()
    words, chars = tokenizer_of(task), tokenizer_of(task, "char")
    assert isinstance(words, WordTokenizer)
    assert [token_limit(task, words, "system", speaker) for speaker in task.parties] == [2, 6]
    assert [token_limit(task, words, "user", speaker) for speaker in task.parties] == [2, 7]
    assert token_limit(task, chars, "user", "user") == 10
    assert TokenLayout.of(task, words, "system", None).window == 6 * (3 + 7)
    assert TokenLayout.of(task, words, "user", None).window == 6 * 3 + 7 * 8
    assert TokenEnv(task).observation_space.shape == (60,)


def test_every_view_keeps_to_it():
    check_task(counted(), episodes=20)
    check_views(counted(), episodes=20)
    check_batch(counted(), num_envs=3, steps=200)


def test_a_task_that_says_more_words_is_found_out():
    words = {"system": {"system": 1, "user": 3}, "user": {"system": 1, "user": 6}}
    with pytest.raises(AssertionError, match=r"has more words than facts\.words"):
        check_task(counted(words), episodes=20)


def test_tokens_of_a_lexicon_among_many_words():
    """Each token is allowed exactly where some phrase goes on with it."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ab_"), rng.integers(1, 5))) for _ in range(60)]
    tokenizer = WordTokenizer(dict.fromkeys(words))
    phrases = [" ".join(rng.choice(words, rng.integers(1, 4))) for _ in range(30)]
    automaton = compile_constraint(WordTrie(phrases), tokenizer)
    for phrase in phrases:
        said = phrase.split()
        for length in range(len(said) + 1):
            node = automaton.walk(tokenizer.encode(" ".join(said[:length])))
            rest = [p.split()[length:] for p in phrases if p.split()[:length] == said[:length]]
            expected = {r[0] for r in rest if r}
            allowed = np.flatnonzero(automaton.allowed[node, FIRST_TEXT:]) + FIRST_TEXT
            assert {tokenizer.tokens[token] for token in allowed} == expected
            assert automaton.allowed[node, 1] == ([] in rest)
