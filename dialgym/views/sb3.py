"""Batched views as a Stable-Baselines3 `VecEnv`, and SB3's own pools of processes."""

import multiprocessing
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError

from dialgym.errors import unknown
from dialgym.kinds import numeric_kinds
from dialgym.optional import require
from dialgym.registry import Environment, entry_of
from dialgym.views.arguments import seeds_of_rows, split_reset_mask
from dialgym.views.info import Info
from dialgym.views.making import make, make_vec, spec_of
from dialgym.views.spaces import maskable
from dialgym.views.wrappers import owner

require("stable_baselines3", "agents", "a Stable-Baselines3 VecEnv")

from stable_baselines3.common.vec_env.base_vec_env import VecEnv  # noqa: E402
from stable_baselines3.common.vec_env.vec_monitor import VecMonitor  # noqa: E402

PRELOAD = ["stable_baselines3.common.vec_env.subproc_vec_env", "dialgym.views.token_env"]


def sb3_vec_env(
    id: Environment,
    n_envs: int,
    workers: int = 0,
    seed: int | None = None,
    wrapper: Callable[[Any], Any] | None = None,
    monitor: bool = True,
    **kwargs: Any,
) -> VecEnv:
    """`n_envs` dialogues as a Stable-Baselines3 `VecEnv`, monitored as those of its `make_vec_env`.

    Args:
        id: an id of a token or act view, or a task.
        n_envs: number of dialogues.
        workers: 0 for this process; k to shard them over k processes.
        seed: of the first reset; dialogue i takes seed + i.
        wrapper: put around the batch: `VectorReplaceForbidden` or `VectorMaskedObservation`.
        monitor: note the return and length of each dialogue in ``info["episode"]`` at its end, from
            which algorithms log ``rollout/ep_rew_mean`` (`VecMonitor`).
        kwargs: as for ``gym.make(id, ...)``.

    Raises:
        ValueError: the id is unknown or of an utterance view, or an argument is.
        ImportError: Stable-Baselines3 is not installed.
    """
    entry = entry_of(id)
    if not entry.kind.numeric:
        raise ValueError(
            f"sb3_vec_env: expected an id of {numeric_kinds()} views, whose spaces "
            f"Stable-Baselines3 knows; got {entry.id!r} ({entry.view} view). "
            f"Use {entry.row.id('token')!r}."
        )
    env = make_vec(id, n_envs, autoreset_mode="SameStep", workers=workers, **kwargs)
    pool = DialogueVecEnv(wrapper(env) if wrapper else env)
    if seed is not None:
        pool.seed(seed)
    return DialogueMonitor(pool) if monitor else pool


class DialogueVecEnv(VecEnv):
    """A same-step vector env of dialogues, as Stable-Baselines3 wants it.

    A row's info is empty at a step within an utterance, and has all that `dialgym.views.info` says
    where an utterance has ended: a fresh dict for each row and step would cost more than the step.
    With options that add to each info (``action_mask``, ``truth``) it has all at every step.
    `reset_infos` has the first info of the dialogue that each row is in.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self.render_mode = None
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self._actions: Any = None  # of the step asked for, where `env` has no step_async

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.env!r})"

    def reset(self) -> np.ndarray:
        """Begin all dialogues; takes the seeds and options that were set for it.

        Raises:
            AlreadyPendingCallError: a step is under way.
        """
        if self._actions is not None:
            raise AlreadyPendingCallError(
                "reset() was called while a step is under way. Call step_wait() for its result.",
                "step",
            )
        seeds = self._seeds if any(s is not None for s in self._seeds) else None
        options = list(self._options) if any(self._options) else None
        observation, info = self.env.reset(seed=seeds, options=options)
        self.reset_infos = rows_of(info, self.num_envs, range(self.num_envs))
        self._reset_seeds()
        self._reset_options()
        return observation

    def step_async(self, actions: np.ndarray) -> None:
        """Set the step going; an `AlreadyPendingCallError` where another one is."""
        if hasattr(self.env, "step_async"):
            self.env.step_async(actions)
        elif self._actions is not None:
            raise AlreadyPendingCallError(
                "step_async() was called while a step is under way. Call step_wait() first.", "step"
            )
        else:
            self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:  # type: ignore[override]
        """Observations, rewards (float32), dones, and infos as SB3 names them."""
        observation, reward, terminated, truncated, info = self._stepped()
        done = terminated | truncated
        infos = self._infos(info, done)
        for row in np.flatnonzero(done).tolist():
            infos[row]["TimeLimit.truncated"] = bool(truncated[row] and not terminated[row])
        return observation, reward.astype(np.float32), done, infos

    def _stepped(self) -> Any:
        if hasattr(self.env, "step_async"):
            return self.env.step_wait()
        if self._actions is None:
            raise NoAsyncCallError("step_wait() was called without step_async().", "step")
        actions, self._actions = self._actions, None
        return self.env.step(actions)

    def set_options(self, options: Any = None) -> None:
        """Options of the next reset: of all rows, or a list of N, one for each row.

        Raises:
            ValueError: the list is not of N.
        """
        if options is not None:
            _, options = split_reset_mask(options, self.num_envs, self.env.unwrapped.task.name)
        super().set_options(options)

    def seed(self, seed: int | Sequence[int | None] | None = None) -> Sequence[int | None]:
        """Seeds of the next reset: row i takes seed + i, or the i-th of a list.

        Raises:
            ValueError: a seed is impossible, or the list is not of N.
        """
        seeds = seeds_of_rows(seed, self.num_envs, self.env.unwrapped.task.name)
        if seeds is None:  # drawn at random
            return super().seed()
        self._seeds = seeds
        return seeds

    def _infos(self, info: Info, done: np.ndarray) -> list[Info]:
        """A dict for each row; where an episode has ended, its last info and observation."""
        full = bool(self.env.unwrapped.each_step & info.keys())
        said = np.flatnonzero(done | (full or info["turn"] > 0))
        infos = rows_of(info, self.num_envs, said.tolist())
        ended = np.flatnonzero(done).tolist()
        if ended:
            last = rows_of(info["final_info"], self.num_envs, ended)
            for row in ended:
                self.reset_infos[row] = infos[row]  # in place: a monitor shares the list
                infos[row] = {**last[row], "terminal_observation": info["final_obs"][row]}
        return infos

    def get_state(self) -> Any:
        """All dialogues and their generators as they stand, for `set_state` of an equal pool."""
        return owner(self.env, "get_state").get_state()

    def set_state(self, state: Any) -> None:
        """Go on from where another pool was; raises ValueError for any other state."""
        owner(self.env, "set_state").set_state(state)

    def close(self) -> None:
        """End the worker processes, if there are any."""
        self.env.close()

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """``action_masks`` of the dialogues asked for, as MaskablePPO reads them (see `maskable`).

        There is no other method by row.

        Raises:
            AttributeError: any other method.
        """
        if method_name != "action_masks":
            raise AttributeError(
                f"the batched view has no env objects to call {method_name!r} on. "
                "For single envs use SB3's make_vec_env with the same id."
            )
        masks = maskable(self.env.action_masks(), self.action_space)
        return [masks[i] for i in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        """Tell if `get_attr` or `env_method` knows the name."""
        return attr_name == "action_masks" or hasattr(self.env.unwrapped, attr_name)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The batch's own attribute, once for each dialogue asked for."""
        owner = self if attr_name == "render_mode" else self.env
        owner = owner if hasattr(owner, attr_name) else self.env.unwrapped
        return [getattr(owner, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Rows of a batch have no attributes of their own.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(
            f"cannot set {attr_name!r}: the batched view has no env objects. "
            "Give settings when making it, or use SB3's make_vec_env with the same id."
        )

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No row is wrapped."""
        return [False] * len(list(self._get_indices(indices)))

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Batched dialogues draw no pictures."""
        return [None] * self.num_envs


class DialogueMonitor(VecMonitor):
    """Stable-Baselines3's `VecMonitor` of a `DialogueVecEnv`.

    The stock one looks at each row at each step, and hides the infos of a reset. `get_state` and
    `set_state` are of the dialogues; the returns so far stay in `episode_returns`.
    """

    venv: DialogueVecEnv

    def __repr__(self) -> str:
        return repr(self.venv)

    def reset(self) -> Any:
        """As of `DialogueVecEnv`."""
        observation = super().reset()
        self.reset_infos = self.venv.reset_infos
        return observation

    def step_wait(self) -> Any:
        """As of `DialogueVecEnv`; the info of a row that has ended has ``episode``."""
        observation, rewards, dones, infos = self.venv.step_wait()
        self.episode_returns += rewards
        self.episode_lengths += 1
        ended = np.flatnonzero(dones)
        seconds = round(time.time() - self.t_start, 6)
        for row in ended.tolist():
            figures = {"r": float(self.episode_returns[row]), "l": int(self.episode_lengths[row])}
            infos[row]["episode"] = {**figures, "t": seconds}
        self.episode_returns[ended] = self.episode_lengths[ended] = 0
        self.episode_count += len(ended)
        return observation, rewards, dones, infos


def rows_of(info: Info, num_envs: int, rows: Iterable[int]) -> list[Info]:
    """A vector env's info as one dict for each row, empty but for the `rows`."""
    infos: list[Info] = [{} for _ in range(num_envs)]
    chosen = list(rows)
    for name, values in info.items():
        if name.startswith(("_", "final_")):
            continue
        if isinstance(values, dict):
            parts = rows_of(values, num_envs, chosen)
            for row in chosen:
                infos[row][name] = parts[row]
        else:
            own = values[chosen].tolist() if values.ndim == 1 else values[chosen]
            for row, value in zip(chosen, own):
                infos[row][name] = value
    return infos


def make_sb3_pool(id: Environment, n_envs: int, vec_env: str = "subproc", **kwargs: Any) -> VecEnv:
    """SB3's own `make_vec_env` over single envs, with a fork server that has SB3 preloaded.

    A pool of stock `SubprocVecEnv` workers then starts in seconds instead of importing torch
    once in each. The fork server can be prepared only before its first use in a process.

    Args:
        id: any id of the token view, or a task.
        n_envs: number of envs.
        vec_env: ``"subproc"`` or ``"dummy"``.
        kwargs: as for `stable_baselines3.common.env_util.make_vec_env` (`seed`, `env_kwargs`...).
    """
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    kinds: dict[str, Any] = {"subproc": SubprocVecEnv, "dummy": DummyVecEnv}
    if vec_env not in kinds:
        raise unknown("vec_env", vec_env, kinds, "make_sb3_pool")
    if vec_env == "subproc" and "forkserver" in multiprocessing.get_all_start_methods():
        multiprocessing.set_forkserver_preload(PRELOAD)
    env = partial(make, spec_of(id), render_mode="rgb_array")  # as SB3 makes one of an id
    return make_vec_env(env, n_envs, vec_env_cls=kinds[vec_env], **kwargs)
