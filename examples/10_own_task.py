"""A task of your own: the rules, once. Registered, it is in every view and every tool.

So it is at the command line, in this folder: dialgym evaluate bisect 10_own_task:HigherLower-v0
"""

from copy import deepcopy
from dataclasses import dataclass, field

import dialgym
from dialgym.language import Utterance
from dialgym.tasks import Facts, Outcome, Task
from dialgym.testing import check_batch, check_task, check_views


@dataclass
class State:
    secret: int
    lines: list[Utterance] = field(default_factory=list)
    copy = deepcopy


class Bisect:
    """Says the middle of what is left."""

    def reply(self, task, state, rng):
        low, high = -1, 100
        for guess, answer in zip(state.lines[::2], state.lines[1::2]):
            middle = int(guess.text)
            low, high = (middle, high) if answer.text == "higher" else (low, middle)
        return str((low + high) // 2)


class HigherLower(Task):
    """Find a number from 0 to 99; the user says higher, lower or yes. Each wrong guess costs 1."""

    name = "HigherLower"
    options = ("number",)

    def __init__(self, turns: int = 8):
        self.turns = turns
        self.speakers = {"system": {"bisect": Bisect}}
        self.facts = Facts(
            turn_limit=turns,
            longest={"system": 2, "user": 6},
            heard={p: {"system": turns, "user": turns} for p in ("system", "user")},
            returns={"system": (-turns, 0), "user": (0, 0)},
            charset="0123456789abcdefghijklmnopqrstuvwxyz",
            hidden={"system": ("secret",)},
            components={"system": ("wrong guess",)},
        )

    def initial(self, rng, options=None):
        return State(self.check_options(options).get("number", int(rng.integers(100))))

    def speaker(self, state):
        return "system"

    def transcript(self, state, party):
        return state.lines

    def speak(self, state, text, rng):
        guess = int(text) if text.isdecimal() else -1
        won = guess == state.secret
        reply = "yes" if won else "higher" if guess < state.secret else "lower"
        state.lines += [Utterance("system", text), Utterance("user", reply)]
        over = won or len(state.lines) == 2 * self.turns
        components = {"system": {} if won else {"wrong guess": -1.0}, "user": {}}
        return Outcome.of(components, terminated=over, success=won if over else None)


dialgym.register("HigherLower-v0", HigherLower, {"turns": 7}, tags=["mine"])

if __name__ == "__main__":
    for check in (check_task, check_views, check_batch):
        check(HigherLower())
    print(dialgym.make("HigherLower-v0").observation_space.shape)
    print(dialgym.make_vec("HigherLower-v0", 4).reset(seed=0)[0].shape)
    print(dialgym.evaluate("bisect", "HigherLower-v0", 200).to_markdown())
    games = dialgym.collect("HigherLower-v0", "bisect", 100)
    print(games[0]["turns"][-1], games.tokens().batch([0, 1]).tokens.shape)
