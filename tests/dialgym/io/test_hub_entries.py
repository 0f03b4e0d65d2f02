"""Everything that takes a name of the hub: offline it asks nobody, and says so."""

import json
import socket

import gymnasium as gym
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("datasets")
import agents
import dialgym
from agents.models.pretrained import load_backbone
from agents.reward_model.network import make_network
from agents.reward_model.reward_model_config import RewardModelConfig
from dialgym.io import hub
from dialgym.language import CharTokenizer
from dialgym.language.tokenizers import make_tokenizer
from dialgym.rewards import Reply, make_reward
from dialgym.tasks.multiwoz.corpus import MultiWOZCorpus
from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.visual_dialogue.visdial import VisDialPool

REPLY = [Reply("a", ("b",), ("c",))]
ENTRIES = {
    "tokenizer": lambda name: make_tokenizer(name, "ab"),
    "tokenizer of an env": lambda name: gym.make("dialgym/Comments-v0", tokenizer=name),
    "pretrained": lambda name: load_backbone(name, CharTokenizer("ab"), 8),
    "reward": lambda name: make_reward("learned", {"model": name}).score(REPLY),
    "similarity": lambda name: make_reward("similarity", {"model": name}).score(REPLY),
    "chat": lambda name: agents.ChatAgent.load(name),
    "chat as a simulator": lambda name: agents.ChatAgent(name),
    "policy": lambda name: dialgym.evaluate(name, "dialgym/Wordle-20-v0", episodes=1),
    "agent": agents.load,
    "agent of the hub": agents.from_hub,
    "logged dialogues": lambda name: gym.make("dialgym/Logged-v0", data=name),
    "dialogues to import": dialgym.Dataset.from_dialogues,
    "base of a reward model": lambda name: make_network(name, "bpe", RewardModelConfig(), 0),
    "dialogues": dialgym.load_dataset,
    "dialogues, streamed": lambda name: dialgym.load_dataset(name, streaming=True),
    "dialogues of a run": lambda name: agents.train(
        "dialgym/Wordle-20-v0", "bc", total_timesteps=1, data=name
    ),
    "comments": lambda name: gym.make("dialgym/Comments-v0", data=name),
    "daily dialogues": lambda name: gym.make("dialgym/DailyDialog-v0", data=name),
    "questions": lambda name: gym.make("dialgym/TwentyQuestions-v0", table=name),
    "images": VisDialPool,
    "images of an env": lambda name: gym.make(
        "dialgym/VisualDialogue-v0", pool={"name": "visdial", "data": name}
    ),
    "world": load_world,
    "world of an env": lambda name: gym.make("dialgym/MultiWOZ-v0", world=name),
    "corpus": MultiWOZCorpus,
}


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """No network, and nothing fetched before."""

    def refuse(*args, **more):
        pytest.fail(f"it asks {args}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("builtins.input", refuse)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DIALGYM_OFFLINE", "1")


@pytest.mark.parametrize("enter", ENTRIES.values(), ids=ENTRIES)
def test_offline(enter, alone):
    with pytest.raises(ValueError, match=r"'hf:no-one/nothing@v1' was not fetched before, and"):
        enter("hf:no-one/nothing@v1")
    assert not hub.commits()


@pytest.mark.parametrize("enter", ENTRIES.values(), ids=ENTRIES)
def test_a_name_without_its_prefix(enter, alone):
    with pytest.raises(ValueError, match=r"'no-one/nothing'.*(hf:no-one/nothing|hf:NAME)"):
        enter("no-one/nothing")


def test_the_base_of_an_adapter_is_not_fetched(alone, tmp_path, monkeypatch):
    """It is named by a file, and not by the caller; this holds online too."""
    monkeypatch.delenv("DIALGYM_OFFLINE")
    named = {"base_model_name_or_path": "no-one/nothing", "peft_type": "LORA"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(named))
    with pytest.raises(ValueError, match="expected a saved agent, or a causal language model"):
        agents.ChatAgent.load(tmp_path)
