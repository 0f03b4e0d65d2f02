"""Your own task, as a module that knows dialgym's public names only."""

GUESS = '''
"""Find a digit."""
from dataclasses import dataclass, field, replace

import dialgym
from dialgym.language import Utterance
from dialgym.tasks import Facts, Outcome, Task


@dataclass
class State:
    secret: int
    lines: list[Utterance] = field(default_factory=list)

    def copy(self):
        return replace(self, lines=self.lines.copy())


class First:
    def reply(self, task, state, rng):
        return str(len(state.lines) // 2)


class GuessNumber(Task):
    """Find a number below ten; each wrong guess costs 1."""

    name = "GuessNumber"
    speakers = {"system": {"count": First}}
    options = ("number",)

    def __init__(self, turns: int = 4, top: int = 10):
        self.turns, self.top = turns, top
        self.facts = Facts(
            turn_limit=turns,
            longest={"system": 1, "user": 3},
            heard={p: {"system": turns, "user": turns} for p in ("system", "user")},
            returns={"system": (-turns, 0), "user": (0, 0)},
            charset="0123456789abcdefghijklmnopqrstuvwxyz",
        )

    def initial(self, rng, options=None):
        return State(self.check_options(options).get("number", int(rng.integers(self.top))))

    def speaker(self, state):
        return "system"

    def transcript(self, state, party):
        return state.lines

    def speak(self, state, text, rng):
        won = text == str(state.secret)
        state.lines += [Utterance("system", text), Utterance("user", "yes" if won else "no")]
        over = won or len(state.lines) == 2 * self.turns
        rewards = {"system": 0.0 if won else -1.0, "user": 0.0}
        return Outcome(rewards, terminated=over, success=won if over else None)


dialgym.register("Guess-v0", "MODULE:GuessNumber", settings={"turns": 3}, tags=["mine"])
'''
