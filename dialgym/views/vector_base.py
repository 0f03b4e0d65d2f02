"""What the batched token env and the batched utterance env have in common.

Rows are independent: each has its own generator, and row i of a batch seeded with s is the single
env seeded with s + i, over any number of autoresets.
"""

import pickle
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode

from dialgym.errors import one_of
from dialgym.language import render_transcript
from dialgym.tasks import BatchOutcome, Task
from dialgym.views.dialogue import SimulatorLike, check_floor, check_room
from dialgym.views.looped import make_batch
from dialgym.views.played import Played

Info = dict[str, Any]
MODES = {mode.value: mode for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)}


def check_actions(actions: Any, space: gym.Space, name: str) -> np.ndarray:
    """The actions of a batch as an array: (N,) integer, or (N, A) int8 of 0 and 1.

    Args:
        actions: of all N dialogues.
        space: of a batch of N `Discrete` or `MultiBinary` actions.
        name: of the task.

    Raises:
        ValueError: the actions are not of the space.
    """
    chosen = np.asarray(actions)
    multiple = isinstance(space, gym.spaces.Box)  # Gymnasium's batch of MultiBinary
    most = 1 if multiple else int(space.nvec[0]) - 1  # type: ignore[attr-defined]
    right = chosen.shape == space.shape and chosen.dtype.kind in ("biuf" if multiple else "iu")
    if right and chosen.min() >= 0 and chosen.max() <= most:
        whole = chosen.astype(np.int8) if multiple else chosen
        if whole is chosen or (whole == chosen).all():
            return whole
    got = f"values from {chosen.min()} to {chosen.max()}" if right else ""
    raise ValueError(
        f"actions of {name}: expected {space.shape} whole numbers from 0 to {most}; "
        f"got {got or f'{chosen.dtype} {chosen.shape}'}. Choose from action_space."
    )


class DialogueVectorEnv(Played, gym.vector.VectorEnv):
    """Many dialogues in one process; a subclass says what actions and observations are."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        task: Task,
        num_envs: int,
        learner: str,
        simulator: SimulatorLike,
        autoreset_mode: str | AutoresetMode,
    ) -> None:
        if not isinstance(num_envs, int) or num_envs < 1:
            raise ValueError(
                f"num_envs of {task.name} must be a whole number from 1; got {num_envs!r}."
            )
        mode = getattr(autoreset_mode, "value", autoreset_mode)
        one_of("autoreset_mode", mode, MODES, task.name)
        self.metadata = {**type(self).metadata, "autoreset_mode": MODES[mode]}
        self._same_step = mode == AutoresetMode.SAME_STEP.value
        self.task = task
        self.num_envs = num_envs
        self.learner = learner
        self.dialogues = make_batch(task, num_envs, learner, simulator)
        self._rngs: list[np.random.Generator] = []
        self._all = np.arange(num_envs)
        self._over = np.zeros(num_envs, bool)

    def _batch_spaces(self, observation: gym.Space, action: gym.Space) -> None:
        self.single_observation_space, self.single_action_space = observation, action
        self.observation_space = gym.vector.utils.batch_space(observation, self.num_envs)
        self.action_space = gym.vector.utils.batch_space(action, self.num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, Info]:
        """Begin all dialogues; row i takes seed + i, or the i-th of a list of seeds."""
        self._seed(seed)
        self._over[:] = False
        self._begin(self._all, options or {})
        return self._observe(), self._more_info({})

    def _seed(self, seed: int | Sequence[int | None] | None) -> None:
        if seed is None and self._rngs:
            return
        n = self.num_envs
        seeds = seeds_of_rows(seed, n, self.task.name) or [None] * n
        old: Sequence[np.random.Generator | None] = self._rngs or [None] * n
        self._rngs = [
            rng if s is None and rng is not None else np_random(s)[0] for s, rng in zip(seeds, old)
        ]

    def _begin(self, rows: np.ndarray, options: dict[str, Any]) -> None:
        self._clear(rows)
        outcome = self.dialogues.reset(rows, self._rngs, options)
        over = bool((outcome.terminated | outcome.truncated).any())
        check_floor(self.task, self.learner, over)
        fits = self._hear(rows, outcome)
        check_room(self.task, self.learner, bool((self._open(rows) & fits).all()))

    def get_state(self) -> bytes:
        """All dialogues and their generators as they stand, for `set_state` of an equal env."""
        return pickle.dumps(self.__dict__)

    def set_state(self, state: bytes) -> None:
        """Go on from where another env was. Reads a pickle: only from a source that you trust."""
        self.__dict__.update(pickle.loads(state))

    def _require_reset(self) -> None:
        if not self._rngs:
            raise ResetNeeded(
                f"{self.task.name}: step() was called before the first reset(). Call reset() first."
            )

    def _exchange(
        self, rows: np.ndarray, texts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, Info]:
        """Let `rows` say `texts`; (N,) rewards, terminated, truncated, and the info."""
        reward = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, bool)
        truncated = np.zeros(self.num_envs, bool)
        if not len(rows):
            return reward, terminated, truncated, {}
        outcome = self.dialogues.say(rows, texts, self._rngs)
        fits = self._hear(rows, outcome)
        over = outcome.terminated | outcome.truncated
        fits[~over] &= self._open(rows[~over])
        reward[rows] = outcome.reward
        terminated[rows] = outcome.terminated
        truncated[rows] = outcome.truncated | ~(fits | over)
        info = self._turn_info(rows, texts, outcome, (terminated | truncated)[rows])
        return reward, terminated, truncated, info

    def _turn_info(
        self, rows: np.ndarray, texts: np.ndarray, outcome: BatchOutcome, over: np.ndarray
    ) -> Info:
        replies = np.zeros(len(rows), outcome.heard_texts.dtype)
        replies[outcome.heard_rows] = outcome.heard_texts
        info = self._scatter(
            rows,
            {"utterance": texts, "reply": replies, "turn": self.dialogues.turn(rows)},
        )
        info["_reward_components"] = info["_turn"]
        info["reward_components"] = self._components(rows, outcome)
        if over.any():
            ended = rows[over]
            texts = np.array([self._transcript(row) for row in ended.tolist()], object)
            more = {"is_success": outcome.success[over], "transcript": texts}
            info |= self._scatter(ended, more)
        return info

    def _components(self, rows: np.ndarray, outcome: BatchOutcome) -> Info:
        info: Info = {}
        for name, values in outcome.components.items():
            known = ~np.isnan(values)
            if known.any():
                info |= self._scatter(rows[known], {name: values[known]})
        return info

    def _transcript(self, row: int) -> str:
        return render_transcript(self.dialogues.transcript(row))

    def _scatter(self, rows: np.ndarray, values: dict[str, np.ndarray]) -> Info:
        """Values of some rows in Gymnasium's form: an array over all rows, and `_name` masks."""
        mask = np.zeros(self.num_envs, bool)
        mask[rows] = True
        info: Info = {}
        for name, value in values.items():
            info[name] = np.zeros(self.num_envs, value.dtype)
            info[name][rows] = value
            info[f"_{name}"] = mask
        return info

    def _autoreset(self, over: np.ndarray, info: Info) -> tuple[Any, Info]:
        """The observation after a step; rows that are over begin anew now or at the next step."""
        if not self._same_step:
            self._over = over
            return self._observe(), self._more_info(info)
        if not over.any():
            return self._observe(), self._more_info(info)
        rows = np.flatnonzero(over)
        final = np.full(self.num_envs, None, object)
        for row in rows.tolist():
            final[row] = self._observe_row(row)
        self._begin(rows, {})
        info, final_info = _split(info, over)
        info |= {"final_obs": final, "_final_obs": over}
        info |= {"final_info": final_info, "_final_info": over}
        return self._observe(), self._more_info(info)

    def _begin_late(self) -> np.ndarray:
        """Begin the rows that ended with the last step; the rows that can act now."""
        if not self._over.any():
            return self._all
        rows = np.flatnonzero(self._over)
        self._begin(rows, {})
        return np.flatnonzero(~self._over)

    def _more_info(self, info: Info) -> Info:
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


def seeds_of_rows(
    seed: int | Sequence[int | None] | None, num_envs: int, name: str
) -> list[int | None] | None:
    """The seed of each row: seed + i, or the i-th of a list; None where none is given.

    Raises:
        ValueError: a list is not of N seeds.
    """
    if seed is None:
        return None
    if isinstance(seed, (int, np.integer)):
        return [int(seed) + i for i in range(num_envs)]
    if len(seed) != num_envs:
        raise ValueError(
            f"seed of {name}: expected one whole number or {num_envs} of them; got {len(seed)}."
        )
    return list(seed)


def _split(info: Info, over: np.ndarray) -> tuple[Info, Info]:
    """The info of the rows that go on, and that of the rows that are over."""
    return _of_rows(info, ~over), _of_rows(info, over)


def _of_rows(info: Info, rows: np.ndarray) -> Info:
    """What the info says of the `rows` (N,) bool; names of which it says nothing are left out."""
    kept: Info = {}
    for name, value in info.items():
        mask = info.get(f"_{name}")
        if mask is not None and (mask & rows).any():
            kept[name] = _of_rows(value, rows) if isinstance(value, dict) else value
            kept[f"_{name}"] = mask & rows
    return kept
