"""Weights that are NaN or infinite are refused where a model is read, and where it is to play."""

import numpy as np
import pytest
import torch

import agents
import dialgym
from agents.storage.models import write_model
from dialgym.experiments import evaluate
from dialgym.io.finite_weights import check_finite
from dialgym.rewards.compose import make_reward
from tests.support import tiny_judges

ENV = "Wordle-20-v0"
SMALL = {"n_layer": 1, "n_head": 1, "n_embd": 8}


@pytest.fixture(scope="module")
def model():
    env = dialgym.sb3_vec_env(ENV, 2)
    settings = {"n_steps": 8, "batch_size": 16, "seed": 0, "policy_kwargs": SMALL}
    return agents.SequencePPO("GPTPolicy", env, **settings)


def spoil(model, value=float("nan")):
    """Give one weight a value that is no number; what it was."""
    weight = next(model.policy.parameters())
    before = weight.detach().clone()
    with torch.no_grad():
        weight.view(-1)[3] = value
    return weight, before


def put_back(weight, before):
    with torch.no_grad():
        weight.copy_(before)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_saved_model_with_such_weights_is_refused(model, tmp_path, value):
    weight, before = spoil(model, value)
    write_model(model, tmp_path / "model")  # `save` refuses it, too
    put_back(weight, before)
    message = r"model.zip.*policy: expected finite weights; 1 of \d+ in '.*' are NaN or infinite"
    for read in (
        lambda: agents.load(tmp_path / "model"),
        lambda: agents.SequencePPO.load(tmp_path / "model.zip"),
        lambda: model.set_parameters(tmp_path / "model.zip"),
        lambda: evaluate(tmp_path / "model.zip", ENV, 2, (0,)),
    ):
        with pytest.raises(ValueError, match=message):
            read()
    put_back(weight, before)


def test_a_model_in_memory_with_such_weights_is_not_scored(model):
    weight, before = spoil(model)
    try:
        with pytest.raises(ValueError, match="policy SequencePPO: expected finite weights; 1 of"):
            evaluate(model, ENV, 2, (0,))
    finally:
        put_back(weight, before)
    assert np.isfinite(evaluate(model, ENV, 2, (0,)).mean_return)


def test_a_judge_with_such_weights_is_refused(tmp_path):
    import transformers

    folder = tiny_judges.save(tmp_path / "judge", "bert")
    judge = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    with torch.no_grad():
        judge.classifier.bias.fill_(float("nan"))
    judge.save_pretrained(folder)
    reward = make_reward("learned", {"model": folder})
    from dialgym.rewards import Reply

    with pytest.raises(ValueError, match=r"expected finite weights; 1 of 1 in 'classifier.bias'"):
        reward.score([Reply("a b")])


def test_what_has_no_weights_is_let_be():
    check_finite(object(), "nothing", "")
    check_finite("random", "a name", "")
