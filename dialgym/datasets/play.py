"""Letting policies talk, and recording what is said."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.datasets.schema import Recorder
from dialgym.datasets.seeding import seeded
from dialgym.language.tokenizers import PAD, UNK
from dialgym.simulators import Speaker
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


class Game:
    """A dialogue under way, its generator, and what the learner's utterances have earned."""

    def __init__(
        self, dialogue: Dialogue, job: Job, options: Mapping[str, Any] | None = None
    ) -> None:
        self.dialogue, self.job, self.options = dialogue, job, options
        self.seed = episode_seed(*job)
        self.rng = np_random(self.seed)[0]
        self.said: list[int] = []  # where in the transcript its utterances stand
        self.rewards: list[float] = []
        self.exchange = dialogue.start(self.rng, options)
        self.length = len(self.exchange.heard)

    @property
    def over(self) -> bool:
        return self.exchange.over

    def say(self, text: str) -> None:
        """Let the learner speak."""
        self.exchange = self.dialogue.say(text, self.rng)
        self.said.append(self.length)
        self.rewards.append(self.exchange.reward)
        self.length += 1 + len(self.exchange.heard)

    def play(self, policy: Speaker, rng: np.random.Generator) -> "Game":
        """Let a scripted policy, with a generator of its own, play to the end."""
        dialogue = self.dialogue
        task, learner = dialogue.task, dialogue.learner
        while not self.exchange.over:
            self.say(clean(policy.reply(task, dialogue.state, rng), task.facts, learner))
        return self

    def fork(self) -> "Game":
        """The same game at the same point, to go on in another way.

        Its generator is in the same state, so that seed and utterances still replay it.
        """
        other = object.__new__(Game)
        other.__dict__.update(self.__dict__)
        other.dialogue, other.rng = self.dialogue.fork(), deepcopy(self.rng)
        other.said, other.rewards = self.said.copy(), self.rewards.copy()
        return other

    def record(self, recorder: Recorder, **role: Any) -> None:
        """Hand the game over; `role` is its kind, source and branch."""
        dialogue, end = self.dialogue, self.exchange
        recorder.add(
            dialogue.task.transcript(dialogue.state, dialogue.learner),
            self.said,
            self.rewards,
            terminated=end.terminated,
            truncated=end.truncated,
            success=end.success,
            seed=self.seed,
            episode=self.job[1],
            options=self.options,
            **role,
        )


def play_speaker(
    policy: Speaker,
    dialogue: Dialogue,
    jobs: Sequence[Job],
    options: Mapping[str, Any] | None,
    recorder: Recorder,
    report: Report,
) -> None:
    """Let a scripted policy hold the episodes, one after the other."""
    for job in jobs:
        Game(dialogue, job, options).play(policy, policy_rng(*job)).record(recorder)
        report(1)


def play_predictor(
    policy: Predictor,
    env: Any,
    jobs: Sequence[Job],
    options: Mapping[str, Any] | None,
    recorder: Recorder,
    report: Report,
    deterministic: bool,
) -> None:
    """Let a policy hold the episodes in waves of as many as `env` has dialogues.

    A policy that has Stable-Baselines3's ``set_random_seed`` is seeded for each wave, so that a
    wave comes out the same whoever plays it.

    Args:
        policy: see `Predictor`.
        env: a batched token view with next-step autoreset.
        jobs: the episodes; those of one wave are played together.
        options: of every reset.
        recorder: takes the dialogues, in the order of the jobs.
        report: called with the number of dialogues that have ended.
        deterministic: the likeliest action, else a sampled one.
    """
    check_fit(policy, env)
    for start in range(0, len(jobs), env.num_envs):
        wave = jobs[start : start + env.num_envs]
        with seeded(policy, episode_seed(*wave[0]) % 2**31):
            _Wave(env, wave, options).play(policy, deterministic, report).record(recorder)


class _Wave:
    """Episodes held at once, one in each row; rows that have none repeat the last."""

    def __init__(self, env: Any, jobs: Sequence[Job], options: Mapping[str, Any] | None) -> None:
        self.env, self.jobs, self.options = env, jobs, options
        self.seeds = [episode_seed(*job) for job in jobs]
        spare = env.num_envs - len(jobs)
        seeds = self.seeds + self.seeds[-1:] * spare
        self.observation, _ = env.reset(seed=seeds, options=dict(options or {}))
        self.alive = np.arange(env.num_envs) < len(jobs)
        self.tokens: list[list[list[int]]] = [[[]] for _ in jobs]
        self.said = [[self._length(row)] for row in range(len(jobs))]
        self.rewards: list[list[float]] = [[] for _ in jobs]
        self.ends: list[dict[str, Any]] = [{} for _ in jobs]

    def play(self, policy: Predictor, deterministic: bool, report: Report) -> "_Wave":
        act = actor(policy, self.env.unwrapped.action_masks, deterministic)
        start = np.ones(self.env.num_envs, bool)
        while self.alive.any():
            actions = act(self.observation, start)
            self.observation, reward, terminated, truncated, info = self.env.step(actions)
            start = terminated | truncated
            self._note(actions, reward, info)
            ended = np.flatnonzero(self.alive & start)
            for row in ended.tolist():
                self._end(row, bool(terminated[row]), bool(truncated[row]), info)
            if len(ended):
                report(len(ended))
        return self

    def _note(self, actions: np.ndarray, reward: np.ndarray, info: Mapping[str, Any]) -> None:
        closed = info["turn"] > 0
        tokens = np.where(np.asarray(actions) == PAD, UNK, actions).tolist()  # as it is shown
        for row in np.flatnonzero(self.alive).tolist():
            self.tokens[row][-1].append(tokens[row])
            if closed[row]:
                self.tokens[row].append([])
                self.said[row].append(self._length(row))
                self.rewards[row].append(float(reward[row]))

    def _length(self, row: int) -> int:
        return len(self.env.unwrapped.dialogues.transcript(row))

    def _end(self, row: int, terminated: bool, truncated: bool, info: Mapping[str, Any]) -> None:
        self.alive[row] = False
        self.ends[row] = {
            "lines": list(self.env.unwrapped.dialogues.transcript(row)),
            "terminated": terminated,
            "truncated": truncated,
            "success": bool(info["is_success"][row]),
        }

    def record(self, recorder: Recorder) -> None:
        for row, job in enumerate(self.jobs):
            recorder.add(
                said=self.said[row][:-1],  # the last would be that of the next utterance
                rewards=self.rewards[row],
                tokens=self.tokens[row],
                seed=self.seeds[row],
                episode=job[1],
                options=self.options,
                **self.ends[row],
            )
