"""Episodes of a policy in one environment, scored."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.simulators import BatchSpeaker, Speaker, ask_all
from dialgym.tasks import DialogueBatch, Task
from dialgym.views.dialogue import Dialogue
from dialgym.views.episodes import (
    Job,
    Predictor,
    Report,
    actor,
    check_fit,
    episode_seed,
    policy_rng,
)
from dialgym.views.layout import clean


class Played(NamedTuple):
    """Episodes as arrays, all (N,)."""

    returns: np.ndarray  # float64
    solved: np.ndarray  # bool
    lengths: np.ndarray  # int64, utterances of the learner


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


def play_many(
    policy: BatchSpeaker,
    task: Task,
    batch: DialogueBatch,
    jobs: Sequence[Job],
    size: int,
    report: Report,
) -> Played:
    """Let a scripted policy play the episodes, `size` at once; they are those of `play_scripted`.

    Args:
        policy: of the learner.
        task: the rules.
        batch: `size` dialogues of the task, in its vectorised form.
        jobs: the episodes.
        size: how many are played at once.
        report: called as they end.
    """
    played = Played(*_empty(len(jobs)))
    for start in range(0, len(jobs), size):
        wave = jobs[start : start + size]
        rngs = [np_random(episode_seed(*job))[0] for job in wave]
        own = [policy_rng(*job) for job in wave]
        rows = np.arange(len(wave))
        outcome = batch.reset(rows, rngs, {})
        while len(rows):
            over = outcome.terminated | outcome.truncated
            played.returns[start + rows] += outcome.reward
            played.solved[start + rows] = outcome.success & over
            played.lengths[start + rows] = batch.turn(rows)
            rows = rows[~over]
            if len(rows):
                chosen = rows.tolist()
                rngs_now = [own[row] for row in chosen]
                texts = ask_all(policy, task, batch.states(rows), rngs_now, chosen)
                outcome = batch.say(rows, np.array(texts, np.str_), rngs)
        report(len(wave))
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
        env: a token or act view with same-step autoreset.
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


def _empty(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros(size), np.zeros(size, bool), np.zeros(size, np.int64)
