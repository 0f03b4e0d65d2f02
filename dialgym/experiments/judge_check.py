"""`check_judge`: a judge of dialogues beside the rules, which know who succeeded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dialgym.errors import finite_number, whole_number
from dialgym.experiments.judge_figures import (
    FALSE,
    FEWEST,
    KAPPA,
    JudgedDialogues,
    agreement,
    figures_of,
)
from dialgym.experiments.statistics import (
    PERCENT,
    Estimate,
    format_estimate,
    mean_estimate,
    pair_estimates,
)
from dialgym.experiments.user_dialogues import EndedDialogues, Goals
from dialgym.io.checksums import write_json_checked
from dialgym.io.model_settings import SPENT, usage_text
from dialgym.registry import Environment
from dialgym.rewards import Reply, Reward, make_reward
from dialgym.rewards.lm_judge import LanguageModelJudge
from dialgym.rollouts import Policy, Report
from dialgym.simulators.language_model import DRAWN, LM, is_language_model
from dialgym.tasks import Task
from dialgym.versions import command_line, versions
from dialgym.views.extras import whole_reply
from dialgym.views.options import TASK

JudgeLike = str | Mapping[str, Any] | Reward
"""Values of `judge=`; see `judge_of`."""


class PolicyFigures(NamedTuple):
    """Figures of the dialogues of one policy, in per cent.

    Attributes:
        policy: its name.
        success: by the rules.
        called: by the judge.
        difference: the judge's share less the rules'.
        agreement: dialogues in which both say the same.
        score: mean of the judge, as it gives them.
    """

    policy: str
    success: Estimate
    called: Estimate
    difference: Estimate
    agreement: Estimate
    score: Estimate


@dataclass(frozen=True)
class JudgeCheck:
    """All that was found about a judge.

    Attributes:
        env_id, settings: the environment.
        judge: its name; the facts of a language model are in `model`.
        policies: by name.
        seed, episodes: goals; each policy has played each.
        threshold: least score that is called a success.
        repeats: how often each dialogue was judged.
        figures: by name; None for what these dialogues do not tell.
        by_policy: for each of them.
        usage: counts of what the judge was asked.
        model: see `LanguageModelJudge.facts`.
    """

    env_id: str
    settings: Mapping[str, Any]
    judge: str
    policies: Sequence[str]
    seed: int
    episodes: int
    threshold: float
    repeats: int
    figures: Mapping[str, Estimate | None]
    by_policy: Sequence[PolicyFigures]
    usage: Mapping[str, int]
    model: Mapping[str, Any]

    @property
    def tells_success(self) -> bool:
        """True if it agrees with the rules beyond chance, at a level of 95 %."""
        found = self.figures[KAPPA]
        return found is not None and found.low > 0

    @property
    def verdict(self) -> str:
        """The agreement in a sentence or two."""
        found, wrong = self.figures[KAPPA], self.figures[FALSE]
        if found is None or wrong is None:
            return (
                f"No verdict: fewer than {FEWEST} dialogues succeed, or fail, or the judge and the "
                "rules say one thing of all. Play more, with policies some of which fail."
            )
        beyond = "agrees" if self.tells_success else "is not shown to agree"
        calls = f"It calls {format_estimate(wrong, 1)} % of failures a success."
        return (
            f"{self.judge} {beyond} with the rules beyond chance: {KAPPA} "
            f"{format_estimate(found, 2)}. {calls}"
        )

    def tables(self) -> Iterator[tuple[str, list[list[str]]]]:
        """Tables by title; the first row of each is its head."""
        rows = [
            [name, format_estimate(each, 1 if "%" in name else 2)]
            for name, each in self.figures.items()
        ]
        yield "The judge beside the rules", [["figure", "value"], *rows]
        head = ["policy", "success", "called a success", "difference", "agreement", "mean score"]
        cells = [
            [
                each.policy,
                *(format_estimate(one, 1) for one in (each.success, each.called)),
                format_estimate(each.difference, 1, signed=True),
                format_estimate(each.agreement, 1),
                format_estimate(each.score, 2),
            ]
            for each in self.by_policy
        ]
        yield "Policies, %", [head, *cells]

    @property
    def caption(self) -> str:
        """Caption of the tables."""
        lines = [
            f"Judge {self.judge}; {len(self.policies) * self.episodes} dialogues: {self.episodes} "
            f"goals of seed {self.seed} with {', '.join(self.policies)}. A score of "
            f"{self.threshold:g} or more is called a success. In brackets: 95 % intervals over "
            "goals."
        ]
        if self.usage:
            total = len(self.policies) * self.episodes * self.repeats
            lines.append(f"Cost of {total:,} judgements: {usage_text(self.usage)}.")
        return " ".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain values: all figures."""
        own = ("env_id", "settings", "judge", "policies", "seed", "episodes", "threshold",
               "repeats", "usage", "model", "verdict", "tells_success")  # fmt: skip
        return {
            **{name: getattr(self, name) for name in own},
            "figures": {name: each and list(each) for name, each in self.figures.items()},
            "by_policy": [each._asdict() for each in self.by_policy],
            "command": command_line(),
            "versions": versions(),
        }

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write `as_dict` to a file.

        Raises:
            OSError: it cannot be written.
        """
        write_json_checked(Path(path), self.as_dict())


def judge_of(judge: JudgeLike) -> Reward:
    """The judge that something stands for.

    Args:
        judge: a `Reward` of whole dialogues; ``lm`` or ``openai:MODEL``; the name of a reward; a
            mapping of settings of ``lm_judge``, or as in `ViewOptions.final_reward`,
            ``{"lm_judge": {...}}``; or one with a ``reward`` and its settings.

    Raises:
        ValueError: there is no such reward or setting.
    """
    if isinstance(judge, Reward):
        return judge
    given = judge_settings(judge)
    given.pop("weight", None)
    name = str(given.pop("reward", LanguageModelJudge.name))
    if is_language_model(name):
        given["model"] = name
    if name == LM or is_language_model(name):
        name = LanguageModelJudge.name
    return make_reward(name, given)


def judge_settings(judge: str | Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a judge, its name under ``reward`` where it is given one; see `judge_of`."""
    given = {"reward": judge} if isinstance(judge, str) else dict(judge)
    given.pop(TASK, None)  # weight of the task's own reward
    inner = next(iter(given.values()), None)
    if len(given) == 1 and isinstance(inner, Mapping):  # {"lm_judge": {...}}
        return {"reward": next(iter(given)), **inner}
    return given


def check_judge(
    env: Environment,
    judge: JudgeLike,
    policies: Sequence[Policy] | None = None,
    episodes: int = 100,
    seed: int = 0,
    env_kwargs: Mapping[str, Any] | None = None,
    *,
    threshold: float | None = None,
    repeats: int = 2,
    trust: bool = False,
    report: Report = lambda ended: None,
) -> JudgeCheck:
    """Let a judge score dialogues, and compare its scores with the success that the rules know.

    It reads what it reads as a ``final_reward``. Each policy plays the same goals.

    Args:
        env: an id, or what stands for one.
        judge: see `judge_of`.
        policies: of the learner, as for `evaluate`; None for the task's first one and ``random``.
        episodes: goals, 2 or more.
        seed: of the goals.
        env_kwargs: settings of the environment.
        threshold: least score that is called a success; None for the middle of the bounds.
        repeats: how often each dialogue is judged, each time with another seed; with 2 or more
            the consistency is told. The first judgement is the one that is compared.
        trust: see `EvaluateOptions`.
        report: called with the number of dialogues that have just ended, or been judged.

    Raises:
        ValueError: an argument is impossible.
        NoScoreError, NoCompletionError, BudgetSpentError, TapeMissError: as of
            `LanguageModelJudge.score`.
    """
    whole_number("repeats", repeats, "check_judge")
    reward = judge_of(judge)
    least = _threshold(reward, threshold)
    goals = Goals.of("check_judge", env, env_kwargs, seed, episodes, trust, report)
    task, learner = goals.task, goals.learner
    played = [goals.ended(policy) for policy in goals.policies(policies, "check_judge")]
    before, scores = SPENT.counts(), []
    for each in played:
        replies = _replies(task, learner, each, seed, repeats)
        scores.append(np.asarray(reward.score(replies)).reshape(repeats, episodes))
        report(repeats * episodes)
    usage = SPENT.since(before)
    every = np.stack(scores, 1)  # (repeats, policies, goals)
    judged = JudgedDialogues(
        every[0],
        every[0] >= least,
        np.stack([each.success for each in played]),
        np.stack([each.returns for each in played]),
        np.array([[_words(task, s, learner) for s in each.states] for each in played]),
    )
    return JudgeCheck(
        env_id=goals.entry.id,
        settings=goals.settings,
        judge=_name(reward),
        policies=[each.policy for each in played],
        seed=seed,
        episodes=episodes,
        threshold=least,
        repeats=repeats,
        figures={**figures_of(judged), **_consistency(every, least, reward.bounds)},
        by_policy=[
            _by_policy(each.policy, judged, i, reward.bounds) for i, each in enumerate(played)
        ],
        usage=usage,
        model=reward.facts() if isinstance(reward, LanguageModelJudge) else {},
    )


def _threshold(reward: Reward, given: float | None) -> float:
    """The least score that is a success.

    Raises:
        ValueError: none is given, and the reward has no bounds.
    """
    if given is not None:
        return finite_number("threshold of check_judge", given)
    if not np.isfinite(reward.bounds).all():
        raise ValueError(
            f"check_judge: expected a threshold, as {_name(reward)} has no bounds. Give the least "
            "score that is called a success."
        )
    return sum(reward.bounds) / 2


def _name(reward: Reward) -> str:
    return str(reward.facts()["name"]) if isinstance(reward, LanguageModelJudge) else reward.name


def _replies(
    task: Task, learner: str, ended: EndedDialogues, seed: int, repeats: int
) -> list[Reply]:
    """Dialogues as replies, `repeats` times, each time with other numbers for the judge's seed."""
    drawn = [
        np.random.default_rng([seed, episode]).integers(DRAWN, size=repeats)
        for episode in range(len(ended.states))
    ]
    return [
        whole_reply(
            task, state, learner, int(drawn[episode][again]),
            f"episode {episode} of seed {seed} with {ended.policy}",
        )
        for again in range(repeats)
        for episode, state in enumerate(ended.states)
    ]  # fmt: skip


def _words(task: Task, state: Any, party: str) -> int:
    """Words that a party has said."""
    lines = task.transcript(state, party)[task.notes(state, party) :]
    return sum(len(line.text.split()) for line in lines if line.speaker == party)


def _consistency(
    every: np.ndarray, least: float, bounds: tuple[float, float]
) -> dict[str, Estimate | None]:
    """Figures of the same dialogues judged again; none of a single judgement."""
    if len(every) < 2:
        return {}
    called = every >= least
    same = {"same verdict when asked again, %": agreement(called[0], called[1])}
    width = bounds[1] - bounds[0]
    if not np.isfinite(width):
        return {**same}
    apart = 100.0 * np.abs(every[0] - every[1]).mean(0) / width
    name = "difference of scores when asked again, % of the range"
    return {**same, name: mean_estimate([apart[None]], PERCENT)}


def _by_policy(
    policy: str, judged: JudgedDialogues, row: int, bounds: tuple[float, float]
) -> PolicyFigures:
    within = bounds if np.isfinite(bounds).all() else None
    success, called = (100.0 * each[row] for each in (judged.success, judged.called))
    by_judge, by_rules, difference = pair_estimates(called, success, PERCENT)
    return PolicyFigures(
        policy,
        by_rules,
        by_judge,
        difference,
        agreement(judged.called[row : row + 1], judged.success[row : row + 1]),
        mean_estimate([judged.scores[row : row + 1]], within),
    )
