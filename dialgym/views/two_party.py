"""The two-party view: both sides of a dialogue are agents of a PettingZoo environment.

The party that holds the floor acts until it yields it, by ``<end>`` at token level or after each
action at text and act level; then whoever the rules name is next. This AEC environment is the
canonical one; the parallel one is derived, with the listener's action ignored.
"""

import re
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils.seeding import np_random
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import turn_based_aec_to_parallel_wrapper

from dialgym.errors import one_of
from dialgym.io.registry_file import load
from dialgym.language import Utterance, render_transcript
from dialgym.registry import Environment, entry_of
from dialgym.tasks import Outcome, PartyActs, Task
from dialgym.tasks.batch import Exchange
from dialgym.tasks.returns import watch_returns
from dialgym.views.act_env import act_spaces, acts_of, check_act
from dialgym.views.arguments import Flags, check_seed
from dialgym.views.dialogue import check_room
from dialgym.views.info import Info, info_form
from dialgym.views.layout import TokenLayout, tokenizer_of
from dialgym.views.making import split_kwargs
from dialgym.views.render import RENDER_MODES, render
from dialgym.views.snapshots import Snapshot
from dialgym.views.spaces import with_features
from dialgym.views.token_env import OVERFLOWS
from dialgym.views.transcripts import TextTranscript, TokenTranscript


def aec_env(id: Environment, **kwargs: Any) -> "TwoPartyEnv":
    """The PettingZoo AEC environment of an id, at the level of its view.

    Args:
        id: any id, or a task; ``...-utterance-v0`` gives the utterance level, ``...-act-v0`` that
            of acts.
        kwargs: settings of the task, and arguments of the view (`render_mode`; at token and act
            level also `action_masks`, `masked_observations`; at token level `tokenizer`, `window`,
            `overflow`).

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
    """The same as a PettingZoo parallel environment; what the listener does has no effect."""
    return ParallelDialogue(aec_env(id, **kwargs))


class ParallelDialogue(turn_based_aec_to_parallel_wrapper):  # type: ignore[misc]
    """PettingZoo's conversion, whose infos say at each step and after `reset` who has the floor.

    That is ``active_agent``, a name; without texts the place of the party among the agents.
    """

    def __repr__(self) -> str:
        return f"Parallel({self.aec_env!r})"

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Info]]:
        """Begin a dialogue."""
        observations, infos = super().reset(seed, options)
        return observations, self._with_floor(infos)

    def step(self, actions: dict[str, Any]) -> Any:
        """Let the party that holds the floor act."""
        *results, infos = super().step(actions)
        return (*results, self._with_floor(infos))

    def _with_floor(self, infos: dict[str, Info]) -> dict[str, Info]:
        env: Any = self.aec_env
        active: Any = env.agent_selection
        if not env.text_info:
            active = np.array(env.possible_agents.index(active))
        return {party: {**info, "active_agent": active} for party, info in infos.items()}


REPLACED = (
    *("rng", "dialogue_state", "agents", "agent_selection", "rewards", "_cumulative_rewards"),
    *("terminations", "truncations", "infos", "_turns", "_seen", "_heard"),
)
"""What a reset gives other values. By name: reading `__dict__` would slow each later step."""


class TwoPartyEnv(Flags, AECEnv):
    """A dialogue whose parties are both agents; a subclass says how each sees and acts.

    Args:
        task, render_mode: as in the single-agent views.
        sides: for each party its transcript, or its acts.
        action_masks: put ``action_mask``, int8, into the info of each party; the listener's, whose
            action has no effect, is all 1.
        masked_observations: make each observation a dict of ``observation`` and ``action_mask``,
            int8, as PettingZoo's own games do; the listener's mask is all 1.
        text_info: whether the infos have texts; without them they are numbers alone.

    The infos are those of `dialgym.views.info`, one for each party: ``utterance`` is its own,
    ``reply`` what it has heard last, ``turn`` that of whoever has spoken.
    """

    id = ""
    """Of the environment, where it was made by one."""
    metadata = {  # noqa: RUF012
        "render_modes": list(RENDER_MODES),
        "render_fps": 4,
        "name": "dialgym",
        "is_parallelizable": False,
    }

    def __init__(
        self,
        task: Task,
        sides: dict[str, Any],
        render_mode: str | None,
        action_masks: bool = False,
        masked_observations: bool = False,
        text_info: bool = True,
    ) -> None:
        one_of("render_mode", render_mode, (*RENDER_MODES, None), task.name)
        self.task = task
        self.render_mode = render_mode
        self.possible_agents = list(task.parties)
        self.agents: list[str] = []
        self._sides = sides
        self._mask_in_info, self._mask_in_observation = action_masks, masked_observations
        self.text_info = text_info
        self._forms = {party: info_form(task, party, text_info) for party in task.parties}
        self.rng: np.random.Generator | None = None
        self.dialogue_state: Any = None
        self.observation_spaces = {party: self._space_of(side) for party, side in sides.items()}
        self.action_spaces = {party: side.action_space for party, side in sides.items()}

    def __repr__(self) -> str:
        place = f"{self.id}: " if self.id else ""
        return f"{type(self).__name__}({place}{self.task!r})"

    def _space_of(self, side: Any) -> gym.Space:
        if not self._mask_in_observation:
            return side.observation_space
        mask = gym.spaces.Box(0, 1, (side.action_space.n,), np.int8)
        return gym.spaces.Dict({"observation": side.observation_space, "action_mask": mask})

    def observation_space(self, agent: str) -> gym.Space:
        """What the party sees of a dialogue."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space:
        """What the party can say."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a dialogue; `options` fixes hidden parts of it (see the task).

        A reset that raises an error leaves the dialogue under way, and its generator, as they were.
        """
        held = {name: getattr(self, name) for name in REPLACED if hasattr(self, name)}
        seen = {party: side.saved() for party, side in self._sides.items()}
        drawn = Snapshot([], [] if self.rng is None else [self.rng])
        try:
            self._begin(seed, options)
        except BaseException:
            for name in REPLACED:
                self.__dict__.pop(name, None)
            for name, value in held.items():
                setattr(self, name, value)
            for party, side in self._sides.items():
                side.restore(seen[party])
            drawn.restore()
            raise

    def _begin(self, seed: int | None, options: dict[str, Any] | None) -> None:
        if seed is not None or self.rng is None:
            self.rng = np_random(check_seed(seed, self.task.name))[0]
        self.dialogue_state = self.task.initial(self.rng, self._known(options))
        self._watches = [watch_returns(self.task, party) for party in self.possible_agents]
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, Info] = self._blank_infos()
        self._turns = dict.fromkeys(self.agents, 0)
        self._seen = dict.fromkeys(self.agents, 0)
        self._heard: dict[str, Sequence[Utterance]] = {}
        for side in self._sides.values():
            side.clear()
        fits = self._tell_all()
        floor = self._give_floor()
        check_room(self.task, self.agent_selection, fits and floor)
        self._add_masks()

    def _blank_infos(self) -> dict[str, Info]:
        return {party: self._forms[party].blank() for party in self.agents}

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
        """What the party sees now."""
        seen = self._see(agent)
        if not self._mask_in_observation:
            return seen
        return {"observation": seen, "action_mask": self._masks(agent).astype(np.int8)}

    def _see(self, party: str) -> Any:
        return self._sides[party].observe()

    def _say(self, party: str, action: Any) -> str | None:
        """The text of the party's utterance once that has ended."""
        text: str | None = self._sides[party].say(action)
        return text

    def _allowed(self, party: str) -> np.ndarray:
        raise TypeError(f"{type(self).__name__} has no action masks.")

    def action_masks(self) -> np.ndarray:
        """(V,) or (A,) bool: what the party that holds the floor may choose next."""
        return self._masks(self.agent_selection)

    def _masks(self, party: str) -> np.ndarray:
        """All True for a party that does not hold the floor."""
        acts = bool(self.agents) and party == self.agent_selection
        if not acts or self.terminations[party] or self.truncations[party]:
            return np.ones(self._sides[party].action_space.n, bool)
        return self._allowed(party)

    def _add_masks(self) -> None:
        if self._mask_in_info:
            for party, info in self.infos.items():
                info["action_mask"] = self._masks(party).astype(np.int8)

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
        self.infos = self._blank_infos()
        text = self._say(agent, action)
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
        self._seen[agent] += 1  # it knows its own words
        fits = self._tell_all()
        self.rewards = {name: float(outcome.rewards[name]) for name in self.agents}
        over = outcome.terminated or outcome.truncated
        for watch in filter(None, self._watches):
            watch.note_one(outcome.rewards[watch.party], outcome.parts(watch.party), over)
        if over or not (fits and self._give_floor()):
            self.terminations = dict.fromkeys(self.agents, outcome.terminated)
            self.truncations = dict.fromkeys(self.agents, not outcome.terminated)
        self._report(agent, text, outcome)

    def _tell_all(self) -> bool:
        """Let each party hear what is new to it; whether all of it fits."""
        fits = True
        for party, side in self._sides.items():
            lines = self.task.transcript(self.dialogue_state, party)
            fits &= side.hear(lines[self._seen[party] :])
            self._heard[party] = lines[self._seen[party] :]
            self._seen[party] = len(lines)
        return fits

    def _give_floor(self) -> bool:
        self.agent_selection = self.task.speaker(self.dialogue_state)
        fits: bool = self._sides[self.agent_selection].open()
        return fits

    def _report(self, agent: str, text: str, outcome: Outcome) -> None:
        over = any(self.terminations.values()) or any(self.truncations.values())
        metrics = self.task.metrics(self.dialogue_state) if over else {}
        for party, form in self._forms.items():
            end = outcome.terminated, outcome.truncated
            parts = outcome.parts(party)
            gained = outcome.rewards[party]
            exchange = Exchange(gained, *end, self._heard[party], parts, outcome.success)
            said = text if party == agent else ""
            info = self.infos[party] = form.of_turn(said, self._turns[agent], exchange)
            if over:
                lines = self.task.transcript(self.dialogue_state, party)
                form.end(info, outcome.success, render_transcript(lines), metrics)

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
        action_masks, masked_observations, text_info: as in `TwoPartyEnv`.
        features: a party that the task gives features observes ``Dict(tokens, features)``.
    """

    def __init__(
        self,
        task: Task,
        tokenizer: Any = None,
        window: int | None = None,
        overflow: str = "truncate",
        action_masks: bool = False,
        masked_observations: bool = False,
        render_mode: str | None = None,
        text_info: bool = True,
        features: bool = False,
    ) -> None:
        one_of("overflow", overflow, OVERFLOWS, task.name)
        self.tokenizer = tokenizer_of(task, tokenizer)
        layouts = {p: TokenLayout.of(task, self.tokenizer, p, window) for p in task.parties}
        sides = {p: TokenTranscript(layout, overflow == "slide") for p, layout in layouts.items()}
        given = [party for party in task.parties if party in task.facts.features]
        self._shown = (given or list(task.parties)) if features else []  # without any, refused
        for party in self._shown:
            tokens = sides[party].observation_space
            sides[party].observation_space = with_features(tokens, task, party)
        super().__init__(task, sides, render_mode, action_masks, masked_observations, text_info)

    def _see(self, party: str) -> Any:
        tokens = super()._see(party)
        if party not in self._shown:
            return tokens
        return {"tokens": tokens, "features": self.task.features(self.dialogue_state, party)}

    def _allowed(self, party: str) -> np.ndarray:
        mask: np.ndarray = self._sides[party].masks(
            lambda: self.task.constraint(self.dialogue_state, party)
        )
        return mask


class UtteranceTwoPartyEnv(TwoPartyEnv):
    """Both parties say one utterance a step; spaces as in `UtteranceEnv`, one for each party."""

    def __init__(self, task: Task, render_mode: str | None = None, text_info: bool = True) -> None:
        sides = {party: TextTranscript(task, party) for party in task.parties}
        super().__init__(task, sides, render_mode, text_info=text_info)


class ActTwoPartyEnv(TwoPartyEnv):
    """Both parties choose dialogue acts; spaces as in `ActEnv`, one for each party.

    Args:
        task: the rules; it must have `Task.acts` of both parties.
        action_masks, masked_observations, render_mode, text_info: as in
            `TwoPartyEnv`.

    Raises:
        ValueError: a party has no acts.
    """

    def __init__(
        self,
        task: Task,
        action_masks: bool = False,
        masked_observations: bool = False,
        render_mode: str | None = None,
        text_info: bool = True,
    ) -> None:
        sides = {party: ActSide(acts_of(task, party)) for party in task.parties}
        super().__init__(task, sides, render_mode, action_masks, masked_observations, text_info)

    def _see(self, party: str) -> np.ndarray:
        return self.task.acts[party].observe(self.dialogue_state)

    def _say(self, party: str, action: Any) -> str:
        assert self.rng is not None
        acts = self.task.acts[party]
        chosen = check_act(action, acts, self.task.name)
        return acts.say(self.dialogue_state, chosen, self.rng)

    def _allowed(self, party: str) -> np.ndarray:
        return self.task.acts[party].mask(self.dialogue_state)


class ActSide:
    """A party's spaces; what it has heard is in the state already."""

    def __init__(self, acts: PartyActs) -> None:
        self.observation_space, self.action_space = act_spaces(acts)

    def saved(self) -> None:
        """Nothing."""

    def restore(self, saved: None) -> None:
        """Nothing."""

    def clear(self) -> None:
        """There is nothing to forget."""

    def hear(self, utterances: Sequence[Utterance]) -> bool:
        """All of them fit."""
        return True

    def open(self) -> bool:
        """There is always room for one more act."""
        return True
