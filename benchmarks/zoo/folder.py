"""The folder of the zoo: weights and settings of each agent, its card, the index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import copyfile, copytree

import numpy as np
import yaml

import agents
from agents.publishing import CARD, agent_card
from agents.registry import name_of
from agents.storage.archive import MODEL, Archive, copy_archive
from agents.storage.state import OPTIMIZER, REFERENCE, TRUST_REGION
from benchmarks.zoo.candidates import Candidate
from dialgym.experiments.panel import panel_named
from dialgym.experiments.result import Episodes
from dialgym.experiments.statistics import Estimate, wilson
from dialgym.experiments.tables import markdown_table
from dialgym.experiments.zoo import COLUMNS, ZooAgent, read_zoo, write_index
from dialgym.io.files import read_yaml, write_folder_atomically, write_text
from dialgym.io.saved_models import CHECKPOINT, ZOO, ZOO_INDEX
from dialgym.registry import entry_of

LARGEST = 6_000_000
"""Bytes of the whole folder."""
LICENCE = "Apache-2.0"
CURVE, CONFIG = "learning_curve.csv", "config.yml"
OF_TRAINING = ("_last_obs", "_last_episode_starts", "_last_original_obs")
"""Attributes of a model that are of its dialogues under way."""
HELD_NEAR_TO = (REFERENCE, TRUST_REGION)
"""Networks that learning makes anew."""
KEPT = ("env_id", "algorithm", "total_timesteps", "n_envs", "seed", "env_kwargs", "hyperparameters")
"""Entries of a run's `config.yml` that say nothing of the machine."""
INTRODUCTION = """\
# Trained agents

Small agents, each the best of those trainings in the leaderboard whose models were kept. Made by
`python -m benchmarks.zoo`; each folder has the weights (safetensors), the settings, and a card
with the command that trained it. Figures are means over the episodes of the training's row, with
95 % intervals over episodes, not over trainings: the best of several flatters, and where trainings
differ much (ILQL) by much; the leaderboard has them all. In a checkout:

```bash
dialgym zoo
dialgym evaluate {example}
dialgym view {example}
```
"""


def that_stay(
    found: Sequence[Candidate], out: Path, chosen: Mapping[str, Sequence[str]]
) -> list[ZooAgent]:
    """Agents of a zoo in chosen environments where no better training was found.

    Args:
        found: the best trainings whose models are at hand.
        out: the folder as it is; without an index none stays.
        chosen: environments by panel.

    Raises:
        ValueError: the index is none.
    """
    if not (out / ZOO_INDEX).is_file():
        return []
    means = {one.environment.id: one.episodes.mean_return for one in found}
    ids = {
        (p, panel_named(p).environment(name).id) for p, names in chosen.items() for name in names
    }
    return [
        agent
        for agent in read_zoo(out)
        if (agent.panel, agent.id) in ids
        and agent.mean_return.value >= means.get(agent.id, -np.inf)
    ]


def write_zoo(
    found: Sequence[Candidate], out: Path, stay: Sequence[ZooAgent] = (), largest: int = LARGEST
) -> None:
    """Write the folder of a zoo, atomically: agents, cards, index.

    Args:
        found: the trainings that become agents.
        out: the folder.
        stay: agents that it has and keeps (`that_stay`).
        largest: bytes that it may have.

    Raises:
        ValueError: there are none, two have one name, a model is not that of its row, or the whole
            is larger than `largest` bytes; the folder is then as it was.
    """
    names = [*(one.name for one in found), *(agent.name for agent in stay)]
    if not names or len({*names}) < len(names):
        raise ValueError(
            f"the zoo: expected agents of different names, got {names or 'no row with its model'}. "
            "Name folders of rows (--rows), or change the chosen environments."
        )
    write_folder_atomically(out, partial(_fill, found, out, stay, largest))


def _fill(
    found: Sequence[Candidate], old: Path, stay: Sequence[ZooAgent], largest: int, folder: Path
) -> None:
    entries = [_write_agent(one, folder / one.name) for one in found]
    entries += [_keep_agent(agent, old / agent.name, folder / agent.name) for agent in stay]
    entries.sort(key=lambda entry: entry.name)
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
    result = one.result()
    loaded = agents.load(one.model, device="cpu")  # which imports what the file's settings name
    _copy_model(one.model, folder / CHECKPOINT)
    if (curve := one.model.with_name(CURVE)).is_file():
        copyfile(curve, folder / CURVE)
    if (config := one.model.with_name(CONFIG)).is_file():
        values = read_yaml(config)
        kept = {name: values[name] for name in KEPT if name in values}
        write_text(folder / CONFIG, yaml.safe_dump(kept, sort_keys=False))
    card = agent_card(loaded, f"{ZOO}{one.name}", [result], origin(one))
    write_text(folder / CARD, card)
    algorithm = name_of(type(loaded)) or type(loaded).__name__
    return _entry(one, result.by_id[one.environment.id], algorithm, size_of(folder))


def _keep_agent(agent: ZooAgent, old: Path, folder: Path) -> ZooAgent:
    """Copy the folder of an agent that the zoo has; return its entry."""
    copytree(old, folder)
    agents.load(old / CHECKPOINT, device="cpu")  # which imports what the file's settings name
    _copy_model(old / CHECKPOINT, folder / CHECKPOINT)
    return replace(agent, bytes=size_of(folder))


def _copy_model(model: Path, copy: Path) -> None:
    """Copy a model without what only training needs.

    These are optimizers, policies that it is held near to, and where its dialogues stood.
    """
    archive = Archive(model, MODEL)
    algorithm, settings = archive.read("algorithm"), archive.read("settings")
    attributes = {**settings["attributes"], **dict.fromkeys(OF_TRAINING)}
    networks = [name for name in algorithm["networks"] if name not in HELD_NEAR_TO]
    changes = {
        **dict.fromkeys((OPTIMIZER, *HELD_NEAR_TO)),
        "algorithm": {**algorithm, "networks": networks},
        "settings": {**settings, "attributes": attributes},
    }
    copy_archive(model, copy, MODEL, changes)


def origin(one: Candidate) -> dict[str, str]:
    """Facts of an agent for its card."""
    seconds = one.cpu_seconds
    return {
        "task": entry_of(one.environment.id).row.description,
        "row": f"{one.panel.label}: {one.row}",
        "seed": str(one.seed),
        "chosen": f"the best of {one.among}, by the panel's metric in the row's own episodes",
        "command": one.command,
        "CPU seconds": "unknown" if seconds is None else f"{seconds:,.0f}",
        "versions": ", ".join(f"{name} {version}" for name, version in one.versions.items()),
        "licence": LICENCE,
    }


def _entry(one: Candidate, episodes: Episodes, algorithm: str, size: int) -> ZooAgent:
    """The entry of an agent in the index."""
    count, interval = episodes.returns.size, episodes.score_interval
    score = None if episodes.score is None or interval is None else (episodes.score, *interval)
    return ZooAgent(
        name=one.name,
        id=one.environment.id,
        algorithm=algorithm,
        panel=one.panel.name,
        version=one.panel.version,
        row=one.row,
        seed=one.seed,
        actions=one.actions,
        settings=one.environment.scoring_settings,
        episodes=count,
        mean_return=Estimate(episodes.mean_return, *episodes.interval),
        success=wilson(episodes.success, count),
        score=None if score is None else Estimate(*score),
        deviation=float(episodes.returns.std()),
        model=one.digits,
        bytes=size,
        command=one.command,
        versions=one.versions,
    )


def _readme(entries: Sequence[ZooAgent]) -> Iterator[str]:
    """The page of the folder: how to use it, and a table of its agents."""
    yield INTRODUCTION.format(example=entries[0].place)
    rows = [[f"[`{e.place}`]({e.name}/{CARD})", *e.cells()[1:]] for e in entries]
    yield f"\n{markdown_table([list(COLUMNS), *rows])}"


def size_of(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
