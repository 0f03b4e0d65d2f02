"""True advantages of turns by repeated continuation, and their estimates.

A learner does not know what is hidden, so the value of its situation is a mean over what may be:
each continuation draws the hidden thing from the exact posterior, and whatever else is drawn again.
Where a task has no exact posterior, values are those of the dialogue as it is, hidden things and
all: what luck they gave a learner is then a part of its advantage.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dialgym.experiments.bootstrap import RESAMPLES, interval
from dialgym.experiments.statistics import Estimate
from dialgym.registry import Environment, entry_of
from dialgym.rollouts.episodes import seeded
from dialgym.rollouts.policies import Predictor, observation_adapter, takes_masks
from dialgym.rollouts.waves import keep_observation
from dialgym.tasks import ExactPosterior
from dialgym.views.making import make_vec
from dialgym.views.saved import SavedDialogue
from dialgym.views.spaces import maskable


class Decision(NamedTuple):
    """A turn that a learner took.

    Attributes:
        before: the dialogue as it stood (`clone_state`).
        actions: (k,) int, the tokens that were said, or (1,) the act that was chosen.
        episode: which dialogue the turn is of.
        estimate: its advantage, as the learner has it.
    """

    before: SavedDialogue
    actions: np.ndarray
    episode: int
    estimate: float


class TurnAdvantages(NamedTuple):
    """True advantages of m turns, as far as so many continuations tell.

    Attributes:
        advantages: (m,) Q - V, undiscounted.
        errors: (m,) their standard errors.
        values: (m,) V before the turn.
    """

    advantages: np.ndarray
    errors: np.ndarray
    values: np.ndarray

    @property
    def variance(self) -> float:
        """Variance of the true advantages: what is left without that of the errors, perhaps < 0."""
        return float(self.advantages.var() - (self.errors**2).mean())


def true_advantages(
    policy: Predictor,
    env: Environment,
    decisions: Sequence[Decision],
    continuations: int = 64,
    seed: int = 0,
    env_kwargs: Mapping[str, Any] | None = None,
    num_envs: int = 256,
    sample_hidden: bool = True,
) -> TurnAdvantages:
    """Compute how much better each turn was than a policy does on average in its place.

    Q is the mean return of `continuations` dialogues that begin with the turn's own tokens, V that
    of as many that do not; the policy draws the rest.

    Args:
        policy: has `predict`; see `dialgym.rollouts.policies.Predictor`.
        env: an id, or what stands for one, of a token or act view.
        decisions: m turns of dialogues of that env.
        continuations: of each turn, and of what the policy would have said.
        seed: of everything that is drawn.
        env_kwargs: as for ``gym.make``.
        num_envs: dialogues at once.
        sample_hidden: draw what is hidden from the exact posterior in each continuation; False
            leaves it as it is, in any task.

    Raises:
        ValueError: the posterior is asked for and the task has none, or there are fewer than 2
            continuations.
    """
    if continuations < 2:
        raise ValueError(f"continuations: expected 2 or more, got {continuations}")
    kwargs = {**(env_kwargs or {}), "autoreset_mode": "Disabled"}
    made: Any = make_vec(entry_of(env), num_envs, **kwargs).unwrapped
    with closing(made) as own:
        if sample_hidden and not isinstance(own.task, ExactPosterior):
            raise ValueError(
                f"true advantages need the exact posterior of what is hidden; {own.task.name} has "
                "none (dialgym.tasks.ExactPosterior). With sample_hidden=False what is "
                "hidden stays as it is."
            )
        own.reset(seed=seed)
        with seeded(policy, seed):
            returns = _continued(policy, own, decisions, continuations, seed, sample_hidden)
    (q, v), errors = returns.mean(-1), returns.std(-1, ddof=1) / np.sqrt(continuations)
    return TurnAdvantages(q - v, np.hypot(*errors), v)


def _continued(
    policy: Predictor,
    env: Any,
    decisions: Sequence[Decision],
    continuations: int,
    seed: int,
    sample_hidden: bool,
) -> np.ndarray:
    """(2, m, c) returns of continuations: with the turn's own tokens, and without."""
    rng = np.random.default_rng(seed)
    dialogues = [
        _hidden_samples(env.task, d.before, continuations, rng)
        if sample_hidden
        else [d.before] * continuations
        for d in decisions
    ]
    jobs = [
        (dialogue, decision.actions if forced else decision.actions[:0])
        for forced in (True, False)
        for decision, own in zip(decisions, dialogues)
        for dialogue in own
    ]
    returns, _ = continued_returns(policy, env, [d for d, _ in jobs], rng, [a for _, a in jobs])
    return returns.reshape(2, len(decisions), continuations)


def continued_returns(
    policy: Predictor,
    env: Any,
    dialogues: Sequence[SavedDialogue],
    rng: np.random.Generator,
    forced: Sequence[np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Go on from saved dialogues to their end, as many at once as an env has rows.

    Args:
        policy: has `predict`; it draws its actions.
        env: a batched token or act view; its own dialogues are lost.
        dialogues: m of its kind; the same one may come several times.
        rng: of the seeds with which they go on.
        forced: (m,) of (k,) actions, taken first; None for none.

    Returns:
        Returns (m,), undiscounted, and how many actions each took (m,).
    """
    none = np.zeros(0, np.int64)
    forced = [none] * len(dialogues) if forced is None else forced
    returns, steps = np.zeros(len(dialogues)), np.zeros(len(dialogues), np.int64)
    for start in range(0, len(dialogues), env.num_envs):
        rows = slice(start, start + env.num_envs)
        wave = [*zip(dialogues[rows], forced[rows])]
        seeds = rng.integers(2**31, size=len(wave)).tolist()
        returns[rows], steps[rows] = _wave(policy, env, wave, seeds)
    return returns, steps


def _hidden_samples(
    task: Any, before: SavedDialogue, count: int, rng: np.random.Generator
) -> list[SavedDialogue]:
    """The dialogue with hidden things drawn from the posterior, evenly (systematic resampling)."""
    shares = task.posterior(before.state).cumsum()
    at = (np.arange(count) + rng.random()) / count
    rows = np.searchsorted(shares, at * shares[-1], side="right").clip(max=len(shares) - 1)
    return [replace(before, state=task.suppose(before.state, int(row))) for row in rows]


def _wave(
    policy: Predictor,
    env: Any,
    wave: Sequence[tuple[SavedDialogue, np.ndarray]],
    seeds: list[int],
) -> tuple[np.ndarray, np.ndarray]:
    """Returns and lengths (w,) of dialogues that go on at once, after what must be said first."""
    rows, masked, state = np.arange(len(wave)), takes_masks(policy), None
    view = observation_adapter(policy)
    env.reset(seed=0)
    seen = env.restore_state([dialogue for dialogue, _ in wave], rows, seeds)
    alive = np.arange(env.num_envs) < len(wave)
    env.deactivate(~alive)
    forced = [actions for _, actions in wave]
    returns, start = np.zeros(env.num_envs), np.ones(env.num_envs, bool)
    steps = np.zeros(env.num_envs, np.int64)
    for step in itertools.count():
        masks = _masks(env, alive) if masked else {}
        actions, state = policy.predict(
            view(seen), state=state, episode_start=start, deterministic=False, **masks
        )
        actions = np.array(actions)
        for row, own in enumerate(forced):
            if step < len(own):
                actions[row] = own[step]
        after, reward, terminated, truncated, _ = env.step(actions)
        returns[alive] += reward[alive]
        steps += alive
        start = alive & (terminated | truncated)
        alive = alive & ~start
        env.deactivate(start)
        if not alive.any():
            break
        seen = keep_observation(seen, after, alive)
    return returns[: len(wave)], steps[: len(wave)]


def _masks(env: Any, alive: np.ndarray) -> dict[str, np.ndarray]:
    """As a policy takes them; where nothing is played all is allowed."""
    masks = env.action_masks() | ~alive[:, None]
    return {"action_masks": maskable(masks, env.single_action_space)}


class Agreement(NamedTuple):
    """Agreement of estimates of m advantages with the truth; each with its 95 % interval.

    Attributes:
        correlation: Pearson's, corrected for the errors of what is measured (Spearman 1904). NaN
            where the truth as it was measured varies no more than these errors: more continuations
            would tell.
        bias: mean of estimate less truth.
        error: root of the mean square of that, without what the measurement adds.
    """

    correlation: Estimate
    bias: Estimate
    error: Estimate


def agreement(decisions: Sequence[Decision], truth: TurnAdvantages, seed: int = 0) -> Agreement:
    """Compare the estimates of a learner with true advantages.

    Intervals are of bootstrap resamples of whole dialogues.

    Raises:
        ValueError: there are fewer than 2 dialogues.
    """
    estimates = np.array([decision.estimate for decision in decisions])
    episodes, number = np.unique([d.episode for d in decisions], return_inverse=True)
    if len(episodes) < 2:
        raise ValueError(f"agreement: expected turns of 2 or more dialogues, got {len(episodes)}")
    columns = _moments(estimates, truth)
    sums = np.stack([np.bincount(number, column) for column in columns])  # (7, episodes)
    counts = np.random.default_rng(seed).multinomial(
        len(episodes), np.full(len(episodes), 1 / len(episodes)), RESAMPLES
    )
    figures, drawn = _figures(sums.sum(1)), _figures(sums @ counts.T)
    found = Agreement(*(Estimate(float(f), *interval(d)) for f, d in zip(figures, drawn)))
    if truth.variance > 0:
        return found
    return found._replace(correlation=Estimate(np.nan, np.nan, np.nan))


def _moments(estimates: np.ndarray, truth: TurnAdvantages) -> list[np.ndarray]:
    x, y = estimates, truth.advantages
    return [np.ones_like(y), x, y, x**2, y**2, x * y, truth.errors**2]


def _figures(sums: np.ndarray) -> np.ndarray:
    """Correlation, bias and error, of sums of `_moments`."""
    count, *rest = sums
    x, y, xx, yy, xy, noise = (column / count for column in rest)
    spread = np.maximum(yy - y**2 - noise, 1e-12)
    correlation = (xy - x * y) / np.sqrt(np.maximum(xx - x**2, 1e-12) * spread)
    error = np.sqrt(np.maximum(xx - 2 * xy + yy - noise, 0))
    return np.array([correlation.clip(-1, 1), x - y, error])
