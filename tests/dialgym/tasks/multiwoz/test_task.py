"""The task of multi-domain dialogues: text over the rules, in every language."""

import pickle

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.tasks.multiwoz import MultiWOZ
from dialgym.tasks.multiwoz.ontology import DOMAINS
from dialgym.tasks.multiwoz.task import METRICS
from dialgym.testing import check_task
from tests.support.by_day import at_night

GOAL = {"hotel": {"info": {"area": "north"}, "reqt": ["phone"]}}


def play(task, seed, system="rule", user="agenda", options=None):
    """A dialogue of scripted speakers: its return, last outcome and state."""
    speakers = {
        "system": task.speaker_named("system", system),
        "user": task.speaker_named("user", user),
    }
    rng = np.random.default_rng(seed)
    state, total = task.initial(rng, options), 0.0
    while True:
        text = speakers[task.speaker(state)].reply(task, state, rng)
        outcome = task.speak(state, text, rng)
        total += outcome.rewards["system"]
        if outcome.terminated or outcome.truncated:
            return total, outcome, state


@pytest.mark.parametrize(
    "settings",
    [
        at_night({}),  # tried with the registered tasks too
        {"language": "words", "error_rate": 0.3},
        {"acts": "composite", "masks": False, "reward": "convlab2", "fidelity": "convlab2"},
        {"turns": 1, "user": "verbose", "strict": True},
    ],
)
def test_the_task_keeps_its_promises(settings):
    check_task(MultiWOZ(**settings), episodes=2)


@pytest.mark.parametrize("language", ["acts", "words"])
@pytest.mark.parametrize("user", ["agenda", "agenda-terse", "agenda-verbose"])
def test_the_rule_system_serves_the_agenda_users(language, user):
    task = MultiWOZ(language=language)
    wins = [play(task, seed, user=user)[1].success for seed in range(20)]
    assert np.mean(wins) >= 0.95


def test_a_random_system_fails():
    task = MultiWOZ()
    assert np.mean([play(task, seed, "random")[1].success for seed in range(40)]) < 0.2


def test_noise_makes_dialogues_longer():
    tasks = [MultiWOZ(error_rate=rate) for rate in (0.0, 0.3)]
    turns = [np.mean([play(t, seed)[2].dialogue.turns for seed in range(40)]) for t in tasks]
    assert turns[0] + 0.3 < turns[1]


def test_the_system_hears_what_the_channel_lets_through():
    task, rng = MultiWOZ(error_rate=1.0), np.random.default_rng(0)
    state = task.initial(rng, {"goal": GOAL})
    task.speak(state, 'Hotel-Inform(Area="north")', rng)
    assert state.heard_by_user[-1].text == 'Hotel-Inform(Area="north")'
    assert state.heard_by_system[-1].text != 'Hotel-Inform(Area="north")'
    assert state.dialogue.belief.constraints.get("hotel", {}).get("area") != "north"


def test_metrics_are_in_the_info_at_the_end_alone():
    env = gym.make("dialgym/MultiWOZ-act-v0")
    _, info = env.reset(seed=0)
    assert info["metrics"] == dict.fromkeys(METRICS, 0.0)
    policy, rng = env.unwrapped.acts.policy_named("rule"), np.random.default_rng(0)
    over = False
    while not over:
        assert not any(info["metrics"].values())
        action = policy.act(env.unwrapped.task, env.unwrapped.dialogue.state, rng)
        *_, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    assert info["is_success"]
    assert (info["metrics"]["match"], info["metrics"]["complete"]) == (1.0, 1.0)
    wanted = env.unwrapped.dialogue.state.dialogue.goal.domains
    for domain in DOMAINS:
        assert info["metrics"][f"success_{domain}"] == (1.0 if domain in wanted else -1.0)


def test_metrics_reach_pools_of_workers_and_of_stable_baselines():
    sharded = dialgym.make_vec("dialgym/MultiWOZ-act-v0", 2, workers=1)
    try:
        _, info = sharded.reset(seed=0)
        rng = np.random.default_rng(0)
        while not info["metrics"]["inform_recall"].any():
            actions = (rng.random((2, 209)) < 0.3).astype(np.int8)
            *_, info = sharded.step(actions)
    finally:
        sharded.close()
    pool = dialgym.sb3_vec_env("dialgym/MultiWOZ-act-v0", 2)
    pool.reset()
    dones, infos = np.zeros(2, bool), []
    while not dones.any():
        _, _, dones, infos = pool.step((rng.random((2, 209)) < 0.3).astype(np.int8))
    assert set(infos[int(np.argmax(dones))]["metrics"]) == set(METRICS)


def test_goals_can_be_given_and_chosen():
    task, rng = MultiWOZ(), np.random.default_rng(0)
    assert list(task.initial(rng, {"goal": GOAL}).dialogue.goal.domains) == ["hotel"]
    chosen = task.initial(rng, {"domains": ["train", "hotel"]}).dialogue.goal
    assert list(chosen.domains) == ["train", "hotel"]
    test = MultiWOZ(goals="test")
    third = test.initial(rng, {"number": 3}).dialogue.goal
    assert third == test.initial(rng, {"number": 3}).dialogue.goal
    assert third != MultiWOZ(goals="train").initial(rng, {"number": 3}).dialogue.goal


@pytest.mark.parametrize("text", ["", "hello", "Hotel-Inform(", "Hotel-Inform() Hotel-Inform()",
                                  'Moon-Inform(Area="x")', 'Hotel-Inform(Area="a",Area="b")',
                                  "Booking-Book(Ref) general-bye() Train-Inform()"])  # fmt: skip
def test_any_text_of_either_party_has_an_outcome(text):
    task, rng = MultiWOZ(), np.random.default_rng(0)
    state = task.initial(rng, None)
    for _ in range(6):
        outcome = task.speak(state, text, rng)
        if outcome.terminated:
            break


def test_tasks_are_pickled_by_their_settings():
    task = pickle.loads(pickle.dumps(MultiWOZ(language="words", turns=3)))
    assert (task.turns, task.language.tokenizer, task.stand_in) == (3, "word", "built-in")
    assert MultiWOZ(world="built-in").stand_in is None
