"""Random and bad inputs over all ids.

A batch is played beside a single env that gets what one of its rows gets: both must show the same.
Between the steps come arguments that are none, each of which has to be one clear error, and to
leave everything as it was.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import dialgym
from benchmarks.soak.budget import Budget, Tally, within

ROWS = 256
SECONDS = 0.3
"""CPU time of one id in a round; the first round has them all."""
BAD_EVERY = 12
KIND = "random and bad inputs"


def inputs(budget: Budget, rng: np.random.Generator, folder: Path) -> Iterator[Tally]:
    """An attack; a tally of each id after each of its turns."""
    ids = dialgym.list_ids()
    first = True
    while first or budget:
        for env_id in rng.permutation(ids).tolist():
            tally = Tally(KIND)
            with tally.noting(env_id), within(120):
                _play(env_id, tally, rng)
            yield tally
            if not first and not budget:
                break
        first = False


def _play(env_id: str, tally: Tally, rng: np.random.Generator) -> None:
    game = Game(env_id, rng)
    budget, steps = Budget(SECONDS), 0
    while budget or steps < 2:
        game.step(game.actions())
        tally.tries += ROWS
        steps += 1
        if steps % BAD_EVERY == 1:
            tally.tries += game.refuse()


class Game:
    """A batch, and the single env of one of its rows.

    Args:
        env_id: of any view.
        rng: what is played is drawn from.
    """

    def __init__(self, env_id: str, rng: np.random.Generator) -> None:
        self.rng, self.row = rng, int(rng.integers(ROWS))
        batch: Any = dialgym.make_vec(env_id, ROWS, autoreset_mode="SameStep")
        self.single: Any = gym.make(env_id).unwrapped
        self.batch: Any = batch
        self.space: Any = batch.single_action_space
        seed = int(rng.integers(2**31))
        batch.action_space.seed(seed)
        seen, _ = batch.reset(seed=seed)
        own, _ = self.single.reset(seed=seed + self.row)
        self._alike(seen, own)
        self.bounds = batch.task.facts.returns[batch.learner]
        self.returns = np.zeros(ROWS)

    def actions(self) -> Any:
        """Actions for each row: allowed ones, any, or ones with another meaning."""
        if isinstance(self.space, gym.spaces.Text):
            return tuple(random_text(self.rng, self.space) for _ in range(ROWS))
        way = self.rng.random()
        if way < 0.5:
            return self.batch.action_space.sample()
        masks = self.batch.action_masks()
        if self.space.shape:
            return (masks & (self.rng.random(masks.shape) < 0.1)).astype(np.int8)
        if way < 0.9:
            return (masks * self.rng.random(masks.shape)).argmax(1)
        return self.rng.integers(0, min(5, self.space.n), ROWS)  # tags, the end, padding

    def step(self, actions: Any) -> None:
        """A step of both.

        Raises:
            AssertionError: they differ, or a reward or return is none.
        """
        seen, reward, terminated, truncated, _ = self.batch.step(actions)
        own = self.single.step(actions[self.row])
        ends = bool(terminated[self.row]), bool(truncated[self.row])
        assert (float(reward[self.row]), *ends) == own[1:4], "rewards or ends of a row"
        self._alike(seen, self.single.reset()[0] if any(ends) else own[0])
        assert np.isfinite(reward).all(), "a reward is no number"
        self.returns += reward
        over = terminated | truncated
        lowest, highest = self.bounds
        found = self.returns[over]
        assert ((found > lowest - 1e-6) & (found < highest + 1e-6)).all(), "a return out of bounds"
        self.returns[over] = 0.0

    def _alike(self, seen: Any, own: Any) -> None:
        if isinstance(seen, dict):
            alike = all(np.array_equal(seen[key][self.row], own[key]) for key in own)
        else:
            alike = np.array_equal(seen[self.row], own)
        assert alike, "the observation of a row"
        assert self.single.observation_space.contains(own), "an observation outside its space"

    def refuse(self) -> int:
        """Try bad arguments on both; return their number.

        Raises:
            AssertionError: one was taken, or the error is not a clear one.
        """
        batch, single = self.batch, self.single
        actions, resets = bad_actions(self.space, self.rng), bad_resets(batch.task.options)
        wrong = [
            *(_taken("step of the batch", batch.step, action) for action in actions),
            *(_taken("step", single.step, action) for action in actions),
            *(_taken("reset of the batch", batch.reset, **reset) for reset in resets),
            *(_taken("reset", single.reset, **reset) for reset in resets),
        ]
        assert not any(wrong), "; ".join(filter(None, wrong))
        return len(wrong)


def bad_actions(space: gym.Space, rng: np.random.Generator) -> list[Any]:
    """Values that are no action of one row, and no actions of `ROWS`."""
    bad = [None, float("nan"), object(), {}, [], [None] * ROWS, [[]] * ROWS, np.zeros((ROWS, 2, 2))]
    bad += [np.full(ROWS, np.nan), np.full(ROWS, np.inf), [1.5] * ROWS, b"bytes", [b"x"] * ROWS]
    if isinstance(space, gym.spaces.Text):
        return [*bad, 3, [3] * ROWS, ["a"] * (ROWS - 1), ["a"] * (ROWS + 1), True]
    size = int(space.n)  # type: ignore[attr-defined]
    shape = (ROWS, *(space.shape or ()))
    bad += ["text", ["text"] * ROWS, np.full(shape, -1), np.full(shape, 2**40), -1, 10**30]
    bad += [np.full(shape, size + int(rng.integers(1000))), np.zeros(ROWS - 1, int)]
    return bad


def bad_resets(names: Collection[str]) -> list[dict[str, Any]]:
    """Arguments of `reset` that cannot be, of a task with options of these names."""
    seeds = [-1, 1.5, "0", [1.5] * ROWS, [-1] * ROWS, ["x"] * ROWS, float("nan"), {}, 2**200 * 0.5]
    options = [{"no_such_option": 1}, {"reset_mask": "x"}, [{}, {}], 5, "text", {3: 4}]
    options += [{"reset_mask": np.zeros(3, bool)}, {"reset_mask": np.full(ROWS, 2)}]
    options += [{name: value} for name in names for value in (object(), float("nan"), {"x": 1})]
    return [{"seed": seed} for seed in seeds] + [{"options": option} for option in options]


def _taken(what: str, call: Any, *args: Any, **kwargs: Any) -> str:
    """Describe a fault in the refusal of an argument; empty if it is refused clearly."""
    given = f"{what}: {str(args or kwargs)[:60]}"
    try:
        call(*args, **kwargs)
    except (ValueError, gym.error.Error) as error:
        return "" if len(str(error)) > 20 else f"{given}: says only {str(error)!r}"
    except Exception as error:
        return f"{given}: {type(error).__name__}: {error}"
    return f"{given} was taken"


# Texts

PIECES = (
    "", " ", "\n", "\x00", "\ud800", "é", "🙂", "\u202e", "<end>", "<system>", "<user>", "system:",
    "inform(food=\"thai\")", "inform(", "))))", "request(area)|bye()", "=,=", "crane", "b y b b g",
    "yes", "no", "is it red?", "0", "-1", "1e999", "nan", "%s%n", "{0}", "\\", "'", '"', "a" * 3000,
    "(" * 500, ",".join("ab" * 300), "  tabs\tand  spaces ", "ﬀ", "I\u0307", "\r\n", "|" * 40,
)  # fmt: skip


def random_text(rng: np.random.Generator, space: gym.spaces.Text) -> str:
    """Now and then a text of the space, else odd pieces in a row."""
    if rng.random() < 0.3:
        letters = np.array(list(space.characters))
        return "".join(rng.choice(letters, int(rng.integers(1, min(space.max_length, 60)))))
    return "".join(PIECES[i] for i in rng.integers(len(PIECES), size=int(rng.integers(1, 4))))
