"""PettingZoo environments by id: in turns (AEC), and parallel ones derived from them."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from pettingzoo import ParallelEnv
from pettingzoo.utils.conversions import turn_based_aec_to_parallel_wrapper

from dialgym.io.objects import load
from dialgym.registry import Environment, entry_of
from dialgym.views.info import Info
from dialgym.views.making import split_kwargs
from dialgym.views.two_party import TwoPartyEnv


def aec_env(id: Environment, **kwargs: Any) -> TwoPartyEnv:
    """Make the PettingZoo AEC environment of an id, at the level of its view.

    Args:
        id: any id, or a task; ``...-utterance-v0`` gives the utterance level, ``...-act-v0`` that
            of acts.
        kwargs: settings of the task, and arguments of the two-party view; see `ViewOptions`.

    Raises:
        ValueError: the id or an argument is unknown, or a party has no acts.
    """
    entry = entry_of(id)
    view: Any = load(entry.kind.two_party)
    env = view(**split_kwargs(entry, view, kwargs))
    env.metadata = {**env.metadata, "name": re.sub(r"[/:]", "_", entry.id)}
    env.id = entry.id
    return env


def parallel_env(id: Environment, **kwargs: Any) -> ParallelEnv:
    """Make the same as a PettingZoo parallel environment; what the listener does has no effect."""
    return ParallelDialogue(aec_env(id, **kwargs))


class ParallelDialogue(turn_based_aec_to_parallel_wrapper):  # type: ignore[misc]
    """PettingZoo's conversion, whose infos say at each step and after `reset` who has the floor.

    That is ``active_agent``, a name; without texts the place of the party among the agents.
    """

    def __init__(self, aec_env: TwoPartyEnv) -> None:
        super().__init__(aec_env)
        self.agents: list[str] = []

    def __repr__(self) -> str:
        return f"Parallel({self.aec_env!r})"

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Info]]:
        """Begin a dialogue."""
        observations, infos = super().reset(seed, options)
        return observations, self._with_floor(infos)

    def step(self, actions: dict[str, Any]) -> Any:
        """Let the party that holds the floor act; five empty dicts after the end.

        Raises:
            ResetNeeded: before the first reset, or after `close`.
            ValueError: that party has no action, or one that is not of its space.
        """
        if not self.agents:
            self.aec_env.require_begun("step")
            return {}, {}, {}, {}, {}
        env: Any = self.aec_env
        if not isinstance(actions, Mapping) or env.agent_selection not in actions:
            raise ValueError(
                f"actions of {env.task.name}: expected a mapping of agents to actions, with one of "
                f"the {env.agent_selection}, who has the floor; got {actions!r}."
            )
        *results, infos = super().step(actions)
        return (*results, self._with_floor(infos))

    def close(self) -> None:
        """Drop the dialogue; there are no agents until the next reset."""
        super().close()
        self.agents = []

    def _with_floor(self, infos: dict[str, Info]) -> dict[str, Info]:
        env: Any = self.aec_env
        active: Any = env.agent_selection
        if not env.text_info:
            active = np.array(env.possible_agents.index(active))
        return {party: {**info, "active_agent": active} for party, info in infos.items()}
