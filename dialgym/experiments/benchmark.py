"""The benchmark: several policies on several ids, as tables, plots and sample dialogues."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dialgym.experiments.curves import Curve, read_curve
from dialgym.experiments.evaluate import evaluate
from dialgym.experiments.result import Result, read_json, results_as_markdown
from dialgym.io.checksums import write_json_checked
from dialgym.io.files import write_text
from dialgym.io.hub import commits
from dialgym.io.locks import PATIENCE, locked
from dialgym.registry import Environment, RegistryEntry, entry_of
from dialgym.rollouts import Job, MisfitError, Player, Policy, Report
from dialgym.rollouts.player import names_in, opened_for
from dialgym.rollouts.policies import learns_by_drawing
from dialgym.views.dialogue import Dialogue, other_party
from dialgym.views.render import render


class Line(NamedTuple):
    """An utterance as it is shown.

    Attributes:
        speaker: the party.
        pieces: the text in pieces, each with a style of rich's; see `Task.styled`.
        own: the learner says it.
        private: only its own party sees it.
    """

    speaker: str
    pieces: Sequence[tuple[str, str]]
    own: bool
    private: bool


class Game(NamedTuple):
    """One dialogue of a policy.

    Attributes:
        env_id: the environment.
        policy: its name.
        job: seed and episode.
        gained: the return.
        turns: utterances of the learner.
        solved: whether it was a success.
        text: the transcript.
        lines: the same, utterance by utterance.
        hidden: what only the other party was told.
        picture: (H, W, 3) uint8; None but for the first environment.
    """

    env_id: str
    policy: str
    job: Job
    gained: float
    turns: int
    solved: bool
    text: str
    lines: Sequence[Line]
    hidden: str
    picture: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Benchmark:
    """What a benchmark found.

    Attributes:
        results: one for each policy that fits any of the ids.
        games: some of the episodes on each id.
        curves: learning curves to draw beside them.
        notes: which policy was left out where, and why.
        absent: the environments in which there is no policy of a name, by name.
    """

    results: Sequence[Result]
    games: Sequence[Game] = ()
    curves: Sequence[Curve] = ()
    notes: Sequence[str] = field(default_factory=tuple)
    absent: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def first_id(self) -> str:
        """The environment of the games and the learning curves."""
        return next(iter(self.results[0].by_id))

    @property
    def first_label(self) -> str:
        """What it is called; see `Result.label`."""
        return self.results[0].label(self.first_id)

    def labels(self) -> dict[str, str]:
        """What the environments are called; see `Result.label`."""
        return {env_id: r.label(env_id) for r in self.results for env_id in r.by_id}

    def games_by_id(self) -> list[Game]:
        """The games environment by environment, in each those of the same seed side by side."""
        places = list(self.labels())
        return sorted(self.games, key=lambda game: (places.index(game.env_id), game.job))

    def save(self, folder: str | PathLike[str]) -> list[Path]:
        """Write results.json, table.md, games.txt and, with matplotlib, the pictures.

        Returns:
            The files written.

        Raises:
            ImportError: matplotlib is not installed; all other files have then been written.
            OSError: the folder cannot be written, or another process is writing there.
        """
        out = Path(folder)
        found = {"hub": commits()} if commits() else {}
        results = [result.as_dict() for result in self.results]
        with locked(out, PATIENCE):  # the files of one benchmark, not of two
            write_json_checked(out / "results.json", {"results": results, **found})
            return self._write(out)

    def _write(self, out: Path) -> list[Path]:
        write_text(out / "table.md", results_as_markdown(self.results))
        files = [out / "results.json", out / "table.md"]
        if self.games:
            files.append(out / "games.txt")
            write_text(files[-1], as_text(self.games_by_id(), self.labels()))
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
) -> Benchmark:
    """Score each policy on each id that it fits.

    Args:
        policies: by the name that tables give them; see `evaluate`.
        ids, episodes, seeds, env_kwargs, trust, report: see `evaluate`.
        games: how many episodes of the first seed to show, on each id.
        curves: runs or CSV files whose learning curves to draw.

    Raises:
        ValueError: an argument is impossible, or a policy fits none of the ids.
        FileNotFoundError: there is no such checkpoint or learning curve.
        ImportError: a checkpoint is given and the package `agents` cannot be imported.
    """
    read = [read_curve(path) for path in curves]
    kwargs = dict(env_kwargs or {})
    entries = [entry_of(env_id) for env_id in ids]
    jobs = [(seeds[0], episode) for episode in range(games)]
    results, shown = [], []
    notes: list[str] = []
    absent: dict[str, list[str]] = {}
    for name, policy in opened(policies, ids, kwargs, trust).items():
        fitting, unknown = _fitting(policy, entries, kwargs)
        if unknown:
            absent[name] = unknown
        misfits: dict[str, MisfitError] = {}
        for best in ways(policy):
            found: list[tuple[RegistryEntry, Result]] = []
            for entry in fitting:
                how: dict[str, Any] = {"name": name, "deterministic": best, "report": report}
                try:
                    found.append((entry, evaluate(policy, entry, episodes, seeds, kwargs, **how)))
                except MisfitError as misfit:
                    misfits[entry.id] = misfit
            if not found:
                raise ValueError(_note(name, misfits))
            results.append(_together([result for _, result in found]))
            for entry, result in found:
                place = entry, entry is entries[0]
                shown += play_games(result.name, policy, *place, jobs, kwargs, best)
        notes += [_note(name, misfits)] if misfits else []
    return Benchmark(results, shown, read, notes, absent)


def _note(name: str, misfits: Mapping[str, MisfitError]) -> str:
    """Where a policy was left out, and why in the first of these places."""
    return f"{name} is left out on {', '.join(misfits)}: {next(iter(misfits.values()))}"


def _fitting(
    policy: Any, entries: Sequence[RegistryEntry], kwargs: Mapping[str, Any]
) -> tuple[list[RegistryEntry], list[str]]:
    """Where there is a policy of this name, and the ids of where there is none."""
    if not isinstance(policy, str):
        return list(entries), []
    known = [entry for entry in entries if policy in names_in(entry, kwargs)]
    return known, [entry.id for entry in entries if entry not in known]


def _together(parts: Sequence[Result]) -> Result:
    """The results of a policy on an id each, as one."""
    by_id = {env_id: part for result in parts for env_id, part in result.by_id.items()}
    stand_ins = {env_id: what for result in parts for env_id, what in result.stand_ins.items()}
    oracle = any(result.oracle for result in parts)
    return replace(parts[0], by_id=by_id, stand_ins=stand_ins, oracle=oracle)


def opened(
    policies: Mapping[str, Policy],
    ids: Sequence[Environment],
    kwargs: Mapping[str, Any],
    trust: bool,
) -> dict[str, Any]:
    """The policies of a benchmark as objects, those that are registered by name."""
    entries = [entry_of(env_id) for env_id in ids]
    return {name: opened_for(p, entries, kwargs, trust) for name, p in policies.items()}


def ways(policy: Any) -> tuple[bool | None, ...]:
    """How an opened policy is to play: as it learned, and where that is by drawing its actions, by
    taking the likeliest as well."""
    return (None, True) if learns_by_drawing(policy) else (None,)


def load_results(path: str | PathLike[str]) -> list[Result]:
    """The results in the results.json of a benchmark."""
    return [Result.from_dict(values) for values in read_json(path, "results")["results"]]


def play_games(
    name: str,
    policy: Any,
    entry: RegistryEntry,
    pictured: bool,
    jobs: Iterable[Job],
    kwargs: Mapping[str, Any],
    deterministic: bool | None = None,
) -> list[Game]:
    """Let an opened policy play the episodes; they are those of `evaluate`."""
    best = not learns_by_drawing(policy) if deterministic is None else deterministic
    player = Player(entry, policy, kwargs, num_envs=1, deterministic=best)
    games = []
    for job in jobs:
        dialogue, played = player.hold(job)
        game = Game(
            env_id=entry.id,
            policy=name,
            job=job,
            gained=float(played.returns[0]),
            turns=dialogue.turn,
            solved=bool(played.success[0]),
            text=dialogue.transcript(),
            lines=_lines(dialogue),
            hidden=_hidden(dialogue),
            picture=_picture(dialogue) if pictured else None,
        )
        games.append(game)
    player.close()
    return games


def _lines(dialogue: Dialogue) -> list[Line]:
    task, learner = dialogue.task, dialogue.learner
    return [
        Line(said.speaker, tuple(task.styled(said)), said.speaker == learner, said.private)
        for said in task.transcript(dialogue.state, learner)
    ]


def _hidden(dialogue: Dialogue) -> str:
    other = other_party(dialogue.task, dialogue.learner)
    told = (said for said in dialogue.task.transcript(dialogue.state, other) if said.private)
    return " ".join(f"{said.speaker} is told: {said.text}" for said in told)


def _picture(dialogue: Dialogue) -> np.ndarray:
    picture = render("rgb_array", dialogue.task, dialogue.state, dialogue.learner)
    assert isinstance(picture, np.ndarray)
    return picture


def as_text(games: Sequence[Game], labels: Mapping[str, str]) -> str:
    """The transcripts, episode by episode, the policies below each other."""
    lines = []
    for (env_id, job), alike in groupby(games, key=lambda game: (game.env_id, game.job)):
        lines.append(f"{labels[env_id]}, seed {job[0]}, episode {job[1]}\n{'=' * 60}\n")
        for game in alike:
            lines.append(f"{game.policy}: return {game.gained:g}\n\n{_indented(game.text)}\n")
    return "\n".join(lines)


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
