"""Sessions of a text environment: the few methods by which any of them is played and checked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np

from dialgym.registry import RegistryEntry
from dialgym.testing.scripts import random_utterance
from dialgym.views.making import make_view
from dialgym.views.utterance_env import UtteranceEnv

MASK = "action_mask"
Bounds = tuple[float, float]


class Answer(NamedTuple):
    """Observation in words of a reset or a step, with what Gymnasium gives beside it."""

    text: str
    reward: float | None = None
    terminated: bool = False
    truncated: bool = False
    info: Mapping[str, Any] = {}

    @property
    def over(self) -> bool:
        """Tell if the dialogue has ended."""
        return self.terminated or self.truncated


class TextSession(Protocol):
    """One dialogue after another, with an environment that may hold others at the same time."""

    def reset(self, seed: int, options: Mapping[str, Any] | None = None) -> Answer:
        """Begin a dialogue."""
        ...

    def step(self, text: str) -> Answer:
        """Say a text."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


Sample = Callable[[TextSession, Sequence[Answer], np.random.Generator], str]
"""A text to say next in a session after some answers; the same for equal answers and generators."""


@dataclass(frozen=True)
class TextEnvironment:
    """A text environment: its sessions, and what is declared of them.

    Attributes:
        name: for messages.
        open: makes a new session.
        sample: gives the texts that a check says.
        rewards: bounds of every single reward, where they are declared.
        returns: the same of the sum of a dialogue's rewards.
        secrets: options of a reset that fix what is hidden, one for each thing it may be.
    """

    name: str
    open: Callable[[], TextSession]
    sample: Sample
    rewards: Bounds | None = None
    returns: Bounds | None = None
    secrets: Sequence[Mapping[str, Any]] = ()


class GymnasiumSession:
    """A session of a Gymnasium environment whose observations and actions are strings.

    Args:
        env: used by this session alone.
    """

    def __init__(self, env: gym.Env) -> None:
        self.env = env

    def reset(self, seed: int, options: Mapping[str, Any] | None = None) -> Answer:
        """Begin a dialogue.

        Raises:
            ValueError: the observation is no string.
        """
        given = None if options is None else dict(options)
        text, info = self.env.reset(seed=seed, options=given)
        return Answer(self._told(text), info=self._with_mask(info))

    def step(self, text: str) -> Answer:
        """Say a text."""
        told, reward, terminated, truncated, info = self.env.step(text)
        ends = bool(terminated), bool(truncated)
        return Answer(self._told(told), reward, *ends, self._with_mask(info))  # type: ignore[arg-type]

    def close(self) -> None:
        """End the session."""
        self.env.close()

    def _told(self, text: Any) -> str:
        if isinstance(text, str):
            return text
        raise ValueError(
            f"{self.env}: expected observations that are strings, got {type(text).__name__}. "
            "Text environments alone can be played and checked here."
        )

    def _with_mask(self, info: Mapping[str, Any]) -> Mapping[str, Any]:
        """The info, with the mask of environments that give it by a method."""
        masks = getattr(self.env.unwrapped, "action_masks", None)
        mask = {MASK: np.array(masks())} if callable(masks) else {}
        return {**mask, **info}


def gymnasium_environment(make: str | Callable[[], gym.Env]) -> TextEnvironment:
    """A Gymnasium environment of strings.

    Args:
        make: makes a new one; or an id of Gymnasium's registry, also as ``module:id``.

    Raises:
        ValueError: there is no such id, or its actions are no strings.
    """
    name = make if isinstance(make, str) else getattr(make, "__name__", repr(make))
    opened = _made(make) if isinstance(make, str) else make
    first = opened()
    space, plain = first.action_space, first.unwrapped
    first.close()
    if not isinstance(space, gym.spaces.Text) and not isinstance(space.sample(), str):
        raise ValueError(
            f"{name}: expected an action space of strings, gymnasium.spaces.Text; got {space}."
        )
    bounds = getattr(plain, "reward_range", None)
    finite = bounds if bounds is not None and np.isfinite(bounds).all() else None
    return TextEnvironment(name, lambda: GymnasiumSession(opened()), _sampled, finite)


def _made(env_id: str) -> Callable[[], gym.Env]:
    module, _, name = env_id.rpartition(":")
    try:
        if module:
            import_module(module)  # gym.spec alone imports none
        spec = gym.spec(name)
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise ValueError(f"Gymnasium knows no environment {env_id!r}: {error}") from error
    return lambda: gym.make(spec, disable_env_checker=True)


def _sampled(session: TextSession, _: Sequence[Answer], rng: np.random.Generator) -> str:
    """A sample of the action space."""
    assert isinstance(session, GymnasiumSession)
    space = session.env.action_space
    space.seed(int(rng.integers(2**31)))
    return str(space.sample())


def utterance_environment(entry: RegistryEntry, **settings: Any) -> TextEnvironment:
    """The utterance view of an id of ours, with texts mostly of those that its rules allow.

    Args:
        entry: of any view.
        settings: of the task and the view.
    """
    asked = entry.in_view("utterance")

    def opened() -> TextSession:
        return GymnasiumSession(make_view(asked, **settings))

    first = make_view(asked, **settings).unwrapped
    assert isinstance(first, UtteranceEnv)
    task = first.task
    returns = first.options.returns(task)
    return TextEnvironment(task.name, opened, _allowed, None, returns, task.secrets())


def _allowed(session: TextSession, _: Sequence[Answer], rng: np.random.Generator) -> str:
    """Some text of the learner, mostly one that the rules allow."""
    assert isinstance(session, GymnasiumSession)
    env = session.env.unwrapped
    assert isinstance(env, UtteranceEnv)
    constraint = env.task.constraint(env.dialogue.state, env.learner)
    return random_utterance(env.task, env.learner, constraint, rng)
