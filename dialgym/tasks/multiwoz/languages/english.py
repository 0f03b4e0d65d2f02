"""English by templates: acts into sentences, which `sentences.py` reads back.

What people say in words of their own is looked through for what it mentions, see `keywords.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import groupby
from typing import TypeVar

import numpy as np

from dialgym.language.text import article
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.languages.base import MultiWOZNotation, longest_texts
from dialgym.tasks.multiwoz.languages.frames import Frame, frames, own_frames, style_of
from dialgym.tasks.multiwoz.languages.keywords import Keywords
from dialgym.tasks.multiwoz.languages.phrases import ANNOUNCED, TOLD, WHOLE
from dialgym.tasks.multiwoz.languages.sentences import Sentences
from dialgym.tasks.multiwoz.notation import print_acts, read_acts
from dialgym.tasks.multiwoz.ontology import BOOKABLE, SHORT_NAMES
from dialgym.tasks.multiwoz.types import NONE, Acts, DialogueAct

Generator = np.random.Generator
T = TypeVar("T")
WIDER = 3
"""Longest sentences, in multiples of their notation."""


class MultiWOZEnglish(MultiWOZNotation):
    """The sentences of a world.

    Args:
        world: its values.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._sentences = Sentences(world)
        self._read = lru_cache(maxsize=4096)(self._sentences.read)

    @cached_property
    def longest(self) -> Mapping[str, int]:
        """Characters of the longest text of each party."""
        return {party: WIDER * length for party, length in longest_texts(self.world).items()}

    def say(self, acts: Acts, party: str, rng: Generator) -> str:
        """Sentences that say the acts; their notation where there are no words for them."""
        sentences = [self._sentence(group, party, rng) for group in _together(acts, party)]
        text = " ".join([sentence for sentence in sentences if sentence is not None])
        whole = None not in sentences and self._read(text, party) == acts
        return text if whole else print_acts(acts)

    def _sentence(self, acts: Sequence[DialogueAct], party: str, rng: Generator) -> str | None:
        """A sentence for acts of one kind; None where there are no words for them."""
        own = _own_frames(acts[0], party)
        if own:
            return self._filled(_pick(own, rng), acts, rng)
        kind = acts[0].domain, acts[0].intent
        told = acts[1:] if _names_domain(acts[0]) else acts
        if not told:
            style = WHOLE
        elif len(told) < len(acts):
            style = ANNOUNCED
        else:
            style = style_of(party, kind, [act.slot for act in told], _bookable(kind[0]))
        known = frames(party)
        options = known.get((kind, style)) or known.get((kind, TOLD))
        return self._filled(_pick(options, rng), acts, rng) if options else None

    def _filled(self, frame: Frame, acts: Sequence[DialogueAct], rng: Generator) -> str | None:
        """A frame with the clauses of the acts that it does not say by itself."""
        clauses = [self._clause(frame, act, rng) for act in acts[len(frame.said) :]]
        last = " or " if frame.kind[1] == "Select" else " and "
        return None if None in clauses else frame.text.replace("{}", _listed(clauses, last))

    def _clause(self, frame: Frame, act: DialogueAct, rng: Generator) -> str | None:
        slot, value = act.slot, act.value
        texts = frame.texts.get((slot, value)) or frame.texts.get((slot, None))
        if texts is None:
            return None
        return _pick(texts, rng).format(self._written(slot, value), article=article(value))

    def _written(self, slot: str, value: str) -> str:
        """A value that is known or one word stands as it is, others in quotes."""
        if self._sentences.stands_alone(slot, value):
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


def _together(acts: Acts, party: str) -> Iterator[Sequence[DialogueAct]]:
    """Acts of one domain and intent that follow on each other, as far as one sentence says them.

    A user says along with a domain what it wants of it.
    """
    for kind, same in groupby(acts, key=lambda act: (act.domain, act.intent)):
        told: list[DialogueAct] = []
        for act in same:
            alone = _names_domain(act) or bool(_own_frames(act, party))
            if alone and told:
                yield told
                told = []
            told.append(act)
            if alone and not (_names_domain(act) and (kind, ANNOUNCED) in frames(party)):
                yield told
                told = []
        if told:
            yield told


def _names_domain(act: DialogueAct) -> bool:
    """Return True if an act says no slot."""
    return act.slot == NONE and act.value == NONE


def _own_frames(act: DialogueAct, party: str) -> Sequence[Frame]:
    """The sentences that an act has for itself."""
    kind, known = (act.domain, act.intent), own_frames(party)
    return known.get((kind, act.slot, act.value)) or known.get((kind, act.slot, None)) or ()


def _bookable(domain: str) -> Sequence[str]:
    """The short names of the slots that say how to book."""
    return [SHORT_NAMES[domain.lower()][slot] for slot in BOOKABLE.get(domain.lower(), ())]


def _listed(clauses: Sequence[str | None], last: str) -> str:
    """``a, b and c``; nothing of none."""
    *others, end = [clause or "" for clause in clauses] or [""]
    return f"{', '.join(others)}{last}{end}" if others else end


def _pick(options: Sequence[T], rng: Generator) -> T:
    return options[int(rng.random() * len(options))]
