"""The zoo, made of the best rows of panels and the models beside them.

    python -m benchmarks.zoo [--rows FOLDER ...] [--out FOLDER] [--chosen FILE]

`zoo.yaml` says which environments have an agent; of each environment's trainings the one with the
highest mean of the panel's metric is taken, of those that have their model beside the row. An
environment without any, or whose best is no better than a random policy, has no agent. The folder
is replaced as a whole, with cards and index.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import yaml

import agents
from agents.publishing import CARD, agent_card
from agents.registry import name_of
from agents.storage.archive import Archive, copy_archive
from agents.storage.models import MODEL, OPTIMIZER
from dialgym.cli.benchmark import ROWS
from dialgym.experiments.panel import panel_named
from dialgym.experiments.result import Episodes, Result
from dialgym.experiments.row import RETURN, ExperimentRow
from dialgym.experiments.row_files import read_rows
from dialgym.experiments.statistics import Estimate, wilson
from dialgym.experiments.tables import markdown_table
from dialgym.experiments.zoo import COLUMNS, ZooAgent, write_index
from dialgym.io.files import read_yaml, write_folder_atomically, write_text
from dialgym.io.saved_models import CHECKPOINT, ZOO
from dialgym.registry import entry_of

HERE = Path(__file__).parent
CHOSEN = HERE / "zoo.yaml"
LARGEST = 6_000_000
"""Bytes of the whole folder."""
LICENCE = "Apache-2.0"
CURVE, CONFIG = "learning_curve.csv", "config.yml"
OF_TRAINING = ("_last_obs", "_last_episode_starts", "_last_original_obs")
"""Attributes of a model that are of its dialogues under way."""
KEPT = ("env_id", "algorithm", "total_timesteps", "n_envs", "seed", "env_kwargs", "hyperparameters")
"""Entries of a run's `config.yml` that say nothing of the machine."""
INTRODUCTION = """\
# Trained agents

Small agents, each the best training of its environment in the leaderboard. Made by
`python -m benchmarks.zoo`; each folder has the weights (safetensors), the settings, and a card
with the command that trained it. Figures are means over the episodes of the training's row, with
95 % intervals; the best of several trainings flatters a little. In a checkout:

```bash
dialgym zoo
dialgym evaluate {example}
dialgym view {example}
```
"""


class Candidate:
    """A row with its model, and of how many it is the best.

    Args:
        row: of a training, with its model beside it.
        among: rows of its environment that have their models.
    """

    def __init__(self, row: ExperimentRow, among: int) -> None:
        self.row, self.among = row, among

    @property
    def name(self) -> str:
        """``wordle-20-ppo``: the environment and the row."""
        environment = self.row.id.rpartition("/")[2].lower()
        return f"{environment.removesuffix('-v0')}-{self.row.name}"

    @property
    def result(self) -> Result:
        """The row's episodes, as the policy was trained to be played."""
        row = self.row
        columns = {name: row.column(name) for name in (RETURN, "success", "score")}
        returns, solved, scores = (None if c is None else c[None] for c in columns.values())
        assert returns is not None
        assert solved is not None
        lengths = np.array(row.values["episodes"][row.actions]["lengths"])[None]
        episodes = Episodes(returns, solved > 0, lengths, scores)
        seed = panel_named(row.values["panel"]).evaluation.seed + row.seed
        stand_in = row.origin.stand_in
        stand_ins = {} if stand_in is None else {row.id: stand_in}
        return Result(row.name, (seed,), {row.id: episodes}, self.settings, stand_ins,
                      actions=row.actions)  # fmt: skip

    @property
    def has_learned(self) -> bool:
        """False where its score is not above that of a random policy."""
        interval = self.result.by_id[self.row.id].score_interval
        return interval is None or interval[0] > 0

    @property
    def settings(self) -> dict[str, Any]:
        """The settings in which its episodes were played."""
        return {**self.row.values["env_kwargs"], **self.row.values.get("held_out", {})}

    def origin(self) -> dict[str, str]:
        """Facts for its card."""
        values = self.row.values
        versions = ", ".join(f"{name} {version}" for name, version in values["versions"].items())
        return {
            "task": entry_of(self.row.id).row.description,
            "row": f"{values['panel']}, version {values['version']}: {self.row.name}",
            "seed": str(self.row.seed),
            "chosen": f"the best of {self.among}, by the panel's metric in the row's own episodes",
            "command": values["command"],
            "CPU seconds": "unknown"
            if self.row.cpu_seconds is None
            else f"{self.row.cpu_seconds:,.0f}, scoring and what it began with included",
            "versions": versions,
            "licence": LICENCE,
        }

    def entry(self, folder: Path, algorithm: str) -> ZooAgent:
        """Its entry in the index, once its folder is filled."""
        values, episodes = self.row.values, self.result.by_id[self.row.id]
        count = episodes.returns.size
        return ZooAgent(
            name=self.name,
            id=self.row.id,
            algorithm=algorithm,
            panel=values["panel"],
            version=values["version"],
            row=self.row.name,
            seed=self.row.seed,
            actions=self.row.actions,
            settings=self.settings,
            episodes=count,
            mean_return=Estimate(episodes.mean_return, *episodes.interval),
            success=wilson(episodes.success, count),
            score=None if episodes.score is None or episodes.score_interval is None
            else Estimate(episodes.score, *episodes.score_interval),
            deviation=float(episodes.returns.std()),
            model=self.row.model_digits or "",
            bytes=size_of(folder),
            command=values["command"],
            versions=values["versions"],
        )  # fmt: skip


def candidates(chosen: Mapping[str, Sequence[str]], folders: Sequence[Path]) -> list[Candidate]:
    """The best training of each chosen environment that has one with its model.

    It is left out where it is no better than a random policy.

    Args:
        chosen: environments by panel.
        folders: of rows of all panels.

    Raises:
        ValueError: a panel or environment is unknown, or a file is no row.
    """
    found = []
    for name, ids in chosen.items():
        panel = panel_named(name)
        rows = [row for row in read_rows(folders, panel) if _has_model(row)]
        for environment in map(panel.environment, ids):
            those = [row for row in rows if row.id == environment.id]
            if not those:
                continue
            best = Candidate(min(those, key=partial(_rank, metric=panel.metric)), len(those))
            if best.has_learned:
                found.append(best)
    return found


def _has_model(row: ExperimentRow) -> bool:
    return not row.is_scripted and row.model_file.is_file()


def _rank(row: ExperimentRow, metric: str) -> tuple[float, str, int]:
    """The highest mean comes first, then the name and the seed."""
    values = row.column(metric)
    values = row.column(RETURN) if values is None else values
    assert values is not None
    return -float(values.mean()), row.name, row.seed


def write_zoo(found: Sequence[Candidate], out: Path, largest: int = LARGEST) -> None:
    """Write the folder of a zoo, atomically: agents, cards, index.

    Raises:
        ValueError: there are none, two have one name, a model is not that of its row, or the whole
            is larger than `largest` bytes; the folder is then as it was.
    """
    names = [one.name for one in found]
    if not names or len({*names}) < len(names):
        raise ValueError(
            f"the zoo: expected agents of different names, got {names or 'no row with its model'}. "
            "Name folders of rows (--rows), or change the chosen environments."
        )
    write_folder_atomically(out, partial(_fill, found, largest))


def _fill(found: Sequence[Candidate], largest: int, folder: Path) -> None:
    entries = [_write_agent(one, folder / one.name) for one in found]
    write_index(folder, entries)
    write_text(folder / CARD, "".join(_readme(entries)))
    if (size := size_of(folder)) > largest:
        sizes = ", ".join(f"{entry.name} {entry.bytes:,}" for entry in entries)
        raise ValueError(
            f"the zoo: expected {largest:,} bytes at most, got {size:,}: {sizes}. Choose fewer "
            "environments."
        )


def _write_agent(one: Candidate, folder: Path) -> ZooAgent:
    """Fill the folder of an agent: model, configuration, curve, card; return its entry."""
    folder.mkdir()
    model = Path(one.row.find_policy())
    _copy_model(model, folder / CHECKPOINT)
    if (curve := model.with_name(CURVE)).is_file():
        copyfile(curve, folder / CURVE)
    if (config := model.with_name(CONFIG)).is_file():
        values = read_yaml(config)
        kept = {name: values[name] for name in KEPT if name in values}
        write_text(folder / CONFIG, yaml.safe_dump(kept, sort_keys=False))
    loaded = agents.load(folder / CHECKPOINT, device="cpu")
    card = agent_card(loaded, f"{ZOO}{one.name}", [one.result], one.origin())
    write_text(folder / CARD, card)
    return one.entry(folder, name_of(type(loaded)) or type(loaded).__name__)


def _copy_model(model: Path, copy: Path) -> None:
    """Copy a model without what only training needs: optimizers, and where its dialogues stood."""
    settings = Archive(model, MODEL).read("settings")
    attributes = {**settings["attributes"], **dict.fromkeys(OF_TRAINING)}
    changes = {OPTIMIZER: None, "settings": {**settings, "attributes": attributes}}
    copy_archive(model, copy, MODEL, changes)


def _readme(entries: Sequence[ZooAgent]) -> Iterator[str]:
    """The page of the folder: how to use it, and a table of its agents."""
    yield INTRODUCTION.format(example=entries[0].place)
    rows = [[f"[`{e.place}`]({e.name}/{CARD})", *e.cells()[1:]] for e in entries]
    yield f"\n{markdown_table([list(COLUMNS), *rows])}\n"


def size_of(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def main() -> None:
    """Make the zoo as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=Path, nargs="+", default=[ROWS], help="folders of rows")
    parser.add_argument("--out", type=Path, default=HERE.parent / "zoo", help="the folder to write")
    parser.add_argument("--chosen", type=Path, default=CHOSEN, help="environments by panel, YAML")
    given = parser.parse_args()
    found = candidates(read_yaml(given.chosen), given.rows)
    try:
        write_zoo(found, given.out)
    except ValueError as error:
        parser.error(str(error))
    for one in found:
        print(f"{ZOO}{one.name}: seed {one.row.seed}, the best of {one.among}")
    print(f"in {given.out}: {len(found)} agents, {size_of(given.out):,} bytes")


if __name__ == "__main__":
    main()
