"""Trainings that are cut off and go on, and the comparison of two models or runs bit for bit."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import agents
from agents.training.checkpoint import CheckpointCallback

NETWORKS = ("policy", "mask_policy", "reference", "estimator", "partner_policy", "values")
"""Attributes of learners that hold weights."""


def weights_of(model: Any) -> list[np.ndarray]:
    """All numbers that a model has learned."""
    if hasattr(model, "process"):  # of Gaussian processes
        groups = model.process.groups.values()
        return [part for group in groups for part in (group.inputs, group.weights)]
    found = [getattr(model, name, None) for name in NETWORKS]
    networks = [one for one in found if isinstance(one, torch.nn.Module)]
    return [w.detach().numpy() for net in networks for w in net.state_dict().values()]


def assert_same_model(one: Any, other: Any) -> None:
    """Fail unless two models, or those of two files, have the same weights, bit for bit."""
    first, second = (
        weights_of(agents.load(model) if isinstance(model, Path) else model)
        for model in (one, other)
    )
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def assert_comes_back(model: Any, file: Path) -> Any:
    """Save a model, and fail unless it is loaded as what it was; returns the loaded one."""
    agents.save(model, file)
    loaded = agents.load(file)
    assert type(loaded) is type(model)
    assert_same_model(model, loaded)
    assert_same_model(model, agents.load(file, seed=model.seed))  # by way of the constructor
    seen = model.get_env().reset()
    acts = [one.predict(seen, deterministic=True)[0] for one in (model, loaded)]
    assert np.array_equal(*acts)
    return loaded


def assert_same_run(one: Path, other: Path) -> None:
    """Fail unless two folders hold the same curve, evaluations, sample dialogues and models."""
    assert curve(one) == curve(other)
    for read in (evaluations, samples):
        assert read(one) == read(other)
    for name in ("model.zip", "best_model.zip"):
        if (one / name).exists():
            assert_same_model(one / name, other / name)


def curve(folder: Path) -> list[dict[str, Any]]:
    """The learning curve without its clock."""
    with open(folder / "learning_curve.csv", encoding="utf-8", newline="") as file:
        return [{**row, "seconds": None} for row in csv.DictReader(file)]


def evaluations(folder: Path) -> dict[str, Any]:
    """Evaluations by name; none where the run had none."""
    if not (folder / "evaluations.npz").exists():
        return {}
    with np.load(folder / "evaluations.npz") as found:
        return {name: found[name].tolist() for name in found}


def samples(folder: Path) -> dict[str, str]:
    """Sample dialogues by the name of their file."""
    return {path.name: path.read_text("utf-8") for path in folder.glob("samples/*")}


class Cut(Exception):
    """The end of a run, right after a checkpoint."""


def whole_and_resumed(
    monkeypatch: pytest.MonkeyPatch, folder: Path, env_id: str, algorithm: str, **arguments: Any
) -> tuple[Any, Any]:
    """Train in one go, and cut off as by a kill after the first checkpoint, and on from there.

    Returns the models; the runs lie in `whole` and `cut` of the folder.
    """
    given = {"seed": 1, "progress_bar": False, "checkpoint_every": 1, **arguments}
    whole = agents.train(env_id, algorithm, log_dir=folder / "whole", **given)
    write = CheckpointCallback._write

    def cut(self: CheckpointCallback, states: Any) -> None:
        write(self, states)
        raise Cut  # nothing that a run does at its end is done

    given["log_dir"] = folder / "cut"
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointCallback, "_write", cut)
        with pytest.raises(Cut):
            agents.train(env_id, algorithm, **given)
    assert not (folder / "cut" / "model.zip").exists()
    torch.manual_seed(99)  # another process would have other random numbers
    np.random.seed(99)  # noqa: NPY002
    return whole, agents.train(env_id, algorithm, resume=True, **given)
