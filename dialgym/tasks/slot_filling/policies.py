"""Who can play slot filling by rules: the simulated user, and scripted systems."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dialgym.tasks.acts import ActSpeaker, RandomActs
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.slot_filling.handcrafted import Handcrafted
from dialgym.tasks.slot_filling.types import SlotFillingState

if TYPE_CHECKING:
    from dialgym.tasks.slot_filling.batch import SlotFillingBatch
    from dialgym.tasks.slot_filling.task import SlotFilling

Generator = np.random.Generator


class Agenda:
    """The simulated user. The rules have made up its mind already; see `SlotFilling.user`."""

    def reply(self, task: "SlotFilling", state: SlotFillingState, rng: Generator) -> str:
        return state.ahead[0]

    def act(self, task: "SlotFilling", state: SlotFillingState, rng: Generator) -> int:
        """The index of the user's summary act that says the same."""
        return task.acts[USER].planned(state)


class _System:
    """Replies to many one by one: what gains by being done at once is the belief."""

    def reply(self, task: "SlotFilling", state: SlotFillingState, rng: Generator) -> str:
        raise NotImplementedError

    def reply_many(
        self,
        task: "SlotFilling",
        batch: "SlotFillingBatch",
        rows: np.ndarray,
        rngs: Sequence[Generator],
    ) -> np.ndarray:
        """See `dialgym.tasks.base.BatchSpeaker`."""
        replies = [self.reply(task, batch.state(row), rngs[row]) for row in rows.tolist()]
        return np.array(replies, np.str_)


class HandcraftedSystem(_System):
    """PyDial's handcrafted policy; see `Handcrafted`. It heeds no masks."""

    def reply(self, task: "SlotFilling", state: SlotFillingState, rng: Generator) -> str:
        name, act = Handcrafted(task.summariser).choose(state.belief, state.summary, rng)
        if task.language.summaries:
            return task.summary_acts.phrases[task.summary_acts.number[name]]
        return task.language.say(act, SYSTEM, rng)

    def act(self, task: "SlotFilling", state: SlotFillingState, rng: Generator) -> int:
        """The index of the summary act that comes nearest to what it would say."""
        name, _ = Handcrafted(task.summariser).choose(state.belief, state.summary, rng)
        return task.summary_acts.number[name]


class RandomSystem(_System):
    """Any summary act that the masks allow."""

    def reply(self, task: "SlotFilling", state: SlotFillingState, rng: Generator) -> str:
        acts = task.acts[SYSTEM]
        chosen = RandomActs().act(task, state, rng)
        if task.language.summaries:
            return task.summary_acts.phrases[chosen]
        return task.language.say(acts.act(state, chosen, rng), SYSTEM, rng)


USERS: Mapping[str, Callable[..., Any]] = {
    "agenda": Agenda,
    "random": partial(ActSpeaker, RandomActs()),
}
POLICIES: Mapping[str, Callable[..., Any]] = {
    "handcrafted": HandcraftedSystem,
    "random": RandomSystem,
}
