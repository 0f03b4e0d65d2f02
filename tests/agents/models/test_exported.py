"""Agents as language models of `transformers`: the same logits, words and dialogues."""

import json
import shutil

import pytest
import torch
import transformers
from gymnasium import spaces

import agents
import dialgym
from agents import BC, ILQL, ChatAgent, GPTPolicy, SequencePPO
from agents.chat.language_model import CausalTalker
from agents.models.exported import exported_ids
from dialgym.language import BPETokenizer, HFTokenizer, WordTokenizer
from dialgym.language.tokenizers import TAGS
from tests.agents.models.test_backbones import CLOSE
from tests.agents.models.test_pretrained import save_model

ENV = "dialgym/Wordle-20-v0"
SMALL = {"preset": "nano", "n_layer": 2, "n_head": 2, "n_embd": 16}
ROOM = {"gpt2": {"n_positions": 64}, "llama": {"max_position_embeddings": 64}}
ROOM["qwen3"] = ROOM["llama"]
WORDS = WordTokenizer(["crane", "shine", "g", "y", "b"])


def trained(tokenizer=None, algorithm=SequencePPO, **policy):
    """A model whose weights are none that anything would begin with."""
    if tokenizer is None:
        env = dialgym.sb3_vec_env(ENV, 2, window=60)
    else:
        env = dialgym.sb3_vec_env("dialgym/Logged-v0", 2, tokenizer=tokenizer)
    model = algorithm("GPTPolicy", env, policy_kwargs=policy or SMALL, device="cpu", seed=0)
    for weight in model.policy.parameters():
        with torch.no_grad():
            weight.add_(0.1 * torch.randn_like(weight))
    return model


def logits_of(model, ids):
    with torch.no_grad():
        return model.policy.policy_head(model.policy.backbone(ids))


def check_same(model, folder, reader=transformers.AutoModelForCausalLM.from_pretrained):
    """The logits of a folder are those of the model, at the ids that it has for them."""
    tokenizer = model.policy.token_space.tokenizer
    torch.manual_seed(0)
    ids = torch.randint(1, tokenizer.vocab_size, (3, 12))
    lm = reader(folder).eval()
    with torch.no_grad():
        theirs = lm(exported_ids(tokenizer, ids)).logits
    every = exported_ids(tokenizer, torch.arange(tokenizer.vocab_size))
    torch.testing.assert_close(theirs[..., every], logits_of(model, ids), **CLOSE)


@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize(
    "tokenizer", [None, WORDS, BPETokenizer()], ids=lambda made: type(made).__name__
)
def test_a_preset_leaves_with_its_ids_and_words(tokenizer, tie, tmp_path):
    model = trained(tokenizer, **SMALL, tie=tie)
    folder = model.save_pretrained(tmp_path / "lm")
    check_same(model, folder)
    ours = model.policy.token_space.tokenizer
    own = transformers.AutoTokenizer.from_pretrained(folder)
    for text in ("crane", "b y b"):
        assert own(text, add_special_tokens=False).input_ids == ours.encode(text)
        assert own.decode(ours.encode(text)) == text
    prompt = own.apply_chat_template(
        [{"role": "assistant", "content": "crane"}, {"role": "user", "content": "b"}],
        add_generation_prompt=True, return_dict=False,
    )  # fmt: skip
    system, user = TAGS["system"], TAGS["user"]
    expected = [system, *ours.encode("crane"), 1, user, *ours.encode("b"), 1, system]
    assert list(prompt) == expected


@pytest.mark.parametrize("tie", [True, False])
def test_rotary_positions_leave_as_gpt_neox(tie, tmp_path):
    model = trained(**SMALL, tie=tie, positions="rotary")
    folder = model.save_pretrained(tmp_path / "lm")
    check_same(model, folder)
    assert json.loads((folder / "config.json").read_text())["model_type"] == "gpt_neox"


@pytest.mark.parametrize("tie", [True, False])
def test_a_temperature_leaves_within_the_weights(tie, tmp_path):
    model = trained(**SMALL, tie=tie, temperature=0.5)
    check_same(model, model.save_pretrained(tmp_path / "lm"))


@pytest.mark.parametrize(("kind", "tie"), [("gpt2", True), ("llama", False), ("qwen3", True)])
def test_a_pretrained_model_leaves_as_it_came(kind, tie, tmp_path):
    save_model(tmp_path / "base", kind, tie, **ROOM[kind])
    tokenizer = HFTokenizer(str(tmp_path / "base"))
    env = dialgym.sb3_vec_env("dialgym/Logged-v0", 1, tokenizer=tokenizer, window=60)
    base = {"pretrained": str(tmp_path / "base")}
    model = BC("GPTPolicy", env, policy_kwargs=base, device="cpu")
    check_same(model, model.save_pretrained(tmp_path / "lm"))
    own = transformers.AutoTokenizer.from_pretrained(tmp_path / "lm")
    base = transformers.AutoTokenizer.from_pretrained(tmp_path / "base")
    assert own("ab c d").input_ids == base("ab c d").input_ids
    assert own.convert_ids_to_tokens(len(base) + 1) == "<|dialgym_end|>" == own.eos_token


@pytest.mark.parametrize("kind", ["llama", "learned", "rotary"])
def test_adapters_merged_and_apart(kind, tmp_path):
    peft = pytest.importorskip("peft")
    lora = {"r": 2, "alpha": 8}
    if kind == "llama":
        save_model(tmp_path / "base", "llama", False, **ROOM["llama"])
        model = trained(pretrained=str(tmp_path / "base"), lora=lora)
    else:
        model = trained(**SMALL, lora=lora, positions=kind)
    check_same(model, model.save_pretrained(tmp_path / "merged"))
    base = model.save_pretrained(tmp_path / "apart", lora="apart")

    def with_adapter(folder):
        lm = transformers.AutoModelForCausalLM.from_pretrained(folder)
        return peft.PeftModel.from_pretrained(lm, folder / "adapter")

    check_same(model, base, with_adapter)
    config = json.loads((base / "adapter" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"]) == (2, 8)
    with pytest.raises(ValueError, match="lora of save_pretrained must be one of 'merged', 'apar"):
        model.save_pretrained(tmp_path / "x", lora="off")


def test_a_folder_talks_as_the_agent_does(tmp_path):
    model = trained(BPETokenizer())
    folder = model.save_pretrained(tmp_path / "lm")
    ours, theirs = ChatAgent.load(model), ChatAgent.load(folder, device="cpu")
    for text, history in (("My lamp is broken.", ["Hello?", "Hello."]), ("Yes, please.", [])):
        said = [
            agent.chat(text, history, deterministic=True, max_tokens=8) for agent in (ours, theirs)
        ]
        assert said[0].strip() == said[1]


def test_what_cannot_leave(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    model = trained()
    with pytest.raises(ValueError, match="holds other things than a model"):
        model.save_pretrained(tmp_path / "full")
    acts = dialgym.sb3_vec_env("dialgym/CamRestaurants-Env1-act-v0", 1)
    with pytest.raises(ValueError, match="expected a GPT policy"):
        ILQL("MlpPolicy", acts, device="cpu").save_pretrained(tmp_path / "x")
    for part, policy in {
        "return_embedding": trained(algorithm=agents.DecisionTransformer).policy,
        "features": featured(model.env),
    }.items():
        with pytest.raises(ValueError, match=f"follows from the tokens alone, got .* with {part}"):
            policy.save_pretrained(tmp_path / "x")


def featured(env):
    beside = {"tokens": env.observation_space, "features": spaces.Box(-1, 1, (2,))}
    return GPTPolicy(spaces.Dict(beside), env.action_space, lambda _: 1e-3, **SMALL)


# A model that was made of another one


def test_a_base_that_moved_with_the_file_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_model(tmp_path / "work" / "base", "gpt2", n_positions=64)
    model = trained(pretrained="work/base")
    model.save("work/run/model.zip")
    (tmp_path / "work").rename(tmp_path / "elsewhere")
    monkeypatch.chdir("/")
    again = agents.load(tmp_path / "elsewhere" / "run" / "model.zip", device="cpu")
    assert again.policy_kwargs["pretrained"] == str(tmp_path / "elsewhere" / "base")
    assert isinstance(again.policy, GPTPolicy)
    shutil.rmtree(tmp_path / "elsewhere" / "base")
    with pytest.raises(FileNotFoundError) as caught:
        agents.load(tmp_path / "elsewhere" / "run" / "model.zip", device="cpu")
    assert f"the language model in {str(tmp_path / 'work' / 'base')!r}" in str(caught.value)
    assert "Put its folder 'base' beside the file" in str(caught.value)


# A folder of any language model is a policy


def test_a_folder_is_scored_played_collected_and_compared(tmp_path):
    save_model(tmp_path / "lm", "gpt2", n_positions=128)
    result = dialgym.evaluate(str(tmp_path / "lm"), ENV, episodes=2, seeds=[0])
    assert result.mean_return == -6
    games = dialgym.collect(ENV, tmp_path / "lm", 2)
    assert {*games["policy"].tolist()} == {"lm"}
    model = trained()
    model.save_pretrained(tmp_path / "left")
    assert dialgym.evaluate(tmp_path / "left", ENV, episodes=2, seeds=[0]).mean_return <= 0
    agent = agents.load(tmp_path / "left")
    assert isinstance(agent, ChatAgent)
    with pytest.raises(ValueError, match="or of a language model's folder, will do"):
        dialgym.evaluate("optimall", ENV, episodes=1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"or a language model with config\.json, at"):
        dialgym.evaluate(tmp_path / "empty", ENV, episodes=1)


def test_no_more_is_said_than_a_task_looks_at(tmp_path, monkeypatch):
    save_model(tmp_path / "lm", "gpt2", n_positions=128)
    asked = []
    answer = CausalTalker.answer

    def spied(self, turns, sampling, generator):
        asked.append(sampling.max_tokens)
        return answer(self, turns, sampling, generator)

    monkeypatch.setattr(CausalTalker, "answer", spied)
    dialgym.evaluate(tmp_path / "lm", ENV, episodes=1, seeds=[0])
    agent = ChatAgent.load(tmp_path / "lm", device="cpu", max_tokens=3)
    dialgym.evaluate(agent, ENV, episodes=1, seeds=[0])
    limit = dialgym.make(ENV).unwrapped.task.facts.limit("system")
    assert asked == [limit] * 6 + [3] * 6


def test_the_command_line_takes_a_folder(tmp_path):
    from tests.support.commands import succeed

    save_model(tmp_path / "lm", "llama", max_position_embeddings=128)
    folder = str(tmp_path / "lm")
    assert "lm" in succeed("evaluate", folder, "Wordle-20-v0", "-n", "1", "--seeds", "0")
    assert "Not solved" in succeed("play", "Wordle-20-v0", "--policy", folder, "--seed", "0")
