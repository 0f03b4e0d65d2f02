"""A task with features: a picture, as a vector with noise, is to be named in a few guesses."""

from dataclasses import dataclass, field

import numpy as np

from dialgym.language import Utterance, WordTrie
from dialgym.tasks import Facts, Features, Outcome, Task

NAMES = ("apple", "boat", "cat", "dice")
SIZE, NOISE, GUESSES = 6, 0.05, 3


@dataclass
class Picture:
    """The picture that is shown, and the guesses."""

    shown: int
    pixels: np.ndarray  # (SIZE,) float32; never written into
    lines: list[Utterance] = field(default_factory=list)

    def copy(self) -> "Picture":
        return Picture(self.shown, self.pixels, self.lines.copy())


class Asking:
    """The user: answers by what is shown."""

    def reply(self, task, state, rng):
        return "yes" if state.lines[-1].text == NAMES[state.shown] else "no"


class NameIt(Task):
    """The system sees a picture and names it; the user says yes or no."""

    name = "NameIt"
    options = ("name",)
    speakers = {"user": {"asking": Asking}}
    facts = Facts(
        turn_limit=GUESSES,
        longest={"system": 5, "user": 3},
        heard={p: {"system": GUESSES, "user": GUESSES} for p in ("system", "user")},
        returns={"system": (-GUESSES, 0.0), "user": (0.0, 0.0)},
        charset="abcdefghijklmnopqrstuvwxyz",
        may_end=("user",),
        components={"system": ("wrong",)},
        features={"system": Features((SIZE,), -1.0, 2.0)},
    )

    def initial(self, rng, options=None):
        name = self.check_options(options).get("name")
        shown = int(rng.integers(len(NAMES))) if name is None else NAMES.index(name)
        clean = np.eye(len(NAMES), SIZE)[shown]
        return Picture(shown, (clean + NOISE * rng.uniform(-1, 1, SIZE)).astype(np.float32))

    def speaker(self, state):
        return ("system", "user")[len(state.lines) % 2]

    def transcript(self, state, party):
        return state.lines

    def features(self, state, party):
        return state.pixels.copy() if party == "system" else None

    def speak(self, state, text, rng):
        state.lines.append(Utterance(self.speaker(state), text))
        if len(state.lines) % 2:
            right = text == NAMES[state.shown]
            return Outcome.of({"system": {} if right else {"wrong": -1.0}, "user": {}})
        solved = state.lines[-2].text == NAMES[state.shown]
        over = solved or len(state.lines) == 2 * GUESSES
        return Outcome.of({"system": {}, "user": {}}, over, False, solved if over else None)

    def static_constraint(self, party):
        return WordTrie(NAMES if party == "system" else ("yes", "no"))
