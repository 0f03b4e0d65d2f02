"""Your own task: the rules, once; every view comes with them."""

from dataclasses import dataclass, field, replace

import gymnasium as gym
import numpy as np

from dialgym.language import Utterance
from dialgym.tasks import Facts, Outcome, Task
from dialgym.testing import check_batch, check_task, check_views
from dialgym.views.token_env import TokenEnv


@dataclass
class State:
    secret: int
    lines: list[Utterance] = field(default_factory=list)

    def copy(self) -> "State":
        return replace(self, lines=self.lines.copy())


class HigherLower(Task):
    """Find a number from 0 to 99; the user says higher, lower or yes. Each guess costs 1."""

    name = "HigherLower"
    options = ("number",)
    facts = Facts(
        turn_limit=8,
        longest={"system": 2, "user": 6},
        heard={p: {"system": 8, "user": 8} for p in ("system", "user")},
        returns={"system": (-8, 0), "user": (0, 0)},
        charset="0123456789abcdefghijklmnopqrstuvwxyz",
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
        over = won or len(state.lines) == 16
        components = {"system": {} if won else {"wrong guess": -1.0}, "user": {}}
        return Outcome.of(components, terminated=over, success=won if over else None)


for check in (check_task, check_views, check_batch):
    check(HigherLower())

gym.register("HigherLower-v0", entry_point=lambda **kwargs: TokenEnv(HigherLower(), **kwargs))
env = gym.make("HigherLower-v0", render_mode="ansi")
env.reset(seed=0, options={"number": 37})
low, high, over = 0, 99, False
while not over:
    middle = (low + high) // 2
    for token in [*env.unwrapped.tokenizer.encode(str(middle)), 1]:
        _, _, over, _, info = env.step(np.int64(token))
    low = middle + 1 if info["reply"] == "higher" else low
    high = middle - 1 if info["reply"] == "lower" else high
print(env.render(), end="")
