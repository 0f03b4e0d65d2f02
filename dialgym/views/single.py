"""The base of the single views: one dialogue as a Gymnasium environment."""

from abc import abstractmethod
from copy import deepcopy
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded

from dialgym.tasks import Task
from dialgym.tasks.batch import Exchange
from dialgym.views.arguments import check_seed
from dialgym.views.belief_gain import BeliefGain
from dialgym.views.dialogue import Dialogue, SimulatorLike, check_floor, find_speaker
from dialgym.views.info import Info, info_form
from dialgym.views.notes import notes
from dialgym.views.played import Played
from dialgym.views.render import RENDER_MODES, render
from dialgym.views.saved import SavedDialogue

AFTER_THE_END = "after the end of the episode"
_ONE = np.zeros(1, np.int64)


class DialogueEnv(Played, gym.Env):
    """One dialogue; a subclass says what an action and an observation are."""

    view: ClassVar[str]
    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        task: Task,
        learner: str,
        simulator: SimulatorLike,
        render_mode: str | None,
        text_info: bool = True,
        anchors: bool = False,
        belief_gain: float = 0.0,
        truths: bool = False,
    ) -> None:
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(
                f"render_mode of {task.name}: expected one of {', '.join(RENDER_MODES)} or None; "
                f"got {render_mode!r}."
            )
        self.task = task
        self.learner = learner
        self.render_mode = render_mode
        self.dialogue = Dialogue(task, learner, find_speaker(task, learner, simulator))
        self._info = info_form(task, learner, text_info)
        self._notes = notes(task, learner, anchors, truths)
        self._noted: dict[str, str] = {}
        self._belief = BeliefGain(task, 1, belief_gain) if belief_gain else None
        # Infos, rewards or observations have more than their usual parts.
        self._has_extras = bool(self._notes) or belief_gain != 0
        self._closed_because = "before the first reset()"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Info]:
        """Begin a dialogue; `options` fixes hidden parts of it (see the task).

        A reset that raises an error leaves the dialogue under way, and its generator, as they were.
        """
        before = self._held()
        try:
            return self._begin(seed, options)
        except BaseException:
            self._put_back(*before)
            raise

    def _held(self) -> tuple[Any, ...]:
        """What a reset changes. By name: reading `__dict__` would slow each later step."""
        rng = self._np_random
        drawn = None if rng is None else rng.bit_generator.state
        own = rng, self._np_random_seed, drawn, self._closed_because
        return *own, self.dialogue.held(), self._saved_view()

    def _put_back(
        self, rng: Any, seed: Any, drawn: Any, closed_because: str, dialogue: Any, seen: Any
    ) -> None:
        self._np_random, self._np_random_seed = rng, seed
        if rng is not None:
            rng.bit_generator.state = drawn
        self._closed_because = closed_because
        self.dialogue.put_back(dialogue)
        self._restore_view(seen)
        if self.dialogue.state is not None:
            self._look()

    @abstractmethod
    def _begin(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, Info]:
        """Begin a dialogue; what `reset` returns."""

    def _start(self, seed: int | None, options: dict[str, Any] | None) -> Exchange:
        super().reset(seed=check_seed(seed, self.task.name))
        exchange = self.dialogue.start(self.np_random, options)
        check_floor(self.task, self.learner, exchange.over)
        self._closed_because = ""
        if self._has_extras:
            self._look()
        return exchange

    def _say(self, text: str) -> tuple[Exchange, Info]:
        exchange = self.dialogue.say(text, self.np_random)
        info = self._info.of_turn(text, self.dialogue.turn, exchange)
        if self._has_extras:
            exchange = exchange._replace(reward=exchange.reward + self._look())
        if exchange.terminated or exchange.truncated:
            self._finish(info, exchange.success)
        if self.render_mode == "human":
            self.render()
        return exchange, info

    def _finish(self, info: Info, success: bool | None) -> None:
        metrics = self.task.metrics(self.dialogue.state)
        self._info.end(info, success, self.dialogue.transcript(), metrics)
        self._closed_because = AFTER_THE_END

    def _look(self) -> float:
        """Take note of what an exchange has changed beside the transcript; what that is worth."""
        self._noted = {name: note(self.dialogue.state) for name, note in self._notes.items()}
        if self._belief is None:
            return 0.0
        return float(self._belief.look(_ONE, [self.dialogue.state])[0])

    def _more_info(self, info: Info) -> Info:
        """The info with what was asked for beside its constant structure."""
        return info | self._noted

    def clone_state(self) -> SavedDialogue:
        """The dialogue as it stands, with its generator, for `restore_state`.

        Raises:
            ResetNeeded: there has been none yet.
        """
        dialogue = self.dialogue
        if dialogue.state is None:
            raise ResetNeeded(f"{self.task.name}: clone_state() was called before reset().")
        state, rng = dialogue.state.copy(), deepcopy(self.np_random)
        over = bool(self._closed_because)
        return SavedDialogue(
            self.task.name, self.view, state, dialogue.turn, rng, self._saved_view(), over, over
        )

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
        saved.check(self.task, self.view)
        self.np_random = saved.generator(seed)
        self.dialogue.restore(saved.state.copy(), saved.turn)
        self._restore_view(saved.seen)
        self._closed_because = AFTER_THE_END if saved.over else ""
        self._look()
        return self._observe()

    def _saved_view(self) -> Any:
        """What the view keeps beside the dialogue."""
        return None

    def _restore_view(self, saved: Any) -> None:
        """Go on from what the view kept."""

    @abstractmethod
    def _observe(self) -> Any:
        """The observation now, a copy."""

    def _refuse(self) -> ResetNeeded:
        return ResetNeeded(
            f"{self.task.name}: step() was called {self._closed_because}. Call reset() first."
        )

    def render(self) -> str | np.ndarray | None:  # type: ignore[override]
        """The dialogue so far: text (`ansi`), an RGB array, or printed (`human`)."""
        if self.render_mode is None:
            gym.logger.warn(
                f"{self.task.name}: render() needs a mode. "
                f"Make the env with render_mode= one of {', '.join(RENDER_MODES)}."
            )
            return None
        if self.dialogue.state is None:
            raise ResetNeeded(f"{self.task.name}: render() was called before the first reset().")
        return render(self.render_mode, self.task, self.dialogue.state, self.learner)
