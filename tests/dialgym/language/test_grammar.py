"""Words in an order: the automaton over letters against the plain reading of the nodes."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.language import END, CharTokenizer, Grammar, WordTokenizer, compile_constraint
from dialgym.simulators.human import allows

NODES = ("a", "b", "c")
WORDS = ("x", "xy", "y", "yx")
GRAMMARS = st.builds(
    lambda nodes, ends: Grammar(nodes, "a", ends),
    st.fixed_dictionaries(
        {n: st.dictionaries(st.sampled_from(WORDS), st.sampled_from(NODES)) for n in NODES}
    ),
    st.sets(st.sampled_from(NODES)),
)


def plainly(grammar, words):
    """Return True if the nodes admit the words, one after the other."""
    node = "a"
    for word in words:
        node = grammar._after[node].get(word)
        if node is None:
            return False
    return bool(words) and node in grammar._ends


@given(GRAMMARS)
def test_it_admits_what_its_nodes_admit(grammar):
    for length in range(4):
        for words in product(WORDS, repeat=length):
            assert allows(grammar, " ".join(words)) == plainly(grammar, words)


@given(GRAMMARS, st.text("xy ", max_size=6))
def test_it_admits_nothing_else_and_knows_the_letters_that_may_follow(grammar, text):
    assert allows(grammar, text) == (text != "" and plainly(grammar, tuple(text.split(" "))))
    state = grammar.start
    for char in text:
        following = {c for c in "xy " if grammar.advance(state, c) is not None}
        assert set(grammar.choices(state)) == following
        state = grammar.advance(state, char)
        if state is None:
            return


@pytest.mark.parametrize("tokenizer", [WordTokenizer(WORDS), CharTokenizer("xy ")], ids=type)
def test_tokens_follow_it(tokenizer):
    grammar = Grammar({"a": {"x": "b", "xy": "b"}, "b": {"y": "b", "yx": "c"}, "c": {}}, "a", "c")
    automaton, rng = compile_constraint(grammar, tokenizer), np.random.default_rng(0)
    said = set()
    for _ in range(200):
        state, ids = 0, []
        while True:
            token = int(rng.choice(np.flatnonzero(automaton.allowed[state])))
            if token == END:
                break
            ids.append(token)
            state = int(automaton.transitions[state, token])
        said.add(tokenizer.decode(ids))
    assert all(allows(grammar, text) for text in said)
    assert {"x yx", "xy yx", "x y yx"} <= said


def test_equal_ones_are_one():
    make = lambda ends: Grammar({"a": {"x": "a"}}, "a", ends)  # noqa: E731
    assert make("a") == make("a")
    assert hash(make("a")) == hash(make("a"))
    assert make("a") != make("")


@pytest.mark.parametrize(
    "nodes", [{"a": {"x": "d"}}, {"a": {"x y": "a"}}, {"a": {"": "a"}}, {"b": {}}]
)
def test_broken_ones(nodes):
    with pytest.raises(ValueError, match="Grammar: expected words that are not empty"):
        Grammar(nodes, "a", ())
