"""The rise of a policy's own probability of the truth, against one token and one turn at a time."""

from itertools import pairwise

import numpy as np
import pytest
import torch

import dialgym
from agents import GRPO
from agents.online.credit import fitted_values
from agents.online.truths import probability_rises, turn_starts

SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}
WORDS = {"answers": ["crane", "slimy", "bough", "fjord"], "guesses": "answers"}
WORDLE = ("Wordle-v0", {**WORDS, "constraint": "words", "turns": 4})
QUESTIONS = ("TwentyQuestions-8-v0", {"items": 4, "questions": 4, "turns": 4})


def collected(game, **settings):
    name, kwargs = game
    env = dialgym.sb3_vec_env(name, 16, seed=0, **kwargs, truths=True)
    model = GRPO(
        "GPTPolicy", env, n_steps=60, batch_size=512, seed=0, group_size=8, scale_rewards="none",
        **{"policy_kwargs": SMALL, "credit": "turn", "truth_gain": 2.0, **settings},
    )  # fmt: skip
    _, callback = model._setup_learn(1000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 60)
    return model


def spoken(model):
    """(T, n) bool: where a token was said."""
    said = np.zeros(model.rollout_buffer.steps("actions").shape, bool)
    said.reshape(-1)[model.rollout.sequences.steps] = True
    return said


def slow_probability(model, prefix, text):
    """exp of the mean log-probability, an observation and a forward for each token."""
    logs, seen = [], list(prefix)
    for token in model.observation_space.tokenizer.encode(text):
        obs = np.zeros((1, *model.observation_space.shape), np.int64)
        obs[0, : len(seen)] = seen
        with torch.no_grad():
            log_prob = model.policy.evaluate_actions(torch.tensor(obs), torch.tensor([token]))[1]
        logs.append(float(log_prob))
        seen.append(token)
    return np.exp(np.mean(logs))


def slow_gains(model, said):
    """(T, n), from the tokens of each dialogue, cut where the learner's turns begin."""
    space = model.observation_space
    sequences = model.rollout.sequences
    found = np.zeros(said.shape)
    truths, places = model.rollout_buffer.steps("truths"), np.zeros(said.shape, int)
    places.reshape(-1)[sequences.steps] = sequences.places
    owner = np.zeros(said.shape, int)
    owner.reshape(-1)[sequences.steps] = np.repeat(np.arange(len(sequences.sizes)), sequences.sizes)
    for n in range(said.shape[1]):
        turns = []
        for t in np.flatnonzero(said[:, n]):
            prefix = sequences.tokens[owner[t, n], : places[t, n] + 1].tolist()
            if prefix[-1] == space.learner_tag:  # no text holds a tag
                turns.append((t, slow_probability(model, prefix, truths[t, n])))
        for (t, before), (_, after) in pairwise(turns):
            found[t, n] = after - before
    return found


@pytest.mark.parametrize("game", [WORDLE, QUESTIONS], ids=lambda game: game[0])
def test_gains_are_those_of_one_forward_a_token(game):
    model = collected(game)
    said = spoken(model)
    gains = model._truth_gains(model.rollout.sequences, said, model._ends(said))
    expected = slow_gains(model, said)
    assert np.count_nonzero(expected) > 16
    np.testing.assert_allclose(gains, expected, atol=1e-5)


def test_a_turn_is_credited_with_its_gain_and_those_that_follow():
    paid, plain = (collected(WORDLE, truth_gain=w, baseline="mean") for w in (2.0, 0.0))
    said = spoken(paid)
    gains = paid._truth_gains(paid.rollout.sequences, said, paid._ends(said))
    shape = said.shape
    more, usual = (m.rollout.sequences.grid(m.rollout.advantages, shape) for m in (paid, plain))
    ahead = 2.0 * gains.sum(0)  # of the first turn on
    expected = usual[0] + ahead - ahead.reshape(2, 8).mean(1).repeat(8)
    np.testing.assert_allclose(more[0], expected, atol=1e-5)
    assert not np.allclose(more[0], usual[0])


def test_starts_and_rises_by_hand():
    ends = np.array([[0, 1], [1, 0], [0, 1], [1, 0]], bool)
    said = np.array([[0, 1], [1, 1], [1, 1], [1, 0]], bool)  # the first row rests at first
    begun = turn_starts(ends, said)
    assert begun.tolist() == [[False, True], [True, True], [True, False], [False, False]]
    values = np.array([[9, 0.1], [0.2, 0.4], [0.7, 9], [9, 9]])
    assert probability_rises(values, begun) == pytest.approx(
        np.array([[0, 0.3], [0.5, 0], [0, 0], [0, 0]])
    )


def slow_fit(features, returns, folds, ridge):
    """Least squares on rows that stand for the penalty, a prediction at a time."""
    found = []
    for x, fold in zip(features, folds, strict=True):
        rest, targets = features[folds != fold], returns[folds != fold]
        centred = rest - rest.mean(0)
        penalty = ridge * (centred**2).sum() / features.shape[1]
        rows = np.vstack([centred, np.sqrt(penalty) * np.eye(features.shape[1])])
        wanted = np.append(targets - targets.mean(), np.zeros(features.shape[1]))
        weights = np.linalg.lstsq(rows, wanted, rcond=None)[0]
        found.append(targets.mean() + (x - rest.mean(0)) @ weights)
    return found


def test_values_are_fitted_to_other_folds():
    rng, folds = np.random.default_rng(0), np.arange(40) % 4
    features, returns = rng.normal(size=(40, 6)), rng.normal(size=40)
    found = fitted_values(features, returns, folds, 0.1)
    np.testing.assert_allclose(found, slow_fit(features, returns, folds, 0.1), rtol=1e-6)
    changed = returns + 9 * (folds == 2)
    again = fitted_values(features, changed, folds, 0.1)
    np.testing.assert_array_equal(again[folds == 2], found[folds == 2])
    assert not np.isclose(again[folds != 2], found[folds != 2]).any()


PRIVILEGED = {"truth_gain": 0.0, "credit": "privileged"}


@pytest.mark.parametrize(
    ("trace", "policy"), [(0.0, {}), (1.0, {"lora": {"r": 2}})], ids=["rise", "return-adapters"]
)
def test_a_critic_told_the_truth_is_that_of_one_forward_a_turn(trace, policy):
    """In double precision: prefix and truth, the hidden states at their ends, a fit, the rises."""
    kwargs = {"ridge": 0.1, "trace": trace}
    more = {"policy_kwargs": {**SMALL, **policy}, "credit_kwargs": kwargs, "env_masks": True}
    model = collected(WORDLE, **PRIVILEGED, **more)
    model.policy.double()
    said, buffer, sequences = spoken(model), model.rollout_buffer, model.rollout.sequences
    encode, rewards = model.observation_space.tokenizer.encode, buffer.steps("rewards") * said
    features, begun = [], []
    for i, length in enumerate(np.diff(sequences.first)):
        for j in range(sequences.first[i], sequences.first[i] + length):
            prefix = sequences.tokens[i, : sequences.places[j] + 1].tolist()
            if prefix[-1] == model.observation_space.learner_tag:  # no text holds a tag
                step, row = divmod(int(sequences.steps[j]), said.shape[1])
                tokens = [prefix + encode(buffer.steps("truths")[step, row])]
                at = torch.tensor([len(prefix) - 1, len(tokens[0]) - 1])
                with torch.no_grad():
                    hidden = model.policy.backbone(torch.tensor(tokens), at)
                features.append(hidden.reshape(-1).numpy())
                begun.append((row, step))
    rows, steps = np.array(begun).T
    to_come = np.array([rewards[step:, row].sum() for row, step in begun], np.float64)
    values = slow_fit(np.array(features), to_come, rows % 4, 0.1)
    expected = np.zeros(said.shape)
    for k, (row, step) in enumerate(begun):
        later = [j for j in range(len(rows)) if rows[j] == row and steps[j] > step]
        after = min(later, key=lambda j: steps[j], default=None)
        end = len(said) if after is None else steps[after]
        ahead = to_come[k] if trace else rewards[step:end, row].sum()
        if not trace and after is not None:
            ahead += values[after]
        expected[step:end, row] = ahead - values[k]
    ends = model._ends(said)
    found = model._advantages(sequences, rewards, said, ends)
    assert len(begun) > 40
    np.testing.assert_allclose(found * said, expected * said, rtol=1e-5, atol=1e-6)
    values = model._privileged_values(sequences, rewards, said, ends)
    np.testing.assert_allclose(values[steps, rows], slow_fit(
        np.array(features), to_come, rows % 4, 0.1), rtol=1e-6, atol=1e-6)  # fmt: skip


def test_the_privileged_critic_needs_truths_and_others():
    env = dialgym.sb3_vec_env("TwentyQuestions-8-v0", 8)
    model = GRPO("GPTPolicy", env, policy_kwargs=SMALL, credit="privileged")
    with pytest.raises(ValueError, match=r'credit="privileged" needs infos with `truth`'):
        model.learn(10)
    alone = dialgym.sb3_vec_env("TwentyQuestions-8-v0", 1, truths=True)
    with pytest.raises(ValueError, match=r"compares dialogues, got an env of 1"):
        GRPO("GPTPolicy", alone, policy_kwargs=SMALL, credit="privileged", group_size=None)


@pytest.mark.slow
@pytest.mark.parametrize("trace", [0.0, 1.0])
def test_the_privileged_critic_teaches_words(trace):
    """Returns rise, with values as a baseline and by their rise alone."""
    env = dialgym.sb3_vec_env("Wordle-Alike-v0", 128, seed=0, tokenizer="word", truths=True)
    model = GRPO(
        "GPTPolicy", env, n_steps=20, batch_size=512, seed=0, learning_rate=2e-3, n_epochs=2,
        credit="privileged", credit_kwargs={"trace": trace},
        policy_kwargs={"n_layer": 1, "n_head": 2, "n_embd": 32},
    )  # fmt: skip
    model.learn(1)
    begun = np.mean([episode["r"] for episode in model.ep_info_buffer])
    model.learn(45_000)
    assert np.mean([episode["r"] for episode in model.ep_info_buffer]) > begun + 0.4


def test_it_needs_truths_and_known_masks():
    env = dialgym.sb3_vec_env("TwentyQuestions-8-v0", 8)
    model = GRPO("GPTPolicy", env, policy_kwargs=SMALL, truth_gain=1.0, credit="turn")
    with pytest.raises(ValueError, match=r"truth_gain needs infos with `truth`.*truths=True"):
        model.learn(10)
    masked = dialgym.sb3_vec_env("TwentyQuestions-8-v0", 8, truths=True)
    with pytest.raises(ValueError, match=r"GRPO: truth_gain=1.0 asks how likely"):
        GRPO("GPTPolicy", masked, policy_kwargs=SMALL, truth_gain=1.0, env_masks=True)
