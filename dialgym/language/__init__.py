"""Utterances, tokenizers and constraints: what can be said, and how it is written down."""

from dialgym.language.constraints import (
    AnyText,
    Constraint,
    Letters,
    Lexicon,
    TokenAutomaton,
    compile_constraint,
)
from dialgym.language.grammar import Grammar
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
from dialgym.language.utterances import Utterance, render_transcript

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
    "Lexicon",
    "TokenAutomaton",
    "Tokenizer",
    "Utterance",
    "WordTokenizer",
    "compile_constraint",
    "make_tokenizer",
    "render_transcript",
]
