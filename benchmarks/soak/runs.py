"""Short training runs of each algorithm, to be killed and to go on."""

from pathlib import Path
from typing import Any

import numpy as np

import dialgym
from agents.registry import ACTS, ALGORITHMS

WORDS, WISHES, DOMAINS, CITY = (
    "dialgym/Wordle-20-v0",
    "dialgym/SlotFilling-act-v0",
    "dialgym/SlotFilling-Domains-act-v0",
    "dialgym/MultiWOZ-act-v0",
)
GPT = {"n_layer": 1, "n_head": 1, "n_embd": 8}
NET = {"net_arch": [8]}
SHORT: dict[str, dict[str, Any]] = {
    "ppo": {"n_steps": 12, "batch_size": 48},
    "nlpo": {"n_steps": 12, "batch_size": 48},
    "grpo": {"n_steps": 12, "batch_size": 48, "group_size": 4},
    "expert-iteration": {"group_size": 4},
    **{name: {"group_size": 4} for name in ("act-grpo", "act-expert-iteration")},
    "archer": {"n_steps": 48, "batch_size": 48, "critic_steps": 2, "warmup": 1},
    "policy-manager": {"n_envs": 1},
    "gdpl": {"n_steps": 8, "batch_size": 16},
    "chai": {"clone_steps": 8},
    "stock-ppo": {"n_steps": 8, "n_epochs": 1},
    "maskable-ppo": {"n_steps": 8, "n_epochs": 1},
    "recurrent-ppo": {"n_steps": 8, "n_epochs": 1},
    "stock-a2c": {"n_steps": 8},
    "trpo": {"n_steps": 8},
    **{name: {"learning_starts": 100} for name in ("stock-dqn", "qrdqn")},
}
"""Hyperparameters by algorithm, beside those of all."""


def play(name: str, stored: tuple[Path, Path], folder: Path, resume: bool = False) -> None:
    """Train briefly in a folder, from the beginning or from the last checkpoint.

    A run is the same whenever it is made from its beginning.

    Args:
        name: of the algorithm.
        stored: folders with dialogues of `WORDS`, and of an expert in `CITY`.
        folder: of the run.
        resume: it goes on.
    """
    import agents
    from agents.training import prepare

    row, (games, talks) = ALGORITHMS[name], stored
    expert = row.plays and row.reads
    env_id = WORDS if not row.plays or ACTS not in row.kind else WISHES
    if expert or name == "madpl":
        env_id = CITY
    if name == "policy-manager":
        env_id = DOMAINS
    small: dict[str, Any] = {"policy_kwargs": GPT if env_id == WORDS else NET}
    small |= {"n_envs": 4} if row.plays else {"batch_size": 8, "log_interval": 4}
    if name in ("gp-sarsa", "committee", "policy-manager"):
        small.pop("policy_kwargs")
    prepare.STOCK_INTERVAL = 100  # timesteps between checkpoints: the run has few
    agents.train(
        env_id,
        name,
        total_timesteps=500 if row.plays else 24,
        log_dir=folder,
        hyperparameters={**small, **SHORT.get(name, {})},
        seed=3,
        progress_bar=False,
        data=talks if expert else None if row.plays else games,
        checkpoint_every=1,
        resume=resume,
    )


def dialogues(folder: Path) -> tuple[Path, Path]:
    """Folders of dialogues for those that learn from some."""
    games, talks = folder / "games", folder / "talks"
    dialgym.collect(WORDS, "random-mixture", 30, path=games)
    dialgym.collect(CITY, "rule", 6, path=talks)
    return games, talks


def learned(folder: Path) -> dict[str, Any]:
    """Results of a run: each weight, and the learning curve without times of the clock."""
    import agents

    file = folder / "learning_curve.csv"
    lines = file.read_text("utf-8").splitlines() if file.exists() else ["seconds"]
    clock = lines[0].split(",").index("seconds")
    curve = [[word for i, word in enumerate(line.split(",")) if i != clock] for line in lines]
    return {**weights_of(agents.load(folder / "model.zip")), "curve": np.array(curve)}


def weights_of(model: Any) -> dict[str, np.ndarray]:
    """Each weight of a model by its name."""
    return {name: value.cpu().numpy() for name, value in model.policy.state_dict().items()}
