"""Random utterances: those that a constraint allows, and those of any characters."""

from functools import lru_cache

import numpy as np

from dialgym.language import AnyText, Constraint, Tokenizer
from dialgym.language.tokenizers import FIRST_TEXT
from dialgym.tasks import Task
from dialgym.views.spaces import tokenizer_of


def random_text(task: Task, party: str, rng: np.random.Generator) -> str:
    """Up to the longest length of any characters, or of words or pieces where these are tokens."""
    if task.tokenizer == "word":
        return _random_words(task, party, rng)
    if task.tokenizer != "char":
        return _random_pieces(task, party, rng)
    length = int(rng.integers(task.facts.limit(party) + 1))
    return "".join(rng.choice(list(task.facts.charset), length))


def _random_words(task: Task, party: str, rng: np.random.Generator) -> str:
    length = int(rng.integers(task.facts.word_limit(party, party) + 1))
    words = rng.choice(task.words(), length).tolist()
    while len(" ".join(words)) > task.facts.limit(party):
        words.pop()
    return " ".join(words)


def _random_pieces(task: Task, party: str, rng: np.random.Generator) -> str:
    """A text that no token view cuts: one that is tokens of the task's own tokenizer, not more."""
    tokenizer, most = _tokenizer(task), task.facts.piece_limit(party)
    drawn = rng.integers(FIRST_TEXT, tokenizer.vocab_size, int(rng.integers(most + 1)))
    text = "".join([char for char in tokenizer.decode(drawn) if char in task.facts.charset])
    text = text[: task.facts.limit(party)]
    while len(ids := tokenizer.encode(text)) > most or tokenizer.decode(ids) != text:
        text = text[:-1]
    return text


@lru_cache(maxsize=8)
def _tokenizer(task: Task) -> Tokenizer:
    return tokenizer_of(task)


def allowed_text(task: Task, party: str, constraint: Constraint, rng: np.random.Generator) -> str:
    """A random walk through the constraint, cut at the longest length."""
    if isinstance(constraint, AnyText):
        return random_text(task, party, rng)
    text, state = "", constraint.start
    while len(text) < task.facts.longest[party]:
        foreseen = constraint.choices(state)
        known = task.facts.charset if foreseen is None else set(foreseen)
        chars = [char for char in task.facts.charset if char in known]
        steps = {char: constraint.advance(state, char) for char in chars}
        choices = [char for char, after in steps.items() if after is not None]
        if not choices or (constraint.accepts(state) and rng.random() < 0.3):
            break
        char = str(rng.choice(choices))
        text, state = text + char, steps[char]
    return text
