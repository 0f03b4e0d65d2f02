"""A zoo of one agent that chooses acts, cloned in a second and scored by a panel of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import agents
import dialgym
from benchmarks.zoo.candidates import candidates
from benchmarks.zoo.folder import write_zoo
from dialgym.experiments.panel import Panel
from dialgym.experiments.protocol import score_policy
from dialgym.experiments.result import GREEDY

ID = "SlotFilling-act-v0"
PANEL = Panel.of(
    "tiny",
    {
        "version": 1,
        "description": "A restaurant, for tests.",
        "environments": [ID],
        "evaluation": {"episodes": 24, "seed": 77},
        "references": ["random"],
        "seeds": 3,
    },
)
CHOSEN = {"tiny": [ID]}


def clone(steps: int, env_id: str = ID, settings: Mapping[str, Any] | None = None) -> agents.BC:
    """A clone of the handcrafted policy, after so many gradient steps."""
    data = dialgym.collect(env_id, "handcrafted", 60, seed=5, env_kwargs=settings)
    env = dialgym.sb3_vec_env(env_id, 1, **(settings or {}))
    model = agents.BC("BeliefPolicy", env, data, batch_size=16, seed=0)
    return model.learn(steps) if steps else model


def write_rows(folder: Path, steps: tuple[int, ...] = (150,)) -> list[Path]:
    """Rows of clones, with their models beside them; `PANEL` must be known."""
    files = []
    for seed, count in enumerate(steps):
        file = folder / f"clone{count}.zip"
        clone(count).save(file)
        [environment] = PANEL.environments
        row = score_policy(PANEL, environment, str(file), "me", seed, folder, GREEDY)
        files.append(row)
    return files


def write_tiny_zoo(rows: Path, folder: Path) -> None:
    """The zoo of the rows below a folder."""
    write_zoo(candidates(CHOSEN, [rows])[0], folder)
