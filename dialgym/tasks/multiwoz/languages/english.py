"""English by templates: acts into sentences, which `sentences.py` reads back.

What people say in words of their own is looked through for what it mentions, see `keywords.py`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import groupby

import numpy as np

from dialgym.language import AnyText, Constraint
from dialgym.tasks.base import USER
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.entries import REQUEST
from dialgym.tasks.multiwoz.languages.base import charset_of, longest_texts
from dialgym.tasks.multiwoz.languages.keywords import Keywords
from dialgym.tasks.multiwoz.languages.phrases import CLAUSES, FIXED, LABELS, QUESTIONS, SENTENCES
from dialgym.tasks.multiwoz.languages.sentences import ABOUT, BEGINNINGS, Kind, Sentences
from dialgym.tasks.multiwoz.notation import print_acts, read_acts
from dialgym.tasks.multiwoz.types import ASKED, NONE, Acts, Belief, DialogueAct

Generator = np.random.Generator
WIDER = 3
"""How much longer than their notation sentences may be."""


class English:
    """The sentences of a world.

    Args:
        world: its values.
    """

    tokenizer = "char"
    words: Mapping[str, Mapping[str, int]] | None = None
    vocabulary: Sequence[str] = ()

    def __init__(self, world: World) -> None:
        self.world = world
        self._sentences = Sentences(world)
        self._read = lru_cache(maxsize=4096)(self._sentences.read)

    @cached_property
    def charset(self) -> str:
        """The characters of everything that is said."""
        return charset_of(self.world)

    @cached_property
    def longest(self) -> Mapping[str, int]:
        """Characters of the longest text of each party."""
        return {party: WIDER * length for party, length in longest_texts(self.world).items()}

    def grammar(self, party: str) -> Constraint:
        return AnyText()

    def entries(self, text: str) -> tuple[int, ...] | None:
        return None

    def name_entries(self, numbers: Iterable[int]) -> str | None:
        return None

    def hear(self, text: str, said: Acts, heard: Acts, belief: Belief, rng: Generator) -> str:
        return text if heard == said else self.say(heard, USER, rng)

    def say(self, acts: Acts, party: str, rng: Generator) -> str:
        """Sentences that say the acts; their notation where there are no words for them."""
        sentences: list[str] = []
        for (domain, intent), group in _together(acts):
            sentence = self._sentence(domain, intent, group, party, rng)
            if sentence is None:
                return print_acts(acts)
            sentences.append(sentence)
        text = " ".join(sentences)
        return text if self._read(text, party) == acts else print_acts(acts)

    def _sentence(
        self, domain: str, intent: str, acts: Sequence[DialogueAct], party: str, rng: Generator
    ) -> str | None:
        whole = SENTENCES.get((domain, intent))
        alone = acts[0].slot == NONE and acts[0].value == NONE
        if whole is not None:
            return _pick(whole, rng) if alone else None
        begin = BEGINNINGS[party].get((domain, intent))
        if begin is None:
            return None
        clauses = [] if alone else [self._clause(act, rng) for act in acts]
        if None in clauses:
            return None
        text = " ".join([_pick(begin, rng), *_listed([c for c in clauses if c is not None])])
        return f"{text}{'?' if text.startswith(QUESTIONS) else '.'}"

    def _clause(self, act: DialogueAct, rng: Generator) -> str | None:
        intent, _, slot, value = act
        if slot not in LABELS and (slot, value) not in FIXED:
            return None
        if intent == REQUEST:
            return f"the {LABELS[slot][0]}" if value == ASKED else None
        fixed = FIXED.get((slot, value)) or ABOUT.get(value)
        if fixed is not None:
            return _pick(fixed, rng).format(LABELS.get(slot, ("",))[0])
        return _pick(CLAUSES[slot], rng).format(self._written(slot, value))

    def _written(self, slot: str, value: str) -> str:
        """A value that is known or one word stands as it is, others in quotes."""
        if value in self._sentences.values.get(slot, ()) or (value.isalnum() and value.isascii()):
            return value
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    @cached_property
    def keywords(self) -> Keywords:
        """Reads what people say in words of their own."""
        return Keywords(self.world)

    def understand(self, text: str, party: str) -> Acts | None:
        """The acts of sentences, exactly; else those that keywords tell of, if any."""
        exact = self._read(text, party) or self._read(" ".join(text.split()), party)
        return exact or read_acts(text) or self.keywords.read(text, party) or None


def _together(acts: Acts) -> Iterator[tuple[Kind, list[DialogueAct]]]:
    """Acts of one domain and intent that follow on each other; those about no slot alone."""
    for kind, group in groupby(acts, key=lambda act: (act.domain, act.intent)):
        told: list[DialogueAct] = []
        for act in group:
            if act.slot != NONE or act.value != NONE:
                told.append(act)
                continue
            if told:
                yield kind, told
            yield kind, [act]
            told = []
        if told:
            yield kind, told


def _listed(clauses: list[str]) -> list[str]:
    """``a, b and c``; nothing of none."""
    if len(clauses) < 2:
        return clauses
    return [f"{', '.join(clauses[:-1])} and {clauses[-1]}"]


def _pick(options: Sequence[str], rng: Generator) -> str:
    return options[int(rng.random() * len(options))]
