"""The player of a chat whose turns are token ids, by a tokenizer of characters."""

from dialgym.testing.agreement import by_tokens
from tests.support.chat_templates import tokenizer_with

play = by_tokens(tokenizer_with("chatml"))
