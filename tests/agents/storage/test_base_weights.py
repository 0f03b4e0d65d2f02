"""Files of models with adapters: what is learned, and a digest of the rest."""

import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env

import agents
from agents import GPTPolicy, SequencePPO
from agents.policies.init_from import start_from
from agents.storage.archive import Archive
from tests.agents.models.test_pretrained import save_model
from tests.support.by_day import by_day
from tests.support.toy_tokens import Echo


def model_of(folder, lora=True, **kwargs):
    kwargs = {"pretrained": str(folder), **({"lora": {"r": 2}} if lora else {}), **kwargs}
    env = make_vec_env(Echo, 4, seed=0)
    more = {"n_steps": 8, "batch_size": 16, "n_epochs": 1, "seed": 0}
    return SequencePPO(GPTPolicy, env, policy_kwargs=kwargs, **more)


def saved_names(file):
    return set(Archive(file, "model").read("policy"))


def check_same(one, other):
    ours, theirs = one.policy.state_dict(), other.policy.state_dict()
    assert set(ours) == set(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


TYPES = [("gpt2", True), ("llama", False)]
CASES = [(*one, shared) for one in TYPES for shared in (True, False, "adapted")]


@pytest.mark.parametrize(
    ("model_type", "tie", "shared"), by_day(CASES, CASES[0], CASES[4], CASES[5])
)
def test_a_file_has_what_is_learned_and_loads_whole(model_type, tie, shared, tmp_path):
    save_model(tmp_path / "lm", model_type, tie=tie)
    if shared == "adapted":
        shared = {"pretrained": str(tmp_path / "lm"), "lora": {"r": 3}}
    model = model_of(tmp_path / "lm", share_features_extractor=shared).learn(32)
    model.save(tmp_path / "model.zip")
    named = dict(model.policy.named_parameters(remove_duplicate=False))
    assert saved_names(tmp_path / "model.zip") == {n for n, w in named.items() if w.requires_grad}
    check_same(model, agents.load(tmp_path / "model.zip"))
    other = model_of(tmp_path / "lm", share_features_extractor=shared)
    other.set_parameters(tmp_path / "model.zip")
    check_same(model, other)


def test_another_model_in_the_folder_is_refused(tmp_path):
    save_model(tmp_path / "lm")
    model_of(tmp_path / "lm").save(tmp_path / "model.zip")
    lm = save_model(tmp_path / "lm")
    with torch.no_grad():
        lm.transformer.h[0].mlp.c_fc.weight[0, 0] += 1e-3
    lm.save_pretrained(tmp_path / "lm")
    message = r"model\.zip.* whose weights are not those that backbone was made of here.*revision"
    with pytest.raises(ValueError, match=message):
        agents.load(tmp_path / "model.zip")


def test_a_folder_without_all_weights_is_refused(tmp_path):
    """They would be drawn anew at every load, and no file of adapters would fit them."""
    lm = save_model(tmp_path / "lm")
    weights = lm.state_dict()
    del weights["lm_head.weight"]
    lm.save_pretrained(tmp_path / "lm", state_dict=weights)
    model_of(tmp_path / "lm")  # the head is that of the embeddings
    weights = lm.state_dict()
    del weights["transformer.h.0.mlp.c_fc.weight"]
    lm.save_pretrained(tmp_path / "lm", state_dict=weights)
    with pytest.raises(ValueError, match=r"expected all weights of GPT2LMHeadModel.*1 are missing"):
        model_of(tmp_path / "lm")


def test_a_base_that_has_become_another_is_saved(tmp_path):
    """As that of adapters over a model that was trained whole."""
    save_model(tmp_path / "lm")
    whole = model_of(tmp_path / "lm", lora=False).learn(64)
    adapted = model_of(tmp_path / "lm")
    start_from(adapted.policy, whole)
    adapted.save(tmp_path / "model.zip")
    assert saved_names(tmp_path / "model.zip") == set(adapted.policy.state_dict())
    loaded = agents.load(tmp_path / "model.zip")
    check_same(adapted, loaded)
    loaded.save(tmp_path / "again.zip")
    check_same(adapted, agents.load(tmp_path / "again.zip"))


def test_without_adapters_or_without_a_pretrained_model_a_file_is_whole(tmp_path):
    save_model(tmp_path / "lm")
    plain = model_of(tmp_path / "lm", lora=False)
    small = model_of(tmp_path / "lm", pretrained=None, n_layer=1, n_head=2, n_embd=8)
    for model in (plain, small):
        model.save(tmp_path / "model.zip")
        assert saved_names(tmp_path / "model.zip") == set(model.policy.state_dict())
