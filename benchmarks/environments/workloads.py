"""Workloads of the speed benchmarks: each function prepares one and returns it."""

from collections.abc import Callable, Mapping
from itertools import cycle
from typing import Any

import gymnasium as gym
import numpy as np

from dialgym.language.tokenizers import END
from dialgym.tasks.wordle import Wordle
from dialgym.tasks.wordle.policies import OptimalWordle
from dialgym.views.dialogue import Dialogue
from dialgym.views.speakers import find_speaker

BATCH = 1024
SCRIPT = 4096  # actions drawn beforehand
Settings = Mapping[str, Any]
Work = Callable[[], int]
"""Does a share of the work and returns how many units that was."""
Rate = Callable[[Work], float]
"""Measures units of a work per CPU-second."""


def cartpole() -> Work:
    """Random steps of the classic."""
    env = gym.make("CartPole-v1")
    return run_single(env, np.random.default_rng(0).integers(2, size=SCRIPT).tolist())


def single_tokens(settings: Settings, masks: bool = False) -> Work:
    """Random token steps of one dialogue."""
    env = gym.make("dialgym/Wordle-v0", action_masks=masks, **settings)
    rng = np.random.default_rng(0)
    return run_single(env, rng.integers(env.action_space.n, size=SCRIPT).tolist())  # type: ignore[attr-defined]


def single_turns(settings: Settings) -> Work:
    """Random legal guesses in one dialogue."""
    env: Any = gym.make("dialgym/Wordle-utterance-v0", **settings)
    rng = np.random.default_rng(0)
    return run_single(env, rng.choice(env.unwrapped.task.guesses, SCRIPT).tolist())


def run_single(env: gym.Env, actions: list[Any]) -> Work:
    """Plays the actions, in dialogue after dialogue."""
    env.reset(seed=0)
    step, reset = env.step, env.reset

    def play() -> int:
        for action in actions:
            _, _, terminated, truncated, _ = step(action)
            if terminated or truncated:
                reset()
        return len(actions)

    return play


def batched_turns(settings: Settings) -> Work:
    """Random legal guesses in a batch; with same-step resets every step is a turn in each row."""
    env: Any = gym.make_vec(
        "dialgym/Wordle-utterance-v0", BATCH, autoreset_mode="SameStep", **settings
    )
    rng = np.random.default_rng(0)
    return run_batched(
        env, [tuple(row) for row in rng.choice(env.task.guesses, (16, BATCH)).tolist()]
    )


def batched_tokens(settings: Settings, masks: bool = False) -> Work:
    """Random tokens in a batch; with masks, legal guesses, and the masks asked for at each step."""
    env: Any = gym.make_vec("dialgym/Wordle-v0", BATCH, autoreset_mode="SameStep", **settings)
    rng = np.random.default_rng(0)
    size = env.single_action_space.n
    if not masks:
        return run_batched(env, list(rng.integers(size, size=(64, BATCH))))
    words = rng.choice(env.task.guesses, (8, BATCH))
    ids = env.tokenizer.encode_many(words.ravel())[0].reshape(8, BATCH, -1)
    spelled = np.concatenate([ids, np.full((8, BATCH, 1), END)], 2)  # (8, N, 6)
    return run_batched(env, list(spelled.transpose(0, 2, 1).reshape(-1, BATCH)), env.action_masks)


def run_batched(
    env: Any, actions: list[Any], masks: Callable[[], object] | None = None, seed: int = 0
) -> Work:
    """Plays the actions of all rows, a step each, asking for masks before where it is to."""
    env.reset(seed=seed)
    script = cycle(actions)

    def play() -> int:
        for _ in actions:
            if masks:
                masks()
            env.step(next(script))
        return len(actions) * int(env.unwrapped.num_envs)

    return play


def games(settings: Settings, guesses: str = "consistent", seed: int = 0) -> list[int]:
    """Guesses that a new optimal policy needs for each answer; it may take as many as it likes."""
    task = Wordle(**{**settings, "turns": 20})
    dialogue = Dialogue(task, "system", find_speaker(task, "system", None))
    policy, rng = OptimalWordle(guesses), np.random.default_rng(seed)
    return [_guesses(dialogue, policy, word, rng) for word in task.answers]


def _guesses(dialogue: Dialogue, policy: Any, word: str, rng: np.random.Generator) -> int:
    exchange = dialogue.start(rng, {"word": word})
    while not exchange.over:
        exchange = dialogue.say(policy.reply(dialogue.task, dialogue.state, rng), rng)
    return dialogue.turn
