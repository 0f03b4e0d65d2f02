"""Who can play slot filling by rules: the simulated user, and scripted systems."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dialgym.simulators import EachReplies
from dialgym.tasks.base import SYSTEM
from dialgym.tasks.slot_filling.handcrafted import Handcrafted
from dialgym.tasks.slot_filling.types import SlotFillingState

if TYPE_CHECKING:
    from dialgym.tasks.slot_filling.task import SlotFilling

Generator = np.random.Generator


class Agenda:
    """The simulated user. The rules have made up its mind already; see `SlotFilling.user`."""

    def reply(self, task: "SlotFilling", state: SlotFillingState, rng: Generator) -> str:
        return state.ahead[0]


class HandcraftedSystem(EachReplies):
    """PyDial's handcrafted policy; see `Handcrafted`. It heeds no masks."""

    def reply(self, task: "SlotFilling", state: SlotFillingState, rng: Generator) -> str:
        name, act = Handcrafted(task.summariser).choose(state.belief, state.summary, rng)
        if task.language.summaries:
            return task.acts.phrases[task.acts.number[name]]
        return task.language.say(act, SYSTEM, rng)

    def choose(self, task: "SlotFilling", state: SlotFillingState, rng: Generator) -> int:
        """The index of the summary act that comes nearest to what it would say."""
        name, _ = Handcrafted(task.summariser).choose(state.belief, state.summary, rng)
        return task.acts.number[name]


class RandomSystem(EachReplies):
    """Any summary act that the masks allow."""

    def reply(self, task: "SlotFilling", state: SlotFillingState, rng: Generator) -> str:
        chosen = self.choose(task, state, rng)
        if task.language.summaries:
            return task.acts.phrases[chosen]
        act = task.summary_act(state, chosen, rng)
        return task.language.say(act, SYSTEM, rng)

    def choose(self, task: "SlotFilling", state: SlotFillingState, rng: Generator) -> int:
        """The index of a summary act."""
        return int(rng.choice(np.flatnonzero(task.act_mask(state))))


USERS: Mapping[str, Callable[..., Any]] = {"agenda": Agenda}
POLICIES: Mapping[str, Callable[..., Any]] = {
    "handcrafted": HandcraftedSystem,
    "random": RandomSystem,
}
