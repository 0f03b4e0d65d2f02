"""One dialogue that several learners share, each in an env that has its turns alone.

Each learner's own `learn` runs in a thread of its own, and only one thread runs at a time: a step
of its env hands the act over, and returns when it is that learner's turn again. So any algorithm
learns in such dialogues as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Semaphore, Thread
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv


class DomainPart(NamedTuple):
    """Entries of the joint observation, and acts of the joint ones, that are one domain's."""

    first_entry: int
    entries: int
    first_act: int
    acts: int

    def see(self, observation: np.ndarray) -> np.ndarray:
        """The domain's part (1, B) of an observation (B_joint,)."""
        return observation[None, self.first_entry : self.first_entry + self.entries]

    def allow(self, mask: np.ndarray) -> np.ndarray:
        """The domain's part (A,) of a mask (A_joint,)."""
        return mask[self.first_act : self.first_act + self.acts]


class Ended(BaseException):
    """Ends the `learn` of a learner that waits for a turn it will not have."""


@dataclass
class Pending:
    """Result of a learner's last act, until it is its turn again."""

    reward: float = 0.0
    earned: float = 0.0  # in this dialogue, `reward` included
    done: bool = False
    info: dict[str, Any] = field(default_factory=dict)


class DomainSide(VecEnv):
    """The env of the learner of one domain: a row of its own turns, an episode a dialogue there.

    Args:
        part: the domain's.
        acts: its acts, `PartyActs`; their `structure` is that of its beliefs.
    """

    def __init__(self, part: DomainPart, acts: Any) -> None:
        self.part, self.acts, self.render_mode = part, acts, None
        self.mask = np.ones(part.acts, bool)
        self.ask: Callable[[int | None], Any] = _unasked
        seen = spaces.Box(acts.low, acts.high, (part.entries,), np.float32)
        super().__init__(1, seen, spaces.Discrete(part.acts))

    def reset(self) -> np.ndarray:
        """Wait for the first turn."""
        self._reset_seeds()
        self._reset_options()
        return self.ask(None)[0]  # type: ignore[no-any-return]

    def step_async(self, actions: np.ndarray) -> None:
        """Take an act."""
        self._act = int(np.asarray(actions).reshape(-1)[0])

    def step_wait(self) -> Any:
        """Say it, and wait for the next turn, in this dialogue or in one after it."""
        seen, pending = self.ask(self._act)
        return (
            seen,
            np.array([pending.reward], np.float32),
            np.array([pending.done]),
            [pending.info],
        )

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        """``action_masks``; there is no other method.

        Raises:
            AttributeError: any other method.
        """
        if method_name != "action_masks":
            raise AttributeError(f"the side of a domain has no method {method_name!r}")
        return [self.mask]

    def has_attr(self, attr_name: str) -> bool:
        """Return True if `get_attr` or `env_method` knows the name."""
        return attr_name in ("action_masks", "acts")

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute, of the one row."""
        return [getattr(self, attr_name)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute."""
        setattr(self, attr_name, value)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """It is not."""
        return [False]

    def close(self) -> None:
        """Nothing is held open."""


def _unasked(act: int | None) -> Any:
    raise RuntimeError(
        "the side of a domain: its learner learns in dialogues with the others; call learn of the "
        "policy manager"
    )


class Turns:
    """A learner's `learn` in a thread of its own, resumed for each of its turns.

    Args:
        side: its env.
        learn: what runs in the thread.
    """

    def __init__(self, side: DomainSide, learn: Callable[[], Any]) -> None:
        self.side, self.learn = side, learn
        self.pending = Pending()
        self.act: int | None = None  # the learner's; None where it has ended
        self.over = self.stopping = False
        self._error: BaseException | None = None
        self._given: Any = None
        self._resume, self._back = Semaphore(0), Semaphore(0)
        self._thread = Thread(target=self._run, daemon=True)
        side.ask = self._ask
        self._thread.start()
        self._wait()

    def choose(self, observation: np.ndarray, mask: np.ndarray) -> int | None:
        """Give the learner its turn, and what its last act has led to.

        Args:
            observation: (B,), of the dialogue.
            mask: (A,), of the dialogue.

        Returns:
            Its act; None if it has learned as long as it was to.
        """
        part, pending, self.pending = self.side.part, self.pending, Pending()
        if not pending.done:
            self.pending.earned = pending.earned
        if not self.over:
            self.side.mask = part.allow(mask).copy()
            self._given = part.see(observation).copy(), pending
            self._go()
        return None if self.over else self.act

    def note(self, components: Mapping[str, float]) -> None:
        """Note rewards that its last act has earned, by components."""
        pending = self.pending
        earned = float(sum(components.values()))
        pending.reward += earned
        pending.earned += earned
        known = pending.info.setdefault("reward_components", {})
        for name, value in components.items():
            known[name] = known.get(name, 0.0) + value

    def finish(self, observation: np.ndarray, truncated: bool) -> None:
        """Note that the domain is over, with what is observed at last."""
        if not self.pending.done:
            self.pending.done = True
            self.pending.info["terminal_observation"] = self.side.part.see(observation)[0].copy()
            self.pending.info["TimeLimit.truncated"] = truncated

    def end(self) -> None:
        """Let it learn from the episode that has ended last, if that has not been taken in."""
        if self.pending.done and not self.over:
            last = self.pending.info["terminal_observation"]
            self.side.mask = np.ones(self.side.part.acts, bool)
            self._given = last[None], self.pending
            self._go()

    def stop(self) -> None:
        """End the thread."""
        if not self.over:
            self.stopping = True
            self._go()
        self._thread.join()
        self.side.ask = _unasked

    def _go(self) -> None:
        self._resume.release()
        self._wait()

    def _wait(self) -> None:
        """Let the thread run until it asks for a turn or ends; its error is raised here."""
        self._back.acquire()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    # In the thread

    def _run(self) -> None:
        try:
            self.learn()
        except Ended:
            pass
        except BaseException as error:  # raised where the dialogues are held
            self._error = error
        self.over = True
        self._back.release()

    def _ask(self, act: int | None) -> Any:
        self.act = act
        self._back.release()
        self._resume.acquire()
        if self.stopping:
            raise Ended
        return self._given


def parts_of(acts: Any) -> Mapping[str, DomainPart]:
    """The part of each owner of joined acts, `JoinedActs`, by its name."""
    found, entry = {}, len(acts.parts)
    for name, own in acts.parts.items():
        found[name] = DomainPart(entry, own.size, acts.first[name], len(own.names))
        entry += own.size
    return found
