"""Agents of the zoo: where each is from, and what it scores.

The zoo is a folder with a folder for each agent, and ``zoo.json``, which this module reads and
writes; `dialgym.io.saved_models` finds it, and `benchmarks.zoo` makes it of the rows of panels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dialgym.experiments.statistics import Estimate, format_estimate
from dialgym.io.checksums import read_json_checked, write_json_checked
from dialgym.io.saved_models import CHECKPOINT, ZOO, ZOO_INDEX, zoo_folder

FORM = "dialgym zoo 1"


@dataclass(frozen=True)
class ZooAgent:
    """A trained agent of the zoo, and the row of the leaderboard that it is from.

    Attributes:
        name: ``zoo:`` and this are where a policy or a saved model may be given.
        id: of the environment that it has learned in.
        algorithm: in the table of algorithms.
        panel, version, row, seed: of its row: the panel, its version, the row's name, the training.
        actions: drawn or greedy, as it is played in the row's figures.
        settings: of the environment, in which the row's episodes are played.
        episodes: of the row.
        mean_return, success, score: mean, low and high of the row's episodes; None for a score
            without references.
        deviation: standard deviation of the returns of the row's episodes.
        model: hash of its weights, as the row has it.
        bytes: of the agent's folder.
        command: that made the row.
        versions: of the packages that made it.
    """

    name: str
    id: str
    algorithm: str
    panel: str
    version: int
    row: str
    seed: int
    actions: str
    settings: Mapping[str, Any]
    episodes: int
    mean_return: Estimate
    success: Estimate
    score: Estimate | None
    deviation: float
    model: str
    bytes: int
    command: str
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Its name wherever a policy may be given: ``zoo:wordle-20-ppo``."""
        return f"{ZOO}{self.name}"

    @property
    def origin(self) -> list[Any]:
        """Panel, version, name, environment and seed of its row."""
        return [self.panel, self.version, self.row, self.id, self.seed]

    def cells(self) -> list[str]:
        """Cells of its line in a table; see `COLUMNS`."""
        learner = self.algorithm if self.row == self.algorithm else f"{self.row} ({self.algorithm})"
        settings = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        return [
            self.place,
            self.id.rpartition("/")[2] + (f" ({settings})" if settings else ""),
            learner,
            "-" if self.score is None else format_estimate(self.score, 1),
            format_estimate(self.mean_return, 2),
            f"{100 * self.success.value:.1f} %",
            f"{self.bytes / 1000:,.0f} kB",
        ]


COLUMNS = ("agent", "environment", "learner", "score", "return", "success", "size")
"""Columns of a table of agents."""


def read_zoo(folder: Path | None = None) -> list[ZooAgent]:
    """The agents of the zoo, by name.

    Args:
        folder: of a zoo; None for the one that names of agents are looked up in.

    Raises:
        FileNotFoundError: there is no zoo here; the message says how to get it.
        ValueError: its index is damaged, or none that `write_index` wrote.
    """
    file = (zoo_folder() if folder is None else folder) / ZOO_INDEX
    values = read_json_checked(file, "the index of the zoo, as JSON")
    if not isinstance(values, Mapping) or values.get("form") != FORM:
        raise ValueError(f"{str(file)!r}: expected an index of the form {FORM!r}. Make it again.")
    try:
        agents = [_agent(entry) for entry in values["agents"]]
        for agent in agents:
            agent.cells()  # an error for a value of another type
        return agents
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        names = ", ".join(each.name for each in fields(ZooAgent))
        raise ValueError(
            f"{str(file)!r}: expected agents with {names}; got another entry ({error})."
        ) from error


def _agent(entry: Mapping[str, Any]) -> ZooAgent:
    estimates = {name: _estimate(entry[name]) for name in ("mean_return", "success", "score")}
    return ZooAgent(**{**entry, **estimates})  # type: ignore[arg-type]


def _estimate(values: Any) -> Estimate | None:
    return None if values is None else Estimate(*map(float, values))


def write_index(folder: Path, agents: Iterable[ZooAgent]) -> None:
    """Write the index of a zoo into its folder.

    Raises:
        OSError: it cannot be written.
    """
    entries = [asdict(agent) for agent in sorted(agents, key=lambda agent: agent.name)]
    write_json_checked(folder / ZOO_INDEX, {"form": FORM, "agents": entries}, indent=1)


def agent_of_row(values: Mapping[str, Any]) -> ZooAgent | None:
    """The agent that was made of a row, by the row's content; None where there is none."""
    try:
        agents = read_zoo()
    except FileNotFoundError:
        return None
    wanted = [values[name] for name in ("panel", "version", "name", "id", "seed")]
    return next((each for each in agents if each.origin == wanted), None)


def model_file(agent: ZooAgent) -> Path:
    """The file of an agent's model."""
    return zoo_folder() / agent.name / CHECKPOINT
