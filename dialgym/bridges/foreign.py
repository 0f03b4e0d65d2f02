"""Environments of others as tasks: the environment plays the user, and what it says is heard.

A dialogue is data: a seed and what has been said. The session in which it goes on lies beside it,
among those that a task holds open; where there is none, as after a copy, a pickle or a file, it is
made again by saying the same.
"""

import os
import re
import time
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np

from dialgym.errors import ServiceError, is_finite, whole_number
from dialgym.language import Utterance
from dialgym.language.text import CHARSET, UNKNOWN
from dialgym.tasks import Facts, Outcome, Task
from dialgym.tasks.base import SYSTEM, USER
from dialgym.testing.sessions import Answer, TextEnvironment, TextSession

CHARACTERS = f"\t\n{CHARSET}" + "".join(
    chr(code)
    for low, high in ((0xA1, 0x24F), (0x370, 0x4FF), (0x2010, 0x205E), (0x2190, 0x27BF))
    for code in range(low, high + 1)
)
"""Characters that are told; others become U+FFFD: ASCII, Latin, Greek, Cyrillic, signs, boxes."""
OPEN = 128
"""Sessions of a task that are kept open."""
PAUSES = (0.05, 0.2, 0.5)
"""Seconds between attempts to open a session, after another was closed: servers may be slow."""
SEEDS = 2**31
GROWING = 20
"""Characters of an opening by which answers that repeat it are known."""
SUCCESS = ("is_success", "success", "won")
"""Names in an info by which environments say that a dialogue has been solved."""
_BRACKETED = re.compile(r"\[[^\[\]\n]{1,20}\]|<[a-z]\w{0,19}>")
_SPEAKERS = re.compile(r"\[GAME\]|\[Player[^\n]*")
"""Names of who speaks, which are no moves, and what a player has said."""
_every: "weakref.WeakSet[LiveSessions]" = weakref.WeakSet()
_lock = Lock()  # of that set


class NotReproducible(RuntimeError):
    """An environment gave something else where the same was said after the same seed."""


class NoRoomError(ServiceError):
    """A server has as many sessions open as it takes."""


class Live(NamedTuple):
    """An open session, with its first text and its last as they came."""

    session: TextSession
    opening: str
    last: str

    def say(self, text: str) -> tuple["Live", Answer, str]:
        """Say a text; return the session after it, the answer, and what is new in that.

        Where answers repeat all since the opening, what is new is the rest. An error ends it.
        """
        try:
            answer = self.session.step(text)
        except BaseException:
            _end([self])
            raise
        told = answer.text
        grows = len(self.opening) >= GROWING and told.startswith(self.opening)
        news = told.removeprefix(self.last) if grows and told != self.last else told
        return self._replace(last=told), answer, news


class Reach:
    """Lives as long as a dialogue or a copy of it: sessions of those that are gone are closed."""


class _Reaching:
    __slots__ = ("_reach",)  # in none of the vars, which are saved

    @property
    def reach(self) -> Reach:
        if not hasattr(self, "_reach"):
            self._reach = Reach()
        return self._reach


@dataclass
class ForeignState(_Reaching):
    """A dialogue with an environment.

    Attributes:
        seed: of its reset.
        lines: what was said and heard.
        total: sum of the rewards.
    """

    seed: int
    lines: list[Utterance] = field(default_factory=list)
    total: float = 0.0

    @property
    def said(self) -> tuple[str, ...]:
        """The learner's utterances."""
        return tuple(line.text for line in self.lines if line.speaker == SYSTEM)

    def copy(self) -> Self:
        """An independent copy."""
        other = type(self)(self.seed, self.lines.copy(), self.total)
        other._reach = self.reach
        return other


class EnvironmentSpeaks:
    """Default user of a foreign task, who never has the floor: the rules answer in its name."""

    def reply(self, task: Task, state: Any, rng: np.random.Generator) -> str:
        """Refuse: the environment has answered already."""
        raise ValueError(f"{task.name}: the user never has the floor; the environment answers.")


class QuotedMoves:
    """A system that says, at random, one of the moves that the environment has quoted."""

    def reply(self, task: Task, state: ForeignState, rng: np.random.Generator) -> str:
        """See `quoted_move`."""
        heard = [line.text for line in state.lines if line.speaker == USER]
        return quoted_move(heard, rng)


class ForeignTask(Task):
    """Dialogues with an environment that somebody else has made.

    Nothing is known of it but what it answers: bounds of returns are infinite, and it counts as
    solved where the environment says so (`SUCCESS`), else where rewards add up to more than 0.

    Args:
        address: of the environment, as its scheme writes it.
        turns: most utterances of the learner, after which a dialogue is cut.
        longest: most characters of an utterance of either party.

    Attributes:
        environment: by sessions, as `dialgym.testing.check_environment` takes it.
    """

    scheme: str
    options = ("seed",)
    tokenizer = "char"
    speakers = {  # noqa: RUF012
        USER: {"environment": EnvironmentSpeaks},
        SYSTEM: {"quoted-moves": QuotedMoves},
    }
    how_to_play = {  # noqa: RUF012
        SYSTEM: "The user is an environment: it says what there is to do. Answer as it asks for.",
        USER: "The environment answers by itself.",
    }
    name = "foreign"

    def __init__(self, address: str, turns: int = 100, longest: int = 4000) -> None:
        self.address = address
        self.name = f"{self.scheme}:{address}"  # type: ignore[misc]
        count = whole_number("turns", turns, self.name)
        whole_number("longest", longest, self.name)
        self.environment = self.find()
        unknown = (float("-inf"), float("inf"))
        heard = {SYSTEM: count, USER: count + 1}
        self.facts = Facts(
            turn_limit=count,
            longest={SYSTEM: longest, USER: longest},
            heard={SYSTEM: heard, USER: heard},
            returns={SYSTEM: unknown, USER: (0.0, 0.0)},
            charset=CHARACTERS,
        )
        self._live = LiveSessions(self.name)

    @abstractmethod
    def find(self) -> TextEnvironment:
        """The environment at `address`.

        Raises:
            ValueError: there is none, or none that can be played by texts.
            ImportError: the package that has it is missing.
        """

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> ForeignState:
        """A dialogue begun in a new session, by a seed that is drawn unless an option gives it; a
        `NoRoomError` where there is no room, though all sessions that wait were closed."""
        seed = self.check_options(options).get("seed")
        if seed is None:
            seed = int(rng.integers(SEEDS))
        state = ForeignState(whole_number("option 'seed'", seed, self.name, 0))
        live = self._begun(state.seed)
        state.lines.append(self._heard(live.opening))
        self._live.put((state.seed, ()), live, state.reach)
        return state

    def speaker(self, state: ForeignState) -> str:
        """Always the system."""
        return SYSTEM

    def transcript(self, state: ForeignState, party: str) -> Sequence[Utterance]:
        """All that was said and heard."""
        return state.lines

    def speak(self, state: ForeignState, text: str, rng: np.random.Generator) -> Outcome:
        """Say `text` in the session of the dialogue, and hear the answer.

        Raises:
            NotReproducible, NoRoomError: the session had to be made again, and could not.
            ValueError: the reward is no finite number.
        """
        said = state.said
        live = self._live.take((state.seed, said), state.reach) or self._again(state, said)
        live, answer, news = live.say(text)
        state.lines += [Utterance(SYSTEM, text), self._heard(news)]
        reward = self._checked(answer.reward)
        state.total += reward
        cut = answer.truncated or (not answer.terminated and len(said) + 1 >= self.facts.turn_limit)
        rewards = {SYSTEM: reward, USER: 0.0}
        if not (answer.terminated or cut):
            self._live.put((state.seed, (*said, text)), live, state.reach)
            return Outcome(rewards)
        _end([live])
        return Outcome(rewards, answer.terminated, cut, success=_solved(answer, state.total))

    def _heard(self, text: str) -> Utterance:
        """An answer as an utterance, in their characters and lengths."""
        known = self.facts.characters
        kept = "".join([char if char in known else UNKNOWN for char in text])
        return Utterance(USER, kept[: self.facts.limit(USER)])

    def _checked(self, reward: Any) -> float:
        if reward is None:
            return 0.0
        if is_finite(reward):
            return float(reward)
        raise ValueError(
            f"{self.name} gave the reward {reward!r}; expected a finite number. "
            f"`dialgym check {self.name}` tells more."
        )

    def open_session(self) -> TextSession:
        """A session to play in; the environment's may look at more, for its checks."""
        return self.environment.open()

    def _begun(self, seed: int) -> Live:
        """A new session; while there is no room, others that can be made again are closed."""
        self.release()
        closed, pauses = 0, list[float]()
        while True:
            try:
                return self._fresh(seed)
            except NoRoomError as error:
                if pauses:
                    time.sleep(pauses.pop(0))
                elif close_oldest(self.name):
                    closed, pauses = closed + 1, [*PAUSES]
                else:
                    raise self._no_room(error, closed) from error

    def _fresh(self, seed: int) -> Live:
        live = Live(self.open_session(), "", "")
        try:
            opening = live.session.reset(seed).text
        except BaseException:
            _end([live])
            raise
        return live._replace(opening=opening, last=opening)

    def _no_room(self, error: NoRoomError, closed: int) -> NoRoomError:
        return NoRoomError(
            f"{self.name}: no room for a further session ({error.__cause__ or error}); {closed} of "
            "this process were closed for it, and no more wait. End those of others, play fewer "
            "at a time (num_envs), or start the server with more (max_concurrent_envs)."
        )

    def release(self) -> None:
        """Close the sessions of dialogues that nobody holds any more."""
        self._live.close_left()

    def close(self) -> None:
        """Close the sessions that are open; dialogues that go on make them again."""
        self._live.close()

    def _again(self, state: ForeignState, said: Sequence[str]) -> Live:
        """A new session, brought to where a dialogue stands."""
        live = self._begun(state.seed)
        heard = [line.text for line in state.lines if line.speaker == USER]
        told = [live.opening]
        for text in said:
            live, _, news = live.say(text)
            told.append(news)
        if [self._heard(text).text for text in told] == heard:
            return live
        _end([live])
        raise NotReproducible(
            f"{self.name}: the dialogue with seed {state.seed} went another way when it was "
            "played again. Its seed does not hold, so its dialogues cannot be copied or gone on "
            f"with; `dialgym check {self.name}` tells more."
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"made_with": self.made_with}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.made_with = state["made_with"]
        self.__init__(**(self.made_with or {}))  # type: ignore[misc]


def _solved(answer: Answer, total: float) -> bool:
    return next((bool(answer.info[name]) for name in SUCCESS if name in answer.info), total > 0)


class _Held(NamedTuple):
    """A session that waits for the next utterance: the place in its dialogue, and its `Reach`."""

    key: tuple[Any, ...]
    live: Live
    reach: "weakref.ref[Reach]"


class LiveSessions:
    """Open sessions of a task by seeds and words of dialogues; the oldest beyond `OPEN` close."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._held: list[_Held] = []  # the oldest first
        self._lock, self._process = Lock(), os.getpid()
        with _lock:
            _every.add(self)

    def put(self, key: tuple[Any, ...], live: Live, reach: Reach) -> None:
        """Keep a session for the next utterance of its dialogue."""
        held = _Held(key, live, weakref.ref(reach))
        _end(self._removed(lambda mine: mine[: max(0, len(mine) + 1 - OPEN)], held))

    def take(self, key: tuple[Any, ...], reach: Reach) -> Live | None:
        """A session of a dialogue, for its caller alone, best its own; None where there is none."""

        def best(mine: list[_Held]) -> list[_Held]:
            fitting = [held for held in mine if held.key == key]
            return sorted(fitting, key=lambda held: held.reach() is reach)[-1:]

        return next(iter(self._removed(best)), None)

    def close_left(self) -> None:
        """Close the sessions of dialogues that nobody holds any more."""
        _end(self._removed(lambda mine: [held for held in mine if held.reach() is None]))

    def close_oldest(self) -> bool:
        """Close the session that waits longest; tell if there was one."""
        return bool(_end(self._removed(lambda mine: mine[:1])))

    def close(self) -> None:
        """Close all."""
        _end(self._removed(lambda mine: mine))

    def _removed(self, choose: Callable[[list[_Held]], list[_Held]], *more: _Held) -> list[Live]:
        """Take out what is chosen, then put `more` in."""
        with self._lock:
            if os.getpid() != self._process:  # a fork: the sockets are another's
                self._held, self._process = [], os.getpid()
            chosen = choose(self._held)
            rest = [held for held in self._held if not any(held is one for one in chosen)]
            self._held = [*rest, *more]
        return [held.live for held in chosen]


def close_oldest(name: str) -> bool:
    """Close the oldest open session of the tasks of a name in this process; tell if one was."""
    with _lock:
        every = [sessions for sessions in _every if sessions.name == name]
    return any(sessions.close_oldest() for sessions in every)


def _end(ended: Sequence[Live]) -> int:
    """Close sessions that nobody asks any more, whatever their servers do; their number."""
    for live in ended:
        with suppress(Exception):
            live.session.close()
    return len(ended)


def quoted_move(heard: Sequence[str], rng: np.random.Generator) -> str:
    """A text that was quoted in brackets, half of the time with its numbers drawn again.

    Without any it is a number, or one of the words that were heard.
    """
    quoted = _BRACKETED.findall(_SPEAKERS.sub("", "\n".join(heard)))
    if quoted:
        move = str(quoted[int(rng.integers(len(quoted)))])
        most = 10 if rng.random() < 0.5 else 21
        changed = re.sub(r"\d+", lambda _: str(int(rng.integers(most))), move)
        return changed if rng.random() < 0.5 else move
    words = re.findall(r"[A-Za-z]+", " ".join(heard)) or ["yes"]
    return words[int(rng.integers(len(words)))] if rng.random() < 0.5 else str(rng.integers(21))


def sample_quoted(_: TextSession, answers: Sequence[Answer], rng: np.random.Generator) -> str:
    """A quoted move, as the conformance kit asks for texts."""
    return quoted_move([answer.text for answer in (answers[0], answers[-1])], rng)
