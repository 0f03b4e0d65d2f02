"""Cloning, and what every offline algorithm has from its base."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv

import agents
import dialgym
from agents import BC
from agents.buffers.stored import Sampler, decisions_of
from dialgym.language.tokenizers import TAGS, CharTokenizer
from tests.support.resuming import assert_same_model
from tests.support.word_games import ID, SMALL, assert_two_parts_are_one_run, learner


def made(games=None, **settings) -> BC:
    return learner(BC, games, **settings)


class SaysNoWord:
    """A policy that knows no rules."""

    def reply(self, task, state, rng):
        return "zzzzz"


def test_logged_tokens_that_the_masks_refuse_are_said_once(games):
    said = r"BC: \d+ of \d+ tokens of the first batch are outside the env's masks"
    model = made(dialgym.collect(ID, SaysNoWord(), 4))
    with pytest.warns(UserWarning, match=said) as warned:
        model.learn(2)
    assert len(warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(games).learn(1)
        made(games, both_parties=True).learn(1)  # the host's colours are no words


def test_decisions_are_those_of_the_dialogues(games):
    batch = games.tokens().batch(np.arange(20), gamma=0.9, trim=True)
    sequences = decisions_of(batch, torch.device("cpu"))
    column = {name: values.numpy() for name, values in sequences.columns.items()}
    n = 0
    for row in range(20):
        places = np.flatnonzero(batch.is_action[row])
        assert sequences.sizes[row] == len(places)
        assert sequences.lengths[row] == places[-1]
        for place in places:
            assert sequences.places[n] == place - 1
            assert column["actions"][n] == batch.tokens[row, place]
            assert column["returns"][n] == batch.return_to_go[row, place]
            assert column["is_action"][n]
            assert column["not_done"][n] == (place < places[-1])
            n += 1
    assert n == len(sequences) == len(column["is_action"])


def test_a_truncated_dialogue_ends_with_a_state_without_a_decision(games):
    batch = games.tokens().batch(np.arange(4), trim=True)
    cut = np.array([False, True, False, True])
    whole = decisions_of(batch, torch.device("cpu"))
    both = decisions_of(batch._replace(truncated=cut, terminated=~cut | cut), torch.device("cpu"))
    assert both.sizes.tolist() == whole.sizes.tolist()  # what the rules end has no state after it
    batch = batch._replace(truncated=cut, terminated=~cut)
    more = decisions_of(batch, torch.device("cpu"))
    assert (more.sizes - whole.sizes).tolist() == [0, 1, 0, 1]
    for row in (1, 3):
        last = more.first[row + 1] - 1
        assert more.places[last] == batch.lengths[row] - 1
        for name in ("is_action", "not_done"):
            assert more.columns[name][last - 1 : last + 1].tolist() == [True, False]
    kept = more.columns["is_action"]
    assert more.columns["actions"][kept].tolist() == whole.columns["actions"].tolist()
    assert len(list(more.parts(np.arange(4), 10_000))) == 1


@given(st.integers(1, 50), st.integers(1, 60), st.integers(0, 99))
def test_an_epoch_reads_every_dialogue_once_in_a_new_order(dialogues, batch_size, seed):
    sampler = Sampler(dialogues, batch_size, seed)
    epochs = [
        np.concatenate([sampler.rows(epoch * sampler.steps + i) for i in range(sampler.steps)])
        for epoch in range(2)
    ]
    for epoch in epochs:
        assert len(set(epoch.tolist())) == len(epoch) > dialogues - sampler.batch_size
    again = Sampler(dialogues, batch_size, seed)  # in the middle, as after a kill
    assert again.rows(sampler.steps).tolist() == epochs[1][: sampler.batch_size].tolist()
    assert dialogues < 9 or batch_size > dialogues or epochs[0].tolist() != epochs[1].tolist()


def test_the_loss_is_the_mean_negative_log_likelihood_token_by_token(games):
    model = made(games, batch_size=7, compute={"micro_batch_tokens": 60})
    torch.nn.init.normal_(model.policy.backbone.wte.weight)
    batch = games.tokens().batch(model.sampler.rows(0))
    nll = []
    for row, place in zip(*np.nonzero(batch.is_action), strict=True):
        seen = np.where(np.arange(batch.tokens.shape[1]) < place, batch.tokens[row], 0)
        said = torch.tensor([int(batch.tokens[row, place])])
        _, log_prob, _ = model.policy.evaluate_actions(torch.tensor(seen[None]), said)
        nll.append(-log_prob.item())
    model.set_logger(Logger(None, []))
    found = model.gradient_step(model.sampler.rows(0))  # of more than one forward
    assert found["loss"] == pytest.approx(np.mean(nll), rel=1e-5)
    assert model.logger.name_to_value["train/loss"] == found["loss"]


def test_a_run_in_two_parts_is_the_same_as_one(games, tmp_path):
    assert_two_parts_are_one_run(lambda: made(games), games, tmp_path)


def test_observations_may_carry_masks_beside_the_tokens(games):
    env = DummyVecEnv([lambda: dialgym.MaskedObservation(gym.make(ID))])
    model = BC("GPTPolicy", env, games, policy_kwargs=SMALL, seed=0).learn(1)
    seen = env.reset()
    for token in (7, 11):
        seen["action_mask"][:] = np.arange(env.action_space.n) == token
        assert model.predict(seen)[0] == token


def test_a_second_learn_goes_on_to_new_batches(games):
    model, read = made(games, batch_size=10), []
    step = model.gradient_step
    model.gradient_step = lambda rows: read.append(rows.tolist()) or step(rows)
    model.learn(3)
    model.learn(3)  # counts from 0 again
    assert model.num_timesteps == 3
    assert sorted(row for rows in read for row in rows) == list(range(60))
    once = made(games, batch_size=10).learn(6)
    assert_same_model(model, once)


def test_logs_lie_in_a_folder_of_the_algorithms_name(games, tmp_path):
    model = made(games, tensorboard_log=str(tmp_path))
    model.learn(1).learn(1, tb_log_name="other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["BC_1", "other_1"]
    with pytest.raises(
        ValueError, match="BC: expected log_interval to be a whole number from 1; got 0"
    ):
        model.learn(1, log_interval=0)


def test_it_is_an_algorithm_of_stable_baselines3(games, tmp_path):
    model = made(games, learning_rate=lambda left: 1e-3 * left)
    env = dialgym.sb3_vec_env(ID, 4, seed=1)
    callbacks = [
        EvalCallback(env, n_eval_episodes=4, eval_freq=2, best_model_save_path=str(tmp_path)),
        CheckpointCallback(2, str(tmp_path), "kept"),
    ]
    model.learn(4, callbacks, progress_bar=True)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"best_model.zip", "kept_2_steps.zip", "kept_4_steps.zip"} <= names
    loaded = agents.load(tmp_path / "kept_4_steps.zip")
    assert_same_model(model, loaded)
    obs = env.reset()
    expected = model.predict(obs, deterministic=True)[0]
    assert loaded.predict(obs[0], deterministic=True)[0] == expected[0]
    mean, _ = evaluate_policy(loaded, env, 4)
    assert -6 <= mean <= 0


def test_bad_data_is_one_clear_error(games):
    with pytest.raises(ValueError, match="expected a dialgym Dataset, its TokenData"):
        made([1, 2])
    words = dialgym.sb3_vec_env(ID, 1, tokenizer="word")
    with pytest.raises(ValueError, match=r"dataset: expected windows of \d+ tokens out of"):
        BC("GPTPolicy", words, games.tokens())


class Stranger:
    """Says a word that no vocabulary of words has, in a share of its turns."""

    def __init__(self, share: float) -> None:
        self.share = share

    def reply(self, task, state, rng) -> str:
        return "qqqqq" if rng.random() < self.share else task.answers[0]


def test_words_that_the_vocabulary_lacks_are_said_or_refused():
    words = dialgym.sb3_vec_env(ID, 1, tokenizer="word")
    kwargs = {"policy_kwargs": SMALL}
    some, most = (dialgym.collect(ID, Stranger(share), 20) for share in (0.2, 0.8))
    with pytest.warns(
        UserWarning, match=r"dataset: \d+\.\d% of the tokens .* such as 'qqqqq'; a p"
    ):
        BC("GPTPolicy", words, some, **kwargs)
    with pytest.raises(ValueError, match=r"such as 'qqqqq': these are dialogues of another domain"):
        BC("GPTPolicy", words, most, **kwargs)
    others = some.tokens(tokenizer=CharTokenizer("zyxwvutsrqponmlkjihgfedcba "))
    with pytest.raises(ValueError, match="those of another one of 32 tokens: the same ids would"):
        made(others)


@pytest.mark.slow
def test_it_learns_to_play_as_the_teacher_plays():
    optimal = dialgym.collect(ID, "optimal", 500, seed=0)
    model = BC("GPTPolicy", dialgym.sb3_vec_env(ID, 1), optimal, learning_rate=3e-3, seed=0)
    model.learn(400)
    env = dialgym.sb3_vec_env(ID, 50, seed=9)
    mean, _ = evaluate_policy(model, env, 200)
    assert mean > -1.5


def test_both_parties_are_cloned_where_that_is_asked_for(games):
    """Every token but tags is predicted from what stands before it, whoever said it."""
    model = made(games, both_parties=True, batch_size=5)
    batch = model.data.batch(model.sampler.rows(0), trim=True)
    tokens = torch.as_tensor(batch.tokens).long()
    said = (tokens > 0) & (tokens != TAGS["system"]) & (tokens != TAGS["user"])
    said[:, 0] = False
    with torch.no_grad():
        hidden = model.policy.backbone(tokens[:, :-1])
        log_probs = model.policy.policy_head(hidden).log_softmax(-1)
    losses = -log_probs.gather(2, tokens[:, 1:, None])[..., 0]
    expected = float(losses[said[:, 1:]].mean())
    loss, _ = model.loss(model.batch(batch))
    assert float(loss.detach().mean()) == pytest.approx(expected, rel=1e-5)
    assert said.sum() > 2 * batch.is_action.sum() * 0.9  # a reply is as long as a guess


def test_losses_are_measured_without_a_step(games):
    """They are those of a gradient step on the same dialogues, whatever fits into a forward."""
    model = made(games, batch_size=60, compute={"micro_batch_tokens": 60})
    before = [weight.clone() for weight in model.policy.parameters()]
    found = model.mean_losses(model.stored(games))
    assert all(torch.equal(a, b) for a, b in zip(before, model.policy.parameters(), strict=True))
    model.set_logger(Logger(None, []))
    stepped = model.gradient_step(np.arange(60))
    assert found.keys() == stepped.keys() - {"grad_norm"}
    for name, value in found.items():
        assert value == pytest.approx(stepped[name], rel=1e-6)
