"""Multi-turn DPO: its pairs, its loss against slow versions, and what it learns to say."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.evaluation import evaluate_policy

import dialgym
from agents import BC, DPO, DialogueStream, start_from
from agents.buffers.stored import DecisionBatch
from agents.buffers.stored_pairs import StoredPairs
from agents.offline.dpo import turn_weights
from dialgym.datasets import Dataset, concatenate
from tests.support.toy_dialogues import dialogues, echo, mean_losses
from tests.support.word_games import ID, assert_two_parts_are_one_run, learner

ACTS = "dialgym/SlotFilling-act-v0"


def made(games=None, policy=None, **settings):
    return learner(DPO, games, policy, **settings)


def moved(model):
    """A model whose policy is no longer its reference."""
    model._setup_learn(1)
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in model.policy.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return model


# Pairs


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=15), st.integers(0, 3), st.data())
def test_a_pair_is_any_two_whose_returns_differ_enough(earned, margin, data):
    labels = np.array([data.draw(st.integers(0, 2)) for _ in earned])
    toys = dialogues(len(earned))
    rewards = np.zeros_like(toys.reward)
    first = [int(np.flatnonzero(toys.is_action[a:])[0]) + a for a in toys.offsets[:-1]]
    rewards[first] = earned
    toys = type(toys)(**{**vars(toys), "reward": rewards})
    least = max(margin, 1)
    partners = {
        i: {
            j
            for j in range(len(earned))
            if labels[i] == labels[j] and abs(earned[i] - earned[j]) >= least
        }
        for i in range(len(earned))
    }
    if not any(partners.values()):
        with pytest.raises(ValueError, match="dataset: expected pairs of dialogues of the same st"):
            StoredPairs(toys, margin, labels, 0)
        return
    pairs = StoredPairs(toys, margin, labels, 0)
    assert len(pairs) == sum(map(bool, partners.values()))
    found = pairs.pairs(np.arange(40 * len(pairs))).reshape(40, -1, 2)
    drawn = {i: set() for i in partners}
    for epoch in found.tolist():
        for worse, better in epoch:
            assert earned[worse] + least <= earned[better]
            assert better in partners[worse]
            drawn[worse].add(better)
            drawn[better].add(worse)
    both = zip(drawn.values(), partners.values(), strict=True)
    assert all(seen >= wanted or len(wanted) > 3 for seen, wanted in both)


def test_pairs_of_one_start_share_what_is_hidden(games):
    again = dialgym.collect(ID, "random", 60, seed=0)
    both = concatenate([games, again])
    found = made(both, pairs="start").data.pairs(np.arange(200))
    assert (both["seed"][found[:, 0]] == both["seed"][found[:, 1]]).all()
    assert (both.returns[found[:, 0]] < both.returns[found[:, 1]]).all()
    with pytest.raises(ValueError, match="60 dialogues with 60 starts"):
        made(games, pairs="start")
    with pytest.raises(
        ValueError, match="a dialgym Dataset, which says how dialogues begin, got T"
    ):
        made(games.tokens(), pairs="start")


def test_mistakes_are_one_clear_error(games):
    with pytest.raises(ValueError, match="whose returns differ by more than 99, got none among 60"):
        made(games, margin=99.0)
    with pytest.raises(ValueError, match="pairs of DPO must be one of 'any', 'start'"):
        made(games, pairs="some")
    with pytest.raises(ValueError, match="DPO: expected beta to be a number above 0; got 0"):
        made(games, beta=0)
    with pytest.raises(ValueError, match="DPO: expected dialogues at hand, to choose pairs among"):
        made(DialogueStream(ID, "random-mixture", 8))


# The loss


def slow_loss(model, batch):
    """Mean loss over the pairs, each dialogue and prefix read by itself."""
    net, frozen = model.policy, model.reference
    totals, means = [], []
    for row in range(len(batch.tokens)):
        ratios, logs, turn = [], [], -1
        for place in np.flatnonzero(batch.is_action[row]):
            turn += not batch.is_action[row, place - 1]
            prefix = torch.from_numpy(batch.tokens[row, :place].astype(np.int64))[None]
            open_ = None
            if net.masker is not None:
                automaton, tag = net.token_space.automaton, net.token_space.learner_tag
                begun = int(np.flatnonzero(batch.tokens[row, :place] == tag)[-1]) + 1
                state = automaton.walk(batch.tokens[row, begun:place])
                open_ = torch.from_numpy(automaton.allowed[state])
            both = []
            for one in (net, frozen):
                head = one.policy_head if one is net else one.head
                logits = head(one.backbone(prefix)[0, -1])
                if open_ is not None:
                    logits = logits.masked_fill(~open_, -torch.inf)
                both.append(logits.log_softmax(0)[int(batch.tokens[row, place])])
            ratios.append((turn, both[0] - both[1]))
            logs.append(both[0])
        count, g = turn + 1, model.turn_gamma
        phi = [(1 - g ** (count - t)) / (1 - g**count) for t, _ in ratios]
        totals.append(sum(p * ratio for p, (_, ratio) in zip(phi, ratios, strict=True)))
        means.append(sum(logs) / len(logs))
    losses = [
        torch.log1p(torch.exp(-model.beta * (totals[i + 1] - totals[i])))
        - model.policy_weight * means[i + 1]
        for i in range(0, len(totals), 2)
    ]
    return sum(losses) / len(losses)


@pytest.mark.parametrize("policy", [{}, {"mask": False}], ids=["masked", "no-mask"])
def test_loss_and_gradient_are_those_of_a_slow_version(policy, games):
    model = moved(made(games, policy, beta=0.7, turn_gamma=0.6, policy_weight=0.3))
    batch = model.data.batch(np.arange(3), trim=True)
    batch.truncated[[0, 3]], batch.terminated[[0, 3]] = True, False
    expected = slow_loss(model, batch)
    expected.backward()
    wanted = {n: p.grad.clone() for n, p in model.policy.named_parameters() if p.grad is not None}
    found = mean_losses(model, batch, most_tokens=200)  # a pair at a time
    assert found["loss"] == pytest.approx(expected.item(), rel=1e-5)
    for name, weight in model.policy.named_parameters():
        if name in wanted:
            torch.testing.assert_close(weight.grad, wanted[name], rtol=1e-3, atol=2e-5)
    assert all(weight.grad is None for weight in model.reference.parameters())
    assert len(wanted) > 5


def test_the_loss_by_hand_in_double_precision(games):
    """Two pairs of dialogues of 1 to 3 decisions, each of which is a turn, one of them cut off."""
    rng, sizes, beta, g = np.random.default_rng(0), [1, 3, 2, 2], 0.4, 0.5
    n, own = 9, np.ones(9, bool)
    own[4] = False  # the state at which the second one was cut off
    rows = np.repeat(np.arange(4), [1, 4, 2, 2])
    now, then = rng.normal(size=n), rng.normal(size=n)
    at = rows * 10 + np.concatenate([[1], [1, 3, 5, 7], [1, 3], [9, 9]])
    at[-2:] = [30, 32]
    zeros, flags = torch.zeros(n), torch.ones(n, dtype=torch.bool)
    batch = DecisionBatch(
        torch.zeros(4, 10), torch.from_numpy(at), zeros.long(), zeros, zeros, zeros,
        torch.from_numpy(own), flags, None,
    )  # fmt: skip
    totals = []
    for row, size in enumerate(sizes):
        phi = (1 - g ** (size - np.arange(size))) / (1 - g**size)
        totals.append((phi * (now - then)[(rows == row) & own]).sum())
    gaps = np.array([totals[1] - totals[0], totals[3] - totals[2]])
    means = np.array([now[(rows == row) & own].mean() for row in (1, 3)])
    model = made(beta=beta, turn_gamma=g, policy_weight=0.2)
    loss, found = model.loss_of_log_probs(batch, torch.from_numpy(now), torch.from_numpy(then))
    np.testing.assert_allclose(loss, np.log1p(np.exp(-beta * gaps)) - 0.2 * means, rtol=1e-6)
    np.testing.assert_allclose(found["log_ratio_better"], np.array(totals)[[1, 3]], rtol=1e-6)
    np.testing.assert_allclose(found["accuracy"], gaps > 0)


def test_weights_of_turns():
    begins = torch.tensor([1.0, 0, 1, 1, 1, 0], dtype=torch.float64)
    rows = torch.tensor([0, 0, 0, 0, 1, 1])
    half = turn_weights(begins, rows, 2, 0.5)
    assert half.tolist() == pytest.approx([1, 1, 0.75 / 0.875, 0.5 / 0.875, 1, 1])
    assert turn_weights(begins, rows, 2, 0.0).tolist() == [1] * 6
    assert turn_weights(begins, rows, 2, 1.0).tolist() == pytest.approx([1, 1, 2 / 3, 1 / 3, 1, 1])


# Learning


def test_it_begins_with_its_clone_as_the_reference(games):
    clone = learner(BC, games, learning_rate=0.01).learn(3)
    model = made(games)
    start_from(model.policy, clone)
    first = model.learn(1).logger.name_to_value["train/preference_loss"]
    assert first == pytest.approx(np.log(2), rel=1e-5)
    held = {name: weight.clone() for name, weight in model.reference.named_parameters()}
    model.learn(2)
    assert all(torch.equal(w, held[name]) for name, w in model.reference.named_parameters())
    ours = clone.policy.backbone.wte.weight
    assert any(torch.equal(ours, weight) for weight in held.values())


@pytest.mark.slow
@pytest.mark.parametrize("policy", [{"lora": {"r": 2}}, {}])
def test_a_run_in_two_parts_is_the_same_as_one(policy, games, tmp_path):
    assert_two_parts_are_one_run(lambda: made(games, policy), games, tmp_path)


def test_it_learns_from_imported_preferences(tmp_path):
    rows = [
        {"prompt": f"My {thing} broke.", "chosen": "I am sorry.", "rejected": "So what?"}
        for thing in ("lamp", "radio", "chair", "desk")
    ]
    dataset = Dataset.from_dialogues(rows, tmp_path / "data", rejected=True)
    env_id, settings = dataset.environment()
    model = DPO(
        "GPTPolicy", dialgym.sb3_vec_env(env_id, 1, **settings), dataset, pairs="start", seed=0,
        batch_size=4, learning_rate=0.01, policy_kwargs={"n_layer": 1, "n_head": 1, "n_embd": 16},
    )  # fmt: skip
    of_rows = model.data.pairs(np.arange(len(model.data)))
    assert sorted(map(tuple, of_rows.tolist())) == sorted([(1, 0), (3, 2), (5, 4), (7, 6)] * 2)
    margins = []
    for steps in (1, 10, 10):
        found = model.learn(steps, reset_num_timesteps=False).mean_losses(model.data)
        margins.append(found["log_ratio_better"] - found["log_ratio_worse"])
    assert 0 < margins[0] < margins[1] < margins[2]


def test_it_learns_over_acts_too(tmp_path):
    env = dialgym.sb3_vec_env(ACTS, 2)
    talks = concatenate(
        [dialgym.collect(ACTS, name, 8, seed=0) for name in ("handcrafted", "random")]
    )

    def make():
        return DPO("MlpPolicy", env, talks, policy_kwargs={"net_arch": [16]}, seed=0, pairs="start")

    _, model = assert_two_parts_are_one_run(make, talks, tmp_path, env)
    assert model.mean_losses(model.data)["accuracy"] > 0.5
    masks = np.stack(env.env_method("action_masks"))
    acts = model.predict(env.reset(), deterministic=True, action_masks=masks)[0]
    assert masks[np.arange(2), acts].all()


@pytest.mark.slow
def test_it_learns_from_pairs_of_random_utterances_to_say_good_ones():
    kwargs = {"n_layer": 1, "n_head": 2, "n_embd": 32}
    settings = {"learning_rate": 3e-3, "batch_size": 32, "policy_kwargs": kwargs}
    model = DPO("GPTPolicy", echo(), dialogues(400), seed=0, beta=0.5, **settings).learn(200)
    mean, _ = evaluate_policy(model, echo(rows=50), 200, deterministic=False)
    assert mean > 1.5  # of 2, drawn; random letters earn 0.5
