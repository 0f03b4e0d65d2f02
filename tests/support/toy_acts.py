"""A toy task whose parties choose several acts at once: find out which of four things are wanted.

The system asks about things, several in one utterance (``ask 0 2``); the user tells which of them
it wants (``want 2``), and may hold some back. Each thing told is worth 1 to both, each utterance of
the system costs 0.1; the dialogue ends when all that is wanted is known, or is cut after a few
turns. An utterance of no things is a pause.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from dialgym.language import Utterance
from dialgym.tasks import ActSpeaker, Facts, Outcome, PartyActs, RandomActs, Task

THINGS = 4
TURNS = 5
COST = 0.1
PARTIES = ("system", "user")


@dataclass
class WishState:
    """One dialogue."""

    wanted: frozenset[int]
    asked: frozenset[int] = frozenset()
    told: frozenset[int] = frozenset()
    turns: int = 0
    user_speaks: bool = False
    lines: list[Utterance] = field(default_factory=list)

    def copy(self) -> "WishState":
        return WishState(
            self.wanted, self.asked, self.told, self.turns, self.user_speaks, self.lines.copy()
        )


def entries(things: frozenset[int]) -> list[float]:
    return [float(thing in things) for thing in range(THINGS)]


class AskAll:
    """Asks about everything that it has not asked about."""

    def act(self, task: Task, state: WishState, rng: np.random.Generator) -> np.ndarray:
        return task.acts["system"].mask(state).astype(np.int8)


class TellAll:
    """Tells everything that it was asked about and wants."""

    def act(self, task: Task, state: WishState, rng: np.random.Generator) -> np.ndarray:
        return task.acts["user"].mask(state).astype(np.int8)


class Asking(PartyActs):
    """The system: what to ask about; it has seen what was asked and told."""

    names = tuple(f"ask_{thing}" for thing in range(THINGS))
    multiple = True
    size = 2 * THINGS + 1
    low = np.array([0.0] * 2 * THINGS + [-TURNS], np.float32)
    high = 1.0
    policies = {"ask-all": AskAll, "random": RandomActs}

    def observe(self, state: WishState) -> np.ndarray:
        return np.array([*entries(state.asked), *entries(state.told), -state.turns], np.float32)

    def mask(self, state: WishState) -> np.ndarray:
        return np.array([thing not in state.told for thing in range(THINGS)])

    def text(self, state: WishState, action: Any, rng: np.random.Generator) -> str:
        return spelled("ask", action)


class Telling(PartyActs):
    """The user: what to tell; it knows what it wants and what it was asked."""

    names = tuple(f"want_{thing}" for thing in range(THINGS))
    multiple = True
    size = 3 * THINGS
    policies = {"tell-all": TellAll, "random": RandomActs}

    def observe(self, state: WishState) -> np.ndarray:
        known = (state.wanted, state.asked, state.told)
        return np.array([entry for things in known for entry in entries(things)], np.float32)

    def mask(self, state: WishState) -> np.ndarray:
        return np.array([thing in state.wanted & state.asked for thing in range(THINGS)])

    def text(self, state: WishState, action: Any, rng: np.random.Generator) -> str:
        """In any order: the text draws from the dialogue's generator."""
        return spelled("want", action, rng)


def spelled(verb: str, action: np.ndarray, rng: np.random.Generator | None = None) -> str:
    things = np.flatnonzero(action)
    if rng is not None:
        things = rng.permutation(things)
    return " ".join([verb, *map(str, things.tolist())])


class Wishes(Task):
    """See the module."""

    name = "Wishes"
    options = ("wanted",)
    speakers = {
        "user": {
            "tell-all": partial(ActSpeaker, TellAll()),
            "random": partial(ActSpeaker, RandomActs()),
        },
        "system": {"ask-all": partial(ActSpeaker, AskAll())},
    }
    acts = {"system": Asking(), "user": Telling()}
    facts = Facts(
        turn_limit=TURNS,
        longest={party: len("want") + 2 * THINGS for party in PARTIES},
        heard={party: {"system": TURNS, "user": TURNS + 1} for party in PARTIES},
        returns={party: (-COST * TURNS - 1e-6, float(THINGS)) for party in PARTIES},
        charset="aknstw 0123",
        hidden={"system": ("wanted",)},
        may_end=("user",),
        components=dict.fromkeys(PARTIES, ("told", "turn")),
    )

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> WishState:
        drawn = np.flatnonzero(rng.random(THINGS) < 0.6).tolist() or [int(rng.integers(THINGS))]
        return WishState(frozenset(self.check_options(options).get("wanted", drawn)))

    def speaker(self, state: WishState) -> str:
        return "user" if state.user_speaks else "system"

    def transcript(self, state: WishState, party: str) -> Sequence[Utterance]:
        if party == "system":
            return state.lines
        private = Utterance("user", spelled("want", self._vector(state.wanted)), private=True)
        return [private, *state.lines]

    def _vector(self, things: frozenset[int]) -> np.ndarray:
        return np.array([thing in things for thing in range(THINGS)])

    def speak(self, state: WishState, text: str, rng: np.random.Generator) -> Outcome:
        speaker = self.speaker(state)
        state.lines.append(Utterance(speaker, text))
        said = frozenset(int(word) for word in text.split()[1:] if word in "0123")
        state.user_speaks = speaker == "system"
        if speaker == "system":
            state.turns += 1
            state.asked |= said
            return self._outcome({"turn": -COST})
        fresh = (said & state.wanted & state.asked) - state.told
        state.told |= fresh
        known = state.told == state.wanted
        return self._outcome({"told": float(len(fresh))}, known, state.turns == TURNS and not known)

    def _outcome(
        self, parts: Mapping[str, float], known: bool = False, late: bool = False
    ) -> Outcome:
        success = known if known or late else None
        return Outcome.of(dict.fromkeys(self.parties, parts), known, late, success)
