"""Episodes of an evaluation or collection: their seeds, and any policy as one that acts in them.

Episode e of seed s is the dialogue that ``env.reset(seed=episode_seed(s, e))`` begins: every
policy meets the same hidden states, and nothing depends on how many dialogues run at once.
"""

from collections.abc import Callable, Collection, Mapping
from inspect import signature
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np

from dialgym.registry import VIEWS, Entry, load
from dialgym.simulators import Speaker
from dialgym.views.dialogue import Dialogue, find_speaker
from dialgym.views.making import make_vec, split_kwargs

Job = tuple[int, int]
"""Seed, and number of the episode."""
Report = Callable[[int], object]
"""Called with the number of episodes that have just ended."""


@runtime_checkable
class Predictor(Protocol):
    """A policy over token observations, in the form of Stable-Baselines3."""

    def predict(
        self,
        observation: np.ndarray,
        state: Any = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, Any]:
        """Actions (N,) for observations (N, L), and the state of a recurrent policy."""
        ...


class MisfitError(ValueError):
    """The policy was made for other observations or actions than the environment has."""


def takes_masks(policy: Predictor) -> bool:
    """Whether `predict` has an argument `action_masks`, as MaskablePPO's."""
    return "action_masks" in signature(policy.predict).parameters


def episode_seed(seed: int, episode: int) -> int:
    """The seed of the environment in an episode."""
    return int(np.random.SeedSequence([seed, episode]).generate_state(1, np.uint64)[0])


def policy_rng(seed: int, episode: int, branch: int = 0) -> np.random.Generator:
    """The generator of a scripted policy in an episode, independent of the environment's.

    Where an episode is several dialogues, each after the first has a number from 1.
    """
    key = (1, branch) if branch else (1,)
    return np.random.default_rng(np.random.SeedSequence([seed, episode], spawn_key=key))


def make_dialogue(entry: Entry, kwargs: Mapping[str, Any]) -> Dialogue:
    """The dialogue that a view of `entry`, made with `kwargs`, would hold."""
    parts = split_kwargs(entry, load(VIEWS[entry.view][1]), kwargs)
    task, learner = parts["task"], parts.get("learner", "system")
    return Dialogue(task, learner, find_speaker(task, learner, parts.get("simulator")))


def named_speaker(policy: str | Speaker, dialogue: Dialogue) -> Speaker:
    """The speaker of a name for the learner of a dialogue; a speaker is returned as it is."""
    if isinstance(policy, str):
        return dialogue.task.speaker_named(dialogue.learner, policy)
    return policy


def make_numeric_batch(
    entry: Entry,
    num_envs: int,
    kwargs: Mapping[str, Any],
    autoreset_mode: str = "SameStep",
    views: Collection[str] = ("token", "act"),
) -> gym.vector.VectorEnv:
    """The batched token or act view of `entry`, for a policy with `predict`.

    Raises:
        ValueError: the entry is of a view that is not among `views`.
    """
    if entry.view not in views:
        raise ValueError(
            f"a policy with predict() plays {' and '.join(views)} views here; got {entry.id!r} "
            f"({entry.view} view). Use {entry.row.id('token')!r}."
        )
    return make_vec(entry, num_envs, autoreset_mode=autoreset_mode, **kwargs)


def actor(
    policy: Predictor, masks: Callable[[], np.ndarray], deterministic: bool
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A function of observations and episode starts that keeps a recurrent policy's state.

    It hands over `masks()` where `predict` has an argument `action_masks`, as MaskablePPO's.
    """
    masked = takes_masks(policy)
    state: Any = None

    def act(observation: np.ndarray, start: np.ndarray) -> np.ndarray:
        nonlocal state
        more = {"action_masks": masks()} if masked else {}
        action, state = policy.predict(
            observation, state=state, episode_start=start, deterministic=deterministic, **more
        )
        return action

    return act


def check_fit(policy: Any, env: Any) -> None:
    """Raise a MisfitError where the policy's spaces, if it tells them, are not those of `env`."""
    seen = getattr(getattr(policy, "observation_space", None), "shape", None)
    said = getattr(getattr(policy, "action_space", None), "n", None)
    window, size = env.single_observation_space.shape, env.single_action_space.n
    if seen in (None, window) and said in (None, size):
        return
    raise MisfitError(
        f"{type(policy).__name__} sees {seen} and says one of {said} tokens; {env.spec.id} shows "
        f"{window} and has {size}. Use it where it was trained, with the same env_kwargs."
    )
