"""The recipe of a pretrained language model: cloned, then PPO near the clone, by two files."""

import csv
import json
from pathlib import Path

import pytest
import tokenizers
import torch
import transformers
import yaml

import agents
from tests.support.commands import succeed

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def gpt2(tmp_path, pretend_hub):
    """A tiny random GPT-2 under the name of the great one."""
    folder = tmp_path / "lm"
    bpe = tokenizers.ByteLevelBPETokenizer()
    bpe.train_from_iterator(["How are you? Very well, thank you."], vocab_size=280)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer, eos_token="<|endoftext|>"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(fast), n_positions=1024, n_embd=8, n_layer=1, n_head=1
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    pretend_hub.add("gpt2", folder)


@pytest.mark.slow
def test_a_clone_and_ppo_by_the_files(gpt2, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    brief = ["-p", "batch_size=4", "--final-episodes", "2", "--device", "cpu"]
    succeed("train", "--config", str(EXAMPLES / "gpt2_clone.yml"), "--timesteps", "3", *brief)
    few = ["-p", "n_epochs=1", "--n-envs", "4", "--timesteps", "160", "--eval-freq", "0"]
    succeed("train", "--config", str(EXAMPLES / "gpt2_ppo.yml"), *brief, *few)
    clone, model = (agents.load(f"runs/gpt2-{name}/model.zip") for name in ("clone", "ppo"))
    assert model.num_timesteps == 160
    assert model.kl.target == 0.05
    before, after = (m.policy.state_dict() for m in (clone, model))
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert any("lora_" in name for name in moved)
    assert all("lora_" in name or name.startswith("value_head") for name in moved)
    with open("runs/gpt2-ppo/learning_curve.csv", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 2
    assert (
        json.loads(Path("runs/gpt2-ppo/run.json").read_text("utf-8"))["config"]["algorithm"]
        == "ppo"
    )


def test_both_halves_are_of_one_model():
    clone, ppo = (
        yaml.safe_load((EXAMPLES / f"gpt2_{name}.yml").read_text("utf-8"))
        for name in ("clone", "ppo")
    )
    assert clone["env_kwargs"] == ppo["env_kwargs"]
    assert ppo["init_from"] == f"{clone['log_dir']}/model.zip"
    kwargs = [one["hyperparameters"]["policy_kwargs"] for one in (clone, ppo)]
    assert kwargs[0] == kwargs[1]
