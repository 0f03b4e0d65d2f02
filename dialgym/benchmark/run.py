"""The benchmark: several policies on several ids, as tables, plots and sample dialogues."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dialgym.benchmark.curves import Curve, read_curve
from dialgym.benchmark.evaluate import evaluate
from dialgym.benchmark.report import markdown
from dialgym.benchmark.result import Episodes, Result, read_json
from dialgym.checksums import write_json_checked
from dialgym.files import write_text
from dialgym.hub import commits
from dialgym.locks import PATIENCE, locked
from dialgym.registry import Entry, Environment, entry_of
from dialgym.rollouts import Job, MisfitError, Player, Policy, Report
from dialgym.rollouts.player import opened_for
from dialgym.views.dialogue import Dialogue
from dialgym.views.render import render


class Game(NamedTuple):
    """One dialogue of a policy.

    Attributes:
        policy: its name.
        job: seed and episode.
        gained: the return.
        turns: utterances of the learner.
        text: the transcript.
        picture: (H, W, 3) uint8.
    """

    policy: str
    job: Job
    gained: float
    turns: int
    text: str
    picture: np.ndarray


@dataclass(frozen=True, eq=False)
class Benchmark:
    """What a benchmark found.

    Attributes:
        results: one for each policy that fits any of the ids.
        games: some of the episodes on the first id.
        curves: learning curves to draw beside them.
        notes: which policy was left out where, and why.
    """

    results: Sequence[Result]
    games: Sequence[Game] = ()
    curves: Sequence[Curve] = ()
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def first_id(self) -> str:
        """The environment of the games and the learning curves."""
        return next(iter(self.results[0].by_id))

    @property
    def first_label(self) -> str:
        """What it is called; see `Result.label`."""
        return self.results[0].label(self.first_id)

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
        write_text(out / "table.md", markdown(self.results))
        files = [out / "results.json", out / "table.md"]
        if self.games:
            files.append(out / "games.txt")
            write_text(files[-1], as_text(self.first_label, self.games))
        return files + self._draw(out)

    def _draw(self, out: Path) -> list[Path]:
        from dialgym.benchmark.plots import plot_curves, plot_games, plot_scores

        files = [out / "scores.png"]
        plot_scores(self.results, files[0])
        if self.curves:
            files.append(out / "curve.png")
            plot_curves(self.curves, files[-1])
        if self.games:
            files.append(out / "games.png")
            plot_games(self.games, files[-1], self.first_label)
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
        games: how many episodes of the first seed and id to show.
        curves: runs or CSV files whose learning curves to draw.

    Raises:
        ValueError: an argument is impossible, or a policy fits none of the ids.
        FileNotFoundError: there is no such checkpoint or learning curve.
        ImportError: a checkpoint is given and the package `agents` cannot be imported.
    """
    read = [read_curve(path) for path in curves]
    kwargs = dict(env_kwargs or {})
    entries = [entry_of(env_id) for env_id in ids]
    opened = {name: opened_for(p, entries, kwargs, trust) for name, p in policies.items()}
    jobs = [(seeds[0], episode) for episode in range(games)]
    results, shown, notes = [], [], []
    for name, policy in opened.items():
        by_id: dict[str, Episodes] = {}
        stand_ins: dict[str, str] = {}
        oracle = False
        for entry in entries:
            try:
                part = evaluate(policy, entry, episodes, seeds, kwargs, report=report)
            except MisfitError as misfit:
                notes.append(f"{name} is left out on {entry.id}: {misfit}")
                continue
            by_id |= part.by_id
            stand_ins |= part.stand_ins
            oracle = oracle or part.oracle
        if not by_id:
            raise ValueError(notes[-1])
        results.append(Result(name, tuple(seeds), by_id, kwargs, stand_ins, oracle))
        if entries[0].id in by_id:
            shown += play_games(results[-1].name, policy, entries[0], jobs, kwargs)
    return Benchmark(results, shown, read, notes)


def load_results(path: str | PathLike[str]) -> list[Result]:
    """The results in the results.json of a benchmark."""
    return [Result.from_dict(values) for values in read_json(path, "results")["results"]]


def play_games(
    name: str, policy: Any, entry: Entry, jobs: Iterable[Job], kwargs: Mapping[str, Any]
) -> list[Game]:
    """Let an opened policy play the episodes; they are those of `evaluate`."""
    player = Player(entry, policy, kwargs, num_envs=1)
    games = []
    for job in jobs:
        dialogue, played = player.hold(job)
        shown = dialogue.turn, dialogue.transcript(), _picture(dialogue)
        games.append(Game(name, job, float(played.returns[0]), *shown))
    player.close()
    return games


def _picture(dialogue: Dialogue) -> np.ndarray:
    picture = render("rgb_array", dialogue.task, dialogue.state, dialogue.learner)
    assert isinstance(picture, np.ndarray)
    return picture


def as_text(env_id: str, games: Sequence[Game]) -> str:
    """The transcripts, episode by episode, the policies below each other."""
    lines = []
    for job in dict.fromkeys(game.job for game in games):
        lines.append(f"{env_id}, seed {job[0]}, episode {job[1]}\n{'=' * 60}\n")
        for game in games:
            if game.job == job:
                lines.append(f"{game.policy}: return {game.gained:g}\n\n{_indented(game.text)}\n")
    return "\n".join(lines)


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
