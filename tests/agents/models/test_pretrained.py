"""Pretrained models in an environment's vocabulary: the rows that they should have, no others."""

import shutil

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from agents import GPTPolicy, SequencePPO
from agents.models.gpt import GPT
from agents.models.hugging_face import HuggingFaceBackbone
from agents.models.pretrained import load_backbone
from agents.models.vocabulary import _means
from agents.storage.archive import Archive
from agents.storage.base_weights import digest
from dialgym.io import hub
from dialgym.language import CharTokenizer, HFTokenizer, WordTokenizer
from dialgym.language.tokenizers import END, FIRST_TEXT, PAD, TAGS, UNK
from tests.agents.models.test_backbones import CLOSE, config_of
from tests.support.by_day import by_day
from tests.support.pretend_hub import COMMIT
from tests.support.toy_tokens import TOKENIZER, Echo, V, box

PIECES = ["<|eos|>", "?", "a", "b", "c", "d", "ab", "system", "us", "er", "long"]
TEXT = FIRST_TEXT + 1  # the first token that is text: <|eos|> is none
ROWS, WINDOW = 13, 20  # the model has two rows more than its tokenizer has tokens


def save_model(folder, model_type="gpt2", tie=True, **changes):
    """Write a random tiny model with a tokenizer of `PIECES`; returns the model."""
    torch.manual_seed(0)
    changes = {"vocab_size": ROWS, "tie_word_embeddings": tie, "bos_token_id": 0, **changes}
    config = config_of(model_type, eos_token_id=0, **changes)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return model


def save_tokenizer(folder):
    core = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(
            {piece: i for i, piece in enumerate(PIECES)},
            unk_token="?",
            continuing_subword_prefix="",
        )
    )
    core.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    own = transformers.PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|eos|>")
    own.save_pretrained(folder)
    return own


def rows_of(table: torch.Tensor, *pieces: str) -> torch.Tensor:
    return table[[PIECES.index(piece) for piece in pieces]].mean(0)


def check_specials(new: torch.Tensor, table: torch.Tensor) -> None:
    expected = {
        PAD: table.mean(0),
        END: table[0],
        UNK: table.mean(0),
        TAGS["system"]: rows_of(table, "system"),
        TAGS["user"]: rows_of(table, "us", "er"),
    }
    for token, row in expected.items():
        torch.testing.assert_close(new[token], row)


def test_gpt2_becomes_our_gpt_with_the_same_hidden_states(tmp_path):
    theirs = save_model(tmp_path).transformer
    tokenizer = HFTokenizer(save_tokenizer(tmp_path))
    ours, head = load_backbone(str(tmp_path), tokenizer, WINDOW)
    assert isinstance(ours, GPT)
    assert head is None
    assert (ours.window, ours.config.vocab_size) == (WINDOW, FIRST_TEXT + len(PIECES))
    tokens = torch.randint(1, len(PIECES), (3, WINDOW))
    with torch.no_grad():
        expected = theirs(tokens).last_hidden_state
        torch.testing.assert_close(ours(tokens + FIRST_TEXT), expected, **CLOSE)


@pytest.mark.parametrize("model_type", ["llama", "qwen3", "gpt_neox", "opt"])
@pytest.mark.parametrize("tie", [True, False])
def test_any_other_model_keeps_its_hidden_states_and_logits(model_type, tie, tmp_path):
    lm = save_model(tmp_path, model_type, tie)
    ours, head = load_backbone(str(tmp_path), HFTokenizer(save_tokenizer(tmp_path)), WINDOW)
    assert isinstance(ours, HuggingFaceBackbone)
    assert (head is None) == tie
    tokens = torch.randint(1, len(PIECES), (3, WINDOW))
    with torch.no_grad():
        hidden = ours(tokens + FIRST_TEXT)
        logits = hidden @ (ours.embedding if head is None else head).T
        torch.testing.assert_close(logits[..., TEXT:], lm(tokens).logits[..., 1 : len(PIECES)])


@pytest.mark.parametrize("model_type", ["gpt2", "llama"])
def test_rows_of_the_models_own_tokens(model_type, tmp_path):
    lm = save_model(tmp_path, model_type, tie=False)
    backbone, head = load_backbone(str(tmp_path), HFTokenizer(str(tmp_path)), WINDOW)
    for new, old in (
        (backbone.embedding, lm.get_input_embeddings()),
        (head, lm.get_output_embeddings()),
    ):
        assert torch.equal(new[TEXT:], old.weight[1 : len(PIECES)])
        check_specials(new, old.weight)
        torch.testing.assert_close(new[FIRST_TEXT], old.weight.mean(0))  # END has its own row


def test_rows_of_other_tokens_are_means_of_pieces(tmp_path):
    table = save_model(tmp_path).transformer.wte.weight
    chars, _ = load_backbone(str(tmp_path), CharTokenizer("dab "), WINDOW)
    expected = [rows_of(table, "d"), rows_of(table, "a"), rows_of(table, "b"), table.mean(0)]
    torch.testing.assert_close(chars.embedding[FIRST_TEXT:], torch.stack(expected))
    check_specials(chars.embedding, table)
    words, _ = load_backbone(str(tmp_path), WordTokenizer(["abcd", "long"]), WINDOW)
    expected = [rows_of(table, "ab", "c", "d"), rows_of(table, "long")]
    torch.testing.assert_close(words.embedding[FIRST_TEXT:], torch.stack(expected))


def test_rows_are_the_same_to_the_bit_on_every_cpu():
    """A file of adapters knows the model beneath them by a digest of these rows."""
    table = torch.from_numpy(np.random.default_rng(0).normal(size=(3000, 24)).astype(np.float32))
    pieces = [[], *(list(range(first, first + 1 + first % 7)) for first in range(200))]
    expected = "b4f6649e7d6a935125022df62ec0a485d2eb4c5773eba325d7f869073890b9fc"
    assert digest({"wte.weight": _means(table, pieces)}) == expected


def test_models_that_cannot_be_used_are_explained(tmp_path):
    with pytest.raises(ValueError, match=r"pretrained model: there is no file .*/nothing'"):
        load_backbone(str(tmp_path / "nothing"), TOKENIZER, WINDOW)
    save_model(tmp_path)
    with pytest.raises(ValueError, match=r"learned positions for 32 \(n_positions\)"):
        load_backbone(str(tmp_path), TOKENIZER, 33)
    shutil.rmtree(tmp_path)
    save_model(tmp_path, "phi", tie=False)
    with pytest.raises(ValueError, match=r"\(phi\): expected an output head that is one matrix"):
        load_backbone(str(tmp_path), TOKENIZER, WINDOW)


def test_a_tokenizer_that_the_model_does_not_know_is_one_clear_error(tmp_path):
    save_model(tmp_path, vocab_size=9)  # of eleven pieces
    message = r"has 11 tokens but its embedding 9 rows, so that 9 \('er'\) means nothing"
    with pytest.raises(ValueError, match=message):
        load_backbone(str(tmp_path), TOKENIZER, WINDOW)


def test_a_gpt2_of_another_kind_is_left_to_transformers(tmp_path):
    save_model(tmp_path, activation_function="relu")
    backbone, _ = load_backbone(str(tmp_path), TOKENIZER, WINDOW)
    assert isinstance(backbone, HuggingFaceBackbone)


# In a policy


def policy(space=None, **kwargs) -> GPTPolicy:
    return GPTPolicy(space or box(WINDOW), spaces.Discrete(V), lambda _: 1e-3, **kwargs)


@pytest.mark.parametrize(("tied", "tie"), [(True, True), (True, False), (False, True)])
def test_the_first_policy_is_the_language_model(tied, tie, tmp_path):
    save_model(tmp_path, "llama", tied)
    p = policy(pretrained=str(tmp_path), tie=tie, mask=False)
    assert (p.policy_head.weight is p.backbone.embedding) == (tied and tie)
    backbone, head = load_backbone(str(tmp_path), TOKENIZER, WINDOW)
    tokens = torch.randint(1, V, (3, WINDOW))
    logits = backbone(tokens)[:, -1] @ (backbone.embedding if head is None else head).T
    torch.testing.assert_close(
        p.get_distribution(tokens).distribution.probs, logits.softmax(-1), **CLOSE
    )


@pytest.mark.parametrize("model_type", by_day(["gpt2", "llama"], "gpt2"))
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("lora", [None, {"r": 2}])
def test_trains_saves_and_reloads_with_the_weights_of_the_file(model_type, shared, lora, tmp_path):
    save_model(tmp_path / "lm", model_type, tie=False)
    model = PPO(
        GPTPolicy,
        make_vec_env(Echo, 4, seed=0),
        n_steps=8,
        batch_size=16,
        n_epochs=1,
        policy_kwargs={
            "pretrained": str(tmp_path / "lm"),
            "share_features_extractor": shared,
            "execution": {"gradient_checkpointing": not shared},
            "lora": lora,
        },
        seed=0,
    )
    before = {k: v.clone() for k, v in model.policy.state_dict().items()}
    model.learn(32)
    model.save(tmp_path / "model")
    torch.manual_seed(1)
    loaded = PPO.load(tmp_path / "model").policy.state_dict()
    trained = model.policy.state_dict()
    assert set(loaded) == set(trained)
    assert all(torch.equal(loaded[name], trained[name]) for name in trained)
    changed = {name for name in trained if not torch.equal(before[name], trained[name])}
    assert any("backbone" in name for name in changed)
    if lora is not None:
        assert all("lora_" in name or "head" in name for name in changed)


@pytest.mark.parametrize("model_type", ["opt", "llama"])
def test_a_rollout_in_bfloat16(model_type, tmp_path):
    save_model(tmp_path, model_type, tie=False)
    p = policy(pretrained=str(tmp_path))
    tokens = torch.randint(1, V, (4, WINDOW))
    tokens[2:, 3:] = 0  # lengths that differ, so that the cache reads in parts
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        _, values, log_prob = p(tokens)
    assert values.dtype == log_prob.dtype == torch.float32


def test_a_model_of_the_hub_reloads_at_its_commit(tmp_path, pretend_hub):
    """Whatever the name stands for by then."""
    source = tmp_path / "source"
    save_model(source)
    pretend_hub.add("who/model", source)
    named = {"pretrained": "hf:who/model"}
    made = SequencePPO(GPTPolicy, make_vec_env(Echo, 2), n_steps=8, policy_kwargs=named)
    made.save(tmp_path / "model.zip")
    archive = Archive(tmp_path / "model.zip", "model")
    assert archive.read("algorithm")["hub"] == {"hf:who/model": COMMIT}
    del pretend_hub.repositories["who/model", None]
    hub._folders.clear()
    loaded = SequencePPO.load(tmp_path / "model.zip")
    assert loaded.policy_kwargs["pretrained"] == f"hf:who/model@{COMMIT}"
    loaded.save(tmp_path / "again.zip")
    assert SequencePPO.load(tmp_path / "again.zip").policy_kwargs == loaded.policy_kwargs


def test_arguments_that_exclude_each_other_are_explained(tmp_path):
    with pytest.raises(ValueError, match="fixes the sizes of the model; leave out preset, n_layer"):
        policy(pretrained="gpt2", preset="nano", n_layer=2)
    plain = spaces.Box(0, V - 1, (WINDOW,), np.int32)
    with pytest.raises(ValueError, match="expected an observation space with a tokenizer"):
        policy(plain, pretrained="gpt2")
