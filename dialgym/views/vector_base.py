"""The base of the batched views: autoreset, seeds, masks and final observations.

Rows are independent: each has its own generator, and row i of a batch seeded with s is the single
env seeded with s + i, over any number of autoresets.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode

from dialgym.errors import one_of
from dialgym.language import render_transcript
from dialgym.tasks import BatchOutcome, Task
from dialgym.tasks.returns import watch_returns
from dialgym.views.arguments import (
    Options,
    check_step_limit,
    rows_by_options,
    seeds_of_rows,
    split_reset_mask,
)
from dialgym.views.belief_gain import BeliefGain
from dialgym.views.dialogue import SimulatorLike, check_floor, check_room
from dialgym.views.info import BatchInfoForm, Info, restricted
from dialgym.views.looped import make_batch
from dialgym.views.notes import notes
from dialgym.views.played import Played
from dialgym.views.saved import SavedDialogue, dialogues_from_json, dialogues_to_json
from dialgym.views.snapshots import Snapshot
from dialgym.views.typed_json import Json

Step = tuple[Any, np.ndarray, np.ndarray, np.ndarray, Info]
MODES = {mode.value: mode for mode in AutoresetMode}


class DialogueVectorEnv(Played, gym.vector.VectorEnv):
    """Many dialogues in one process; a subclass says what actions and observations are."""

    view: ClassVar[str]
    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        task: Task,
        num_envs: int,
        learner: str,
        simulator: SimulatorLike,
        autoreset_mode: str | AutoresetMode,
        text_info: bool = True,
        max_episode_steps: int | None = None,
        anchors: bool = False,
        belief_gain: float = 0.0,
        truths: bool = False,
    ) -> None:
        if not isinstance(num_envs, int) or isinstance(num_envs, bool) or num_envs < 1:
            raise ValueError(
                f"num_envs of {task.name} must be a whole number from 1; got {num_envs!r}."
            )
        mode: Any = getattr(autoreset_mode, "value", autoreset_mode)
        one_of("autoreset_mode", mode, MODES, task.name)
        self.autoreset_mode = MODES[mode]
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        self.task = task
        self.num_envs = num_envs
        self.learner = learner
        self.dialogues = make_batch(task, num_envs, learner, simulator)
        self._rngs: list[np.random.Generator] = []
        self._all = np.arange(num_envs)
        self._over = np.zeros(num_envs, bool)  # rows that begin anew before they act
        self._idle = np.zeros(num_envs, bool)  # rows that do nothing until they begin anew
        self._ended = np.zeros(num_envs, bool)  # rows whose dialogue is over by its rules
        self._info = BatchInfoForm(task, learner, num_envs, text_info)
        self._step_limit = check_step_limit(max_episode_steps, task.name)
        self._steps = np.zeros(num_envs, np.int64)
        self._notes = notes(task, learner, anchors, truths)
        self._noted = {name: np.full(num_envs, "", object) for name in self._notes}
        self._watch = watch_returns(task, learner, num_envs)
        self._belief = BeliefGain(task, num_envs, belief_gain) if belief_gain else None

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
        of N options gives each row its own. A reset that raises an error leaves all rows, and their
        generators, as they were.

        Raises:
            ValueError: the seeds or options are not N, the mask is none, or an option is not the
                task's.
            ResetNeeded: a mask leaves out rows that have never begun.
        """
        mask, options = split_reset_mask(options, self.num_envs, self.task.name)
        seeds = seeds_of_rows(seed, self.num_envs, self.task.name)
        return self.reset_rows(seeds, mask, options)

    def reset_rows(
        self, seeds: list[int | None] | None, mask: np.ndarray | None, options: Options
    ) -> tuple[Any, Info]:
        """As `reset`, with N seeds or none, and the mask apart from the options."""
        if mask is not None and not self._rngs:
            raise ResetNeeded(
                f"{self.task.name}: reset_mask was given before the first reset(). Call reset() "
                "without it first."
            )
        rows = self._all if mask is None else np.flatnonzero(mask)
        before = self.snapshot(mask)
        try:
            self._seed(seeds, rows)
            for some, own in rows_by_options(rows, options):
                self._begin(some, own)
            seen, info = self._observe(), self._more_info(self._info.blank())
        except BaseException:
            before.restore()
            raise
        return seen, info if mask is None else restricted(info, mask)

    def snapshot(self, mask: np.ndarray | None = None) -> Snapshot:
        """What a reset of the rows of a mask (N,), or of all, may change, to be put back."""
        rngs = self._rngs
        if mask is not None and rngs:
            rngs = [rngs[row] for row in np.flatnonzero(mask).tolist()]
        return Snapshot(self._parts(), rngs)

    def _parts(self) -> list[Any]:
        """The objects that hold what changes while dialogues go on."""
        return [self, self.dialogues, self._belief, self._watch]

    def _seed(self, seeds: list[int | None] | None, rows: np.ndarray) -> None:
        if seeds is None and self._rngs:
            return
        n = self.num_envs
        seeds = seeds or [None] * n
        old = self._rngs
        self._rngs = old or [None] * n  # type: ignore[list-item]
        for row in rows.tolist():
            if seeds[row] is not None or not old:
                self._rngs[row] = np_random(seeds[row])[0]

    def _begin(self, rows: np.ndarray, options: Mapping[str, Any]) -> None:
        self._over[rows] = self._idle[rows] = self._ended[rows] = False
        self._steps[rows] = 0
        self._clear(rows)
        outcome = self.dialogues.reset(rows, self._rngs, options)
        if self._watch is not None:
            self._watch.begin(rows)
        over = bool((outcome.terminated | outcome.truncated).any())
        check_floor(self.task, self.learner, over)
        fits = self._hear(rows, outcome)
        self._look(rows)
        check_room(self.task, self.learner, bool((self._open(rows) & fits).all()))

    def leave(self, rows: np.ndarray) -> None:
        """Let rows (N,) bool be: until a reset begins them, their actions are not heeded.

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
        return dialogues_to_json(dialogues, self.task, self.view)

    def set_state(self, state: list[Json]) -> None:
        """Go on from where another env with as many dialogues was.

        A state may come from anybody: reading it runs nothing, and one that is refused changes
        nothing.

        Raises:
            ValueError: it is not the state of such an env.
        """
        dialogues = dialogues_from_json(state, self.task, self.view)
        check_count(dialogues, self.num_envs, self.task.name)
        before = self.snapshot()
        self._rngs = [dialogue.rng for dialogue in dialogues]
        try:
            if dialogues:
                self.restore_state(dialogues)
        except BaseException as error:
            before.restore()
            if not isinstance(error, Exception):
                raise
            raise ValueError(  # of the right types, and not as these rules have it
                f"the state of {self.task.name} cannot be gone on from: {error!r}."
            ) from error

    def clone_state(self, rows: Sequence[int] | None = None) -> list[SavedDialogue]:
        """The dialogues of some rows, or of all, as they stand, with their generators.

        Raises:
            ResetNeeded: before the first reset.
        """
        self._require_reset()
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
            ResetNeeded: before the first reset.
            ValueError: the numbers differ, or a dialogue is of another task or view, or over.
        """
        self._require_reset()
        chosen = self._all if rows is None else np.asarray(rows, np.int64)
        seeds = [None] * len(saved) if seeds is None else seeds
        if not len(chosen) == len(saved) == len(seeds):
            raise ValueError(
                f"restore_state of {self.task.name}: expected as many dialogues as rows and seeds; "
                f"got {len(saved)}, {len(chosen)} and {len(seeds)}."
            )
        for row, dialogue, seed in zip(chosen.tolist(), saved, seeds):
            self._restore(row, dialogue, seed)
        self._look(chosen)
        return self._observe()

    def _restore(self, row: int, saved: SavedDialogue, seed: int | None) -> None:
        saved.check(self.task, self.view)
        if saved.over and self.autoreset_mode is AutoresetMode.SAME_STEP:
            raise ValueError(
                f"restore_state of {self.task.name}: the dialogue for row {row} is over; with "
                "same-step autoreset there is nothing to go on with."
            )
        self.dialogues.restore(row, saved.state.copy(), saved.turn)
        if self._watch is not None:
            self._watch.lose(np.array([row]))
        self._rngs[row] = saved.generator(seed)
        self._over[row], self._ended[row] = saved.over, saved.ended
        self._steps[row], self._idle[row] = saved.steps, saved.idle
        self._restore_row(row, saved.seen)

    def _saved_row(self, row: int) -> Any:
        """What the view keeps of a row beside the dialogue."""
        return None

    def _restore_row(self, row: int, saved: Any) -> None:
        """Let a row go on from what the view kept."""

    def _require_reset(self) -> None:
        if not self._rngs:
            raise not_begun(self.task.name)

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
        fits = self._hear(rows, outcome)
        gain = self._look(rows)
        over = outcome.terminated | outcome.truncated
        if self._watch is not None:
            self._watch.note(rows, outcome.reward, outcome.components, over)
        fits[~over] &= self._open(rows[~over])
        reward[rows] = outcome.reward + gain
        terminated[rows] = outcome.terminated
        truncated[rows] = outcome.truncated | ~(fits | over)
        info = self._info.of_turns(rows, texts, self.dialogues.turn(rows), outcome)
        self._ended = terminated | truncated
        ended = self._ended[rows]
        if ended.any():
            self._note_end(info, rows[ended], outcome.success[ended])
        return reward, terminated, truncated, info

    def _note_end(self, info: Info, rows: np.ndarray, success: np.ndarray) -> None:
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
        """The result of a step in which the rows `active` acted; rows that are over begin anew."""
        if self._step_limit is not None:
            self._steps[active] += 1
            truncated |= self._steps >= self._step_limit
        observation, info = self._autoreset(terminated | truncated, info)
        return observation, reward, terminated, truncated, info

    def _autoreset(self, over: np.ndarray, info: Info) -> tuple[Any, Info]:
        """The observation after a step; rows that are over begin anew now or at the next step."""
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            self._over = over
            return self._observe(), self._more_info(info)
        if not over.any():
            return self._observe(), self._more_info(info)
        info = self._more_info(info)
        rows = np.flatnonzero(over)
        final = np.full(self.num_envs, None, object)
        for row in rows.tolist():
            final[row] = self._observe_row(row)
        self._begin(rows, {})
        info, final_info = self._info.split(info, over)
        info |= {"final_obs": final, "_final_obs": over}
        info |= {"final_info": final_info, "_final_info": over}
        return self._observe(), self._more_info(info)

    def _begin_late(self) -> np.ndarray:
        """Begin the rows that ended with the last step; the rows that can act now.

        Raises:
            ResetNeeded: there are such rows, and the caller is the one to begin them.
        """
        over = self._over & ~self._idle
        going = np.flatnonzero(~(self._over | self._idle))
        if not over.any():
            return going
        rows = np.flatnonzero(over)
        if self.autoreset_mode is AutoresetMode.DISABLED:
            raise after_the_end(self.task.name, rows)
        self._begin(rows, {})
        return going

    def _look(self, rows: np.ndarray) -> np.ndarray | float:
        """Take note of what an exchange of the rows has changed beside the transcripts.

        Returns:
            (k,) what that is worth beside the rewards of the task, or 0.
        """
        if not self._notes and self._belief is None:
            return 0.0
        states = self.dialogues.states(rows)
        for name, note in self._notes.items():
            self._noted[name][rows] = [note(state) for state in states]
        return 0.0 if self._belief is None else self._belief.look(rows, states)

    def _more_info(self, info: Info) -> Info:
        """The info with what was asked for beside its constant structure."""
        for name, values in self._noted.items():
            info[name] = values.copy()
            info[f"_{name}"] = np.ones(self.num_envs, bool)
        return info

    @abstractmethod
    def _clear(self, rows: np.ndarray) -> None:
        """Forget what the rows have seen."""

    @abstractmethod
    def _hear(self, rows: np.ndarray, outcome: BatchOutcome) -> np.ndarray:
        """Append what was heard; (k,) whether it fits."""

    @abstractmethod
    def _open(self, rows: np.ndarray) -> np.ndarray:
        """Begin the learner's utterance in the rows; (k,) whether one fits."""

    @abstractmethod
    def _observe(self) -> Any:
        """The observation of all rows, a copy."""

    @abstractmethod
    def _observe_row(self, row: int) -> Any:
        """The observation of one row, a copy."""


def check_count(state: Any, num_envs: int, name: str) -> None:
    """Raise a ValueError unless a state is that of so many dialogues, or of none yet."""
    got = f"{len(state)}" if isinstance(state, list) else type(state).__name__
    if got not in ("0", f"{num_envs}"):
        raise ValueError(
            f"the state of {name} cannot be read: expected a list of {num_envs} dialogues, "
            f"got {got}."
        )


def not_begun(name: str) -> ResetNeeded:
    """The error of a step before the first reset."""
    return ResetNeeded(f"{name}: step() was called before the first reset(). Call reset() first.")


def after_the_end(name: str, rows: np.ndarray) -> ResetNeeded:
    """The error of a step where the caller has to begin rows that are over."""
    return ResetNeeded(
        f"{name}: step() was called after the end of the episodes of rows {rows.tolist()}, and "
        "autoreset is disabled. Call reset(options={'reset_mask': terminated | truncated}) first."
    )
