"""Base of the single views: one dialogue as a Gymnasium environment."""

from abc import abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.tasks import Task
from dialgym.tasks.batch import Exchange
from dialgym.views.arguments import (
    AFTER_THE_END,
    BEFORE,
    CLOSED,
    FAILED,
    check_seed,
    reset_needed,
)
from dialgym.views.dialogue import Dialogue, check_floor
from dialgym.views.env_spec import SpecMixin
from dialgym.views.extras import Extras
from dialgym.views.info import Info, info_form
from dialgym.views.options import SINGLE
from dialgym.views.render import METADATA, RENDER_MODES, render
from dialgym.views.saved import SavedDialogue, check_saved
from dialgym.views.speakers import find_speaker

_ONE = np.zeros(1, np.int64)


class DialogueEnv(SpecMixin, gym.Env):
    """One dialogue; a subclass says what an action and an observation are.

    After an error within a step, as of a simulator that cannot be reached, each further step is a
    `ResetNeeded`, until `reset` or `restore_state`.

    Args:
        task: the rules.
        options: by name, see `ViewOptions`.
    """

    form: ClassVar[str] = SINGLE
    metadata = METADATA

    def __init__(self, task: Task, options: Mapping[str, Any]) -> None:
        self.task = task
        self.options = self.read_options(task, options)
        self.learner, self.render_mode = self.options.learner, self.options.render_mode
        other = find_speaker(task, self.learner, self.options.simulator)
        self.dialogue = Dialogue(task, self.learner, other)
        self._transcript: Any = None
        self._extras = Extras(task, self.options, 1)
        parts = self._extras.parts
        self._info = info_form(task, self.learner, self.options.text_info, parts)
        self._mask_in_info = self.options.action_masks
        # Infos, rewards or observations have more than their usual parts.
        more = self._mask_in_info or self.options.features
        self._has_extras = more or self._extras.asked
        self._closed_because = BEFORE

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Info]:
        """Begin a dialogue; `options` fixes hidden parts of it (see the task).

        An error leaves the dialogue under way as it was. So is its generator where the seed or
        the options are refused; a speaker that fails later may have drawn from it.

        Raises:
            ValueError: the seed or an option is impossible, or the learner never has the floor.
        """
        rng, rng_seed = self._generator(seed)
        dialogue = Dialogue(self.task, self.learner, self.dialogue.other)
        exchange = dialogue.start(rng, options)
        check_floor(self.task, self.learner, exchange.over)
        transcript = self._new_transcript(exchange)
        if self._has_extras:
            self._update_extras(dialogue.state)
        self._np_random, self._np_random_seed = rng, rng_seed
        self.dialogue, self._transcript, self._closed_because = dialogue, transcript, ""
        info = self._info.blank()
        if self.render_mode == "human":
            self.render()
        return self._observe(), self._more_info(info) if self._has_extras else info

    def _generator(self, seed: int | None) -> tuple[np.random.Generator, int | None]:
        """A new generator if a seed is given or there is none yet, else the current one."""
        if seed is None and self._np_random is not None:
            return self._np_random, self._np_random_seed
        return np_random(check_seed(seed, self.task.name))

    def _new_transcript(self, exchange: Exchange) -> Any:
        """The learner's transcript after the beginning of a dialogue, where the view keeps one."""
        return None

    def _say(self, text: str) -> tuple[Exchange, Info]:
        self._closed_because = FAILED  # until the exchange is whole
        exchange = self.dialogue.say(text, self.np_random)
        if self._has_extras:
            over = exchange.terminated or exchange.truncated
            parts = self._update_extras(self.dialogue.state, over)
            exchange = self._extras.added(exchange, parts)
        info = self._info.of_turn(text, self.dialogue.turn, exchange)
        reward = self.options.rescaled(exchange.reward)
        if reward != exchange.reward:
            exchange = exchange._replace(reward=reward)
        if exchange.terminated or exchange.truncated:
            self._finish(info, exchange.success)
        else:
            self._closed_because = ""
        if self.render_mode == "human":
            self.render()
        return exchange, info

    def _finish(self, info: Info, success: bool | None) -> None:
        metrics = self.task.metrics(self.dialogue.state)
        self._info.end(info, success, self.dialogue.transcript(), metrics)
        self._closed_because = AFTER_THE_END

    def _update_extras(self, state: Any, over: bool = False) -> dict[str, float]:
        """Take in what an exchange has changed beside the transcript; parts of its reward."""
        if not self._extras.asked:
            return {}
        rngs = [self.np_random] if over else []
        found = self._extras.update(_ONE, [state], np.array([over]), rngs)
        return {name: float(values[0]) for name, values in found.items()}

    def _more_info(self, info: Info) -> Info:
        """Add entries that options ask for."""
        for key, texts in self._extras.texts.items():
            info[key] = texts[0]
        return info

    def clone_state(self) -> SavedDialogue:
        """The dialogue as it stands, with its generator, for `restore_state`.

        Raises:
            ResetNeeded: there has been none yet, or its last step has failed.
        """
        if self._closed_because not in ("", AFTER_THE_END):
            raise reset_needed(self.task.name, self._closed_because, "clone_state")
        dialogue = self.dialogue
        state, rng = dialogue.state.copy(), deepcopy(self.np_random)
        seen = None if self._transcript is None else self._transcript.saved()
        over = bool(self._closed_because)
        return SavedDialogue(self.task.name, self.view, state, dialogue.turn, rng, seen, over, over)

    def restore_state(self, saved: SavedDialogue, seed: int | None = None) -> Any:
        """Go on from a saved dialogue, of this env or of another of the same view and settings.

        Args:
            saved: what `clone_state` gave, here or of a row of the batched view.
            seed: of a new generator, to go on in another way; None to go on as it did.

        Returns:
            The observation there.

        Raises:
            ValueError: it is of another task or view.
        """
        check_saved(saved, self.task, self.view)
        self.np_random = saved.generator(seed)
        self.dialogue.restore(saved.state.copy(), saved.turn)
        if self._transcript is not None:
            self._transcript.restore(saved.seen)
        self._closed_because = AFTER_THE_END if saved.over else ""
        self._update_extras(self.dialogue.state)
        return self._observe()

    @abstractmethod
    def _observe(self) -> Any:
        """The observation now, a copy."""

    def _require_open(self) -> None:
        if self._closed_because:
            raise reset_needed(self.task.name, self._closed_because)

    def render(self) -> str | np.ndarray | None:  # type: ignore[override]
        """The dialogue so far: text (`ansi`), an RGB array, or printed (`human`)."""
        if self.render_mode is None:
            gym.logger.warn(
                f"{self.task.name}: render() needs a mode. "
                f"Make the env with render_mode= one of {', '.join(RENDER_MODES)}."
            )
            return None
        if self.dialogue.state is None:
            raise reset_needed(self.task.name, self._closed_because, "render")
        return render(self.render_mode, self.task, self.dialogue.state, self.learner)

    def close(self) -> None:
        """Drop the dialogue, and release what the task holds open for it."""
        self.dialogue = Dialogue(self.task, self.learner, self.dialogue.other)
        self._closed_because = CLOSED
        self.task.release()
