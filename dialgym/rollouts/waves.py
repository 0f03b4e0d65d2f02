"""Waves of dialogues: an episode a row, and rows that are over wait for the others.

Rows that went on to the next episode until enough have ended would favour short ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.io.finite_weights import check_finite
from dialgym.language.tokenizers import recorded
from dialgym.rollouts.episode_batch import Decisions, EpisodeBatch, RecordedTurns, metric_columns
from dialgym.rollouts.episodes import Job, Report, episode_seed, policy_rng, seeded
from dialgym.rollouts.policies import (
    Predictor,
    action_and_state,
    check_fit,
    observation_adapter,
    takes_masks,
)
from dialgym.simulators import Speaker, all_shown_to, ask_all
from dialgym.tasks import BatchOutcome, DialogueBatch, Task
from dialgym.tasks.return_checker import watch_returns
from dialgym.views.arguments import rows_by_options
from dialgym.views.dialogue import LoopedBatch
from dialgym.views.info import group_of
from dialgym.views.spaces import clean, maskable

SIZE = 512
"""Dialogues of scripted policies at once; what is chosen changes none of them."""


def play_batch(
    policy: Speaker,
    task: Task,
    learner: str,
    batch: DialogueBatch,
    jobs: Sequence[Job],
    options: Sequence[Mapping[str, Any]],
    record: bool,
    report: Report,
    size: int = SIZE,
    states: bool = False,
) -> Iterator[EpisodeBatch]:
    """Let a scripted policy play episodes; they are those that it plays one by one.

    Args:
        policy: of the learner.
        task, learner: the rules, and the party.
        batch: `size` dialogues of the task, in its vectorised form or a loop.
        jobs: the episodes.
        options: of the reset of each.
        record: whether what was said is kept.
        report: called in each round with the number of those that have ended.
        size: dialogues at once.
        states: whether the dialogues are kept as they ended.
    """
    for start in range(0, len(jobs), size):
        now = slice(start, start + size)
        wave = _ScriptedWave(task, batch, jobs[now], options[now], learner, record, report)
        wave.play(policy)
        yield wave.played(states)


class _ScriptedWave:
    """Episodes held at once; what is said is kept as arrays, a step at a time."""

    def __init__(
        self,
        task: Task,
        batch: DialogueBatch,
        jobs: Sequence[Job],
        options: Sequence[Mapping[str, Any]],
        learner: str,
        record: bool,
        report: Report,
    ) -> None:
        self.report = report
        self.task, self.batch, self.jobs, self.options = task, batch, jobs, options
        self.learner, self.me = learner, task.parties.index(learner)
        self.record = record
        self.seeds = [episode_seed(*job) for job in jobs]
        self.rngs = [np_random(seed)[0] for seed in self.seeds]
        self.names = [f"episode {episode} of seed {seed}" for seed, episode in jobs]
        if isinstance(batch, LoopedBatch):
            batch.names = self.names
        self.returns, self.lengths = np.zeros(len(jobs)), np.zeros(len(jobs), np.int64)
        self.terminated, self.truncated, self.success = (np.zeros(len(jobs), bool) for _ in "123")
        self.watch = watch_returns(task, learner, len(jobs))
        self.notes: list[tuple[np.ndarray, ...]] = []  # rows, parties, texts, rewards, said

    def play(self, policy: Speaker) -> None:
        own = [policy_rng(*job) for job in self.jobs]
        rows = self._begin()
        while len(rows):
            chosen = rows.tolist()
            states = all_shown_to(policy, self.task, self.batch.states(rows), self.learner)
            names = [self.names[row] for row in chosen]
            said = ask_all(policy, self.task, states, [own[row] for row in chosen], names)
            texts = np.array(self._cleaned(said), np.str_)
            outcome = self.batch.say(rows, texts, self.rngs)
            self._note(rows, np.full(len(rows), self.me), texts, outcome.reward, True)
            rows = self._append(rows, outcome)

    def _cleaned(self, said: Sequence[str]) -> Sequence[str]:
        """Texts as the rules hear them; a task's vectorised form is told words that it knows."""
        if not isinstance(self.batch, LoopedBatch):
            return said
        return [clean(text, self.task.facts, self.learner) for text in said]

    def _begin(self) -> np.ndarray:
        """Begin all dialogues; the rows that go on."""
        going = []
        for alike, options in rows_by_options(np.arange(len(self.jobs)), self.options):
            drawn = self.batch.draw(alike, self.rngs, options)
            going.append(self._append(alike, self.batch.begin(alike, drawn, self.rngs)))
        return np.sort(np.concatenate(going))

    def _append(self, rows: np.ndarray, outcome: BatchOutcome) -> np.ndarray:
        """Note what was heard and which dialogues are over; the rows that go on."""
        heard = rows[outcome.heard_rows]
        self._note(heard, outcome.heard_parties, outcome.heard_texts, np.zeros(len(heard)), False)
        over = outcome.terminated | outcome.truncated
        if self.watch is not None:
            self.watch.note(rows, outcome.reward, outcome.components, over)
        self.terminated[rows], self.truncated[rows] = outcome.terminated, outcome.truncated
        self.success[rows] = outcome.success & over
        self.returns[rows] += outcome.reward
        self.lengths[rows] = self.batch.turn(rows)
        self.report(int(over.sum()))
        going: np.ndarray = rows[~over]
        return going

    def _note(
        self,
        rows: np.ndarray,
        parties: np.ndarray,
        texts: np.ndarray,
        rewards: np.ndarray,
        said: bool,
    ) -> None:
        if self.record:
            self.notes.append((rows, parties, texts, rewards, np.full(len(rows), said)))

    def played(self, states: bool) -> EpisodeBatch:
        ended = self._states(states)
        return EpisodeBatch(
            self.seeds,
            [episode for _, episode in self.jobs],
            self.returns,
            self.lengths,
            self.success,
            self.terminated,
            self.truncated,
            options=self.options,
            turns=self._turns() if self.record else None,
            metrics=metric_columns([self.task.metrics(state) for state in ended]),
            states=[state.copy() for state in ended] if states else None,
        )

    def _states(self, asked: bool) -> Sequence[Any]:
        """The dialogues as they ended, where they are asked for or measured."""
        rows = np.arange(len(self.jobs))
        return self.batch.states(rows) if asked or self.task.facts.metrics else ()

    def _turns(self) -> RecordedTurns:
        rows, *columns = (np.concatenate(column) for column in zip(*self.notes))
        order = np.argsort(rows, kind="stable")
        party, text, reward, said = (column[order] for column in columns)
        return RecordedTurns(
            np.bincount(rows, minlength=len(self.jobs)).tolist(),
            np.array(self.task.voices, object)[party].tolist(),
            text.tolist(),
            said.tolist(),
            reward.tolist(),
            [None] * len(rows),
        )


def play_env(
    policy: Predictor,
    env: Any,
    jobs: Sequence[Job],
    options: Sequence[Mapping[str, Any]],
    record: bool,
    report: Report,
    deterministic: bool,
    states: bool = False,
) -> Iterator[EpisodeBatch]:
    """Let a policy with `predict` play episodes, in waves of as many as `env` has dialogues.

    A policy that has Stable-Baselines3's ``set_random_seed`` is seeded for each wave, so that a
    wave comes out the same whoever plays it.

    Args:
        policy: see `Predictor`; action masks are handed over if its `predict` takes them.
        env: a batched token or act view with autoreset disabled.
        jobs: the episodes; those of one wave are played together.
        options: of the reset of each.
        record: whether what was said and chosen is kept.
        report: called with the number of dialogues that have just ended.
        deterministic: the likeliest action, else a sampled one.
        states: whether the dialogues are kept as they ended.

    Raises:
        IncompatiblePolicyError: the policy was made for other spaces.
        ValueError: as of `observation_adapter`, or a weight is not finite.
    """
    check_fit(policy, env)
    remedy = "It has learned nothing that can be scored; load a checkpoint from before."
    check_finite(policy, f"policy {type(policy).__name__}", remedy)
    for start in range(0, len(jobs), env.num_envs):
        now = slice(start, start + env.num_envs)
        jobs_now = jobs[now]
        with seeded(policy, episode_seed(*jobs_now[0]) % 2**31):
            wave = _EnvWave(env, jobs_now, options[now], record)
            wave.play(policy, deterministic, report)
        yield wave.played(states)


class _EnvWave:
    """Episodes held at once, one in each row; rows that are over, or have none, are left alone.

    What was chosen is kept as it comes, an array for each step, and taken apart at the end.
    """

    def __init__(
        self, env: Any, jobs: Sequence[Job], options: Sequence[Mapping[str, Any]], record: bool
    ) -> None:
        self.env, self.own, self.jobs, self.record = env, env.unwrapped, jobs, record
        self.options = options
        self.acts = record and hasattr(self.own, "act_names")
        k, n = len(jobs), env.num_envs
        self.seeds = [episode_seed(*job) for job in jobs]
        seeds = self.seeds + self.seeds[-1:] * (n - k)
        begin = [*options, *options[-1:] * (n - k)]
        self.observation, _ = env.reset(seed=seeds, options=begin)
        self.alive = np.arange(n) < k
        self.own.deactivate(~self.alive)
        self.returns, self.lengths = np.zeros(n), np.zeros(n, np.int64)
        self.terminated, self.truncated, self.success = (np.zeros(n, bool) for _ in "123")
        self.metrics = {name: np.zeros(n) for name in self.own.task.facts.metrics}
        self.steps = np.zeros(n, np.int64)
        self.shown: tuple[Any, Any] | None = None
        self.kept: list[tuple[Any, ...]] = []  # by step: actions, closed, reward, seen, mask
        self.last: list[tuple[Any, ...]] = [()] * k  # by row: lines, and what was seen at the end
        # where utterances will stand; a task's own vectorised form is asked for the first alone
        self.positions = [[self._length(row)] for row in range(k)] if record else []
        self.looped = isinstance(self.own.dialogues, LoopedBatch)

    def play(self, policy: Predictor, deterministic: bool, report: Report) -> None:
        masked, state, view = takes_masks(policy), None, observation_adapter(policy)
        start = np.ones(self.env.num_envs, bool)
        while self.alive.any():
            seen, mask = self._keep_observations(self._masks() if masked or self.acts else None)
            shown = {} if mask is None or not masked else {"action_masks": self._form(mask)}
            answer = policy.predict(
                view(seen),
                state=state,
                episode_start=start,
                deterministic=deterministic,
                **shown,
            )
            actions, state = action_and_state(answer, policy)
            self.observation, reward, terminated, truncated, info = self.env.step(actions)
            start = terminated | truncated
            if self.record:
                closed = info["turn"] > 0
                if self.looped:
                    self._note_positions(closed)
                more = (seen, mask) if self.acts else ()
                self.kept.append((np.array(actions), closed, reward, *more))
            self._score(reward, info["turn"])
            ended = self.alive & start
            if ended.any():
                self._end(ended, terminated, truncated, info)
                report(int(ended.sum()))
                self.own.deactivate(ended)

    def _keep_observations(self, mask: np.ndarray | None) -> tuple[Any, np.ndarray | None]:
        """Observations and masks; of a dialogue that is over, those when it last acted."""
        seen = self.observation
        if self.shown and not self.alive.all():
            old_seen, old_mask = self.shown
            seen = keep_observation(old_seen, seen, self.alive)
            mask = None if mask is None else keep_observation(old_mask, mask, self.alive)
        self.shown = seen, mask
        return seen, mask

    def _masks(self) -> np.ndarray:
        masks: np.ndarray = self.own.action_masks()
        return masks

    def _form(self, masks: np.ndarray) -> np.ndarray:
        return maskable(masks, self.env.single_action_space)

    def _note_positions(self, closed: np.ndarray) -> None:
        for row in np.flatnonzero(closed & self.alive).tolist():
            self.positions[row].append(self._length(row))

    def _length(self, row: int) -> int:
        return len(self.own.dialogues.transcript(row))

    def _score(self, reward: np.ndarray, turn: np.ndarray) -> None:
        alive = self.alive
        self.returns[alive] += reward[alive]
        self.lengths[alive] = np.maximum(self.lengths, turn)[alive]
        self.steps[alive] += 1

    def _end(
        self,
        ended: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
        info: Mapping[str, Any],
    ) -> None:
        """Note how dialogues ended, before they begin again."""
        self.terminated[ended], self.truncated[ended] = terminated[ended], truncated[ended]
        self.success[ended] = info["is_success"][ended]
        measured = group_of(info, "metrics")
        for name, values in self.metrics.items():
            values[ended] = measured[name][ended]
        self.alive &= ~ended
        if not self.record:
            return
        masks = self._masks() if self.acts else None
        for row in np.flatnonzero(ended).tolist():
            lines = list(self.own.dialogues.transcript(row))
            seen = () if masks is None else (self.observation[row], masks[row])
            self.last[row] = (lines, *seen)

    def played(self, states: bool) -> EpisodeBatch:
        k = len(self.jobs)
        ended = self.own.dialogues.states(np.arange(k)) if states else None
        columns = [np.stack(column) for column in zip(*self.kept)] if self.record else []
        return EpisodeBatch(
            self.seeds,
            [episode for _, episode in self.jobs],
            self.returns[:k],
            self.lengths[:k],
            self.success[:k],
            self.terminated[:k],
            self.truncated[:k],
            turns=self._turns(*columns[:3]) if columns else None,
            decisions=self._decisions(columns[0], *columns[3:]) if columns and self.acts else None,
            options=self.options,
            metrics={name: values[:k] for name, values in self.metrics.items()},
            states=None if ended is None else [state.copy() for state in ended],
        )

    def _turns(self, actions: np.ndarray, closed: np.ndarray, rewards: np.ndarray) -> RecordedTurns:
        turns = RecordedTurns()
        shown = None if self.acts else recorded(actions)
        for row, steps in enumerate(self.steps[: len(self.jobs)].tolist()):
            ends = np.flatnonzero(closed[:steps, row])
            tokens = None
            if shown is not None:
                tokens = [ids.tolist() for ids in np.split(shown[:steps, row], ends + 1)]
            positions = self._positions(row, len(ends))
            turns.add(self.last[row][0], positions, rewards[ends, row].tolist(), tokens)
        return turns

    def _positions(self, row: int, count: int) -> list[int]:
        """Positions of the `count` utterances of a learner in its transcript."""
        if self.looped:
            return self.positions[row][:count]
        # its transcripts are made when asked for, which costs more than playing; what its learner
        # did not say itself, it was told at the beginning
        lines, first, me = self.last[row][0], self.positions[row][0], self.own.learner
        positions = [i for i in range(first, len(lines)) if lines[i].speaker == me]
        if len(positions) != count:
            raise RuntimeError(
                f"{self.own.task.name}: in its vectorised form the transcript has {len(positions)} "
                f"utterances of the {me}, which made {count}."
            )
        return positions

    def _decisions(
        self, actions: np.ndarray, observations: np.ndarray, masks: np.ndarray
    ) -> list[Decisions]:
        dtype = np.int64 if actions.ndim == 2 else np.int8
        decisions = []
        for row, steps in enumerate(self.steps[: len(self.jobs)].tolist()):
            _, seen, mask = self.last[row]
            decisions.append(
                Decisions(
                    np.concatenate([observations[:steps, row], seen[None]]),
                    actions[:steps, row].astype(dtype),
                    np.concatenate([masks[:steps, row], mask[None]]),
                )
            )
        return decisions


def keep_observation(before: Any, now: Any, alive: np.ndarray) -> Any:
    """Observations of n dialogues; of those that are over, those `before`, which are legal play.

    Args:
        before, now: arrays (n, ...), or mappings of such.
        alive: (n,) bool.
    """
    if isinstance(now, Mapping):
        return {key: keep_observation(before[key], now[key], alive) for key in now}
    return np.where(alive.reshape(-1, *[1] * (now.ndim - 1)), now, before)
