"""Wrappers for action masks: replace a forbidden action, or give the mask as an observation.

`ReplaceForbidden` puts an allowed token or act in the place of a forbidden one. `MaskedObservation`
shows the mask beside the observation. Both take single envs, their `Vector...` forms batches:

    env = dialgym.ReplaceForbidden(gym.make("dialgym/Wordle-20-v0"))
    batch = dialgym.VectorReplaceForbidden(gym.make_vec("dialgym/Wordle-20-v0", 8))
    pool = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 8, wrapper=dialgym.VectorReplaceForbidden)
"""

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode

from dialgym.errors import one_of
from dialgym.io.typed_json import Json, from_json, to_json
from dialgym.views.arguments import seeds_of_rows, split_reset_mask

CHOICES = ("random", "nearest")
KEYS = ("observation", "action_mask")
ONE = (gym.spaces.Discrete,)
ANY = (gym.spaces.Discrete, gym.spaces.MultiBinary)


class ReplaceForbidden(gym.Wrapper, RecordConstructorArgs):
    """Replaces a forbidden action by an allowed one, so that stock algorithms speak in words.

    The algorithm does not notice: it learns of the action that it chose what came of the other.

    Args:
        env: a token or act view with `Discrete` actions and `action_masks`.
        choose: ``"random"``: any allowed action, drawn by a generator of the wrapper's own that
            `reset(seed=...)` seeds (the dialogue's draws stay as they are); ``"nearest"``: the
            allowed action whose number is nearest, the lower of two.

    Raises:
        ValueError: the env has no masks or no `Discrete` actions, or `choose` is neither.
    """

    def __init__(self, env: gym.Env, choose: str = "random") -> None:
        RecordConstructorArgs.__init__(self, choose=choose)
        super().__init__(env)
        check_maskable(env.action_space, env, type(self).__name__, ONE)
        one_of("choose", choose, CHOICES, type(self).__name__)
        self.choose = choose
        self._rng: np.random.Generator | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a dialogue, and seed the generator of the replacements."""
        result = self.env.reset(seed=seed, options=options)
        if seed is not None or self._rng is None:
            self._rng = _own_rng(seed)
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take the action, or one that is allowed in its place."""
        mask = masks_of(self.env)
        try:
            taken = index(action)
        except TypeError:  # no whole number, which the env refuses
            return self.env.step(action)
        if self._rng is not None and 0 <= taken < len(mask) and not mask[taken]:
            taken = replacement(mask, taken, self.choose, self._rng)
        return self.env.step(taken)

    def action_masks(self) -> np.ndarray:
        """(A,) bool, as of the env."""
        return masks_of(self.env)


class _VectorWrapper(gym.vector.VectorWrapper):
    """Gymnasium's wrapper, with an attribute that libraries ask batches for."""

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """The autoreset mode of the batch."""
        mode: AutoresetMode = self.metadata["autoreset_mode"]
        return mode


class VectorReplaceForbidden(_VectorWrapper):
    """`ReplaceForbidden` for a batch: row i draws as the single env that was seeded with seed + i.

    Args:
        env: a batched token or act view with `Discrete` actions, in this process or sharded.
        choose: as of `ReplaceForbidden`.

    Raises:
        ValueError: as of `ReplaceForbidden`.
    """

    def __init__(self, env: gym.vector.VectorEnv, choose: str = "random") -> None:
        super().__init__(env)
        check_maskable(env.single_action_space, env, type(self).__name__, ONE)
        one_of("choose", choose, CHOICES, type(self).__name__)
        self.choose = choose
        self._rngs: list[np.random.Generator] = []
        self._beginning = np.zeros(self.num_envs, bool)  # rows whose next action has no effect

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin the dialogues, and seed the generators of the replacements."""
        n, name = self.num_envs, type(self).__name__
        seeds = seeds_of_rows(seed, n, name) or [None] * n
        mask, _ = split_reset_mask(options, n, name)
        chosen = np.ones(n, bool) if mask is None else mask
        result = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        old = self._rngs or [_own_rng(None) for _ in range(n)]
        self._rngs = [
            _own_rng(s) if s is not None and begun else rng
            for s, rng, begun in zip(seeds, old, chosen)
        ]
        self._beginning[chosen] = False
        return result

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take the actions, or those that are allowed in their place."""
        taken = np.array(actions)
        if taken.shape == (self.num_envs,) and taken.dtype.kind in "iu":  # else the env refuses
            self._replace(taken)
        result = self.env.step(taken)
        if self.env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP:
            self._beginning = result[2] | result[3]
        return result

    def _replace(self, taken: np.ndarray) -> None:
        masks = masks_of(self.env)
        known = (taken >= 0) & (taken < masks.shape[1])
        allowed = masks[np.arange(len(taken)), np.where(known, taken, 0)]
        for row in np.flatnonzero(known & ~allowed & ~self._beginning).tolist():
            rng = self._rngs[row]
            taken[row] = replacement(masks[row], int(taken[row]), self.choose, rng)

    def get_state(self) -> dict[str, Json]:
        """The env's state and the generators of the replacements, as plain JSON for `set_state`."""
        rngs = to_json(self._rngs, list[np.random.Generator])
        state = owner(self.env, "get_state").get_state()
        return {"env": state, "rngs": rngs, "beginning": self._beginning.tolist()}

    def set_state(self, state: Mapping[str, Json]) -> None:
        """Go on from where another such batch was.

        Raises:
            ValueError: it is not the state of such a batch.
        """
        wrong = (
            f"set_state: expected what get_state of a {type(self).__name__} of {self.num_envs} "
            "dialogues has returned; got another state."
        )
        if not isinstance(state, Mapping) or state.keys() != {"env", "rngs", "beginning"}:
            raise ValueError(wrong)
        try:
            rngs = from_json(state["rngs"], list[np.random.Generator])
            beginning = from_json(state["beginning"], list[bool])
        except ValueError as error:
            raise ValueError(f"{wrong} {error}") from error
        if len(rngs) not in (0, self.num_envs) or len(beginning) != self.num_envs:
            raise ValueError(wrong)
        owner(self.env, "set_state").set_state(state["env"])
        self._rngs, self._beginning = rngs, np.array(beginning)

    def action_masks(self) -> np.ndarray:
        """(N, A) bool, as of the env."""
        return masks_of(self.env)


class MaskedObservation(gym.ObservationWrapper, RecordConstructorArgs):
    """Makes each observation a dict of the observation and what may be said or done next.

    Observation: `Dict` of ``observation`` (as of the env) and ``action_mask``, `Box(0, 1, (A,),
    int8)`, as PettingZoo's games and TorchRL's `ActionMask` have it. RLlib's examples call them
    ``("observations", "action_mask")``, Tianshou ``("obs", "mask")``.

    Args:
        env: a token or act view with `action_masks`.
        keys: the names of the two.

    Raises:
        ValueError: the env has no masks, or there are not two names.
    """

    def __init__(self, env: gym.Env, keys: Sequence[str] = KEYS) -> None:
        RecordConstructorArgs.__init__(self, keys=tuple(keys))
        super().__init__(env)
        check_maskable(env.action_space, env, type(self).__name__, ANY)
        self.keys = check_keys(keys)
        self.observation_space = masked_space(env.observation_space, env.action_space, self.keys)

    def observation(self, observation: Any) -> dict[str, Any]:
        """The dict, for the state that the env is in."""
        return dict(zip(self.keys, (observation, masks_of(self.env).astype(np.int8))))

    def action_masks(self) -> np.ndarray:
        """(A,) bool, as of the env."""
        return masks_of(self.env)


class VectorMaskedObservation(_VectorWrapper):
    """`MaskedObservation` for a batch; the last observation of a dialogue allows everything.

    Args:
        env: a batched token or act view, in this process or sharded.
        keys: as of `MaskedObservation`.

    Raises:
        ValueError: as of `MaskedObservation`.
    """

    def __init__(self, env: gym.vector.VectorEnv, keys: Sequence[str] = KEYS) -> None:
        super().__init__(env)
        check_maskable(env.single_action_space, env, type(self).__name__, ANY)
        self.keys = check_keys(keys)
        self.single_observation_space = masked_space(
            env.single_observation_space, env.single_action_space, self.keys
        )
        self.observation_space = gym.vector.utils.batch_space(
            self.single_observation_space, self.num_envs
        )

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin the dialogues."""
        observation, info = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        return self._masked(observation), info

    def step(self, actions: Any) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        """A step of the batch; ``final_obs`` are dicts too."""
        observation, reward, terminated, truncated, info = self.env.step(actions)
        if "final_obs" in info:
            info = {**info, "final_obs": self._last(info["final_obs"], info["_final_obs"])}
        return self._masked(observation), reward, terminated, truncated, info

    def _masked(self, observation: Any) -> dict[str, Any]:
        return dict(zip(self.keys, (observation, masks_of(self.env).astype(np.int8))))

    def _last(self, observations: np.ndarray, ended: np.ndarray) -> np.ndarray:
        everything = np.ones(gym.spaces.flatdim(self.env.single_action_space), np.int8)
        last = np.full(self.num_envs, None, object)
        for row in np.flatnonzero(ended).tolist():
            last[row] = dict(zip(self.keys, (observations[row], everything.copy())))
        return last

    def action_masks(self) -> np.ndarray:
        """(N, A) bool, as of the env."""
        return masks_of(self.env)


def masks_of(env: Any) -> np.ndarray:
    """Action masks of an env, (A,) or (N, A) bool."""
    masks: np.ndarray = owner(env, "action_masks").action_masks()
    return masks


def owner(env: Any, method: str) -> Any:
    """The outermost env or wrapper that has a method."""
    while not callable(getattr(type(env), method, None)):
        env = env.env
    return env


def replacement(mask: np.ndarray, action: int, choose: str, rng: np.random.Generator) -> int:
    """An allowed action in the place of a forbidden one."""
    allowed = np.flatnonzero(mask)
    if choose == "random":
        return int(rng.choice(allowed))
    return int(allowed[np.abs(allowed - action).argmin()])


def masked_space(observation: gym.Space, action: gym.Space, keys: Sequence[str]) -> gym.spaces.Dict:
    """`Dict` of an observation space and a mask over the actions."""
    mask = gym.spaces.Box(0, 1, (gym.spaces.flatdim(action),), np.int8)
    return gym.spaces.Dict(dict(zip(keys, (observation, mask))))


def check_maskable(space: gym.Space, env: Any, name: str, kinds: tuple[type, ...]) -> None:
    """Raise a ValueError unless the env has action masks that this wrapper can apply."""
    if hasattr(env.unwrapped, "action_masks") and isinstance(space, kinds):
        return
    raise ValueError(
        f"{name}: expected a token or act view, with action_masks() and actions of "
        f"{' or '.join(kind.__name__ for kind in kinds)}; got {env} with {space}."
    )


def check_keys(keys: Sequence[str]) -> tuple[str, str]:
    """The names of observation and mask; a ValueError unless they are two different texts."""
    if not isinstance(keys, str) and len(set(keys)) == len(keys) == 2:
        first, second = keys
        return first, second
    raise ValueError(
        f"keys: expected two names, of the observation and of the mask, such as {KEYS}; "
        f"got {keys!r}."
    )


def _own_rng(seed: int | None) -> np.random.Generator:
    """A generator of a seed, independent of that which an env makes of the same seed."""
    if seed is None:
        return np_random(None)[0]
    return np.random.default_rng([seed, 0x5EED])
