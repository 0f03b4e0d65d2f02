"""Utterances, dialogue acts, tokenizers, and constraints on what may be said."""

from dialgym.language.automata import TokenAutomaton, compile_constraint
from dialgym.language.constraints import (
    AnyText,
    Constraint,
    Grammar,
    Letters,
    WordTrie,
    allows,
)
from dialgym.language.text import Utterance, render_transcript
from dialgym.language.tokenizers import (
    END,
    PAD,
    UNK,
    BPETokenizer,
    CharTokenizer,
    HFTokenizer,
    Tokenizer,
    WordTokenizer,
    make_tokenizer,
)

__all__ = [
    "END",
    "PAD",
    "UNK",
    "AnyText",
    "BPETokenizer",
    "CharTokenizer",
    "Constraint",
    "Grammar",
    "HFTokenizer",
    "Letters",
    "TokenAutomaton",
    "Tokenizer",
    "Utterance",
    "WordTokenizer",
    "WordTrie",
    "allows",
    "compile_constraint",
    "make_tokenizer",
    "render_transcript",
]
