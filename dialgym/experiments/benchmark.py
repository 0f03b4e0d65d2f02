"""The benchmark: several policies on several ids, as tables, plots and sample dialogues."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from dialgym.errors import unknown
from dialgym.experiments.curves import Curve, read_curve
from dialgym.experiments.evaluate import evaluate
from dialgym.experiments.result import Result, read_json, results_as_markdown
from dialgym.experiments.samples import SampleDialogue, distinct_jobs, play_samples, samples_as_text
from dialgym.io.checksums import write_json_checked
from dialgym.io.files import write_text
from dialgym.io.hub import commits
from dialgym.io.locks import PATIENCE, locked
from dialgym.io.saved_models import is_saved
from dialgym.registry import Environment, RegistryEntry, entry_of
from dialgym.rollouts import IncompatiblePolicyError, Policy, Report
from dialgym.rollouts.player import policy_names
from dialgym.rollouts.policies import open_policy, plays_by_sampling

Problems = dict[str, IncompatiblePolicyError]
"""Reasons why a policy cannot play, by id."""


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Results of a benchmark.

    Attributes:
        results: one for each policy that fits any of the ids.
        games: some of the episodes on each id.
        curves: learning curves to draw beside them.
        notes: policies that were left out, where and why.
        absent: the environments in which there is no policy of a name, by name.
    """

    results: Sequence[Result]
    games: Sequence[SampleDialogue] = ()
    curves: Sequence[Curve] = ()
    notes: Sequence[str] = field(default_factory=tuple)
    absent: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def first_id(self) -> str:
        """The environment of the games and the learning curves."""
        return next(iter(self.results[0].by_id))

    @property
    def first_label(self) -> str:
        """Label of the first environment; see `Result.label`."""
        return self.results[0].label(self.first_id)

    def labels(self) -> dict[str, str]:
        """Labels of the environments; see `Result.label`."""
        return {env_id: r.label(env_id) for r in self.results for env_id in r.by_id}

    def games_by_id(self) -> list[SampleDialogue]:
        """The games environment by environment, in each those of the same seed side by side."""
        ids = list(self.labels())
        return sorted(self.games, key=lambda game: (ids.index(game.env_id), game.job))

    def save(self, folder: str | PathLike[str]) -> list[Path]:
        """Write results.json, table.md, games.txt and, with matplotlib, the pictures.

        Returns:
            The files written.

        Raises:
            ImportError: matplotlib is not installed; all other files have then been written.
            OSError: the folder cannot be written, or another process is writing there.
        """
        out = Path(folder)
        hub = {"hub": commits()} if commits() else {}
        results = [result.as_dict() for result in self.results]
        with locked(out, PATIENCE):  # the files of one benchmark, not of two
            write_json_checked(out / "results.json", {"results": results, **hub})
            return self._write(out)

    def _write(self, out: Path) -> list[Path]:
        write_text(out / "table.md", results_as_markdown(self.results))
        files = [out / "results.json", out / "table.md"]
        if self.games:
            files.append(out / "games.txt")
            write_text(files[-1], samples_as_text(self.games_by_id(), self.labels()))
        return files + self._draw(out)

    def _draw(self, out: Path) -> list[Path]:
        from dialgym.experiments.plots import plot_curves, plot_games, plot_scores

        files = [out / "scores.png"]
        plot_scores(self.results, files[0])
        if self.curves:
            files.append(out / "curve.png")
            plot_curves(self.curves, files[-1])
        if drawn := [game for game in self.games if game.picture is not None]:
            files.append(out / "games.png")
            plot_games(drawn, files[-1], self.first_label)
        return files


def benchmark(
    policies: Mapping[str, Policy],
    ids: Sequence[Environment],
    episodes: int = 100,
    seeds: Sequence[int] = (0, 1, 2),
    env_kwargs: Mapping[str, Any] | None = None,
    *,
    games: int = 3,
    curves: Sequence[str | PathLike[str]] = (),
    trust: bool = False,
    report: Report = lambda ended: None,
    policy_kwargs: Mapping[str, Mapping[str, Any]] | None = None,
) -> Benchmark:
    """Score each policy on each id that it fits.

    Args:
        policies: by the name that tables give them; see `evaluate`.
        ids, episodes, seeds, env_kwargs, trust, report: see `evaluate`.
        games: number of episodes of the first seed to show, on each id, all with other secrets.
        curves: runs or CSV files whose learning curves to draw.
        policy_kwargs: by the name of a policy that is a saved model: settings of how it speaks, see
            `agents.with_decoding`.

    Raises:
        ValueError: an argument is impossible, or a policy fits none of the ids.
        FileNotFoundError: there is no such checkpoint or learning curve.
        ImportError: a checkpoint is given and the package `agents` cannot be imported.
    """
    read = [read_curve(path) for path in curves]
    kwargs = dict(env_kwargs or {})
    entries = [entry_of(env_id) for env_id in ids]
    jobs = {entry.id: distinct_jobs(entry, seeds[0], episodes, games, kwargs) for entry in entries}
    results: list[Result] = []
    shown: list[SampleDialogue] = []
    notes: list[str] = []
    absent: dict[str, list[str]] = {}

    for name, policy in open_policies(policies, ids, kwargs, trust, policy_kwargs).items():
        fitting = [entry for entry in entries if _knows(entry, policy, kwargs)]
        if len(fitting) < len(entries):
            absent[name] = [entry.id for entry in entries if entry not in fitting]
        problems: Problems = {}
        for best in deterministic_options(policy):
            how: dict[str, Any] = {"name": name, "deterministic": best, "report": report}
            played = _scored(policy, fitting, episodes, seeds, kwargs, how, problems)
            if not played:
                raise ValueError(_note(name, problems))
            results.append(_together([result for _, result in played]))
            for entry, result in played:
                pictured, own = entry is entries[0], jobs[entry.id]
                shown += play_samples(result.name, policy, entry, pictured, own, kwargs, best)
        notes += [_note(name, problems)] if problems else []
    return Benchmark(results, shown, read, notes, absent)


def _scored(
    policy: Any,
    entries: Iterable[RegistryEntry],
    episodes: int,
    seeds: Sequence[int],
    kwargs: Mapping[str, Any],
    how: Mapping[str, Any],
    problems: Problems,
) -> list[tuple[RegistryEntry, Result]]:
    """The results of a policy in the environments that it fits; `problems` takes the others."""
    played = []
    for entry in entries:
        try:
            played.append((entry, evaluate(policy, entry, episodes, seeds, kwargs, **how)))
        except IncompatiblePolicyError as error:
            problems[entry.id] = error
    return played


def _note(name: str, problems: Problems) -> str:
    """Tell in which environments a policy was left out, and why in the first of them."""
    return f"{name} is left out on {', '.join(problems)}: {next(iter(problems.values()))}"


def _knows(entry: RegistryEntry, policy: Any, kwargs: Mapping[str, Any]) -> bool:
    """Return True unless a policy is a name that an environment does not have."""
    return not isinstance(policy, str) or policy in policy_names([entry], kwargs)


def _together(parts: Sequence[Result]) -> Result:
    """The results of a policy on an id each, as one."""
    by_id = {env_id: part for result in parts for env_id, part in result.by_id.items()}
    stand_ins = {env_id: what for result in parts for env_id, what in result.stand_ins.items()}
    oracle = any(result.oracle for result in parts)
    return replace(parts[0], by_id=by_id, stand_ins=stand_ins, oracle=oracle)


def open_policies(
    policies: Mapping[str, Policy],
    ids: Iterable[Environment],
    kwargs: Mapping[str, Any],
    trust: bool,
    policy_kwargs: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Open the policies of a benchmark; registered names stay names.

    Raises ValueError for `policy_kwargs` of what is no saved model.
    """
    names, learner = policy_names(map(entry_of, ids), kwargs), kwargs.get("learner", "system")
    settings, opened = policy_kwargs or {}, {}
    for name in settings:
        if name not in policies or policies[name] in names:
            saved = [each for each, policy in policies.items() if policy not in names]
            raise unknown("saved model", name, saved, "policy_kwargs of the benchmark")
    for name, policy in policies.items():
        opened[name] = open_policy(policy, names, learner, trust, settings.get(name))
    return opened


def settings_by_name(
    policies: Mapping[str, str], given: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Settings of saved models, of ``{"beta": 4}`` for all and ``{"NAME.beta": 8}`` for one.

    Raises:
        ValueError: a setting is for all saved models, and there is none.
    """
    saved = [name for name, path in policies.items() if is_saved(path)]
    by_name: dict[str, dict[str, Any]] = {}
    for key, value in given.items():
        one, _, setting = key.rpartition(".")
        if not (one or saved):
            raise ValueError(
                f"--param: {key} is a setting of saved models; expected some among the policies, "
                f"got {', '.join(policies)}. Of another, such as openai:MODEL, it is NAME.{key}"
            )
        for name in [one] if one else saved:
            by_name.setdefault(name, {})[setting] = value
    return by_name


def deterministic_options(policy: Any) -> tuple[bool | None, ...]:
    """Values of `deterministic` that an opened policy plays with.

    As it learned, and where that is by drawing its actions, with the likeliest as well.
    """
    return (None, True) if plays_by_sampling(policy) else (None,)


def load_results(path: str | PathLike[str]) -> list[Result]:
    """The results in the results.json of a benchmark.

    Raises:
        ValueError: the file holds something else, or is damaged.
    """
    results, where = read_json(path, "results")["results"], repr(str(path))
    if not isinstance(results, list):
        raise ValueError(f"{where}: expected a list of results; got {results!r:.80}.")
    return [Result.from_dict(values, where) for values in results]
