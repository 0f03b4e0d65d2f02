"""Imitation of several acts at once."""

import numpy as np
import pytest
import torch

import agents
import dialgym
from agents import BC, MLE
from agents.models.bernoulli import MaskedBernoulli
from agents.offline.mle import agreement
from tests.support.toy_acts import THINGS

ID = "tests.support.toy_acts:Wishes-act"


@pytest.fixture(scope="module")
def dialogues():
    return dialgym.collect(ID, "random", 40, seed=0)


def made(algorithm=MLE, dataset=None, **settings):
    env = dialgym.sb3_vec_env(ID, 2, seed=0)
    model = algorithm("MlpPolicy", env, dataset, seed=0, **settings)
    torch.nn.init.normal_(model.policy.action_net.weight)
    return model


def slow_loss(model, decision, pos_weight, value_coef):
    """Of one decision: belief, action, mask and return."""
    belief, action, mask, reached = decision
    with torch.no_grad():
        hidden = model.policy.mlp_extractor.forward_actor(torch.tensor(belief[None]))
        logits = model.policy.action_net(hidden)[0].double().numpy()
        value = model.policy.predict_values(torch.tensor(belief[None])).item()
    loss = value_coef * (value - reached) ** 2
    for i in range(THINGS):
        rate = 1 / (1 + np.exp(-logits[i]))
        if action[i]:
            loss -= pos_weight * np.log(rate)
        elif mask[i]:
            loss -= np.log(1 - rate)
    return loss


@pytest.mark.parametrize(("pos_weight", "value_coef"), [(1.0, 0.0), (5.0, 0.3)])
def test_the_loss_is_that_of_a_slow_version(dialogues, pos_weight, value_coef):
    model = made(pos_weight=pos_weight, value_coef=value_coef, gamma=0.9)
    data = dialogues.acts(gamma=0.9)
    losses, metrics = model.loss(model.batch(data))
    stored = data.decisions
    wanted = [
        slow_loss(model, each, pos_weight, value_coef)
        for each in zip(
            stored.observations, stored.actions, stored.action_masks, stored.returns_to_go
        )
    ]
    kept = model.batch(data).is_action
    np.testing.assert_allclose(sorted(losses[kept].tolist()), sorted(wanted), rtol=1e-4)
    assert not losses[~kept].any()
    assert metrics.keys() >= {"entropy", "exact", "act_f1"}


def test_with_a_weight_of_one_it_is_cloning(dialogues):
    data = dialogues.acts()
    ours, theirs = made(pos_weight=1.0), made(BC)
    found = [model.loss(model.batch(data))[0] for model in (ours, theirs)]
    torch.testing.assert_close(*found)


def test_what_is_chosen_at_random_is_chosen_greedily_from_a_lower_rate_on():
    """An act with probability 0.3 wins where w > 7/3."""
    best = {}
    for weight in (1.0, 5.0):
        logits = torch.zeros((1, 1), requires_grad=True)
        optimizer = torch.optim.SGD([logits], 0.3)
        for _ in range(300):
            loss = -(weight * 0.3 * torch.nn.functional.logsigmoid(logits))
            loss = (loss - 0.7 * torch.nn.functional.logsigmoid(-logits)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        best[weight] = MaskedBernoulli(1).proba_distribution(logits.detach()).mode().item()
    assert best == {1.0: 0.0, 5.0: 1.0}


def test_agreement_with_the_data():
    greedy = torch.tensor([[1, 1, 0], [0, 0, 0], [1, 0, 0]])
    actions = torch.tensor([[1, 0, 0], [0, 0, 0], [0, 1, 0]])
    found = agreement(greedy, actions, torch.ones(3, dtype=torch.bool))
    assert found["exact"].tolist() == [0, 1, 0]
    assert found["act_f1"].tolist() == [pytest.approx(2 / 3), 1, 0]


def test_an_expert_is_imitated(tmp_path):
    """Also through the table of algorithms; the expert asks for everything at once."""
    expert = dialgym.collect(ID, "ask-all", 100, seed=0)
    model = agents.train(
        ID, "mle", total_timesteps=60, data=expert, log_dir=tmp_path, progress_bar=False,
        hyperparameters={"learning_rate": 0.01},
    )  # fmt: skip
    scores = [dialgym.evaluate(who, ID, 100).mean_return for who in (model, "ask-all", "random")]
    assert scores[0] == pytest.approx(scores[1])
    assert scores[0] > scores[2] + 0.1
    again = agents.load(tmp_path / "model.zip")
    assert type(again) is MLE
    assert dialgym.evaluate(again, ID, 100).mean_return == scores[0]
