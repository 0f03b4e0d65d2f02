"""The agents of the zoo in this repository: each plays as its row says, and loads as plain data."""

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip("stable_baselines3")
import torch

import agents
import dialgym
from benchmarks.zoo.folder import LARGEST, LICENCE, size_of
from dialgym.experiments.panel import panel_named
from dialgym.experiments.result import DRAWN
from dialgym.experiments.row import model_hash
from dialgym.experiments.zoo import ZooAgent, model_file, read_zoo
from dialgym.io.saved_models import zoo_names

ROOT = Path(__file__).parents[2]
AGENTS = read_zoo()
DIALOGUES, SEED = 50, 33_000_000
DEVIATIONS = 3.0
"""Standard errors of 50 dialogues that their mean may be away: three of a thousand are farther."""


SMALLEST = min(AGENTS, key=lambda agent: agent.bytes)
"""The agent that plays in the fast tests."""
EACH = [
    pytest.param(agent, id=agent.name, marks=[] if agent is SMALLEST else [pytest.mark.slow])
    for agent in AGENTS
]


def mean_of(policy: object, agent: ZooAgent) -> tuple[float, float]:
    """The mean return of new dialogues, and the standard error of it."""
    result = dialgym.evaluate(
        policy,
        agent.id,
        DIALOGUES,
        [SEED],
        dict(agent.settings),
        deterministic=agent.actions != DRAWN,
    )
    error = max(float(result.overall.returns.std(ddof=1)), agent.deviation) / np.sqrt(DIALOGUES)
    return result.mean_return, error


def is_as_its_row_says(policy: object, agent: ZooAgent) -> bool:
    """Return True if the mean lies in the row's interval, but for the noise of 50 dialogues."""
    mean, error = mean_of(policy, agent)
    _, low, high = agent.mean_return
    return low - DEVIATIONS * error <= mean <= high + DEVIATIONS * error


@pytest.mark.parametrize("agent", EACH)
def test_an_agent_plays_as_its_row_says(agent: ZooAgent):
    assert is_as_its_row_says(agent.place, agent)


@pytest.mark.parametrize("agent", EACH)
@pytest.mark.slow
def test_an_agent_with_shuffled_weights_does_not(agent: ZooAgent):
    model = agents.load(agent.place, device="cpu")
    draws = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.policy.parameters():
            flat = weight.flatten()
            weight.copy_(flat[torch.randperm(len(flat), generator=draws)].reshape(weight.shape))
    assert not is_as_its_row_says(model, agent)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_it_loads_without_a_pickle(agent: ZooAgent, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a pickle was read")

    agents.load(agent.place, device="cpu")  # imports what has unpicklers of its own
    for owner, name in (
        (pickle, "load"),
        (pickle, "loads"),
        (pickle, "Unpickler"),
        (torch, "load"),
    ):
        monkeypatch.setattr(owner, name, refuse)
    model = agents.load(agent.place, device="cpu")
    assert hasattr(model, "predict")
    with zipfile.ZipFile(model_file(agent)) as archive:
        kinds = {Path(name).suffix for name in archive.namelist()}
    assert kinds == {".json", ".safetensors"}


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_its_card_says_where_it_is_from(agent: ZooAgent):
    card = (ROOT / "zoo" / agent.name / "README.md").read_text("utf-8")
    head = yaml.safe_load(card.split("---\n")[1])
    assert head["license"] == LICENCE.lower()
    assert agent.id in head["tags"]
    assert f"{agent.mean_return.value:.3f}" in card
    for fact in ("task", "row", "seed", "chosen", "command", "versions", "licence"):
        assert f"\n| {fact} | " in card


def test_the_folder_is_what_its_index_says():
    folder = ROOT / "zoo"
    assert size_of(folder) <= LARGEST
    assert [agent.name for agent in AGENTS] == zoo_names()
    for agent in AGENTS:
        assert model_hash(model_file(agent)) == {"weights": agent.model}
        assert panel_named(agent.panel).environment(agent.id)
        known = ("model.zip", "README.md", "config.yml", "learning_curve.csv")
        assert {path.name for path in (folder / agent.name).iterdir()} <= {*known}
    page = (folder / "README.md").read_text("utf-8")
    assert all(f"[`{agent.place}`]({agent.name}/README.md)" in page for agent in AGENTS)
