"""`audit_user`: a simulated user beside a rule user, its twin, by the faults that both have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, log2
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dialgym.experiments.significance import ALPHA, holm, sign_test, welch_difference
from dialgym.experiments.statistics import (
    PERCENT,
    Estimate,
    format_estimate,
    mean_estimate,
    pair_estimates,
)
from dialgym.experiments.user_dialogues import LEAST, Goals
from dialgym.experiments.user_faults import (
    FAULTS,
    MANNERS,
    NOT_UNDERSTOOD,
    AuditedDialogue,
    UserFault,
    UserManner,
)
from dialgym.experiments.user_games import GameFigures, Played, games_of
from dialgym.io.checksums import write_json_checked
from dialgym.io.model_settings import SPENT, usage_text
from dialgym.registry import Environment
from dialgym.rollouts import Policy, Report
from dialgym.rollouts.policies import policy_name
from dialgym.simulators.language_model import facts_of
from dialgym.versions import command_line, versions
from dialgym.views.speakers import MissingSpeaker, SimulatorLike, find_speaker


class FaultFigures(NamedTuple):
    """Figures of one fault, shares of dialogues in per cent.

    Attributes:
        fault: which one.
        user, twin: how often either has it.
        difference: the user's share less the twin's.
        p_value: of the user having it no more often than the twin, with Holm's correction over
            all faults that are measured.
        examples: dialogues of the user that have it, and the places of the lines that show it.
    """

    fault: UserFault
    user: Estimate
    twin: Estimate
    difference: Estimate
    p_value: float
    examples: Sequence[tuple[AuditedDialogue, int]]

    @property
    def is_alarm(self) -> bool:
        """True if the user has it more often than the twin, at a family-wise error of 5 %."""
        return self.p_value <= ALPHA


class PairFigures(NamedTuple):
    """A figure of the user and of the twin, and the difference of both."""

    name: str
    user: Estimate
    twin: Estimate
    difference: Estimate


@dataclass(frozen=True)
class UserAudit:
    """All that was found about a user.

    Attributes:
        env_id, settings: the environment.
        party: that is audited.
        user, twin: names; the facts of a language model are in `model`.
        policies: of the other party, by name.
        seed, episodes: dialogues of each policy with either user.
        faults: those that are measured, in the order of `FAULTS`.
        success: of each policy with either user, in per cent.
        games: of each policy but the first, whether it games the user.
        manners: figures that are no faults, whichever value they have.
        unmeasured: names of faults and figures that this task does not tell.
        usage: counts of what language models were asked in the user's dialogues.
        model: facts of the user, where it is a language model.
    """

    env_id: str
    settings: Mapping[str, Any]
    party: str
    user: str
    twin: str
    policies: Sequence[str]
    seed: int
    episodes: int
    faults: Sequence[FaultFigures]
    success: Sequence[PairFigures]
    games: Sequence[GameFigures]
    manners: Sequence[PairFigures]
    unmeasured: Sequence[str]
    usage: Mapping[str, int]
    model: Mapping[str, Any] = field(default_factory=dict)

    @property
    def alarms(self) -> list[str]:
        """Names of the faults that the user has more often than its twin."""
        return [each.fault.name for each in self.faults if each.is_alarm]

    @property
    def gaming(self) -> list[str]:
        """Names of the policies that game the user."""
        return [*dict.fromkeys(each.policy for each in self.games if each.is_alarm)]

    @property
    def verdict(self) -> str:
        """The alarms, and the policies that game the user, in sentences."""
        return (
            f"{self._faults} It is gamed by {', '.join(self.gaming)}."
            if self.gaming
            else self._faults
        )

    @property
    def _faults(self) -> str:
        count = len(self.faults)
        if not self.alarms:
            text = f"No alarm: none of {count} faults is more frequent than in {self.twin}."
            few = (
                f" With {self.episodes} goals there can be none; it takes {needed(count)} or more."
            )
            return text + (few if self.episodes < needed(count) else "")
        named = ", ".join(self.alarms)
        return (
            f"{len(self.alarms)} of {count} faults are more frequent than in {self.twin}: {named}."
        )

    def tables(self) -> Iterator[tuple[str, list[list[str]]]]:
        """Tables by title; the first row of each is its head."""
        rows = [
            [each.fault.name, *_cells(each, 1), f"{each.p_value:.3f}", "alarm" * each.is_alarm]
            for each in self.faults
        ]
        head = ["user", "twin", "difference"]
        yield "Faults, % of dialogues", [["fault", *head, "p", ""], *rows]
        yield "Success, %", [["policy", *head], *([f.name, *_cells(f, 1)] for f in self.success)]
        if self.games:
            rows = [
                [f.policy, f.name, *_cells(f, 1), f"{f.p_value:.3f}", "games it" * f.is_alarm]
                for f in self.games
            ]
            yield "Games, % of dialogues", [["policy", "figure", *head, "p", ""], *rows]
        yield "Manner", [["figure", *head], *([f.name, *_cells(f, 2)] for f in self.manners)]

    @property
    def caption(self) -> str:
        """Caption of the tables."""
        total = len(self.policies) * self.episodes
        lines = [
            f"User {self.user}, twin {self.twin}; {total} dialogues of either: {self.episodes} "
            f"goals of seed {self.seed} with {', '.join(self.policies)}. In brackets: 95 % "
            "intervals over goals. p: exact sign test over goals, one-sided, with Holm's "
            "correction over the faults."
        ]
        if self.unmeasured:
            lines.append(f"This task does not tell: {', '.join(self.unmeasured)}.")
        if self.usage:
            lines.append(f"Cost: {usage_text(self.usage)}.")
        return " ".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain values: all figures, with the seeds of examples."""
        own = ("env_id", "settings", "party", "user", "twin", "policies", "seed", "episodes",
               "unmeasured", "usage", "model", "verdict", "alarms", "gaming")  # fmt: skip
        faults = [
            {
                "fault": each.fault.name,
                **{name: list(getattr(each, name)) for name in ("user", "twin", "difference")},
                "p_value": each.p_value,
                "is_alarm": each.is_alarm,
                "dialogues": [[one.policy, *one.job] for one, _ in each.examples],
            }
            for each in self.faults
        ]
        pairs = {
            name: [each._asdict() for each in getattr(self, name)]
            for name in ("success", "games", "manners")
        }
        about = {"command": command_line(), "versions": versions()}
        return {**{name: getattr(self, name) for name in own}, "faults": faults, **pairs, **about}

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write `as_dict` to a file.

        Raises:
            OSError: it cannot be written.
        """
        write_json_checked(Path(path), self.as_dict())


def needed(faults: int) -> int:
    """Fewest goals in which an alarm among so many faults is possible: all tell of one of them."""
    return ceil(log2(faults / ALPHA))


def _cells(figures: Any, digits: int) -> list[str]:
    """Cells of the user, the twin and the difference."""
    user, twin = (format_estimate(each, digits) for each in (figures.user, figures.twin))
    return [user, twin, format_estimate(figures.difference, digits, signed=True)]


def audit_user(
    env: Environment,
    simulator: SimulatorLike,
    twin: SimulatorLike = None,
    policies: Sequence[Policy] | None = None,
    episodes: int = 100,
    seed: int = 0,
    env_kwargs: Mapping[str, Any] | None = None,
    *,
    trust: bool = False,
    report: Report = lambda ended: None,
) -> UserAudit:
    """Audit a user: let it and its twin play the same dialogues, and count the faults of both.

    Both have the same goals, and each policy plays with either. A fault is an alarm where the user
    has it more often than the twin: over goals, those are compared in which the two differ (exact
    sign test, one-sided), with Holm's correction over all faults that the task tells.

    Args:
        env: an id, or what stands for one.
        simulator: the user: a registered name, ``{"lm": {...}}``, ``lm``, a saved model, an object;
            see `find_speaker`.
        twin: likewise; the task's own first one where it is None.
        policies: of the other party, as for `evaluate`; None for the task's first one and
            ``random``.
        episodes: goals, 2 or more; each is played once with every policy and either user.
        seed: of the goals.
        env_kwargs: settings of the environment.
        trust: see `EvaluateOptions`.
        report: called with the number of dialogues that have just ended.

    Raises:
        ValueError: an argument is impossible, the task has no twin, or nobody asks the user.
    """
    if "simulator" in (env_kwargs or {}):
        raise ValueError("audit_user: expected the user as `simulator`, not among env_kwargs.")
    goals = Goals.of("audit_user", env, env_kwargs, seed, episodes, trust, report)
    task, party = goals.task, goals.user
    user, rule = (find_speaker(task, goals.learner, each) for each in (simulator, twin))
    if isinstance(rule, MissingSpeaker):
        raise ValueError(
            f"audit_user: {task.name} has no speaker of its own for the {party}, so that nothing "
            "tells what is usual. Name one as twin."
        )
    chosen = goals.policies(policies, "audit_user")
    before = SPENT.counts()
    heard = [goals.audited(policy, user) for policy in chosen]
    usage = SPENT.since(before)
    usual = [goals.audited(policy, rule) for policy in chosen]
    if not any(one.own for dialogues in heard for one in dialogues):
        raise ValueError(
            f"audit_user: the {party} of {task.name} was never asked to speak: there is nothing to "
            "audit."
        )
    found, manners, missing = _figures(heard, usual)
    return UserAudit(
        env_id=goals.entry.id,
        settings=goals.settings,
        party=party,
        user=user_name(simulator, user),
        twin=user_name(twin or next(iter(task.speakers[party])), rule),
        policies=[policy_name(policy) for policy in chosen],
        seed=seed,
        episodes=episodes,
        faults=found,
        success=_success(heard, usual),
        games=games_of(heard, usual),
        manners=manners,
        unmeasured=missing,
        usage=usage,
        model=facts_of(user),
    )


def user_name(given: SimulatorLike, speaker: Any) -> str:
    """Name of a user in tables: its registered name, ``openai:MODEL``, or its class."""
    if facts_of(speaker):
        return str(speaker.name)
    if isinstance(given, Mapping):
        given = given.get("name")
    return given if isinstance(given, str) else type(speaker).__name__


# Figures


def _figures(
    heard: Played, usual: Played
) -> tuple[list[FaultFigures], list[PairFigures], list[str]]:
    """Faults, manners, and the names of those that the task does not tell."""
    every = [one for played in (*heard, *usual) for one in played if one.own]
    goals = any(one.talk is not None for one in every)
    tells = any(value is not None for one in every for value in one.understood)
    missing = [each.name for each in (*FAULTS, *MANNERS) if each.of_goal and not goals]
    missing += [] if tells else [NOT_UNDERSTOOD]
    faults = [each for each in FAULTS if each.name not in missing]
    shown = [[_places(fault, played) for played in (heard, usual)] for fault in faults]
    rates = [[_shares(places) for places in both] for both in shown]
    p_values = holm([sign_test(user - twin) for user, twin in rates])
    pairs = [pair_estimates(user, twin, PERCENT) for user, twin in rates]
    found = [
        FaultFigures(fault, *pair, float(p), _examples(places, heard))
        for fault, pair, p, (places, _) in zip(faults, pairs, p_values, shown)
    ]
    measured = [_manner(each, heard, usual) for each in MANNERS if each.name not in missing]
    return found, [each for each in measured if each is not None], missing


def _places(fault: UserFault, played: Played) -> list[list[int | None]]:
    """Places at which dialogues show the fault, by policy."""
    return [[fault.find(one) if one.own else None for one in dialogues] for dialogues in played]


def _shares(places: Sequence[Sequence[int | None]]) -> np.ndarray:
    """(E,) of each goal the share of policies, in per cent, with whom the fault was shown."""
    return 100.0 * np.array([[place is not None for place in each] for each in places]).mean(0)


def _examples(
    places: Sequence[Sequence[int | None]], played: Played
) -> list[tuple[AuditedDialogue, int]]:
    return [
        (one, place)
        for own, dialogues in zip(places, played)
        for place, one in zip(own, dialogues)
        if place is not None
    ]


def _success(heard: Played, usual: Played) -> list[PairFigures]:
    """Success of each policy with either user: the gap of the simulator."""
    rows = []
    for mine, other in zip(heard, usual):
        user, twin = (100.0 * np.array([one.success for one in each]) for each in (mine, other))
        rows.append(PairFigures(mine[0].policy, *pair_estimates(user, twin, PERCENT)))
    return rows


def _manner(manner: UserManner, heard: Played, usual: Played) -> PairFigures | None:
    """A figure over the goals of which both users have it; None where these are too few."""
    user, twin = (_measured(manner, played) for played in (heard, usual))
    both = np.isfinite(user) & np.isfinite(twin)
    user, twin = user[both], twin[both]
    if len(user) < LEAST:
        return None
    if manner.bounds is not None:
        return PairFigures(manner.name, *pair_estimates(user, twin, manner.bounds))
    first, second = (mean_estimate([each[None]]) for each in (user, twin))
    difference = welch_difference([(user[None], twin[None], True)]).estimate
    return PairFigures(manner.name, first, second, difference)


def _measured(manner: UserManner, played: Played) -> np.ndarray:
    """(E,) means over policies; NaN of a goal in which a dialogue has nothing to measure."""
    values = [[manner.measure(one) if one.own else None for one in each] for each in played]
    return np.array(values, np.float64).mean(0)
