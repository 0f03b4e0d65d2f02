"""Token batches are what the online token env shows."""

import json
import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.datasets import Dataset, TokenBatch, TokenData, packing, returns_to_go
from dialgym.language.tokenizers import END, FIRST_TEXT, PAD
from tests.support.players import Babbler

WORDLES = ("Wordle-v0", "Wordle-20-v0", "Wordle-ILQL-v0", "Wordle-Adversarial-v0")


def replay(dataset: Dataset, batch: TokenBatch, **kwargs: Any) -> None:
    """Say each dialogue's actions in the online env and compare all that it shows."""
    env = gym.make(dataset[0]["env"], **kwargs)
    for i, row in enumerate(dataset):
        observation, _ = env.reset(seed=row["seed"])
        over: tuple[bool, bool] = (False, False)
        for p in np.flatnonzero(batch.is_action[i]):
            assert not any(over)
            assert (observation[:p] == batch.tokens[i, :p]).all()
            assert (observation[p:] == PAD).all()
            observation, reward, *over, _ = env.step(batch.tokens[i, p])  # type: ignore[assignment]
            assert reward == batch.reward[i, p]
        assert tuple(over) == (batch.terminated[i], batch.truncated[i])
        assert (observation == batch.tokens[i]).all()
        assert batch.lengths[i] == (observation != PAD).sum()
        assert (batch.reward[i][~batch.is_action[i]] == 0).all()


@pytest.mark.parametrize("env_id", WORDLES)
@pytest.mark.parametrize("policy", ["random-mixture", Babbler()])
def test_batches_are_what_the_env_shows(env_id: str, policy: Any):
    dataset = dialgym.collect(env_id, policy, 12, seed=3, num_envs=8)
    data = dataset.tokens()
    replay(dataset, data.batch(np.arange(12)))


def test_a_dialogue_that_the_window_cuts_short():
    kwargs = {"window": 60}
    dataset = dialgym.collect("Wordle-v0", Babbler(5), 8, env_kwargs=kwargs)
    assert dataset["truncated"].any()
    replay(dataset, dataset.tokens().batch(np.arange(8)), **kwargs)
    text = dialgym.collect("Wordle-v0", "random", 8)
    with pytest.raises(ValueError, match=r"has 108 tokens, the window holds 60 \(8 such"):
        text.tokens(window=60)


@pytest.mark.parametrize("policy", ["host", Babbler()])
def test_the_other_party_as_the_learner(policy: Any):
    """The host's private first word is what it says itself."""
    kwargs = {"learner": "user", "simulator": "random-mixture"}
    dataset = dialgym.collect("Wordle-20-v0", policy, 6, env_kwargs=kwargs, num_envs=4)
    replay(dataset, dataset.tokens().batch(np.arange(6)), **kwargs)
    assert dataset.lengths.tolist() == [1] * 6


def test_logged_ids_are_not_encoded_again():
    dataset = dialgym.collect("Wordle-20-v0", Babbler(), 4, num_envs=4)
    logged = [t["tokens"] for row in dataset for t in row["turns"] if t["party"] == "system"]
    assert any(token < FIRST_TEXT and token != END for ids in logged for token in ids)
    data = dataset.tokens()
    assert data.tokens[data.is_action].tolist() == [token for ids in logged for token in ids]
    with pytest.raises(ValueError, match=r"token ids of the vocabulary .* reencode=True"):
        dataset.tokens(tokenizer="word")
    anew = dataset.tokens(tokenizer="word", reencode=True)
    assert anew.vocab_size != data.vocab_size


def test_logged_ids_beyond_the_vocabulary(monkeypatch: pytest.MonkeyPatch):
    dataset = dialgym.collect("Wordle-20-v0", Babbler(), 4, num_envs=4)
    turns = packing.turns_of(dataset)
    wrong = turns._replace(ids=turns.ids + 1000)
    monkeypatch.setattr(packing, "turns_of", lambda dataset: wrong)
    with pytest.raises(ValueError, match=r"expected token ids from 0 to 31; the .* logged 10\d\d"):
        dataset.tokens()
    dataset.tokens(reencode=True)


def slow_returns(batch: TokenBatch, gamma: float) -> np.ndarray:
    result = np.zeros(batch.reward.shape)
    for i in range(len(result)):
        actions = np.flatnonzero(batch.is_action[i])
        for k, p in enumerate(actions):
            later = batch.reward[i, actions[k:]]
            result[i, p] = sum(gamma**j * r for j, r in enumerate(later))
    return result


@pytest.mark.parametrize("gamma", [1.0, 0.9, 0.0])
def test_returns_to_go(gamma: float):
    data = dialgym.collect("Wordle-v0", "random-mixture", 6).tokens()
    batch = data.batch(np.arange(6), gamma)
    np.testing.assert_allclose(batch.return_to_go, slow_returns(batch, gamma), rtol=1e-5)
    again = returns_to_go(batch.reward, batch.is_action, gamma)
    np.testing.assert_array_equal(again, batch.return_to_go)


def test_any_rows_in_any_order_trimmed_or_not():
    data = dialgym.collect("Wordle-v0", "optimal", 9).tokens()
    whole = data.batch(np.arange(9))
    some = data.batch([7, 2, 7], trim=True)
    width = int(whole.lengths[[7, 2]].max())
    assert some.tokens.shape == (3, width)
    np.testing.assert_array_equal(some.tokens, whole.tokens[[7, 2, 7], :width])
    np.testing.assert_array_equal(some.return_to_go, whole.return_to_go[[7, 2, 7], :width])
    assert some.rows.tolist() == [7, 2, 7]


def test_an_epoch_has_each_dialogue_once():
    data = dialgym.collect("Wordle-20-v0", "random", 12).tokens()
    batches = data.batches(4, np.random.default_rng(0))
    epochs = [np.concatenate([next(batches).rows for _ in range(3)]) for _ in range(2)]
    assert all(sorted(epoch) == list(range(12)) for epoch in epochs)
    assert (epochs[0] != epochs[1]).any()
    with pytest.raises(ValueError, match="from 1 to the 12 dialogues of the data; got 13"):
        next(data.batches(13, np.random.default_rng(0)))


def test_rewards_can_be_added_to_tokens(tmp_path):
    data = dialgym.collect("Wordle-20-v0", "random", 3).tokens()
    more = data.with_token_rewards(-0.5, {END: 2.0})
    said, ends = data.is_action, data.is_action & (data.tokens == END)
    np.testing.assert_array_equal(more.reward - data.reward, -0.5 * said + 2.0 * ends)
    with pytest.raises(ValueError, match="token ids are from 0 to 31; got 32"):
        data.with_token_rewards(by_token={32: 1.0})
    letter = int(data.tokens[said & ~ends][0])
    text = data.layout.tokenizer.tokens[letter]
    file = tmp_path / "rewards.json"
    file.write_text(json.dumps({str(END): 4.0, str(letter): -1.0}), "utf-8")
    expected = -0.5 * said + 2.0 * ends - 0.5 * (said & (data.tokens == letter))
    assert expected.min() == -1.0
    for by_token in ({"<end>": 4.0, text: -1.0}, file, str(file)):
        found = data.with_token_rewards(-0.5, by_token, scale=0.5)
        np.testing.assert_array_equal(found.reward - data.reward, expected.astype(np.float32))
    file.write_text('{"<end>": 1.0}', "utf-8")
    for by_token, message in (
        ({"<ende>": 1.0}, "'<ende>' is no single token of the vocabulary of 32. Did you mean '<e"),
        ({END: float("nan")}, "the reward of 1 must be a finite number; got nan"),
        (file, "expected a JSON object of rewards by token id"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            data.with_token_rewards(by_token=by_token)


def test_the_rewards_of_utterances_can_be_scaled_and_shifted():
    for vocabulary in ("char", "word"):
        games = dialgym.collect("Wordle-20-v0", "random", 4)
        data = games.tokens(tokenizer=vocabulary)
        paid = data.with_token_rewards(reward_scale=-5.0, reward_shift=1.5)
        for row, dialogue in enumerate(games):
            earned = [turn["reward"] for turn in dialogue["turns"] if turn["said"]]
            own = slice(data.offsets[row], data.offsets[row + 1])
            ends = data.is_action[own] & (data.tokens[own] == END)
            np.testing.assert_allclose(paid.reward[own][ends], [1.5 - 5 * r for r in earned])
            assert not paid.reward[own][~ends].any()
    with pytest.raises(ValueError, match="reward_shift must be a finite number; got nan"):
        data.with_token_rewards(reward_shift=float("nan"))


def test_another_tokenizer_for_text():
    data: TokenData = dialgym.collect("Wordle-20-v0", "optimal", 5).tokens(tokenizer="word")
    batch = data.batch([0])
    assert batch.is_action[0, :4].tolist() == [False, True, True, False]  # tag word <end> tag


def test_several_environments_are_no_token_data():
    both = dialgym.collect("Wordle-20-v0", "random", 2) + dialgym.collect("Wordle-v0", "random", 2)
    with pytest.raises(ValueError, match="expected dialogues of one environment; got dialgym/Wo"):
        both.tokens()
