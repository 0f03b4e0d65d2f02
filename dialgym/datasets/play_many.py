"""Scripted policies that say many utterances at once, in tasks that have a vectorised form."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.datasets.schema import Recorder
from dialgym.simulators import BatchSpeaker, ask_all
from dialgym.tasks import BatchOutcome, DialogueBatch, Task
from dialgym.views.episodes import Job, Report, episode_seed, policy_rng

SIZE = 512
"""Dialogues at once; what is chosen changes no dialogue."""


def play_many(
    policy: BatchSpeaker,
    task: Task,
    batch: DialogueBatch,
    jobs: Sequence[Job],
    options: Mapping[str, Any],
    recorder: Recorder,
    report: Report,
) -> None:
    """Let a policy hold the episodes, `SIZE` at a time; the dialogues are those of `play_speaker`.

    Args:
        policy: of the learner.
        task: the rules.
        batch: `SIZE` dialogues of the task, in its vectorised form.
        jobs: the episodes.
        options: of every reset.
        recorder: takes the dialogues, in the order of the jobs.
        report: called with the number of dialogues that have ended.
    """
    for start in range(0, len(jobs), SIZE):
        wave = _Wave(task, batch, jobs[start : start + SIZE], options, recorder.origin.learner)
        wave.play(policy)
        wave.record(recorder)
        report(len(wave.jobs))


class _Wave:
    """Episodes held at once; what is said is kept as arrays, a step at a time."""

    def __init__(
        self,
        task: Task,
        batch: DialogueBatch,
        jobs: Sequence[Job],
        options: Mapping[str, Any],
        learner: str,
    ) -> None:
        self.task, self.batch, self.jobs, self.options = task, batch, jobs, options
        self.me = task.parties.index(learner)
        self.seeds = [episode_seed(*job) for job in jobs]
        self.rngs = [np_random(seed)[0] for seed in self.seeds]
        self.terminated, self.truncated, self.success = (np.zeros(len(jobs), bool) for _ in "123")
        self.rows: list[np.ndarray] = []
        self.parties: list[np.ndarray] = []
        self.texts: list[np.ndarray] = []
        self.rewards: list[np.ndarray] = []
        self.said: list[np.ndarray] = []

    def play(self, policy: BatchSpeaker) -> None:
        own = [policy_rng(*job) for job in self.jobs]
        rows = np.arange(len(self.jobs))
        rows = self._hear(rows, self.batch.reset(rows, self.rngs, self.options))
        while len(rows):
            states, chosen = self.batch.states(rows), rows.tolist()
            said = ask_all(policy, self.task, states, [own[row] for row in chosen], chosen)
            texts = np.array(said, np.str_)
            outcome = self.batch.say(rows, texts, self.rngs)
            self._note(rows, np.full(len(rows), self.me), texts, outcome.reward, True)
            rows = self._hear(rows, outcome)

    def _hear(self, rows: np.ndarray, outcome: BatchOutcome) -> np.ndarray:
        """Note what was heard and which dialogues are over; the rows that go on."""
        heard = rows[outcome.heard_rows]
        self._note(heard, outcome.heard_parties, outcome.heard_texts, np.zeros(len(heard)), False)
        self.terminated[rows], self.truncated[rows] = outcome.terminated, outcome.truncated
        self.success[rows] = outcome.success
        going: np.ndarray = rows[~(outcome.terminated | outcome.truncated)]
        return going

    def _note(
        self,
        rows: np.ndarray,
        parties: np.ndarray,
        texts: np.ndarray,
        rewards: np.ndarray,
        said: bool,
    ) -> None:
        self.rows.append(rows)
        self.parties.append(parties)
        self.texts.append(texts)
        self.rewards.append(rewards)
        self.said.append(np.full(len(rows), said))

    def record(self, recorder: Recorder) -> None:
        rows, count = np.concatenate(self.rows), len(self.jobs)
        order = np.argsort(rows, kind="stable")
        names = np.array(self.task.parties, object)
        turns = {
            "party": names[np.concatenate(self.parties)[order]].tolist(),
            "text": np.concatenate(self.texts)[order].tolist(),
            "said": np.concatenate(self.said)[order].tolist(),
            "reward": np.concatenate(self.rewards)[order].tolist(),
        }
        dialogues = {
            "terminated": self.terminated.tolist(),
            "truncated": self.truncated.tolist(),
            "success": self.success.tolist(),
            "seed": self.seeds,
            "episode": [episode for _, episode in self.jobs],
        }
        sizes = np.bincount(rows, minlength=count).tolist()
        recorder.add_many(turns, sizes, dialogues, self.options)
