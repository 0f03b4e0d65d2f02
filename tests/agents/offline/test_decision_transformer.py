"""Cloning given the return: what it reads, how it is asked for returns, and that it obeys."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from stable_baselines3.common.evaluation import evaluate_policy

import agents
import dialgym
from agents import BC, DecisionTransformer
from agents.models.build import Execution
from agents.offline.decision_transformer import total_returns
from tests.support.resuming import assert_comes_back
from tests.support.toy_dialogues import dialogues, echo, mean_losses
from tests.support.word_games import ID, assert_two_parts_are_one_run, learner


def made(games=None, policy=None, **settings):
    return learner(DecisionTransformer, games, policy, **settings)


def randomised(model):
    torch.manual_seed(1)
    torch.nn.init.normal_(model.policy.return_embedding.linear.weight)
    torch.nn.init.normal_(model.policy.backbone.wte.weight, std=0.3)
    return model


def test_the_loss_is_that_of_cloning_given_each_dialogues_whole_return(games):
    model = randomised(made(games, batch_size=7, gamma=0.5, compute={"micro_batch_tokens": 60}))
    policy, rows = model.policy, model.sampler.rows(0)
    batch = games.tokens().batch(rows)
    earned = games.returns[rows]
    mean, scale = games.returns.mean(), games.returns.std()
    backbone, nll = policy.backbone, []
    for row, place in zip(*np.nonzero(batch.is_action), strict=True):
        tokens = torch.as_tensor(batch.tokens[row : row + 1, :place], dtype=torch.int64)
        shift = policy.return_embedding.linear.weight[:, 0] * (earned[row] - mean) / scale
        # The forward of the backbone, written out.
        x = torch.nn.functional.embedding(tokens, backbone.wte.weight)
        x = x + backbone.wpe.weight[:place] + shift.float()
        for block in backbone.blocks:
            x = block(x)
        logits = policy.policy_head(backbone.ln_f(x)[0, -1])
        state = policy.masker.states(tokens, torch.tensor([place]))
        logits = logits.masked_fill(~policy.masker.allowed[state[0]], -torch.inf)
        nll.append(-logits.log_softmax(-1)[batch.tokens[row, place]].item())
    found = mean_losses(model, games.tokens().batch(rows, 0.5, trim=True), most_tokens=60)
    assert found["loss"] == pytest.approx(np.mean(nll), rel=1e-4)


def test_returns_are_standardised_over_the_dataset(games):
    model = made(games)
    assert total_returns(games.tokens()).tolist() == pytest.approx(games.returns.tolist())
    assert model.policy.target_return == games.returns.max()
    assert made(games, target_return=-2.5).policy.target_return == -2.5
    embedding = model.policy.return_embedding
    assert embedding.mean.item() == pytest.approx(games.returns.mean())
    assert embedding.scale.item() == pytest.approx(games.returns.std(), rel=1e-5)
    same = made(games.top(1 / 60))
    assert same.policy.return_embedding.scale == 1  # all returns alike


def test_it_begins_as_cloning_does(games):
    model, clone = made(games), made(games)
    obs = torch.as_tensor(model.env.reset())
    clone.policy.target_return = -100.0
    with torch.no_grad():
        both = [m.policy.get_distribution(obs).distribution.logits for m in (model, clone)]
    assert torch.equal(*both)
    start = learner(BC, games)
    torch.nn.init.normal_(start.policy.backbone.wte.weight)
    agents.start_from(model.policy, start)
    with torch.no_grad():
        torch.testing.assert_close(
            model.policy.get_distribution(obs).distribution.logits,
            start.policy.get_distribution(obs).distribution.logits,
        )


def test_the_cached_policy_speaks_as_one_that_reads_from_the_start(games):
    policy = randomised(made(games, {"mask": False})).policy
    batch = games.tokens().batch(np.arange(3))
    places = np.flatnonzero(batch.is_action.all(0))[:4]  # in which all three are asked
    differences = []
    for target in (-6.0, 0.0):
        policy.target_return = target
        for place in [places[-1], *places, places[-1]]:
            obs = torch.as_tensor(batch.tokens * (np.arange(batch.tokens.shape[1]) < place))
            with torch.no_grad():
                cached = policy.get_distribution(obs).distribution.probs
                policy.config["execution"] = Execution(cache=False)
                plain = policy.get_distribution(obs).distribution.probs
                policy.config["execution"] = Execution()
            torch.testing.assert_close(cached, plain, atol=1e-5, rtol=1e-4)
        differences.append(cached)
    assert (differences[0] - differences[1]).abs().max() > 0.01  # the target is heard


def test_a_run_in_two_parts_is_the_same_as_one(games, tmp_path):
    assert_two_parts_are_one_run(lambda: made(games), games, tmp_path)


def test_a_saved_agent_asks_for_the_same_return(games, tmp_path):
    model = randomised(made(games))
    model.policy.target_return = -3.5
    loaded = assert_comes_back(model, tmp_path / "model.zip")
    assert loaded.policy.target_return == -3.5
    env = dialgym.sb3_vec_env(ID, 4, seed=1)
    obs = env.reset()
    tokens = loaded.predict(obs, deterministic=True)[0].tolist()
    assert tokens == [loaded.predict(o, deterministic=True)[0] for o in obs]
    mean, _ = evaluate_policy(loaded, env, 4, warn=False)
    assert -6 <= mean <= 0


def test_a_copy_is_asked_for_returns_of_its_own(games):
    policy = randomised(made(games)).policy
    copy, tokens = deepcopy(policy), torch.as_tensor(games.tokens().batch([0]).tokens).long()
    with torch.no_grad():
        before = policy.backbone(tokens), copy.backbone(tokens)
        copy.target_return = -50.0
        after = policy.backbone(tokens), copy.backbone(tokens)
    assert torch.equal(before[0], before[1])
    assert torch.equal(before[0], after[0])
    assert not torch.allclose(before[1], after[1])


def test_a_return_is_a_finite_number(games):
    for value in (float("nan"), "best"):
        with pytest.raises(ValueError, match=r"target_return .*must be a finite number"):
            made(target_return=value)
    with pytest.raises(ValueError, match="target_return must be a finite number; got nan"):
        made().policy.target_return = float("nan")


@pytest.mark.slow
def test_it_earns_what_it_is_asked_to_earn():
    kwargs = {"n_layer": 2, "n_head": 2, "n_embd": 32}
    model = DecisionTransformer(
        "GPTPolicy",
        echo(),
        dialogues(400),
        learning_rate=3e-3,
        batch_size=32,
        seed=0,
        policy_kwargs=kwargs,
    )
    model.learn(250)
    env, earned = echo(rows=50), []
    for target in (0.0, 1.0, 2.0):
        model.policy.target_return = target
        torch.manual_seed(0)
        earned.append(evaluate_policy(model, env, 100, deterministic=False, warn=False)[0])
    assert earned == pytest.approx([0, 1, 2], abs=0.4)  # cloning earns 0.5
