"""The base of the single views: one dialogue as a Gymnasium environment."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded

from dialgym.tasks import Task
from dialgym.tasks.batch import Exchange
from dialgym.views.dialogue import Dialogue, SimulatorLike, check_floor, find_speaker
from dialgym.views.info import Info, InfoForm
from dialgym.views.played import Played
from dialgym.views.render import RENDER_MODES, render


class DialogueEnv(Played, gym.Env):
    """One dialogue; a subclass says what an action and an observation are."""

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        task: Task,
        learner: str,
        simulator: SimulatorLike,
        render_mode: str | None,
        text_info: bool = True,
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
        self._info = InfoForm(task, learner, text_info)
        self._closed_because = "before the first reset()"

    def _start(self, seed: int | None, options: dict[str, Any] | None) -> Exchange:
        super().reset(seed=seed)
        exchange = self.dialogue.start(self.np_random, options)
        check_floor(self.task, self.learner, exchange.over)
        self._closed_because = ""
        return exchange

    def _say(self, text: str) -> tuple[Exchange, Info]:
        exchange = self.dialogue.say(text, self.np_random)
        info = self._info.of_turn(text, self.dialogue.turn, exchange)
        if exchange.over:
            self._finish(info, exchange.success)
        if self.render_mode == "human":
            self.render()
        return exchange, info

    def _finish(self, info: Info, success: bool | None) -> None:
        self._info.end(info, success, self.dialogue.transcript())
        self._closed_because = "after the end of the episode"

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
