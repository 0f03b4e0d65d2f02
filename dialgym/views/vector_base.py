"""Base of the batched views: autoreset, seeds, masks and final observations.

Rows are independent: each has its own generator, and row i of a batch seeded with s is the single
env seeded with s + i, over any number of autoresets.
"""

from abc import abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from dialgym.errors import one_of, whole_number
from dialgym.io.typed_json import Json
from dialgym.language import render_transcript
from dialgym.tasks import BatchOutcome, Task
from dialgym.tasks.return_checker import watch_returns
from dialgym.views.arguments import (
    BEFORE,
    CLOSED,
    FAILED,
    Options,
    after_the_end,
    check_count,
    generators,
    reset_needed,
    rows_by_options,
    seeds_of_rows,
    split_reset_mask,
    undrawn_on_error,
)
from dialgym.views.dialogue import LoopedBatch, check_floor, check_room, make_batch
from dialgym.views.env_spec import SpecMixin
from dialgym.views.extras import Extras
from dialgym.views.info import BatchInfoForm, Info, restricted
from dialgym.views.options import BATCH
from dialgym.views.saved import SavedDialogue, check_saved, dialogues_from_json, dialogues_to_json

Step = tuple[Any, np.ndarray, np.ndarray, np.ndarray, Info]
Generators = list[np.random.Generator]
MODES = {mode.value: mode for mode in AutoresetMode}


class DialogueVectorEnv(SpecMixin, gym.vector.VectorEnv):
    """Many dialogues in one process; a subclass says what actions and observations are.

    Args:
        task: the rules.
        num_envs: N.
        autoreset_mode: ``"NextStep"`` (Gymnasium's default), ``"SameStep"`` or ``"Disabled"``, or
            the enum.
        options: by name, see `ViewOptions`.
    """

    form: ClassVar[str] = BATCH
    seen_type: ClassVar[Any] = None
    """The type of what the view keeps of a row beside the dialogue."""
    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        task: Task,
        num_envs: int = 1,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        **options: Any,
    ) -> None:
        num_envs = whole_number("num_envs", num_envs, task.name)
        mode: Any = getattr(autoreset_mode, "value", autoreset_mode)
        one_of("autoreset_mode", mode, MODES, task.name)
        self.autoreset_mode = MODES[mode]
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        self.task, self.num_envs = task, num_envs
        self.options = self.read_options(task, options)
        self.learner = self.options.learner
        self.dialogues = make_batch(task, num_envs, self.learner, self.options.simulator)
        self._rngs: Generators = []
        self._closed_because = BEFORE
        self._all = np.arange(num_envs)
        self._over = np.zeros(num_envs, bool)  # rows that begin again before they act
        self._idle = np.zeros(num_envs, bool)  # rows that do nothing until they begin again
        self._ended = np.zeros(num_envs, bool)  # rows whose dialogue is over by its rules
        self._extras = Extras(task, self.options, num_envs)
        self.extra_parts = more = self._extras.parts
        self.each_step = {"action_mask", *self._extras.texts}  # keys that say something at any step
        self._info = BatchInfoForm(task, self.learner, num_envs, self.options.text_info, more)
        self._steps = np.zeros(num_envs, np.int64)
        self._watch = watch_returns(task, self.learner, num_envs)
        self._prepare()

    def _prepare(self) -> None:
        """Make the spaces, and what else depends on the task alone."""

    def _batch_spaces(self, observation: gym.Space, action: gym.Space) -> None:
        self.single_observation_space, self.single_action_space = observation, action
        self.observation_space = gym.vector.utils.batch_space(observation, self.num_envs)
        self.action_space = gym.vector.utils.batch_space(action, self.num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Options | None = None,
    ) -> tuple[Any, Info]:
        """Begin all dialogues; row i takes seed + i, or the i-th of a list of seeds.

        The option ``reset_mask``, (N,) bool, begins those rows alone, as in `SyncVectorEnv`. A list
        of N options gives each row its own. Seeds and options that are refused leave all rows, and
        their generators, as they were. After another error the rows that were to begin are over.

        Raises:
            ValueError: the seeds or options are not N, the mask is none, an option is not the
                task's, or the learner never has the floor.
            ResetNeeded: a mask leaves out rows that have never begun, or whose last step failed.
        """
        mask, options = split_reset_mask(options, self.num_envs, self.task.name)
        seeds = seeds_of_rows(seed, self.num_envs, self.task.name)
        return self.reset_rows(seeds, mask, options)

    def reset_rows(
        self, seeds: list[int | None] | None, mask: np.ndarray | None, options: Options
    ) -> tuple[Any, Info]:
        """As `reset`, with N seeds or none, and the mask apart from the options."""
        if mask is not None and self._closed_because:
            when = f"reset_mask was given {self._closed_because}"
            raise ResetNeeded(f"{self.task.name}: {when}. Call reset() without it first.")
        rows = self._all if mask is None else np.flatnonzero(mask)
        begun = [*rows_by_options(rows, options)]
        rngs = generators(self._rngs, seeds, rows, self.num_envs)
        fixed = any(own for _, own in begun)
        with undrawn_on_error([rngs[row] for row in rows.tolist()] if fixed else ()):
            drawn = [self.dialogues.draw(some, rngs, own) for some, own in begun]
        for (some, _), own in zip(begun, drawn):
            self._begin(some, own, rngs)
        self._rngs, self._closed_because = rngs, ""
        seen, info = self._observe(), self._more_info(self._info.blank())
        return seen, info if mask is None else restricted(info, mask)

    def _begin_again(self, rows: np.ndarray) -> None:
        self._over[rows] = True  # until they have begun
        self._begin(rows, self.dialogues.draw(rows, self._rngs, {}), self._rngs)

    def _begin(self, rows: np.ndarray, drawn: Any, rngs: Generators) -> None:
        """Begin rows with what was drawn for them."""
        self._over[rows] = True  # until they have begun
        self._clear(rows)
        outcome = self.dialogues.begin(rows, drawn, rngs)
        if self._watch is not None:
            self._watch.begin(rows)
        check_floor(self.task, self.learner, bool((outcome.terminated | outcome.truncated).any()))
        fits = self._append(rows, outcome)
        self._update_extras(rows)
        check_room(self.task, self.learner, bool((self._open(rows) & fits).all()))
        self._over[rows] = self._idle[rows] = self._ended[rows] = False
        self._steps[rows] = 0

    def deactivate(self, rows: np.ndarray) -> None:
        """Ignore the actions of rows (N,) bool until a reset begins them.

        With autoreset disabled, for whoever wants one episode of each row: those that are over cost
        nothing while the others go on. Their rewards are 0, and they end no more.
        """
        self._idle |= rows

    def get_state(self) -> list[Json]:
        """All dialogues as they stand, as plain JSON for `set_state`; none before the first reset.

        Raises:
            ValueError: the task's state holds what its type hints do not say.
        """
        dialogues = self.clone_state() if self._rngs else []
        return dialogues_to_json(dialogues, self.task, self.seen_type)

    def set_state(self, state: list[Json]) -> None:
        """Go on from where another env with as many dialogues was.

        A state may come from anybody: reading it runs nothing, and one that is refused changes
        nothing.

        Raises:
            ValueError: it is not the state of such an env.
        """
        dialogues = dialogues_from_json(state, self.task, self.seen_type)
        check_count(dialogues, self.num_envs, self.task.name)
        before = [] if self._closed_because else self.clone_state()
        try:
            self._restore_all(dialogues)
        except Exception as error:
            self._restore_all(before)
            raise ValueError(  # of the right types, and not as these rules have it
                f"the state of {self.task.name} cannot be gone on from: {error!r}."
            ) from error

    def _restore_all(self, dialogues: Sequence[SavedDialogue]) -> None:
        self._rngs, self._closed_because = [dialogue.rng for dialogue in dialogues], BEFORE
        if dialogues:
            self.restore_state(dialogues)

    def clone_state(self, rows: Sequence[int] | None = None) -> list[SavedDialogue]:
        """The dialogues of some rows, or of all, as they stand, with their generators.

        Raises:
            ResetNeeded: before the first reset, or the last step has failed.
        """
        self._require_reset("clone_state")
        chosen = self._all if rows is None else np.asarray(rows, np.int64)
        turns = self.dialogues.turn(chosen).tolist()
        return [
            SavedDialogue(
                self.task.name, self.view, state.copy(), turn, deepcopy(self._rngs[row]),
                self._saved_row(row), bool(self._over[row]), bool(self._ended[row]),
                int(self._steps[row]), bool(self._idle[row]),
            )
            for row, turn, state in zip(chosen.tolist(), turns, self.dialogues.states(chosen))
        ]  # fmt: skip

    def restore_state(
        self,
        saved: Sequence[SavedDialogue],
        rows: Sequence[int] | None = None,
        seeds: Sequence[int | None] | None = None,
    ) -> Any:
        """Let some rows, or all, go on from saved dialogues; the others stay as they are.

        Args:
            saved: k dialogues, of rows or of single envs of the same view and settings; the same
                one may come several times.
            rows: k rows.
            seeds: of new generators, k, to go on in other ways; None to go on as they did.

        Returns:
            The observations of all rows.

        Raises:
            ResetNeeded: before the first reset; or some rows alone, and the last step has failed.
            ValueError: the numbers differ, or a dialogue is of another task or view, or over.
        """
        if rows is not None or not self._rngs:
            self._require_reset("restore_state")
        chosen = self._all if rows is None else np.asarray(rows, np.int64)
        seeds = [None] * len(saved) if seeds is None else seeds
        if not len(chosen) == len(saved) == len(seeds):
            raise ValueError(
                f"restore_state of {self.task.name}: expected as many dialogues as rows and seeds; "
                f"got {len(saved)}, {len(chosen)} and {len(seeds)}."
            )
        for row, dialogue, seed in zip(chosen.tolist(), saved, seeds):
            self._restore(row, dialogue, seed)
        self._update_extras(chosen)
        self._closed_because = ""
        return self._observe()

    def _restore(self, row: int, saved: SavedDialogue, seed: int | None) -> None:
        check_saved(saved, self.task, self.view)
        if saved.over and self.autoreset_mode is AutoresetMode.SAME_STEP:
            raise ValueError(
                f"restore_state of {self.task.name}: the dialogue for row {row} is over; with "
                "same-step autoreset there is nothing to go on with."
            )
        self.dialogues.restore(row, saved.state.copy(), saved.turn)
        if self._watch is not None:
            self._watch.unset(np.array([row]))
        self._rngs[row] = saved.generator(seed)
        self._over[row], self._ended[row] = saved.over, saved.ended
        self._steps[row], self._idle[row] = saved.steps, saved.idle
        self._restore_row(row, saved.seen)

    def _saved_row(self, row: int) -> Any:
        """State that the view keeps of a row beside the dialogue."""
        return None

    def _restore_row(self, row: int, saved: Any) -> None:
        """Let a row go on from what the view kept."""

    def _require_reset(self, call: str = "step") -> None:
        if self._closed_because:
            raise reset_needed(self.task.name, self._closed_because, call)

    def _play(self, active: np.ndarray, rows: np.ndarray, texts: np.ndarray) -> Step:
        """The step of the rows `active`, of which some, `rows`, say `texts`; whole or failed."""
        try:
            return self._after(active, *self._exchange(rows, texts))
        except BaseException:
            self._closed_because = FAILED
            raise

    def _exchange(
        self, rows: np.ndarray, texts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, Info]:
        """Let `rows` say `texts`; (N,) rewards, terminated, truncated, and the info."""
        reward = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, bool)
        truncated = np.zeros(self.num_envs, bool)
        if not len(rows):
            return reward, terminated, truncated, self._info.blank()
        outcome = self.dialogues.say(rows, texts, self._rngs)
        fits = self._append(rows, outcome)
        over = outcome.terminated | outcome.truncated
        if self._watch is not None:
            self._watch.note(rows, outcome.reward, outcome.components, over)
        outcome = self._extras.added(outcome, self._update_extras(rows, over))
        fits[~over] &= self._open(rows[~over])
        reward[rows] = self.options.rescaled(outcome.reward)
        terminated[rows] = outcome.terminated
        truncated[rows] = outcome.truncated | ~(fits | over)
        info = self._info.of_turns(rows, texts, self.dialogues.turn(rows), outcome)
        self._ended = terminated | truncated
        ended = self._ended[rows]
        if ended.any():
            self._report_end(info, rows[ended], outcome.success[ended])
        return reward, terminated, truncated, info

    def _report_end(self, info: Info, rows: np.ndarray, success: np.ndarray) -> None:
        texts = [render_transcript(self.dialogues.transcript(row)) for row in rows.tolist()]
        measured = self.dialogues.states(rows) if self.task.facts.metrics else ()
        metrics = [self.task.metrics(state) for state in measured]
        self._info.end(info, rows, success, np.array(texts, object), metrics)

    def _after(
        self,
        active: np.ndarray,
        reward: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
        info: Info,
    ) -> Step:
        """The result of a step in which the rows `active` acted; rows that are over begin again."""
        if self.options.step_limit is not None:
            self._steps[active] += 1
            truncated[active] |= self._steps[active] >= self.options.step_limit
        observation, info = self._autoreset(terminated | truncated, info)
        return observation, reward, terminated, truncated, info

    def _autoreset(self, over: np.ndarray, info: Info) -> tuple[Any, Info]:
        """The observation after a step; rows that are over begin again now or at the next step."""
        info, at_once = self._more_info(info), self.autoreset_mode is AutoresetMode.SAME_STEP
        if not at_once:
            self._over = over
        if not at_once or not over.any():
            return self._observe(), info
        rows = np.flatnonzero(over)
        final = np.full(self.num_envs, None, object)
        for row in rows.tolist():
            final[row] = self._observe_row(row)
        self._begin_again(rows)
        info, final_info = self._info.split(info, over)
        info |= {"final_obs": final, "_final_obs": over}
        info |= {"final_info": final_info, "_final_info": over}
        return self._observe(), self._more_info(info)

    def _begin_late(self) -> np.ndarray:
        """Begin the rows that ended with the last step; the rows that can act now.

        Raises:
            ResetNeeded: there are such rows, and the caller is the one to begin them.
        """
        rows = np.flatnonzero(self._over & ~self._idle)
        going = np.flatnonzero(~(self._over | self._idle))
        if not len(rows):
            return going
        if self.autoreset_mode is AutoresetMode.DISABLED:
            raise after_the_end(self.task.name, rows)
        self._begin_again(rows)
        return going

    def _update_extras(
        self, rows: np.ndarray, over: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        """Take in what an exchange has changed beside the transcripts; (k,) parts of rewards."""
        if not self._extras.asked:
            return {}
        return self._extras.update(rows, self.dialogues.states(rows), over, self._rngs)

    def _more_info(self, info: Info) -> Info:
        """Add entries that options ask for."""
        for key, texts in self._extras.texts.items():
            info[key] = texts.copy()
            info[f"_{key}"] = np.ones(self.num_envs, bool)
        return info

    def _clear(self, rows: np.ndarray) -> None:
        """Remove what the rows have seen, where the view keeps it."""

    def _append(self, rows: np.ndarray, outcome: BatchOutcome) -> np.ndarray:
        """Append what was heard; (k,) bool, if it fits."""
        return np.ones(len(rows), bool)

    def _open(self, rows: np.ndarray) -> np.ndarray:
        """Begin the learner's utterance in the rows; (k,) bool, if one fits."""
        return np.ones(len(rows), bool)

    @abstractmethod
    def _observe(self) -> Any:
        """The observation of all rows, a copy."""

    @abstractmethod
    def _observe_row(self, row: int) -> Any:
        """The observation of one row, a copy."""

    def close_extras(self, **kwargs: Any) -> None:
        """Drop the dialogues, and release what the task holds open for them."""
        if not hasattr(self, "dialogues"):  # its making failed; an older Gymnasium closes it then
            return
        if isinstance(self.dialogues, LoopedBatch):
            self.dialogues.clear()
        self._rngs, self._closed_because = [], CLOSED
        self.task.release()
