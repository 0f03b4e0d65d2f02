"""Extras: truths in infos and bits as rewards, the same in all views, and nowhere unasked."""

import pickle

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.wordle import Wordle
from dialgym.testing import check_batch
from dialgym.views.act_env import ActEnv
from dialgym.views.act_vector_env import ActVectorEnv
from dialgym.views.token_env import TokenEnv
from dialgym.views.utterance_env import UtteranceEnv

SMALL = {"items": 8, "turns": 6}


@pytest.mark.parametrize("task", [Wordle(words=20), TwentyQuestions(**SMALL)], ids=lambda t: t.name)
def test_what_names_the_truth_wins(task):
    env = UtteranceEnv(task, truths=True)
    for seed in range(5):
        _, info = env.reset(seed=seed)
        truth = info["truth"]
        _, reward, terminated, _, info = env.step(truth)
        assert terminated
        assert info["is_success"]
        assert info["truth"] == truth
        assert reward == 0


@pytest.mark.parametrize("view", [TokenEnv, ActEnv])
def test_other_views_say_the_same(view):
    task = TwentyQuestions(**SMALL)
    env, other = view(task, truths=True, anchors=True), UtteranceEnv(task, truths=True)
    for seed in range(5):
        info = env.reset(seed=seed)[1]
        assert info["truth"] == other.reset(seed=seed)[1]["truth"]
        assert len(info["anchor"]) == 16


@pytest.mark.parametrize("task", [Wordle(words=20), TwentyQuestions(**SMALL)], ids=lambda t: t.name)
def test_a_batch_equals_single_envs(task):
    check_batch(task, num_envs=3, steps=80, truths=True, anchors=True, belief_gain=0.3)


@pytest.mark.parametrize(
    "paid",
    [
        {"belief_gain": 0.3},
        {"potential": {"entropy": 1.0, "value": 1.0}},
        {"final_reward": {"length": 1.0}},
    ],
    ids=str,
)
def test_what_is_paid_is_paid_in_another_process_too(paid):
    env = UtteranceEnv(TwentyQuestions(**SMALL), **paid)
    env.reset(seed=0)
    other = pickle.loads(pickle.dumps(env))
    said = env.task.naming(env.dialogue.state)
    assert env.step(said) == other.step(said)


def test_ids_take_the_weight_of_the_bits():
    pool = dialgym.sb3_vec_env("dialgym/TwentyQuestions-8-v0", 2, belief_gain=0.1)
    assert pool.reset().shape[0] == 2


def test_nothing_is_said_unasked():
    assert "truth" not in gym.make("dialgym/Wordle-20-v0").reset(seed=0)[1]


def test_a_dialogue_earns_the_bits_that_it_told():
    plain, paid = (UtteranceEnv(TwentyQuestions(**SMALL), belief_gain=w) for w in (0.0, 0.5))
    task = plain.task
    for seed in range(5):
        plain.reset(seed=seed)
        paid.reset(seed=seed)
        over, total = False, 0.0
        for question in (*task.said[:4], *task.table.guesses):
            before = task.posterior(plain.dialogue.state)[task.truth(plain.dialogue.state)]
            _, usual, over, _, _ = plain.step(question)
            _, more, _, _, _ = paid.step(question)
            after = task.posterior(plain.dialogue.state)[task.truth(plain.dialogue.state)]
            assert more - usual == pytest.approx(0.5 * np.log2(after / before))
            total += more - usual
            if over:
                break
        assert total == pytest.approx(0.5 * np.log2(8 * after))


def test_an_answer_that_misleads_costs():
    env = UtteranceEnv(TwentyQuestions(**SMALL, noise=0.4), belief_gain=1.0)
    usual = UtteranceEnv(TwentyQuestions(**SMALL, noise=0.4))
    gains = []
    for seed in range(20):
        env.reset(seed=seed)
        usual.reset(seed=seed)
        gains.append(env.step(env.task.said[0])[1] - usual.step(env.task.said[0])[1])
    assert min(gains) < 0 < max(gains)


def test_tokens_are_paid_when_the_utterance_ends():
    task = TwentyQuestions(**SMALL)
    env = TokenEnv(task, belief_gain=1.0)
    env.reset(seed=0)
    rewards = [env.step(token)[1] for token in (*env.tokenizer.encode(task.said[0]), 1)]
    assert rewards[:-1] == [0.0] * (len(rewards) - 1)
    assert rewards[-1] != -1.0


def test_a_restored_dialogue_goes_on_from_its_own_belief():
    env, other = (ActVectorEnv(TwentyQuestions(**SMALL), 2, belief_gain=1.0) for _ in range(2))
    env.reset(seed=3)
    other.reset(seed=4)
    env.step(np.array([0, 1]))
    other.restore_state(env.clone_state())
    acts = np.array([2, 3])
    saved = env.get_state()
    expected = env.step(acts)[1]
    assert (other.step(acts)[1] == expected).all()
    other.set_state(saved)
    assert (other.step(acts)[1] == expected).all()
    single = ActEnv(TwentyQuestions(**SMALL), belief_gain=1.0)
    single.reset(seed=3)
    for act in (0, 2):
        reward = single.step(act)[1]
    assert reward == expected[0]


RESCALED = {"reward_scale": -5.0, "reward_shift": 0.25}


@pytest.mark.parametrize("task", [Wordle(words=20), TwentyQuestions(**SMALL)], ids=lambda t: t.name)
def test_rewards_of_utterances_are_scaled_and_shifted(task):
    plain, paid = TokenEnv(task, belief_gain=0.5), TokenEnv(task, belief_gain=0.5, **RESCALED)
    rng = np.random.default_rng(0)
    for seed in range(5):
        plain.reset(seed=seed)
        paid.reset(seed=seed)
        over = False
        while not over:
            token = int(rng.choice(np.flatnonzero(plain.action_masks())))
            _, usual, over, _, info = plain.step(token)
            _, reward, _, _, other = paid.step(token)
            assert reward == (0.25 - 5.0 * usual if info["turn"] else 0.0)  # 0 within an utterance
            assert info["reward_components"] == other["reward_components"]
    check_batch(task, num_envs=3, steps=60, **RESCALED)


def test_scores_and_stored_dialogues_have_the_rewards_of_the_task():
    for policy in ("random", First()):
        usual, scored = (
            dialgym.evaluate(policy, "Wordle-20-v0", 20, seeds=(0,), env_kwargs=kwargs)
            for kwargs in ({}, RESCALED)
        )
        assert usual.mean_return == scored.mean_return < 0
        assert usual.score == scored.score
    stored = dialgym.collect("Wordle-20-v0", First(), 5, env_kwargs=RESCALED)
    assert set(stored.returns) == {-6.0}
    env = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 2, **RESCALED)
    env.reset()
    rewards = [env.step(np.ones(2, np.int64))[1].tolist() for _ in range(2)]
    assert rewards == [[5.25, 5.25]] * 2  # an empty guess costs 1


@pytest.mark.parametrize("name", RESCALED)
def test_a_scale_is_a_finite_number(name):
    with pytest.raises(ValueError, match=f"{name} of Wordle must be a finite number; got 'x'"):
        UtteranceEnv(Wordle(words=20), **{name: "x"})


class First:
    """A policy with `predict` that says nothing, over and over."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return np.ones(len(observation), np.int64), state


def served(text):
    """1 for a dialogue that ends in assent; a judge in the place of a model."""
    return float(text == "yes")


def test_whole_dialogues_are_paid_at_their_end():
    judge = {"judge": {"reward": served, "bounds": (0, 1), "weight": 20}}
    views = [
        UtteranceEnv(TwentyQuestions(**SMALL), **more) for more in ({}, {"final_reward": judge})
    ]
    found = set()
    for seed in range(12):
        rewards, over = [], False
        for env in views:
            env.reset(seed=seed)
        while not over:
            steps = [env.step("is it an animal") for env in views]
            over = steps[0][2] or steps[0][3]
            rewards.append(steps[1][1] - steps[0][1])
        last = views[1].dialogue.task.transcript(views[1].dialogue.state, "system")[-1].text
        assert rewards == pytest.approx([0.0] * (len(rewards) - 1) + [20 * served(last)])
        found.add(rewards[-1])
    assert len(found) == 2


def test_a_batch_pays_the_same_at_the_end():
    judge = {"judge": {"reward": served, "bounds": (0, 1)}}
    check_batch(TwentyQuestions(**SMALL), num_envs=3, steps=80, final_reward=judge)
    with pytest.raises(ValueError, match="unknown reward"):
        UtteranceEnv(TwentyQuestions(**SMALL), final_reward={"juge": 1})
