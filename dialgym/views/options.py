"""Options of views, declared once: what they mean, and which views have them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from inspect import signature
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from dialgym.errors import finite_number, one_of, unexpected, whole_number
from dialgym.kinds import KINDS
from dialgym.tasks import Task
from dialgym.views.render import RENDER_MODES
from dialgym.views.speakers import SimulatorLike

SINGLE, BATCH, TWO_PARTY = "single", "batch", "two-party"
"""The forms of a view."""
NUMBERS = ("reward_scale", "reward_shift")
REWARD_OPTIONS = (*NUMBERS, "belief_gain", "potential", "final_reward")
"""Options of whoever learns, which leave dialogues and their scores as they are."""
TASK = "task"
"""Name of the task's own reward among those of `ViewOptions.final_reward`."""


def _of(*forms: str, by_kind: bool = False) -> dict[str, Any]:
    """Metadata of an option of these forms; `by_kind` where only the kinds that list it have it."""
    return {"forms": forms, "by_kind": by_kind}


@dataclass(frozen=True)
class ViewOptions:
    """Options of views; ``gym.make`` and the classes take them by name.

    Args:
        learner: the party that the actions are those of.
        simulator: who plays the other party; see `dialgym.views.speakers.find_speaker`. None for
            the task's default.
        render_mode: ``ansi``, ``human`` or ``rgb_array``, of views of one dialogue.
        text_info: put texts into the info; without them it is numbers alone.
        action_masks: put ``action_mask``, int8, into each info.
        masked_observations: make each observation of a two-party view a dict of ``observation``
            and ``action_mask``, int8, as PettingZoo's own games do.
        features: observe ``Dict(tokens, features)``: beside the tokens the array that the task
            gives the learner; see `Task.features`.
        anchors: put ``anchor`` into each info, the name of the situation that the learner is in
            since the last exchange; see `Task.anchor`.
        truths: put ``truth`` into each info, the utterance that names what is hidden, for whoever
            teaches the learner; see `dialgym.tasks.NamesTruth`.
        values: put ``value`` into each info, the return that the best play can expect from here on,
            for whoever credits the learner's turns; see `dialgym.tasks.ExactValue`.
        belief_gain: reward of each bit by which a turn raises the posterior of the hidden truth,
            beside the task's; see `dialgym.views.extras.belief_gain`. 0 for the task's alone.
        potential: by name and weight, potentials whose rise is paid beside the task's reward and
            leaves the best play as it is: ``{"value": 1.0}``; see `dialgym.views.extras.potential`.
        reward_scale: factor of the reward of each of the learner's utterances, its belief gain
            included, for whoever learns from it: `dialgym.rollouts.Player`, and so scores and
            stored dialogues, have the task's own, and so have the parts in an info.
        reward_shift: added to the reward of each of its utterances, after the factor.
        final_reward: rewards of language for whole dialogues, paid at their end beside the task's:
            ``{"lm_judge": {"model": NAME, "weight": 20}}``; see
            `dialgym.views.extras.final_reward`. An entry ``"task"`` is the weight of the task's own
            reward, 1 by default; with 0 the others are all there is. In an info they are parts
            beside the task's, which stay as they are. Scores and stored dialogues are without them.
        max_episode_steps: truncate the dialogues of a batch after so many steps, as `TimeLimit`
            does those of a single env. None and -1 for no limit.
    """

    learner: str = field(default="system", metadata=_of(SINGLE, BATCH))
    simulator: SimulatorLike = field(default=None, metadata=_of(SINGLE, BATCH))
    render_mode: str | None = field(default=None, metadata=_of(SINGLE, TWO_PARTY))
    text_info: bool = field(default=True, metadata=_of(SINGLE, BATCH, TWO_PARTY))
    action_masks: bool = field(default=False, metadata=_of(SINGLE, BATCH, TWO_PARTY, by_kind=True))
    masked_observations: bool = field(default=False, metadata=_of(TWO_PARTY, by_kind=True))
    features: bool = field(default=False, metadata=_of(SINGLE, BATCH, TWO_PARTY, by_kind=True))
    anchors: bool = field(default=False, metadata=_of(SINGLE, BATCH))
    truths: bool = field(default=False, metadata=_of(SINGLE, BATCH))
    values: bool = field(default=False, metadata=_of(SINGLE, BATCH))
    belief_gain: float = field(default=0.0, metadata=_of(SINGLE, BATCH))
    potential: Mapping[str, float] | None = field(default=None, metadata=_of(SINGLE, BATCH))
    reward_scale: float = field(default=1.0, metadata=_of(SINGLE, BATCH))
    reward_shift: float = field(default=0.0, metadata=_of(SINGLE, BATCH))
    final_reward: Mapping[str, Any] | None = field(default=None, metadata=_of(SINGLE, BATCH))
    max_episode_steps: int | None = field(default=None, metadata=_of(BATCH))

    def check(self, name: str) -> None:
        """Raise a ValueError where a value is impossible; `name` is the task's."""
        for known in fields(self):
            value = getattr(self, known.name)
            if isinstance(known.default, bool) and not isinstance(value, bool | np.bool_):
                raise ValueError(f"{known.name} of {name} must be True or False; got {value!r}.")
        for number in NUMBERS:
            finite_number(f"{number} of {name}", getattr(self, number))
        if not isinstance(self.final_reward, Mapping | None):
            raise ValueError(
                f"final_reward of {name}: expected a mapping, such as {{'lm_judge': {{'model': "
                f"'NAME'}}}}; got {self.final_reward!r}."
            )
        if not isinstance(self.potential, Mapping | None):
            raise ValueError(
                f"potential of {name}: expected a mapping, such as {{'value': 1.0}}; got "
                f"{self.potential!r}."
            )
        finite_number(f"{TASK!r} of final_reward of {name}", self.own_weight)
        one_of("render_mode", self.render_mode, (*RENDER_MODES, None), name)
        check_step_limit(self.max_episode_steps, name)

    @property
    def own_weight(self) -> Any:
        """Weight of the task's own reward."""
        return (self.final_reward or {}).get(TASK, 1.0)

    def rescaled(self, reward: Any) -> Any:
        """Scale and shift the reward of an utterance, or an array of them."""
        if self.reward_scale == 1 and not self.reward_shift:
            return reward
        return self.reward_scale * reward + self.reward_shift

    def returns(self, task: Task) -> tuple[float, float]:
        """Bounds of the learner's return with these options; infinite where rewards are added."""
        if self.belief_gain or self.potential or self.final_reward:
            return float("-inf"), float("inf")
        low, high = sorted([self.reward_scale * end for end in task.facts.returns[self.learner]])
        shifts = self.reward_shift, self.reward_shift * task.facts.turn_limit
        return low + min(shifts), high + max(shifts)

    @property
    def step_limit(self) -> int | None:
        """The most steps of an episode, if there is a limit."""
        limit = self.max_episode_steps
        return None if limit is None or limit == -1 else int(limit)


def check_step_limit(limit: Any, name: str) -> None:
    """Raise a ValueError unless a limit of an episode's steps is a whole number, None or -1."""
    if limit is not None and not (isinstance(limit, Integral) and limit == -1):
        whole_number("max_episode_steps", limit, name)


class TakesOptions:
    """Base of all views, which take the options of their kind and form by name."""

    view: ClassVar[str]
    """The kind, a key of `dialgym.kinds.KINDS`."""
    form: ClassVar[str]
    """`SINGLE`, `BATCH` or `TWO_PARTY`."""

    @classmethod
    @cache
    def arguments(cls) -> tuple[str, ...]:
        """The names of its arguments, but for the task and the number of dialogues."""
        own = [p.name for p in signature(cls).parameters.values() if p.kind is not p.VAR_KEYWORD]
        return (*(name for name in own if name not in ("task", "num_envs")), *cls._option_names())

    @classmethod
    @cache
    def _option_names(cls) -> tuple[str, ...]:
        return tuple(
            option.name
            for option in fields(ViewOptions)
            if cls.form in option.metadata["forms"]
            and (not option.metadata["by_kind"] or option.name in KINDS[cls.view].options)
        )

    @classmethod
    def read_options(cls, task: Task, given: Mapping[str, Any]) -> ViewOptions:
        """The options that were given by name.

        Raises:
            ValueError: one of them is unknown, or its value impossible.
        """
        known = cls._option_names()
        for name in given:
            if name not in known:
                raise unexpected(name, cls.arguments(), cls.__name__)
        options = ViewOptions(**given)
        options.check(task.name)
        return options
