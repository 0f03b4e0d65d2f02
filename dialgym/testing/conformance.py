"""The conformance kit: checks of any text environment, by sessions alone.

Each check plays dialogues and compares: nothing is read from the inside of an environment, so one
of ours, any of Gymnasium's with strings, and one behind a server are checked alike.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dialgym.errors import ServiceError, is_finite
from dialgym.experiments.statistics import minimum_detectable_gap
from dialgym.testing.canaries import Secret, secrets_of, told
from dialgym.testing.recordings import (
    Recording,
    differing,
    interleaved,
    opened,
    process_wide_draws,
    record,
    replay,
)
from dialgym.testing.sessions import MASK, Answer, Bounds, TextEnvironment

PASS, FAIL, NONE = "pass", "fail", "not applicable"
MASKS = (
    MASK,
    "legal_moves",
    "legal_actions",
    "valid_moves",
    "valid_actions",
    "available_actions",
    "admissible_commands",
)
"""Names in an info of what may be said or done next."""
GROUP, STARTS, TRIES = 4, 5, 8
"""Members of a group, resets of one session, and dialogues that are played twice."""
SECRETS, SLACK = 32, 1e-9


class CheckResult(NamedTuple):
    """Verdict of a check, with its evidence."""

    check: str
    verdict: str
    evidence: str


@dataclass(frozen=True)
class Report:
    """Results of all checks of an environment."""

    environment: str
    results: tuple[CheckResult, ...]

    @property
    def faults(self) -> list[CheckResult]:
        """The checks that fail."""
        return [result for result in self.results if result.verdict == FAIL]

    def as_json(self) -> str:
        """The report as a JSON object."""
        results = [result._asdict() for result in self.results]
        return json.dumps({"environment": self.environment, "checks": results}, indent=2)


@dataclass(frozen=True)
class CheckSettings:
    """CheckSettings of a conformance check.

    Attributes:
        episodes: dialogues with different seeds.
        seed: of the first.
        most: steps after which a dialogue is left.
        rewards: bounds of every reward, in place of those that the environment declares.
        gap: least difference of two mean returns that is to be shown by `episodes` dialogues.
        texts: to draw what is said from; none to let the environment's `sample` say it.
    """

    episodes: int = 50
    seed: int = 0
    most: int = 60
    rewards: Bounds | None = None
    gap: float | None = None
    texts: tuple[str, ...] = ()

    def applied(self, environment: TextEnvironment) -> TextEnvironment:
        """The environment, with samples of `texts` where there are any."""
        if not self.texts:
            return environment
        texts = self.texts
        return replace(environment, sample=lambda _, __, rng: texts[int(rng.integers(len(texts)))])


class _Played(NamedTuple):
    environment: TextEnvironment
    settings: CheckSettings
    recordings: Sequence[Recording]
    holds: bool
    """Dialogues that are played again are the same, so that more can be compared."""


def check_environment(
    environment: TextEnvironment, settings: CheckSettings = CheckSettings()
) -> Report:
    """Play random dialogues and report on all checks.

    Raises:
        ServiceError: the service of the environment does not answer.
        ImportError: a package that it needs is missing.
    """
    return Report(environment.name, tuple(checks(environment, settings)))


def checks(environment: TextEnvironment, settings: CheckSettings) -> Iterator[CheckResult]:
    """Yield the results, each as soon as it is there."""
    environment = settings.applied(environment)
    seeds = range(settings.seed, settings.seed + settings.episodes)
    try:
        recordings = [record(environment, seed, settings.most) for seed in seeds]
    except (ServiceError, ImportError):
        raise
    except Exception as error:
        yield CheckResult("a random dialogue is played", FAIL, _raised(error))
        return
    first = _result("the seed holds", _seed_holds, _Played(environment, settings, recordings, True))
    yield first
    played = _Played(environment, settings, recordings, first.verdict == PASS)
    for name, check in CHECKS.items():
        yield _result(name, check, played)


def _result(name: str, check: Callable[[_Played], tuple[str, str]], played: _Played) -> CheckResult:
    try:
        return CheckResult(name, *check(played))
    except (ServiceError, ImportError):
        raise
    except Exception as error:
        return CheckResult(name, FAIL, _raised(error))


def _raised(error: Exception) -> str:
    return f"raised {type(error).__name__}: {error}"


def _verdict(fault: str, evidence: str) -> tuple[str, str]:
    return (FAIL, fault) if fault else (PASS, evidence)


def _seed_holds(played: _Played) -> tuple[str, str]:
    """The same seed and words in a new session give the same dialogue."""
    for recording in played.recordings[:TRIES]:
        with opened(played.environment) as (session,):
            if fault := differing(recording, replay(session, recording)):
                return FAIL, f"seed {recording.seed} in two sessions: {fault}"
    count = min(TRIES, len(played.recordings))
    return PASS, f"{count} dialogues played again are the same"


def _group_starts_alike(played: _Played) -> tuple[str, str]:
    """Sessions that are open at once begin alike with one seed, and go on alike."""
    for recording in played.recordings[:TRIES]:
        with opened(played.environment, GROUP) as sessions:
            members = interleaved(sessions, [_beginning(recording)] * GROUP)
        faults = [differing(members[0], member) for member in members[1:]]
        if fault := next(filter(None, faults), ""):
            return FAIL, f"{GROUP} members with seed {recording.seed}: {fault}"
    starts = {recording.answers[0].text for recording in played.recordings}
    count = f"{len(played.recordings)} seeds have {len(starts)} different openings"
    return PASS, f"groups of {GROUP} are alike; {count}"


def _beginning(recording: Recording) -> Recording:
    return Recording(recording.seed, recording.said[:2], recording.answers[:3])


def _reset_clears(played: _Played) -> tuple[str, str]:
    """A session that has been used begins as a new one."""
    if not played.holds:
        return NONE, "the seed does not hold"
    first, other = played.recordings[0], played.recordings[-1]
    with opened(played.environment) as (session,):
        for number in range(STARTS):
            replay(session, _beginning(other) if number % 2 else other)
            if fault := differing(first, replay(session, first)):
                return FAIL, f"after {2 * number + 1} dialogues in one session: {fault}"
    return PASS, f"{STARTS} dialogues in one session are as in a new one"


def _sessions_are_apart(played: _Played) -> tuple[str, str]:
    """A dialogue is the same beside another session, and whatever the process draws."""
    if not played.holds:
        return NONE, "the seed does not hold"
    recordings = played.recordings[:TRIES]
    for one, other in zip(recordings, [*recordings[1:], recordings[0]]):
        with opened(played.environment, 2) as sessions:
            beside = interleaved(sessions, [one, other])
        for alone, again in zip((one, other), beside):
            if fault := differing(alone, again):
                return FAIL, f"seed {alone.seed} alone and beside another session: {fault}"
        with opened(played.environment) as (session,), process_wide_draws() as draw:
            if fault := differing(one, replay(session, one, between=draw)):
                return FAIL, f"seed {one.seed} while others draw from `random`: {fault}"
    return PASS, f"{len(recordings)} dialogues are the same beside another session"


def _secret_is_kept(played: _Played) -> tuple[str, str]:
    """No secret stands in an observation before the end."""
    environment, most = played.environment, played.settings.most
    dialogues: list[tuple[Recording, list[Secret]]] = []
    for recording in played.recordings:
        dialogues.append((recording, secrets_of(recording)))
    spread = environment.secrets[:: max(1, len(environment.secrets) // SECRETS)]
    for number, options in enumerate(spread):
        begun = record(environment, played.settings.seed + number, most, options)
        dialogues.append((begun, secrets_of(begun, options)))
    faults, tried = told(dialogues)
    if not tried:
        return NONE, "no field, option or last word tells what is secret"
    return _verdict("; ".join(faults), f"not told: {', '.join(tried)}")


def _rewards_keep_to_bounds(played: _Played) -> tuple[str, str]:
    """Rewards are finite numbers, and they and their sums within declared bounds."""
    environment = played.environment
    bounds = played.settings.rewards or environment.rewards
    given = [(r, answer.reward) for r in played.recordings for answer in r.answers[1:]]
    numbers = [(r, reward) for r, reward in given if reward is not None]
    for recording, reward in numbers:
        if not is_finite(reward):
            return FAIL, f"seed {recording.seed} gave the reward {reward!r}"
    for recording, reward in numbers:
        if bounds and not _within(float(reward), bounds):
            return FAIL, f"seed {recording.seed} gave {reward:g}; declared are {_range(bounds)}"
    whole = [r for r in played.recordings if r.answers[-1].terminated]
    for recording in whole:
        if environment.returns and not _within(recording.total, environment.returns):
            limits = _range(environment.returns)
            return FAIL, f"seed {recording.seed} gave {recording.total:g} in all; {limits} declared"
    seen = [float(reward) for _, reward in numbers] or [0.0]
    evidence = f"rewards from {min(seen):g} to {max(seen):g}"
    declared = bounds or (environment.returns and np.isfinite(environment.returns).all())
    return (PASS, evidence) if declared else (NONE, f"{evidence}; no bounds are declared")


def _within(value: float, bounds: Bounds) -> bool:
    low, high = bounds
    return low - SLACK <= value <= high + SLACK


def _range(bounds: Bounds) -> str:
    return f"{bounds[0]:g} to {bounds[1]:g}"


def _masks_leave_something(played: _Played) -> tuple[str, str]:
    """While a dialogue goes on, something may be said or done."""
    count = 0
    for recording in played.recordings:
        for step, answer in enumerate(recording.answers):
            for name, allowed in _masks(answer):
                count += 1
                if not allowed:
                    return FAIL, f"seed {recording.seed}: {name} allows nothing after {step} steps"
    if not count:
        return NONE, "there are no masks"
    return PASS, f"{count} masks allow something"


def _masks(answer: Answer) -> Iterator[tuple[str, bool]]:
    """The masks and lists of moves of an answer, and if they allow anything."""
    if answer.over:
        return
    for name in MASKS:
        mask = answer.info.get(name)
        if isinstance(mask, str | Mapping) or mask is None:
            continue
        flags = np.asarray(mask)
        numeric = name.endswith("mask") and flags.dtype.kind in "biuf"
        yield name, bool(flags.any() if numeric else flags.size)


def _noise(played: _Played) -> tuple[str, str]:
    """The least difference of two means that as many dialogues show, against the gap claimed."""
    returns, gap = np.array([[r.total] for r in played.recordings]), played.settings.gap
    n = len(returns)
    if n < 2:
        return NONE, "one dialogue tells nothing of noise"
    if not np.isfinite(returns).all():
        return NONE, "returns are not finite"
    try:
        floor = minimum_detectable_gap(returns)
    except ImportError as missing:  # of SciPy, an extra
        return NONE, str(missing)
    if floor == 0:
        return NONE, f"{n} dialogues all had the return {returns[0, 0]:g}"
    evidence = f"{n} dialogues each tell means apart that differ by {floor:.3g} or more"
    if gap is None:
        return NONE, f"{evidence}; no gap is claimed"
    return _verdict(f"{evidence}; {gap:g} is claimed" if floor > gap else "", evidence)


CHECKS: Mapping[str, Callable[[_Played], tuple[str, str]]] = {
    "members of a group start alike": _group_starts_alike,
    "a reset leaves nothing behind": _reset_clears,
    "sessions share no state": _sessions_are_apart,
    "no observation tells the secret": _secret_is_kept,
    "rewards are within bounds": _rewards_keep_to_bounds,
    "masks leave something": _masks_leave_something,
    "noise is below the gap": _noise,
}
"""The checks after the first, that of the seed, by name."""
