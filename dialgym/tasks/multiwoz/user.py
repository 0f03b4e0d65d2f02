"""Users who speak from the agenda: how much they say at a time, and how long they stay."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from dialgym.errors import one_of
from dialgym.tasks.multiwoz.agenda import (
    ALL,
    BYE,
    CHOICE,
    AgendaItem,
    AgendaRules,
    MultiWOZUserState,
    answered,
)
from dialgym.tasks.multiwoz.dialogue_state import MultiWOZState
from dialgym.tasks.multiwoz.ontology import GENERAL, SHORT_NAMES, act_domain
from dialgym.tasks.multiwoz.types import ASKED, NONE, Acts, DialogueAct


@dataclass(frozen=True)
class MultiWOZUserBehaviour:
    """Behaviour of a user.

    Attributes:
        initiative: most acts that it says of itself; what it was asked for it says at once.
        answers: most acts that it says because of what the system said.
        bookings: most acts of a booking.
        further: probability of each act after the first, if there is any left.
        asks_at_once: whether it says its requests along with its constraints.
        patience: utterances of the system after which it leaves.
    """

    initiative: int = 4
    answers: int = ALL
    bookings: int = 10
    further: float = 1.0
    asks_at_once: bool = False
    patience: int = ALL


BEHAVIOURS: Mapping[str, MultiWOZUserBehaviour] = MappingProxyType(
    {
        "agenda": MultiWOZUserBehaviour(),
        "unfriendly": MultiWOZUserBehaviour(further=0.5, patience=14),
        "terse": MultiWOZUserBehaviour(initiative=1, answers=1, bookings=1),
        "verbose": MultiWOZUserBehaviour(initiative=ALL, bookings=ALL, asks_at_once=True),
    }
)


class MultiWOZUser:
    """Chooses the user's acts; what it says leaves the agenda when the dialogue goes on.

    Args:
        agenda: that of the rules.
        behaviour: a name of `BEHAVIOURS`, or one of its own.
    """

    def __init__(
        self, agenda: AgendaRules, behaviour: str | MultiWOZUserBehaviour = "agenda"
    ) -> None:
        if isinstance(behaviour, str):
            one_of("user", behaviour, BEHAVIOURS, "MultiWOZ")
            behaviour = BEHAVIOURS[behaviour]
        self.agenda, self.behaviour = agenda, behaviour

    def acts(self, state: MultiWOZState, rng: np.random.Generator) -> Acts:
        """Choose the next acts; leaves `state` as it is."""
        if state.turns >= self.behaviour.patience or not state.user.stack:
            return (_act(BYE),)
        items = self._from_the_top(state.user)
        if self.behaviour.asks_at_once:
            items += self._requests(state, items)
        if self.behaviour.further < 1.0:
            items = self._fewer(items, rng)
        return tuple([_act(item) for item in items])

    def _from_the_top(self, user: MultiWOZUserState) -> list[AgendaItem]:
        """Acts on top of the agenda that can be said; a domain is named with what is said of it."""
        how, below = self.behaviour, 0
        while below < len(user.stack):
            limits = how.initiative, how.answers, how.bookings
            batch = self.agenda.batch(user, below, *limits)
            items = [i for i in batch if i.sayable] if self.agenda.fidelity.unsayable else batch
            below += len(batch)
            if len(batch) == how.initiative == 1 and batch[0].slot == NONE:
                more = self.agenda.batch(user, below, *limits)
                return batch + [item for item in more if item.domain == batch[0].domain]
            if items:
                return items
        return [BYE]

    def _fewer(self, items: list[AgendaItem], rng: np.random.Generator) -> list[AgendaItem]:
        kept = items[:1]
        for item in items[1:]:
            if rng.random() >= self.behaviour.further:
                break
            kept.append(item)
        return kept

    def _requests(self, state: MultiWOZState, items: list[AgendaItem]) -> list[AgendaItem]:
        """The open requests of the domain whose constraints are being said, if they can be met."""
        domain, intent, slot, _ = items[0]
        wanted, fidelity = state.goal.domains.get(domain), self.agenda.fidelity
        if wanted is None or intent != "inform" or slot == CHOICE:
            return []
        if wanted.fail_info and domain not in state.user.retired:
            return []
        slots = [s for s in wanted.requests if not answered(state.user, domain, s, fidelity)]
        return [AgendaItem(domain, "request", slot, ASKED) for slot in slots]


@lru_cache(maxsize=1 << 14)
def _act(item: AgendaItem) -> DialogueAct:
    domain, intent, slot, value = item
    if domain == GENERAL:
        return DialogueAct(intent, GENERAL)
    short = SHORT_NAMES[domain].get(slot) or _OTHERS.get(slot, slot)
    return DialogueAct(intent.capitalize(), act_domain(domain), short, value)


_OTHERS = {CHOICE: "Choice"}
