"""REFUEL: two turns after one prefix, the loss by hand, its minimum, and what it learns."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env

import dialgym
from agents import REFUEL, ArCHer
from agents.buffers.sequences import SequenceBatch
from agents.online.refuel import one_turn
from dialgym.views.wrappers import VectorMaskedObservation
from tests.support.toy_tokens import Echo

ID, SMALL = "Wordle-Alike-v0", {"n_layer": 1, "n_head": 2, "n_embd": 16}


def made(rows=8, **settings):
    env = dialgym.sb3_vec_env(ID, rows, seed=0, tokenizer="word")
    given = {"n_steps": 20, "batch_size": 16, "policy_kwargs": SMALL, "seed": 0, **settings}
    return REFUEL("GPTPolicy", env, **given)


def collected(**settings):
    model = made(**settings)
    _, callback = model._setup_learn(1000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 20)
    return model


def test_one_turn_by_hand():
    said = np.array([[1, 1], [1, 1], [1, 1], [1, 0], [1, 0]], bool)
    ends = np.array([[0, 0], [1, 1], [0, 0], [1, 0], [1, 0]], bool)
    found = one_turn(said, np.array([2, 0]), ends)
    assert found.T.tolist() == [
        [False, False, True, True, False],
        [True, True, False, False, False],
    ]


def test_pairs_are_two_turns_after_one_prefix_and_what_they_earned():
    model = collected()
    buffer, sequences = model.rollout_buffer, model.rollout.sequences
    rewards, actions, dones = (buffer.steps(name) for name in ("rewards", "actions", "dones"))
    [pairs] = model._minibatches(1)
    assert sorted(pairs.ravel().tolist()) == list(range(16))
    begun, second = model._chosen, model._second
    assert (begun > 0).any()
    assert len(model.ep_info_buffer) == 8  # those that begin in the middle are not logged
    for one, other in pairs.tolist():
        row = int(sequences.steps[sequences.first[one]]) % 8
        prefixes = []
        for number, since in ((one, begun[row]), (other, second)):
            decisions = range(sequences.first[number], sequences.first[number + 1])
            steps = [int(sequences.steps[d]) // 8 for d in decisions]
            assert steps == list(range(since, since + len(steps)))
            assert model.rollout.actions[list(decisions)].tolist() == actions[steps, row].tolist()
            last = int(np.flatnonzero(dones[since:, row])[0]) + since
            earned = rewards[since : last + 1, row].sum()
            assert model.rollout.values[list(decisions)].tolist() == [earned] * len(steps)
            place = int(sequences.places[sequences.first[number]]) + 1
            prefixes.append(sequences.tokens[number, :place].tolist())
        assert prefixes[0] == prefixes[1]


def test_both_futures_are_as_long_where_a_limit_cuts_them_off():
    """Each has the tokens that the first dialogue had left, so that what they earn compares."""
    env = dialgym.sb3_vec_env("Maze-v0", 24, seed=0, tokenizer="word")
    model = REFUEL("GPTPolicy", env, n_steps=24, batch_size=64, policy_kwargs=SMALL, seed=0)
    _, callback = model._setup_learn(1000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 24)
    rewards, dones = (model.rollout_buffer.steps(name) for name in ("rewards", "dones"))
    begun = model._chosen
    assert begun.max() < 24
    again = rewards[model._second :]
    cut = ~dones.any(0)
    assert cut.sum() > 12
    for row in np.flatnonzero(cut):
        assert not again[24 - begun[row] :, row].any()
    sequences, values = model.rollout.sequences, model.rollout.values
    for number, since in zip(range(len(sequences.sizes)), sequences.steps[sequences.first[:-1]]):
        step, row = divmod(int(since), 24)
        if cut[row]:
            until = 24 if step < model._second else step + 24 - begun[row]
            assert values[sequences.first[number]] == rewards[step:until, row].sum()


@pytest.mark.parametrize("cls", [REFUEL, ArCHer])
def test_the_divergence_is_that_of_the_policy_that_spoke(cls):
    """KL(old || new) from samples of the old one, never that of the other direction."""
    old, new = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.95, 0.05]).log()
    batch = batch_of(old, torch.zeros(2), torch.tensor([0, 1]))
    model = made() if cls is REFUEL else ArCHer.__new__(ArCHer)
    _, metrics = cls.policy_loss(model, batch, new)
    assert float(metrics["approx_kl"].mean()) == pytest.approx(float((old - new).mean()), abs=1e-6)


def test_each_turn_is_as_likely_to_be_chosen():
    model = made(rows=600)
    model._branches, noted = model, []
    model.note = lambda step, rows: noted.append((step, len(rows)))
    model._turns, model._chosen = np.zeros((2, 600), np.int64)
    for step in range(0, 12, 3):
        model._at_a_turn(step, np.arange(600))
    counts = np.bincount(model._chosen, minlength=10)[::3]
    assert counts.sum() == 600
    assert (abs(counts - 150) < 50).all()  # more than 4 standard deviations
    assert noted[0] == (0, 600)


def batch_of(log_probs, futures, rows, at=None):
    """Decisions in double precision, of which the loss reads no tokens."""
    none = torch.zeros(len(rows))
    return SequenceBatch(
        torch.zeros(int(rows.max()) + 1, 10), rows * 10 + torch.arange(len(rows)) % 10,
        none.long(), log_probs, none, futures[rows], None, None, None, None,
    )  # fmt: skip


def test_the_loss_by_hand_in_double_precision():
    rng, sizes, eta = np.random.default_rng(0), [2, 1, 1, 3], 0.3
    rows = np.repeat(np.arange(4), sizes)
    old, new, futures = rng.normal(size=7), rng.normal(size=7), rng.normal(size=4)
    moved = [(new - old)[rows == row].sum() for row in range(4)]
    expected = [
        ((moved[i] - moved[i + 1]) / eta - (futures[i] - futures[i + 1])) ** 2 for i in (0, 2)
    ]
    batch = batch_of(*(torch.from_numpy(x) for x in (old, futures, rows)))
    loss, _ = made(eta=eta).policy_loss(batch, torch.from_numpy(new))
    np.testing.assert_allclose(loss, [expected[0], 0, 0, expected[1], 0, 0, 0], rtol=1e-6)


def test_a_pair_weighs_the_turns_of_its_dialogue():
    model = collected(eta=0.3)
    with torch.no_grad():
        model.policy.backbone.wpe.weight += torch.randn_like(model.policy.backbone.wpe.weight)
    [pairs] = model._minibatches(1)
    sizes = int(model.rollout.sequences.sizes.sum())
    found = model.updater.backward(model.loss, model.batches(pairs), sizes)
    losses = [float(model.loss(b)[0].detach().sum()) for b in model.batches(pairs)]
    errors = []
    for pair in pairs:
        [batch] = model.batches(pair[None])
        *_, log_prob, _ = model.policy.evaluate_sequences(
            batch.tokens, batch.at, batch.actions, batch.allowed
        )
        first = batch.at < batch.tokens.shape[1]
        moved = log_prob - batch.log_probs
        gap = moved[first].sum() - moved[~first].sum()
        errors.append((gap / 0.3 - (batch.values[0] - batch.values[-1])).square())
    rows = model.rollout.sequences.steps[model.rollout.sequences.first[pairs[:, 0]]] % 8
    assert len(set(model._turns[rows].tolist())) > 1
    mean = np.average(torch.stack(errors).detach(), weights=model._turns[rows])
    assert found["loss"] == pytest.approx(mean, rel=1e-4)
    assert found["regression_loss"] == pytest.approx(found["loss"])
    assert sum(losses) / sizes == pytest.approx(found["loss"], rel=1e-4)


@pytest.mark.parametrize(
    "settings",
    [{"policy_kwargs": {**SMALL, "lora": {"r": 2}}, "kl": {"coef": 0.1}}, {"env_masks": True}],
    ids=["adapters-reference", "masks-by-call"],
)
def test_an_update_begins_where_the_replies_were_said(settings):
    model = collected(n_epochs=1, batch_size=10_000, **settings)
    [pairs] = model._minibatches(1)
    worth = [model.rollout.values[model.rollout.sequences.first[p]].numpy() for p in pairs.T]
    rows = model.rollout.sequences.steps[model.rollout.sequences.first[pairs[:, 0]]] % 8
    squares = np.average((worth[0] - worth[1]) ** 2, weights=model._turns[rows])
    model.train()
    logged = model.logger.name_to_value
    assert logged["train/regression_loss"] == pytest.approx(squares, rel=1e-4)
    assert logged.get("train/reference_kl", 0.0) == pytest.approx(0.0, abs=1e-6)
    assert logged["train/grad_norm"] > 0


def test_at_the_least_loss_the_policy_is_tilted_by_what_turns_are_worth():
    """Of three replies to a prefix: pi = pi_old exp(eta Q) / Z, by the gradient alone."""
    eta, worth = 0.7, torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    old = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64).log()
    logits = old.clone().requires_grad_()
    model, pairs = made(eta=eta), torch.tensor([0, 1, 0, 2, 1, 2])
    optimizer = torch.optim.LBFGS([logits], max_iter=200, tolerance_grad=1e-12)

    def step():
        optimizer.zero_grad()
        batch = batch_of(old[pairs], worth[pairs], torch.arange(6))
        loss = model.policy_loss(batch, logits.log_softmax(0)[pairs])[0].sum()
        loss.backward()
        return loss

    optimizer.step(step)
    wanted = (old + eta * worth).softmax(0)
    torch.testing.assert_close(logits.softmax(0), wanted, atol=1e-6, rtol=0)


def test_mistakes_are_one_clear_error():
    with pytest.raises(ValueError, match="REFUEL: expected eta to be a number above 0; got 0"):
        made(eta=0)
    with pytest.raises(ValueError, match="group_size"):
        made(group_size=4)
    masked = dialgym.sb3_vec_env(ID, 2, wrapper=VectorMaskedObservation, tokenizer="word")
    with pytest.raises(ValueError, match="gone on from show no masks in their observations"):
        REFUEL("GPTPolicy", masked, policy_kwargs=SMALL)
    model = REFUEL("GPTPolicy", make_vec_env(Echo, 2), policy_kwargs=SMALL)
    with pytest.raises(ValueError, match=r"expected an env whose dialogues can be saved"):
        model.learn(10)


@pytest.mark.slow
def test_it_learns_to_tell_words_apart():
    """Returns begin near -3.4; with futures of the wrong sign they fall below -4.4."""
    settings = {"batch_size": 128, "eta": 0.5, "learning_rate": 2e-3}
    model = made(256, **settings, policy_kwargs={"n_layer": 1, "n_head": 2, "n_embd": 32})
    model.learn(1)
    begun = np.mean([episode["r"] for episode in model.ep_info_buffer])
    model.learn(45_000)
    assert np.mean([episode["r"] for episode in model.ep_info_buffer]) > begun + 0.4
