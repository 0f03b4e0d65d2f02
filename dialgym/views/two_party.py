"""The two-party view: both sides of a dialogue are agents of a PettingZoo environment.

The party that holds the floor acts until it yields it, by ``<end>`` at token level or after each
utterance at text level; then whoever the rules name is next. This AEC environment is the
canonical one; the parallel one is derived, with the listener's action ignored.
"""

import re
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils.seeding import np_random
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import turn_based_aec_to_parallel

from dialgym.errors import one_of
from dialgym.registry import Environment, entry_of
from dialgym.tasks import Outcome, Task
from dialgym.views.dialogue import check_room
from dialgym.views.layout import TokenLayout, tokenizer_of
from dialgym.views.making import split_kwargs
from dialgym.views.render import RENDER_MODES, render
from dialgym.views.token_env import OVERFLOWS
from dialgym.views.transcripts import TextTranscript, TokenTranscript


def aec_env(id: Environment, **kwargs: Any) -> "TwoPartyEnv":
    """The PettingZoo AEC environment of an id, at the level (token or utterance) of its view.

    Args:
        id: any id, or a task; ``...-utterance-v0`` gives the utterance level.
        kwargs: settings of the task, and arguments of the view (`render_mode`; at token level
            also `tokenizer`, `window`, `overflow`, `action_masks`).

    Raises:
        ValueError: the id or an argument is unknown, or the view is of one party only.
    """
    entry = entry_of(id)
    views = {"token": TokenTwoPartyEnv, "utterance": UtteranceTwoPartyEnv}
    if entry.view not in views:
        raise ValueError(
            f"two-party view: expected an id at token or utterance level; got {entry.id!r}, whose "
            f"acts are those of one party. Use {entry.row.id('utterance')!r}."
        )
    view = views[entry.view]
    env = view(**split_kwargs(entry, view, kwargs))
    env.metadata = {**env.metadata, "name": re.sub(r"[/:]", "_", entry.id)}
    return env


def parallel_env(id: Environment, **kwargs: Any) -> ParallelEnv:
    """The same as a PettingZoo parallel environment; what the listener does has no effect."""
    return turn_based_aec_to_parallel(aec_env(id, **kwargs))


class TwoPartyEnv(AECEnv):
    """A dialogue whose parties are both agents; a subclass gives each its transcript."""

    metadata = {  # noqa: RUF012
        "render_modes": list(RENDER_MODES),
        "render_fps": 4,
        "name": "dialgym",
        "is_parallelizable": False,
    }

    def __init__(self, task: Task, transcripts: dict[str, Any], render_mode: str | None) -> None:
        one_of("render_mode", render_mode, (*RENDER_MODES, None), task.name)
        self.task = task
        self.render_mode = render_mode
        self.possible_agents = list(task.parties)
        self.agents: list[str] = []
        self._transcripts = transcripts
        self.rng: np.random.Generator | None = None
        self.dialogue_state: Any = None
        self.observation_spaces = {a: t.observation_space for a, t in transcripts.items()}
        self.action_spaces = {a: t.action_space for a, t in transcripts.items()}

    def observation_space(self, agent: str) -> gym.Space:
        """What the party sees of a dialogue."""
        return self._transcripts[agent].observation_space

    def action_space(self, agent: str) -> gym.Space:
        """What the party can say."""
        return self._transcripts[agent].action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a dialogue; `options` fixes hidden parts of it (see the task)."""
        if seed is not None or self.rng is None:
            self.rng = np_random(seed)[0]
        self.dialogue_state = self.task.initial(self.rng, self._known(options))
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._turns = dict.fromkeys(self.agents, 0)
        self._seen = dict.fromkeys(self.agents, 0)
        for transcript in self._transcripts.values():
            transcript.clear()
        fits = self._tell_all()
        floor = self._give_floor()
        check_room(self.task, self.agent_selection, fits and floor)

    def _known(self, options: dict[str, Any] | None) -> dict[str, Any]:
        """The options without those that the task does not know.

        PettingZoo's conventions have an env ignore foreign options; a warning names them.
        """
        foreign = sorted(set(options or {}) - set(self.task.options))
        if foreign:
            gym.logger.warn(
                f"reset of {self.task.name}: ignored unknown options {foreign}. "
                f"Known: {', '.join(self.task.options) or 'none'}."
            )
        return {k: v for k, v in (options or {}).items() if k not in foreign}

    def observe(self, agent: str) -> Any:
        """What the party has seen so far."""
        return self._transcripts[agent].observe()

    def step(self, action: Any) -> None:
        """Let the party that holds the floor act.

        Raises:
            ResetNeeded: there is no dialogue under way.
            ValueError: the action is not one of its space.
        """
        if not self.agents:
            when = "after the end of the episode" if self.rng else "before the first reset()"
            raise ResetNeeded(f"{self.task.name}: step() was called {when}. Call reset() first.")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self.infos = {name: {} for name in self.agents}
        text = self._transcripts[agent].say(action)
        if text is not None:
            self._speak(agent, text)
        self._accumulate_rewards()
        self._add_masks()
        if text is not None and self.render_mode == "human":
            self.render()

    def _speak(self, agent: str, text: str) -> None:
        assert self.rng is not None
        outcome = self.task.speak(self.dialogue_state, text, self.rng)
        self._turns[agent] += 1
        self._seen[agent] += 1  # its own words are no news to it
        fits = self._tell_all()
        self.rewards = {name: float(outcome.rewards[name]) for name in self.agents}
        over = outcome.terminated or outcome.truncated
        if over or not (fits and self._give_floor()):
            self.terminations = dict.fromkeys(self.agents, outcome.terminated)
            self.truncations = dict.fromkeys(self.agents, not outcome.terminated)
        self._report(agent, text, outcome)

    def _tell_all(self) -> bool:
        """Let each party hear what is new to it; whether all of it fits."""
        fits = True
        for party, transcript in self._transcripts.items():
            lines = self.task.transcript(self.dialogue_state, party)
            fits &= transcript.hear(lines[self._seen[party] :])
            self._seen[party] = len(lines)
        return fits

    def _give_floor(self) -> bool:
        self.agent_selection = self.task.speaker(self.dialogue_state)
        fits: bool = self._transcripts[self.agent_selection].open()
        return fits

    def _report(self, agent: str, text: str, outcome: Outcome) -> None:
        info: dict[str, Any] = {"turn": self._turns[agent]}
        over = any(self.terminations.values()) or any(self.truncations.values())
        if over:
            info["is_success"] = bool(outcome.success)
        for name in self.agents:
            self.infos[name] = {**info, "reward_components": dict(outcome.parts(name))}
        self.infos[agent]["utterance"] = text

    def _add_masks(self) -> None:
        """A subclass may put masks into the infos."""

    def render(self) -> str | np.ndarray | None:
        """The dialogue so far, as the party that holds the floor sees it."""
        if self.render_mode is None or self.dialogue_state is None:
            gym.logger.warn(f"{self.task.name}: render() needs a render_mode and a reset().")
            return None
        return render(self.render_mode, self.task, self.dialogue_state, self.agent_selection)

    def close(self) -> None:
        """Nothing is held open."""


class TokenTwoPartyEnv(TwoPartyEnv):
    """Both parties say one token a step; spaces as in `TokenEnv`, one for each party.

    Args:
        task, tokenizer, overflow, render_mode: as in `TokenEnv`.
        window: L for both parties; None for the length that every dialogue fits into.
        action_masks: put ``action_mask``, (V,) bool, into the info of the party that acts.
    """

    def __init__(
        self,
        task: Task,
        tokenizer: Any = None,
        window: int | None = None,
        overflow: str = "truncate",
        action_masks: bool = False,
        render_mode: str | None = None,
    ) -> None:
        one_of("overflow", overflow, OVERFLOWS, task.name)
        self.tokenizer = tokenizer_of(task, tokenizer)
        layouts = {p: TokenLayout.of(task, self.tokenizer, p, window) for p in task.parties}
        slide = overflow == "slide"
        super().__init__(
            task, {p: TokenTranscript(layout, slide) for p, layout in layouts.items()}, render_mode
        )
        self._mask_in_info = action_masks

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a dialogue; `options` fixes hidden parts of it (see the task)."""
        super().reset(seed, options)
        self._add_masks()

    def action_masks(self) -> np.ndarray:
        """(V,) bool: the tokens that the party which holds the floor may say next."""
        party = self.agent_selection
        if not self.agents or self.terminations[party] or self.truncations[party]:
            return self._transcripts[party].no_masks()
        mask: np.ndarray = self._transcripts[party].masks(
            lambda: self.task.constraint(self.dialogue_state, party)
        )
        return mask

    def _add_masks(self) -> None:
        if self._mask_in_info:
            self.infos[self.agent_selection]["action_mask"] = self.action_masks()


class UtteranceTwoPartyEnv(TwoPartyEnv):
    """Both parties say one utterance a step; spaces as in `UtteranceEnv`, one for each party."""

    def __init__(self, task: Task, render_mode: str | None = None) -> None:
        super().__init__(task, {p: TextTranscript(task, p) for p in task.parties}, render_mode)
