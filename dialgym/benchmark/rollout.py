"""Episodes of a policy in one environment.

Episode e of seed s is the dialogue that ``env.reset(seed=episode_seed(s, e))`` begins: every
policy meets the same hidden states, and no figure depends on how many dialogues run at once.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.simulators import Speaker
from dialgym.views.dialogue import Dialogue
from dialgym.views.layout import clean

Job = tuple[int, int]
"""Seed, and number of the episode."""
Report = Callable[[int], object]
"""Called with the number of episodes that have just ended."""


@runtime_checkable
class Predictor(Protocol):
    """A policy over token observations, in the form of Stable-Baselines3."""

    def predict(
        self,
        observation: np.ndarray,
        state: Any = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, Any]:
        """Actions (N,) for observations (N, L), and the state of a recurrent policy."""
        ...


class Played(NamedTuple):
    """Episodes as arrays, all (N,)."""

    returns: np.ndarray  # float64
    solved: np.ndarray  # bool
    lengths: np.ndarray  # int64, utterances of the learner


class MisfitError(ValueError):
    """The policy was made for other observations or actions than the environment has."""


def episode_seed(seed: int, episode: int) -> int:
    """The seed of the environment in an episode."""
    return int(np.random.SeedSequence([seed, episode]).generate_state(1, np.uint64)[0])


def policy_rng(seed: int, episode: int) -> np.random.Generator:
    """The generator of a scripted policy in an episode, independent of the environment's."""
    return np.random.default_rng(np.random.SeedSequence([seed, episode], spawn_key=(1,)))


def play_dialogue(
    policy: Speaker, dialogue: Dialogue, job: Job, options: Mapping[str, Any] | None = None
) -> tuple[float, bool]:
    """Let a scripted policy play one episode; its return, and whether it solved the task.

    `options` fixes hidden parts of the dialogue, as in ``env.reset``.
    """
    rng, own = np_random(episode_seed(*job))[0], policy_rng(*job)
    task, learner = dialogue.task, dialogue.learner
    exchange = dialogue.start(rng, options)
    gained = exchange.reward
    while not exchange.over:
        text = clean(policy.reply(task, dialogue.state, own), task.facts, learner)
        exchange = dialogue.say(text, rng)
        gained += exchange.reward
    return gained, bool(exchange.success)


def play_scripted(
    policy: Speaker, dialogue: Dialogue, jobs: Sequence[Job], report: Report
) -> Played:
    """Let a scripted policy play the episodes, one after the other."""
    played = Played(*_empty(len(jobs)))
    for i, job in enumerate(jobs):
        played.returns[i], played.solved[i] = play_dialogue(policy, dialogue, job)
        played.lengths[i] = dialogue.turn
        report(1)
    return played


def play_predictor(
    policy: Predictor,
    env: gym.vector.VectorEnv,
    jobs: Sequence[Job],
    report: Report,
    deterministic: bool = True,
) -> Played:
    """Let a policy play the episodes, as many at once as `env` has dialogues.

    Each row plays one episode of its own and then waits for the others. Rows that went on to the
    next episode until enough have ended would favour short ones.

    Args:
        policy: see `Predictor`; action masks are handed over if its `predict` takes them.
        env: a token view with same-step autoreset.
        jobs: the episodes.
        report: called as they end.
        deterministic: the likeliest action, else a sampled one.
    """
    check_fit(policy, env)
    parts = []
    for start in range(0, len(jobs), env.num_envs):
        wave = jobs[start : start + env.num_envs]
        parts.append(_play_wave(policy, env, wave, report, deterministic))
    return Played(*(np.concatenate(column) for column in zip(*parts)))


def _play_wave(
    policy: Predictor, env: Any, wave: Sequence[Job], report: Report, best: bool
) -> Played:
    n, size = len(wave), env.num_envs
    played = Played(*_empty(size))
    jobs = [*wave, *[wave[-1]] * (size - n)]
    observation, _ = env.reset(seed=[episode_seed(*job) for job in jobs])
    act = actor(policy, env.unwrapped.action_masks, best)
    alive, start = np.arange(size) < n, np.ones(size, bool)
    while alive.any():
        observation, reward, terminated, truncated, info = env.step(act(observation, start))
        start = terminated | truncated
        played.returns[alive] += reward[alive]
        ended = alive & start
        if ended.any():
            final = info["final_info"]
            played.solved[ended] = final["is_success"][ended]
            played.lengths[ended] = final["turn"][ended]
            alive &= ~ended
            report(int(ended.sum()))
    return Played(*(column[:n] for column in played))


def play_token_env(
    policy: Predictor, env: gym.Env, job: Job, options: dict[str, Any] | None = None
) -> tuple[float, bool]:
    """Let a policy play one episode of a single token env; its return, and whether it solved it."""
    own: Any = env.unwrapped
    act = actor(policy, lambda: own.action_masks()[None], deterministic=True)
    observation, info = env.reset(seed=episode_seed(*job), options=options)
    start, gained, over = np.ones(1, bool), 0.0, False
    while not over:
        action = act(observation[None], start)[0]
        observation, reward, terminated, truncated, info = env.step(action)
        start, over = np.zeros(1, bool), terminated or truncated
        gained += float(reward)
    return gained, info["is_success"]


def actor(
    policy: Predictor, masks: Callable[[], np.ndarray], deterministic: bool
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A function of observations and episode starts that keeps a recurrent policy's state.

    It hands over `masks()` where `predict` has an argument `action_masks`, as MaskablePPO's.
    """
    masked = "action_masks" in signature(policy.predict).parameters
    state: Any = None

    def act(observation: np.ndarray, start: np.ndarray) -> np.ndarray:
        nonlocal state
        more = {"action_masks": masks()} if masked else {}
        action, state = policy.predict(
            observation, state=state, episode_start=start, deterministic=deterministic, **more
        )
        return action

    return act


def check_fit(policy: Any, env: Any) -> None:
    """Raise a MisfitError where the policy's spaces, if it tells them, are not those of `env`."""
    seen = getattr(getattr(policy, "observation_space", None), "shape", None)
    said = getattr(getattr(policy, "action_space", None), "n", None)
    window, size = env.single_observation_space.shape, env.single_action_space.n
    if seen in (None, window) and said in (None, size):
        return
    raise MisfitError(
        f"{type(policy).__name__} sees {seen} and says one of {said} tokens; {env.spec.id} shows "
        f"{window} and has {size}. Evaluate it where it was trained, with the same env_kwargs."
    )


def _empty(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros(size), np.zeros(size, bool), np.zeros(size, np.int64)
