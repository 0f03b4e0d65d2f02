"""Two-party views: both sides of a dialogue are agents of a PettingZoo environment.

The party that holds the floor acts until it yields it, by ``<end>`` at token level or after each
action at text and act level; then whoever the rules name is next. This AEC environment is the
canonical one; the parallel one is derived, with the listener's action ignored.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.utils.seeding import np_random
from pettingzoo import AECEnv

from dialgym.errors import one_of
from dialgym.language import render_transcript
from dialgym.tasks import Outcome, Task
from dialgym.tasks.acts import check_act
from dialgym.tasks.batch import Exchange
from dialgym.views.act_env import ActSide, act_spaces, acts_of
from dialgym.views.arguments import (
    AFTER_THE_END,
    BEFORE,
    CLOSED,
    check_seed,
    reset_needed,
)
from dialgym.views.info import Info, info_form
from dialgym.views.options import TWO_PARTY, TakesOptions
from dialgym.views.render import METADATA, render
from dialgym.views.spaces import TokenLayout, tokenizer_of, utterance_spaces, with_features
from dialgym.views.token_env import OVERFLOWS
from dialgym.views.token_transcripts import TokenTranscript
from dialgym.views.two_party_dialogue import TwoPartyDialogue
from dialgym.views.utterance_env import TextTranscript


class TwoPartyEnv(TakesOptions, AECEnv):
    """A dialogue whose parties are both agents; a subclass says how each sees and acts.

    Args:
        task: the rules.
        sides: for each party what makes its side of a new dialogue: a transcript, or a party of
            acts.
        spaces: for each party its observations and its actions.
        options: by name, see `ViewOptions`. The mask of the listener, whose action has no effect,
            is all 1.

    The infos are those of `dialgym.views.info`, one for each party: ``utterance`` is its own,
    ``reply`` what it has heard last, ``turn`` that of whoever has spoken.
    """

    id = ""
    """Of the environment, where it was made by one."""
    form: ClassVar[str] = TWO_PARTY
    metadata = {**METADATA, "name": "dialgym", "is_parallelizable": False}  # noqa: RUF012

    def __init__(
        self,
        task: Task,
        sides: Mapping[str, Callable[[], Any]],
        spaces: Mapping[str, tuple[gym.Space, gym.Space]],
        options: Mapping[str, Any],
    ) -> None:
        self.task = task
        self.options = self.read_options(task, options)
        self.render_mode = self.options.render_mode
        self.possible_agents = list(task.parties)
        self.agents: list[str] = []
        self._closed_because = BEFORE  # where there are no agents
        self._make_sides = sides
        self.dialogue = TwoPartyDialogue(task, {})
        self._forms = {party: info_form(task, party, self.text_info) for party in task.parties}
        self.rng: np.random.Generator | None = None
        self.action_spaces: dict[str, Any] = {party: said for party, (_, said) in spaces.items()}
        self.observation_spaces = {
            party: self._space_of(seen, said) for party, (seen, said) in spaces.items()
        }

    @property
    def text_info(self) -> bool:
        """True if infos have texts."""
        return self.options.text_info

    @property
    def dialogue_state(self) -> Any:
        """The state of the dialogue; None before the first reset."""
        return self.dialogue.state

    def __repr__(self) -> str:
        prefix = f"{self.id}: " if self.id else ""
        return f"{type(self).__name__}({prefix}{self.task!r})"

    def _space_of(self, seen: gym.Space, said: Any) -> gym.Space:
        if not self.options.masked_observations:
            return seen
        mask = gym.spaces.Box(0, 1, (said.n,), np.int8)
        return gym.spaces.Dict({"observation": seen, "action_mask": mask})

    def observation_space(self, agent: str) -> gym.Space:
        """Observation space of a party."""
        return self.observation_spaces[self._party(agent)]

    def action_space(self, agent: str) -> gym.Space:
        """Action space of a party."""
        return self.action_spaces[self._party(agent)]

    def _party(self, agent: str) -> str:
        one_of("agent", agent, self.possible_agents, self.task.name)
        return agent

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a dialogue; `options` fixes hidden parts of it (see the task).

        An error leaves the dialogue under way as it was. So is its generator where the seed or
        the options are refused; a window that is too small is found later.
        """
        known = self._known(options)
        rng = self.rng
        if seed is not None or rng is None:
            rng = np_random(check_seed(seed, self.task.name))[0]
        dialogue = TwoPartyDialogue(
            self.task, {party: make() for party, make in self._make_sides.items()}
        )
        speaker = dialogue.begin(rng, known)
        self.rng, self.dialogue, self.agent_selection = rng, dialogue, speaker
        self.agents, self._closed_because = self.possible_agents[:], AFTER_THE_END
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, Info] = self._blank_infos()
        self._add_masks()
        if self.render_mode == "human":
            self.render()

    def require_begun(self, call: str) -> None:
        """Raise a `ResetNeeded` for a call before the first reset, or after `close`."""
        if self.dialogue_state is None:
            raise reset_needed(self.task.name, self._closed_because, call)

    def _blank_infos(self) -> dict[str, Info]:
        return {party: self._forms[party].blank() for party in self.agents}

    def _known(self, options: dict[str, Any] | None) -> dict[str, Any]:
        """The options without those that the task does not know.

        PettingZoo's conventions have an env ignore foreign options; a warning names them.
        """
        if not isinstance(options or {}, Mapping):
            self.task.check_options(options)  # it says what was expected
        foreign = sorted(set(options or {}) - set(self.task.options))
        if foreign:
            gym.logger.warn(
                f"reset of {self.task.name}: ignored unknown options {foreign}. "
                f"Known: {', '.join(self.task.options) or 'none'}."
            )
        return {k: v for k, v in (options or {}).items() if k not in foreign}

    def observe(self, agent: str) -> Any:
        """The observation of a party now."""
        self.require_begun("observe")
        seen = self._see(self._party(agent))
        if not self.options.masked_observations:
            return seen
        return {"observation": seen, "action_mask": self._masks(agent).astype(np.int8)}

    def last(self, observe: bool = True) -> tuple[Any, float, bool, bool, Info]:
        """Observation, rewards since it acted last, ends and info of who holds the floor."""
        self.require_begun("last")
        found: tuple[Any, float, bool, bool, Info] = super().last(observe)
        return found

    def _see(self, party: str) -> Any:
        return self.dialogue.sides[party].observe()

    def _say(self, party: str, action: Any) -> str | None:
        """The text of the party's utterance once that has ended."""
        text: str | None = self.dialogue.sides[party].say(action)
        return text

    def _allowed(self, party: str) -> np.ndarray:
        raise TypeError(f"{type(self).__name__} has no action masks.")

    def action_masks(self) -> np.ndarray:
        """(V,) or (A,) bool: what the party that holds the floor may choose next."""
        self.require_begun("action_masks")
        return self._masks(self.agent_selection)

    def _masks(self, party: str) -> np.ndarray:
        """All True for a party that does not hold the floor."""
        acts = bool(self.agents) and party == self.agent_selection
        if not acts or self.terminations[party] or self.truncations[party]:
            return np.ones(self.action_spaces[party].n, bool)
        return self._allowed(party)

    def _add_masks(self) -> None:
        if self.options.action_masks:
            for party, info in self.infos.items():
                info["action_mask"] = self._masks(party).astype(np.int8)

    def step(self, action: Any) -> None:
        """Let the party that holds the floor act.

        Raises:
            ResetNeeded: there is no dialogue under way.
            ValueError: the action is not one of its space.
        """
        if not self.agents:
            raise reset_needed(self.task.name, self._closed_because)
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        text = self._say(agent, action)
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        if text is None:
            self.infos = self._blank_infos()
        else:
            self._speak(agent, text)
        self._accumulate_rewards()
        self._add_masks()
        if text is not None and self.render_mode == "human":
            self.render()

    def _speak(self, agent: str, text: str) -> None:
        assert self.rng is not None
        dialogue = self.dialogue
        outcome = dialogue.speak(agent, text, self.rng)
        self.rewards = {name: float(outcome.rewards[name]) for name in self.agents}
        fits = dialogue.tell_all()
        if outcome.terminated or outcome.truncated or not (fits and dialogue.give_floor()):
            self.terminations = dict.fromkeys(self.agents, outcome.terminated)
            self.truncations = dict.fromkeys(self.agents, not outcome.terminated)
        self.agent_selection = dialogue.speaker
        self._report(agent, text, outcome)

    def _report(self, agent: str, text: str, outcome: Outcome) -> None:
        dialogue = self.dialogue
        over = any(self.terminations.values()) or any(self.truncations.values())
        metrics = self.task.metrics(self.dialogue_state) if over else {}
        self.infos = {}
        for party, form in self._forms.items():
            end = outcome.terminated, outcome.truncated
            parts = outcome.parts(party)
            reward = outcome.rewards[party]
            exchange = Exchange(reward, *end, dialogue.heard[party], parts, outcome.success)
            said = text if party == agent else ""
            info = self.infos[party] = form.of_turn(said, dialogue.turns[agent], exchange)
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
        """Drop the dialogue, and release what the task holds open for it."""
        self.dialogue = TwoPartyDialogue(self.task, {})
        self.agents, self._closed_because = [], CLOSED
        self.task.release()


class TokenTwoPartyEnv(TwoPartyEnv):
    """Both parties say one token a step; spaces as in `TokenEnv`, one for each party.

    Args:
        task, tokenizer, overflow: as in `TokenEnv`.
        window: L for both parties; None for the length that every dialogue fits into.
        options: see `ViewOptions`; with `features` the parties that the task gives some observe
            ``Dict(tokens, features)``.
    """

    view = "token"

    def __init__(
        self,
        task: Task,
        tokenizer: Any = None,
        window: int | None = None,
        overflow: str = "truncate",
        **options: Any,
    ) -> None:
        one_of("overflow", overflow, OVERFLOWS, task.name)
        self.tokenizer = tokenizer_of(task, tokenizer)
        layouts = {p: TokenLayout.of(task, self.tokenizer, p, window) for p in task.parties}
        given = [party for party in task.parties if party in task.facts.features]
        wanted = self.read_options(task, options).features
        self._shown = (given or list(task.parties)) if wanted else []  # without any, refused
        spaces, said = {}, gym.spaces.Discrete(self.tokenizer.vocab_size)
        for party, layout in layouts.items():
            tokens = layout.space()
            seen = with_features(tokens, task, party) if party in self._shown else tokens
            spaces[party] = seen, said
        slide = overflow == "slide"
        sides = {p: partial(TokenTranscript, layout, slide) for p, layout in layouts.items()}
        super().__init__(task, sides, spaces, options)

    def _see(self, party: str) -> Any:
        tokens = super()._see(party)
        if party not in self._shown:
            return tokens
        return {"tokens": tokens, "features": self.task.features(self.dialogue_state, party)}

    def _allowed(self, party: str) -> np.ndarray:
        mask: np.ndarray = self.dialogue.sides[party].masks(
            lambda: self.task.constraint(self.dialogue_state, party)
        )
        return mask


class UtteranceTwoPartyEnv(TwoPartyEnv):
    """Both parties say one utterance a step; spaces as in `UtteranceEnv`, one for each party.

    Args:
        task: the rules.
        options: see `ViewOptions`.
    """

    view = "utterance"

    def __init__(self, task: Task, **options: Any) -> None:
        sides = {party: partial(TextTranscript, task, party) for party in task.parties}
        spaces = {party: utterance_spaces(task, party) for party in task.parties}
        super().__init__(task, sides, spaces, options)


class ActTwoPartyEnv(TwoPartyEnv):
    """Both parties choose dialogue acts; spaces as in `ActEnv`, one for each party.

    Args:
        task: the rules; it must have `Task.acts` of both parties.
        options: see `ViewOptions`.

    Raises:
        ValueError: a party has no acts.
    """

    view = "act"

    def __init__(self, task: Task, **options: Any) -> None:
        spaces = {party: act_spaces(acts_of(task, party)) for party in task.parties}
        super().__init__(task, dict.fromkeys(task.parties, ActSide), spaces, options)

    def _see(self, party: str) -> np.ndarray:
        return self.task.acts[party].observe(self.dialogue_state)

    def _say(self, party: str, action: Any) -> str:
        assert self.rng is not None
        acts = self.task.acts[party]
        chosen = check_act(action, acts, self.task.name)
        return acts.say(self.dialogue_state, chosen, self.rng)

    def _allowed(self, party: str) -> np.ndarray:
        return self.task.acts[party].mask(self.dialogue_state)
