"""Random scripts of utterances and actions, and what plays them through any view."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from dialgym.language import Constraint, render_transcript
from dialgym.rollouts.random_text import allowed_text, random_text
from dialgym.tasks import Task
from dialgym.views.two_party import TwoPartyEnv


def require(condition: object, task: Task, message: str) -> None:
    """Raise an AssertionError with the task's name unless the condition holds."""
    if not condition:
        raise AssertionError(f"{task.name}: {message}")


def random_utterance(
    task: Task, party: str, constraint: Constraint, rng: np.random.Generator
) -> str:
    """A text for `party`: with probability 0.3 any characters, else one that is allowed."""
    if rng.random() < 0.3:
        return random_text(task, party, rng)
    return allowed_text(task, party, constraint, rng)


def random_action(mask: np.ndarray, multiple: bool, rng: np.random.Generator) -> Any:
    """With probability 0.2 any action, else one that the mask allows."""
    allowed = np.ones_like(mask) if rng.random() < 0.2 else mask
    if multiple:
        return (allowed & (rng.random(len(mask)) < 0.5)).astype(np.int8)
    return int(rng.choice(np.flatnonzero(allowed)))


class Played(NamedTuple):
    """Result of a script, and the learner's observations."""

    total: float
    terminated: bool
    truncated: bool
    success: bool
    transcript: str
    seen: list[Any]  # at the beginning and after each action; none where they are not compared


def play(env: Any, actions: Iterable[Any], seed: int) -> Played:
    """Play actions in a single env, or in what has its form."""
    seen, total = [env.reset(seed=seed)[0]], 0.0
    result: tuple[Any, ...] = ()
    for action in actions:
        result = env.step(action)
        seen.append(result[0])
        total += result[1]
    assert result, "the script is empty"
    _, _, terminated, truncated, info = result
    success, transcript = info.get("is_success", False), info.get("transcript", "")
    return Played(total, terminated, truncated, success, transcript, seen)


class FirstRow:
    """A batch of one dialogue in the form of a single env."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def reset(self, seed: int) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(seed=seed)[0][0], {}

    def step(self, action: Any) -> tuple[Any, ...]:
        seen, reward, terminated, truncated, info = self.env.step(np.array([action]))
        last = {name: info[name][0] for name in ("is_success", "transcript") if name in info}
        return seen[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), last


class OneSide:
    """One side of a two-party env in the form of a single env.

    Args:
        env: of both parties.
        party: whose side it is.
        other: gives the actions of the other party's turn.
    """

    def __init__(
        self, env: TwoPartyEnv, party: str, other: Callable[[TwoPartyEnv], Iterable[Any]]
    ) -> None:
        self.env, self.party, self.other = env, party, other

    def reset(self, seed: int) -> tuple[Any, dict[str, Any]]:
        self.env.reset(seed=seed)
        self._let_other_play()
        return self.env.observe(self.party), {}

    def step(self, action: Any) -> tuple[Any, ...]:
        env, party = self.env, self.party
        env.step(action)
        reward = env.rewards[party] + self._let_other_play()
        lines = env.task.transcript(env.dialogue_state, party) if self._over() else ()
        success = env.infos[party].get("is_success", False)
        end = env.terminations[party], env.truncations[party]
        info = {"transcript": render_transcript(lines), "is_success": success}
        return env.observe(party), reward, *end, info

    def _let_other_play(self) -> float:
        env, reward = self.env, 0.0
        while not self._over() and env.agent_selection != self.party:
            for action in self.other(env):
                env.step(action)
                reward += env.rewards[self.party]
        return reward

    def _over(self) -> bool:
        return any((*self.env.terminations.values(), *self.env.truncations.values()))


def difference(got: Played, expected: Played) -> str:
    """The differences in words; nothing where all is the same."""
    for at, (own, right) in enumerate(zip(got.seen, expected.seen)):
        if not np.array_equal(own, right):
            return f"observed {own} after {at} actions; the rules gave {right}"
    if abs(got.total - expected.total) > 1e-9 or got[1:5] != expected[1:5]:
        return f"gave {got[:5]}; the rules gave {expected[:5]}"
    return ""
