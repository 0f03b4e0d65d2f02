"""Fitted Q evaluation, beside dynamic programming on tables and beside what policies earn."""

import numpy as np
import pytest
import torch

import agents
import dialgym
from agents import BC, ILQL
from agents.offline.fitted_evaluation import (
    FittedEvaluation,
    difference,
    fitted_value,
    moments,
    speech,
    weighted_returns,
)
from benchmarks.tables.fitted_evaluation import CLONES, POLICIES, measure_seed

ID = "dialgym/Wordle-20-v0"
WORDS = {"tokenizer": "word"}
SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}
STATES, ACTS, LENGTH = 4, 3, 3


def logged(rng, dialogues=400):
    """Dialogues of three decisions in a random table: states, acts, rewards (dialogues, 3)."""
    chances = rng.dirichlet(np.ones(STATES), (STATES, ACTS))
    worth = rng.normal(size=(STATES, ACTS))
    states = np.zeros((dialogues, LENGTH), int)
    acts = rng.integers(ACTS, size=states.shape)
    states[:, 0] = rng.integers(STATES, size=dialogues)
    for t in range(1, LENGTH):
        for i in range(dialogues):
            states[i, t] = rng.choice(STATES, p=chances[states[i, t - 1], acts[i, t - 1]])
    return states, acts, worth[states, acts] + rng.normal(size=states.shape)


def by_tables(states, acts, rewards, policy, gamma):
    """Backward induction on the transitions and mean rewards that were seen, by place."""
    q = np.zeros((LENGTH + 1, STATES, ACTS))
    for t in reversed(range(LENGTH)):
        for s in range(STATES):
            for a in range(ACTS):
                here = (states[:, t] == s) & (acts[:, t] == a)
                after = 0.0
                if t + 1 < LENGTH:
                    after = (policy * q[t + 1])[states[here, t + 1]].sum(1).mean()
                q[t, s, a] = rewards[here, t].mean() + gamma * after
    return (policy * q[0])[states[:, 0]].sum(1).mean()


def sums_of(states, acts, rewards, policy):
    """Features are tables over place, state and act."""
    count = LENGTH * STATES * ACTS
    places = np.broadcast_to(np.arange(LENGTH), states.shape)
    number = ((places * STATES + states) * ACTS + acts).ravel()
    features = np.eye(count)[number]
    of_policy = np.zeros((len(number), count))
    for row, (t, s) in enumerate(zip(places.ravel(), states.ravel(), strict=True)):
        start = (t * STATES + s) * ACTS
        of_policy[row, start : start + ACTS] = policy[s]
    not_done = (places < LENGTH - 1).ravel()
    said = np.ones(len(number), bool)
    return moments(features, of_policy, rewards.ravel(), said, not_done)


@pytest.mark.parametrize("gamma", [1.0, 0.8])
def test_on_tables_it_is_backward_induction(gamma):
    rng = np.random.default_rng(0)
    states, acts, rewards = logged(rng)
    policy = rng.dirichlet(np.ones(ACTS), STATES)
    sums = sums_of(states, acts, rewards, policy)
    found = fitted_value([sums], gamma, ridge=0.0)
    expected = by_tables(states, acts, rewards, policy, gamma)
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert np.isnan(found.error)


def test_the_limit_is_what_the_regressions_of_the_equation_come_to():
    """Features are too few for the table, dialogues are discounted, the ridge is large."""
    rng = np.random.default_rng(2)
    features, of_policy = rng.normal(size=(60, 4)), rng.normal(size=(60, 4))
    rewards, not_done = rng.normal(size=60), np.arange(60) % 3 < 2
    said = np.ones(60, bool)
    following = np.where(not_done[:, None], np.roll(of_policy, -1, 0), 0.0)
    penalty = 0.5 * np.square(features).sum() / 4
    wider = np.concatenate([features, np.sqrt(penalty) * np.eye(4)])
    weights = np.zeros(4)
    for _ in range(500):
        targets = np.append(rewards + 0.9 * following @ weights, np.zeros(4))
        weights = np.linalg.lstsq(wider, targets)[0]
    found = fitted_value([moments(features, of_policy, rewards, said, not_done)], 0.9, 0.5)
    assert found.value == pytest.approx((of_policy[::3] @ weights).mean(), rel=1e-9)


def test_the_error_is_that_of_a_mean_where_nothing_depends_on_the_policy():
    """One feature, 1, one decision a dialogue, groups of one: the mean reward and its error."""
    rewards = np.random.default_rng(1).normal(size=50)
    one, yes, no = np.ones((1, 1)), np.ones(1, bool), np.zeros(1, bool)
    parts = [moments(one, one, rewards[i : i + 1], yes, no) for i in range(50)]
    found = fitted_value(parts, ridge=0.0)
    assert found.value == pytest.approx(rewards.mean(), rel=1e-12)
    assert found.error == pytest.approx(rewards.std(ddof=1) / 50**0.5, rel=1e-12)
    twice = fitted_value([part._replace(reward=3 * part.reward + 1) for part in parts], ridge=0.0)
    less = difference(twice, found)
    assert less.value == pytest.approx(twice.value - found.value)
    assert less.error == pytest.approx(2 * found.error)


def test_an_iteration_that_grows_is_an_error():
    """The next value is always twice as great as the features say."""
    features = np.array([[1.0], [2.0]])
    sums = moments(features, features * 1e3, np.ones(2), np.ones(2, bool), np.array([True, False]))
    with pytest.raises(ValueError, match="a step makes errors grow"):
        fitted_value([sums])


def test_weights_of_dialogues_by_hand():
    """Two dialogues of two decisions and of one, ratios 2, 0.5 and 1."""
    found = weighted_returns(
        np.array([2.0, 0.5, 1.0]), np.array([1.0, 10.0, 4.0]), np.array([0, 1, 0]),
        np.array([0, 0, 1]),
    )  # fmt: skip
    assert found.value == pytest.approx((2 * 1 + 1 * 4) / 3 + (1 * 10) / 2)
    assert found.size == pytest.approx(2.0)


@pytest.fixture(scope="module")
def env():
    return dialgym.sb3_vec_env(ID, 1, **WORDS)


@pytest.fixture(scope="module")
def games():
    return dialgym.collect(ID, "random-mixture", 12, seed=0, env_kwargs=WORDS)


def made(algorithm, env, games=None, seed=0):
    """An untrained model, whose heads all say something."""
    model = algorithm("GPTPolicy", env, games, policy_kwargs=SMALL, seed=seed, device="cpu")
    torch.manual_seed(seed)
    for name, weight in model.policy.named_parameters():
        if "head" in name:
            torch.nn.init.normal_(weight, std=0.4)
    return model


def after_each_prefix(model, batch):
    """What the policy says, and the last hidden state, place by place: (n, V) and (n, d)."""
    width = batch.observations.shape[1]
    chances, hidden = [], []
    for place in batch.at.tolist():
        seen = batch.observations[place // width, : place % width + 1][None]
        window = torch.nn.functional.pad(seen, (0, model.observation_space.shape[0] - len(seen[0])))
        chances.append(model.policy.get_distribution(window).distribution.probs)
        hidden.append(model.policy.backbone(seen, torch.tensor([place % width])))
    return torch.cat(chances).double(), torch.cat(hidden).double()


@pytest.mark.parametrize("algorithm", [BC, ILQL])
def test_speech_is_what_the_policy_says_after_each_prefix(algorithm, env, games):
    model = made(algorithm, env, games)
    batch = model.batch(model.data.batch(np.arange(4), trim=True))
    with torch.no_grad():
        found = speech(model.policy, batch)
        likeliest = speech(model.policy, batch, deterministic=True)
        expected, _ = after_each_prefix(model, batch)
    assert found.numpy() == pytest.approx(expected.numpy(), abs=1e-5)
    assert likeliest.sum(1).tolist() == [1] * len(found)
    assert torch.equal(likeliest.argmax(1), found.argmax(1))


def test_a_value_is_that_of_features_of_each_prefix(env, games):
    reader, other = made(BC, env, games), made(ILQL, env, seed=1)
    batch = reader.batch(reader.data.batch(np.arange(len(games)), trim=True))
    with torch.no_grad():
        _, hidden = after_each_prefix(reader, batch)
        chances, _ = after_each_prefix(other, batch)
        embedded = reader.policy.backbone.embedding.double()
    states = torch.nn.functional.pad(hidden, (1, 0), value=1.0)
    left, _, _ = torch.linalg.svd(embedded - embedded.mean(0), full_matrices=False)
    tokens = torch.nn.functional.pad(left[:, :2] * len(left) ** 0.5, (1, 0), value=1.0)
    said, mean = (
        torch.einsum("nh,nu->nhu", states, u).flatten(1).numpy()
        for u in (tokens[batch.actions], chances @ tokens)
    )
    columns = batch.rewards.double().numpy(), batch.is_action.numpy(), batch.not_done.numpy()
    expected = fitted_value([moments(said, mean, *columns)], 0.9, ridge=0.1)
    found = FittedEvaluation(reader, games, 0.9, 0.1, components=2, groups=1).value(other.policy)
    assert found.value == pytest.approx(expected.value, rel=1e-5)
    cloned = FittedEvaluation(reader, games, 0.9, 0.1, components=2, groups=3).value(reader.policy)
    assert cloned.value != pytest.approx(expected.value, rel=1e-3)
    assert cloned.error > 0


def test_what_was_said_is_worth_the_mean_return(env, games, monkeypatch):
    """Of a policy that says just that: with 1 among the features errors cancel in sum."""
    clone = BC("GPTPolicy", env, games, policy_kwargs=SMALL, seed=0, device="cpu").learn(2)
    evaluation = FittedEvaluation(clone, games, components=2, groups=2)

    def as_logged(policy, batch, deterministic=False):
        return torch.nn.functional.one_hot(batch.actions, clone.action_space.n).float()

    monkeypatch.setattr("agents.offline.fitted_evaluation.speech", as_logged)
    assert evaluation.value(None).value == pytest.approx(games.returns.mean(), rel=1e-3)


def test_who_held_the_dialogues_has_their_mean_return(env, games):
    """All weights of its own policy are equal; a model that depends on more is refused."""
    clone = BC("GPTPolicy", env, games, policy_kwargs=SMALL, seed=0, device="cpu").learn(2)
    evaluation = FittedEvaluation(clone, games, ridge=0.1, components=3, groups=3)
    weighted = evaluation.weighted(clone.policy)
    assert weighted.value == pytest.approx(games.returns.mean(), rel=1e-6)
    assert weighted.size == pytest.approx(len(games))
    assert np.isfinite(evaluation.value(clone.policy)[:2]).all()
    other = agents.DecisionTransformer("GPTPolicy", env, policy_kwargs=SMALL, device="cpu")
    with pytest.raises(ValueError, match=r"got ReturnGPTPolicy; play it with dialgym\.evaluate"):
        evaluation.value(other.policy)


@pytest.mark.parametrize(
    "settings", [{"normalize_rewards": True}, {"token_reward": {"constant": -0.5}}]
)
def test_a_value_is_in_returns_whatever_the_reader_learned_from(settings, env, games):
    policy = {"policy_kwargs": SMALL, "seed": 0, "device": "cpu"}
    reader = ILQL("GPTPolicy", env, games, **policy, **settings)
    plain = ILQL("GPTPolicy", env, games, **policy)
    found, expected = (
        FittedEvaluation(model, games, ridge=0.1, components=2, groups=1)
        for model in (reader, plain)
    )
    assert found.value(plain.policy).value == expected.value(plain.policy).value
    assert found.weighted(reader.policy).value == pytest.approx(games.returns.mean(), rel=1e-6)


@pytest.mark.slow
def test_the_clone_of_the_best_dialogues_has_the_highest_value_and_return():
    """Of clones of the best, of all and of the worst, by other dialogues of the same speakers."""
    found = measure_seed(0)
    for part in ("fitted", "earned"):
        best, middle, worst = (found[part][POLICIES.index(name)] for name in CLONES)
        assert best > max(middle, worst) + 0.05, part
