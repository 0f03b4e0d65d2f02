"""Agents and dialogues on a hub, which stands in for Hugging Face's, and in folders."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

import agents
import dialgym
from agents import SequencePPO
from agents.storage.locate import beside, named_from
from dialgym.datasets import load_dataset
from dialgym.datasets.readme import code, plain
from dialgym.io.hub import SourceError, publish
from tests.support.by_day import by_day
from tests.support.commands import fail, succeed
from tests.support.hub_server import running

ROOT = Path(__file__).parents[3]
ENV = "dialgym/Wordle-20-v0"
SMALL = {"preset": "nano", "n_layer": 1, "n_head": 1, "n_embd": 8}
SAID = [{"turns": ["Hello.", "How can I help you?", "Tea!", "Here."], "rating": 2}] * 3


@pytest.fixture(scope="module")
def model():
    return SequencePPO("GPTPolicy", dialgym.sb3_vec_env(ENV, 2), policy_kwargs=SMALL, device="cpu")


def head_of(text):
    return yaml.safe_load(text.split("---\n")[1])


def test_an_agent_in_a_folder(model, tmp_path):
    scores = dialgym.evaluate("random", ENV, episodes=10, seeds=[0])
    where = agents.push_to_hub(model, str(tmp_path / "agent"), scores)
    assert where == str(tmp_path / "agent")
    text = (tmp_path / "agent" / "README.md").read_text("utf-8")
    low, high = scores.interval
    row = f"| {scores.mean_return:.3f} | {low:.3f} to {high:.3f} | {scores.success:.1%} |"
    assert row in text
    head = head_of(text)
    assert {"dialgym", "ppo", ENV} <= {*head["tags"]}
    [found] = head["model-index"][0]["results"]
    assert found["dataset"]["name"] == ENV
    again = agents.from_hub(where, device="cpu")
    assert isinstance(again, SequencePPO)
    assert dialgym.evaluate(where, ENV, episodes=2, seeds=[0]).mean_return <= 0
    with pytest.raises(ValueError, match="holds something already"):
        agents.push_to_hub(model, where)


@pytest.fixture
def adapted(tmp_path):
    """A run of PPO that has put adapters on a tiny random language model, and that model."""
    tokenizers, peft = pytest.importorskip("tokenizers"), pytest.importorskip("peft")
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    assert peft
    base = tmp_path / "somewhere" / "lm"
    bpe = tokenizers.ByteLevelBPETokenizer()
    bpe.train_from_iterator(["the crane ate the slate"], vocab_size=270)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer)
    fast.save_pretrained(base)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(fast), hidden_size=8, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=1, num_key_value_heads=1, max_position_embeddings=512,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(base)
    kwargs = {"pretrained": str(base), "lora": {"r": 2}}
    env = dialgym.sb3_vec_env(ENV, 2, seed=0, tokenizer=f"hf:{base}")
    model = SequencePPO("GPTPolicy", env, n_steps=8, policy_kwargs=kwargs, device="cpu", seed=0)
    model.save(tmp_path / "run" / "model.zip")
    config = {"tokenizer": f"hf:{base}", "pretrained": str(base), "other": f"{base}-2"}
    (tmp_path / "run" / "config.yml").write_text(yaml.safe_dump(config))
    return tmp_path / "run", model, base


@pytest.mark.parametrize("given", by_day(["run", "model"], "run"))
def test_what_an_agent_was_made_of_goes_with_it(adapted, tmp_path, monkeypatch, given):
    run, model, base = adapted
    pushed = agents.push_to_hub(run if given == "run" else model, str(tmp_path / "out"))
    folder = (tmp_path / "elsewhere").resolve()
    Path(pushed).rename(folder)
    (folder / "model.zip").rename(tmp_path / "blob")
    (folder / "model.zip").symlink_to(tmp_path / "blob")  # as in the cache of the hub
    base.rename(tmp_path / "gone")
    texts = [file.read_bytes() for file in folder.iterdir() if file.is_file()]
    with zipfile.ZipFile(folder / "model.zip") as archive:
        texts += [archive.read(name) for name in archive.namelist()]
    texts = [text.replace(f"{base}-2".encode(), b"") for text in texts]
    assert not any(str(tmp_path).encode() in text for text in texts)
    if given == "run":
        config = yaml.safe_load((folder / "config.yml").read_text("utf-8"))
        named = {"tokenizer": "hf:./base", "pretrained": "./base", "other": f"{base}-2"}
        assert config == named
    again = SequencePPO.load(folder, device="cpu")
    for name, weight in model.policy.state_dict().items():
        assert weight.equal(again.policy.state_dict()[name])
    card = (folder / "README.md").read_text("utf-8")
    [command] = [line for line in card.splitlines() if line.startswith("dialgym evaluate")]
    monkeypatch.chdir(folder)
    assert "Wordle-20-v0" in succeed(*command.split()[1:], "-n", "2", "--seeds", "0")


def test_what_lies_beside_a_file_is_found_behind_links(tmp_path):
    lm, link = tmp_path / "run" / "lm", tmp_path / "latest.zip"
    lm.mkdir(parents=True)
    (tmp_path / "run" / "model.zip").touch()
    link.symlink_to(tmp_path / "run" / "model.zip")
    assert beside(link, "./lm") == str(lm)
    name = named_from(link, str(lm))
    link.unlink()  # by what is written in its place
    link.touch()
    assert beside(link, name) == str(lm)


def test_a_reference_made_of_a_pretrained_model_goes_with_it(adapted, tmp_path):
    run, model, base = adapted
    kl = {"coef": 0.1, "reference": str(run / "model.zip")}
    small = {"preset": "nano", "n_layer": 1, "n_head": 1, "n_embd": 8}
    ours = SequencePPO("GPTPolicy", model.env, n_steps=8, kl=kl, policy_kwargs=small, device="cpu")
    ours.save(tmp_path / "ours" / "model.zip")
    expected = ours.reference.state_dict()
    folder = Path(agents.push_to_hub(ours, str(tmp_path / "out")))
    base.rename(tmp_path / "ours" / base.name)
    for file in (folder, tmp_path / "ours" / "model.zip"):
        again = agents.load(file, device="cpu")
        for name, weight in again.reference.state_dict().items():
            assert weight.equal(expected[name])


def test_a_run_takes_its_curve_with_it(model, tmp_path):
    run = tmp_path / "run"
    model.save(run / "model.zip")
    (run / "learning_curve.csv").write_text("timesteps\n1\n")
    agents.push_to_hub(run, str(tmp_path / "out"))
    assert (tmp_path / "out" / "learning_curve.csv").is_file()
    assert "It has not been scored." in (tmp_path / "out" / "README.md").read_text("utf-8")


def test_a_card_in_a_folder_names_no_other_folder(model, tmp_path):
    agents.push_to_hub(model, f"hf:{tmp_path}/agent")
    assert str(tmp_path) not in (tmp_path / "agent" / "README.md").read_text("utf-8")


def test_dialogues_in_a_folder(tmp_path):
    dataset = dialgym.Dataset.from_dialogues(SAID, tmp_path / "data")
    where = dataset.push_to_hub(str(tmp_path / "out"))
    assert load_dataset(where).returns.tolist() == [2, 2, 2]
    text = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert head_of(text)["configs"] == [{"config_name": "default", "data_files": "*.parquet"}]
    assert "system: How can I help you?" in text


def test_the_command(model, tmp_path):
    model.save(tmp_path / "run" / "model.zip")
    file = tmp_path / "scores.json"
    dialgym.evaluate("random", ENV, episodes=5, seeds=[0]).to_json(file)
    out = str(tmp_path / "out")
    assert succeed("push", str(tmp_path / "run"), out, "--scores", str(file)).strip() == out
    assert f"| {ENV.replace('_', '')} | random |" in (tmp_path / "out" / "README.md").read_text()
    dialgym.Dataset.from_dialogues(SAID, tmp_path / "data")
    succeed("push", str(tmp_path / "data"), str(tmp_path / "talk"))
    assert len(load_dataset(tmp_path / "talk")) == 3
    assert "is no agent" in fail("push", str(tmp_path / "data"), "x", "--scores", str(file))
    assert "no saved model at" in fail("push", str(tmp_path / "nothing.zip"), "x")


SCRIPT = """
import sys
import agents, dialgym
from tests.agents.training.test_publishing import ENV, SAID, SMALL

env = dialgym.sb3_vec_env(ENV, 2)
model = agents.SequencePPO("GPTPolicy", env, policy_kwargs=SMALL, device="cpu", seed=0)
scores = dialgym.evaluate("random", ENV, episodes=5, seeds=[0])
agents.push_to_hub(model, "hf:me/other", scores)
agents.push_to_hub(model, "hf:me/other")
name = agents.push_to_hub(model, "hf:me/agent", scores)
print(name)
again = agents.from_hub(name, device="cpu")
assert (again.policy.backbone.embedding == model.policy.backbone.embedding).all()
print(dialgym.evaluate("hf:me/agent", ENV, episodes=2, seeds=[0]).mean_return <= 0)
folder = model.save_pretrained(sys.argv[1] + "/lm")
from dialgym.io.hub import publish
publish(folder, "hf:me/lm", "a language model")
print(type(agents.load("hf:me/lm", device="cpu")).__name__)
data = dialgym.Dataset.from_dialogues(SAID, sys.argv[1] + "/data")
name = data.push_to_hub("hf:me/talk")
again = dialgym.load_dataset(name)
env_id, settings = again.environment()
print(len(again), dialgym.make(env_id, **settings).unwrapped.task.name)
try:
    agents.from_hub("hf:me/nothing")
except FileNotFoundError as error:
    print("could not be fetched" in str(error))
"""


def on(address, tmp_path, code, **more):
    env = {
        **os.environ, "PYTHONPATH": str(ROOT), "HF_ENDPOINT": address, "HF_TOKEN": "hf_x",
        "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1", **more,
    }  # fmt: skip
    for name in ("DIALGYM_OFFLINE", "HF_HUB_OFFLINE"):
        env.pop(name, None)
    command = [sys.executable, "-c", code, str(tmp_path)]
    return subprocess.run(command, env=env, capture_output=True, text=True, cwd=tmp_path)


@pytest.mark.slow
def test_there_and_back_by_the_hub(tmp_path):
    with running() as (address, hub):
        result = on(address, tmp_path, SCRIPT)
        assert result.returncode == 0, result.stderr[-3000:]
        lines = result.stdout.splitlines()
        assert lines[0].startswith("hf:me/agent@")
        assert lines[1:] == ["True", "ChatAgent", "3 Logged", "True"]
        assert {"README.md", "model.zip", "results.json"} <= {*hub.files["models", "me/agent"]}
        assert {*hub.files["models", "me/other"]} == {"README.md", "model.zip"}
        talk = hub.files["datasets", "me/talk"]
        assert {"README.md", "dialogues.parquet", "logged.json", "tokenizer.json"} <= {*talk}
        refused = on(address, tmp_path, SCRIPT, HF_TOKEN="")
        assert refused.returncode == 1
        assert "could not be written on the Hugging Face hub. Check the name" in refused.stderr


def test_what_cannot_be_published(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALGYM_OFFLINE", "1")
    with pytest.raises(SourceError, match="forbids to ask the hub"):
        publish(tmp_path, "hf:me/x", "it")
    with pytest.raises(ValueError, match=r"expected hf:NAME to publish to; got 'hf:me/x@main'"):
        publish(tmp_path, "hf:me/x@main", "it")
    with pytest.raises(ValueError, match=r"expected hf:NAME or hf:NAME@REVISION"):
        publish(tmp_path, "hf:a b", "it")


def test_text_on_a_card_stays_text():
    assert plain("<script>|*x*\n# y") == r"&#60;script&#62;&#124;\*x\* \# y"
    assert code("a\n```\nb").startswith("````\n")
