"""Scripted speakers: the simulated user, PyDial's handcrafted system, and a random one."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from dialgym.language.acts import Act, SlotValue
from dialgym.simulators import EachReplies
from dialgym.tasks.acts import ActSpeaker, RandomActs
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.generators import by_halves
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE
from dialgym.tasks.slot_filling.settings import SystemSettings
from dialgym.tasks.slot_filling.summary import Summariser
from dialgym.tasks.slot_filling.summary_acts import DEFAULT, Offers
from dialgym.tasks.slot_filling.task import SlotFilling
from dialgym.tasks.slot_filling.types import SlotFillingBelief, SlotFillingState, Summary

Generator = np.random.Generator
SURE, POSSIBLE, APART = 0.8, 0.3, 0.2
"""Belief from which a value is not asked for, is looked at; difference that tells two apart."""
MOST = 10
"""Accepted slots that are looked at."""


@dataclass(frozen=True)
class Handcrafted:
    """Grounds what is doubtful, asks until a row stands out, and offers it.

    Attributes:
        summariser: the domain.
        settings: numbers of slots.
    """

    summariser: Summariser
    settings: SystemSettings = DEFAULT

    @classmethod
    def of(cls, task: SlotFilling) -> Self:
        """The policy for a task."""
        return cls(task.summariser, task.summary_acts.settings)

    @property
    def offers(self) -> Offers:
        return Offers(self.summariser.database, self.settings.inform_slots)

    def choose(
        self, belief: SlotFillingBelief, summary: Summary, rng: Generator
    ) -> tuple[str, Act]:
        """The name of a summary act, and the act."""
        return (
            self._answer(belief, summary, rng)
            or self._ground(summary)
            or self._offer(belief, summary, rng)
            or self._ask(summary)
            or ("reqmore", Act("reqmore"))
        )

    def _answer(
        self, belief: SlotFillingBelief, summary: Summary, rng: Generator
    ) -> tuple[str, Act] | None:
        """Answer that the user's own act calls for."""
        accepted = summary.accepted
        if summary.method == "byconstraints" and len(accepted) >= self.settings.inform_accepted:
            found = self.summariser.found(accepted)
            return "inform", self.offers.another(found, accepted, (), rng)
        if summary.method == "byalternatives":
            found = self.summariser.found(accepted)
            act = self.offers.another(found, accepted, belief.entities, rng)
            return "inform_alternatives", act
        if summary.method == "byname":
            return self._details(belief, summary, rng)
        if summary.method == "finished":
            return "bye", Act("bye")
        if summary.discourse in ("thankyou", "ack") and belief.entity:
            return "reqmore", Act("reqmore")
        return None

    def _details(
        self, belief: SlotFillingBelief, summary: Summary, rng: Generator
    ) -> tuple[str, Act] | None:
        known = summary.name not in (None, DONTCARE) and summary.name_p >= SURE
        name = str(summary.name) if known else belief.entity
        act = self.offers.details(name, summary.requested, rng) if name else None
        return None if act is None else ("inform_byname", act)

    def _ground(self, summary: Summary) -> tuple[str, Act] | None:
        """Confirm a value that is likely; let the user select where two are as likely."""
        for slot, (value, p, second, second_p) in summary.best.items():
            if not POSSIBLE < p < SURE:
                continue
            if p - second_p < APART:
                return f"select_{slot}", Act(
                    "select", (SlotValue(slot, value), SlotValue(slot, second))
                )
            return f"confirm_{slot}", Act("confirm", (SlotValue(slot, value),))
        return None

    def _offer(
        self, belief: SlotFillingBelief, summary: Summary, rng: Generator
    ) -> tuple[str, Act] | None:
        """An offer, or what is asked about it, if asking on would not help."""
        count = min(len(summary.accepted), MOST - 1)
        ranked = self.summariser.best_supported(summary, count + 1)
        found = self.summariser.found(ranked)
        if (
            found.bit_count() > 1
            and self.summariser.discriminable(found, ranked)
            and count < len(summary.best)
        ):
            return None
        if summary.requested and belief.offered:
            return self._details(belief, summary, rng)
        accepted = summary.accepted[:count]
        return "inform", self.offers.another(self.summariser.found(accepted), accepted, (), rng)

    def _ask(self, summary: Summary) -> tuple[str, Act] | None:
        for slot, best in summary.best.items():
            if best.p < SURE:
                return f"request_{slot}", Act("request", (SlotValue(slot),))
        return None


class SlotAgendaPolicy:
    """The simulated user; its next text is in the state, see `SlotFillingState.planned`."""

    def reply(self, task: SlotFilling, state: SlotFillingState, rng: Generator) -> str:
        return state.planned[0]

    def act(self, task: SlotFilling, state: SlotFillingState, rng: Generator) -> int:
        """The index of the user's summary act that says the same."""
        return task.acts[USER].planned(state)


class HandcraftedSystem(EachReplies):
    """PyDial's handcrafted policy; see `Handcrafted`. It heeds no masks."""

    def reply(self, task: SlotFilling, state: SlotFillingState, rng: Generator) -> str:
        name, act = Handcrafted.of(task).choose(state.belief, state.summary, rng)
        if task.language.summaries:
            return task.summary_acts.phrases[task.summary_acts.number[name]]
        return task.language.say(act, SYSTEM, rng)

    def act(self, task: SlotFilling, state: SlotFillingState, rng: Generator) -> int:
        """The index of the summary act that comes nearest to what it would say."""
        name, _ = Handcrafted.of(task).choose(state.belief, state.summary, rng)
        return task.summary_acts.number[name]


class RandomSlotSystem(EachReplies):
    """Any summary act that the masks allow."""

    def reply(self, task: SlotFilling, state: SlotFillingState, rng: Generator) -> str:
        acts = task.acts[SYSTEM]
        chosen = RandomActs().act(task, state, rng)
        if task.language.summaries:
            return task.summary_acts.phrases[chosen]
        return task.language.say(acts.act(state, chosen, rng), SYSTEM, rng)

    def act(self, task: SlotFilling, state: SlotFillingState, rng: Generator) -> int:
        """The index of any summary act that the masks allow."""
        return int(RandomActs().act(task, state, rng))


halves = by_halves(HandcraftedSystem, RandomSlotSystem)


def random_user() -> ActSpeaker:
    """A user who says any of its summary acts that the masks allow."""
    return ActSpeaker(RandomActs())
