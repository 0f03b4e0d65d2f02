"""Both parties as agents: what each sees, and that either can be the learner."""

import gymnasium as gym
import numpy as np

import dialgym

SMALL = {"name": "scenes", "scenes": 60}
ID = "dialgym/VisualDialogue-100-v0"


def test_each_party_sees_its_own():
    env = dialgym.aec_env("dialgym/VisualDialogue-utterance-v0")
    env.reset(seed=3)
    state, pool = env.dialogue_state, env.task.pool
    told = pool.description(state.image)
    caption = f"user: {pool.captions[state.image]}\n"
    assert env.observe("system") == caption
    assert env.observe("user") == "".join(f"user: {line}\n" for line in told) + caption
    env.step("what is on the ground")
    assert env.agent_selection == "user"
    env.step("lava")
    assert env.observe("user").endswith(env.observe("system"))
    assert env.observe("system") == f"{caption}system: what is on the ground\nuser: lava\n"


def test_both_are_paid_alike_by_what_the_answers_tell():
    """A truthful answerer and one that says nothing, on the same scenes and questions."""
    gained = {}
    for told in (True, False):
        env = dialgym.aec_env("dialgym/VisualDialogue-10Stop-utterance-v0", pool=SMALL)
        rng, totals = np.random.default_rng(0), []
        for seed in range(20):
            env.reset(seed=seed)
            total = dict.fromkeys(env.possible_agents, 0.0)
            while env.agents:
                task, state = env.task, env.dialogue_state
                speaker = env.agent_selection
                if speaker == "system":
                    env.step(task.pool.questions[int(rng.integers(503))])
                else:
                    env.step(task.answerer.reply(task, state, rng) if told else "well")
                for party in env.possible_agents:
                    total[party] += env.rewards[party]
                if all(env.terminations.values()):
                    break
            assert total["system"] == total["user"]
            totals.append(total["system"])
        gained[told] = np.mean(totals)
    assert gained[False] == 0
    assert gained[True] > 0.03


def test_a_batch_of_answerers_is_as_many_single_ones():
    batch = gym.make_vec(ID, 3, learner="user", features=True, autoreset_mode="SameStep")
    seen, _ = batch.reset(seed=5)
    for row in range(3):
        own, _ = gym.make(ID, learner="user", features=True).reset(seed=5 + row)
        assert all((own[key] == seen[key][row]).all() for key in own)
    assert batch.step(np.array([1, 1, 1]))[1].shape == (3,)  # nothing is said
