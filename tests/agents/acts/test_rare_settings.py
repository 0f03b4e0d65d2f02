"""Settings and ways of learning that are rare, each where it once went wrong."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import StopTrainingOnMaxEpisodes

import agents
import dialgym
from agents import A2C, ACER, BBQN, DQN, ENAC, Committee, FeudalACER, GPSarsa
from agents.acts.enac import natural_gradient
from tests.support.act_mdps import five_states, vec_env


class Clock(gym.Env):
    """Dialogues of `turns` turns; the observation is the number of the turn, as a tenth."""

    def __init__(self, turns=5, space=None):
        self.turns = turns
        self.observation_space = space or spaces.Box(0, 10, (4,), np.float32)
        self.action_space = spaces.Discrete(3)

    def _seen(self):
        if isinstance(self.observation_space, spaces.Discrete):
            return self.turn % 5
        box = self.observation_space
        return np.full(box.shape, self.turn / 10, box.dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.turn = 0
        return self._seen(), {}

    def step(self, action):
        self.turn += 1
        return self._seen(), float(action == 1), self.turn >= self.turns, False, {}

    def action_masks(self):
        return np.arange(3) != (2 if self.turn == 0 else 0)


@pytest.mark.parametrize("cls", [A2C, ACER])
def test_dialogues_after_a_stop_by_a_callback_are_whole(cls):
    model = cls("MlpPolicy", Clock(), learning_starts=0, dialogues_per_update=100, seed=0)
    model.learn(1000, callback=StopTrainingOnMaxEpisodes(3))
    model.learn(20, reset_num_timesteps=False)
    memory = model.replay_buffer
    lengths = memory.lengths[memory.lengths > 0]
    assert (lengths == 5).all()
    assert len(lengths) >= 5
    turns = (memory.observations[: memory.pos, 0, 0] * 10).round().astype(int)
    assert ((turns == 0) == memory.masks[: memory.pos, 0, 0]).all()


def test_transitions_after_a_stop_by_a_callback_join_no_two_dialogues():
    model = DQN("MlpPolicy", Clock(), learning_starts=1000, seed=0)
    model.learn(1000, callback=StopTrainingOnMaxEpisodes(3))
    model.learn(10, reset_num_timesteps=False)
    memory = model.replay_buffer
    here, there = (
        (part[: memory.pos, 0, 0] * 10).round().astype(int)
        for part in (memory.observations, memory.next_observations)
    )
    assert (there == here + 1).all()


def test_an_actor_critic_learns_from_a_memory_of_few_dialogues():
    model = A2C("MlpPolicy", Clock(), buffer_size=64, dialogues_per_update=32, seed=0)
    model.learn(500)
    assert model._n_updates == 500 // 5 // 32


def test_dialogues_without_weight_move_nothing():
    found = natural_gradient(torch.eye(3), torch.tensor([1.0, 2, 3]), torch.zeros(3), 0.1)
    assert found.u.tolist() == found.slope.tolist() == [0, 0, 0]
    assert float(found.mean) == 2
    model = ENAC("MlpPolicy", Clock(25), batch_size=2, learning_starts=25, seed=0)
    model.learn(100)
    with torch.no_grad():
        model.policy.action_net.bias[0] += 200  # a policy that would hold none of them again
    model.learn(200, reset_num_timesteps=False)
    assert all(torch.isfinite(weight).all() for weight in model.policy.parameters())


def test_decoding_reaches_a_hierarchy_of_policies():
    env = dialgym.sb3_vec_env("SlotFilling-act-v0", 2, seed=0)
    model = FeudalACER("MlpPolicy", env, seed=0)
    seen, _ = model.policy.obs_to_tensor(env.reset())
    assert model.policy.get_distribution(seen).distribution.probs.max() < 0.9
    best = agents.with_decoding(model, top_k=1).policy.get_distribution(seen)
    torch.testing.assert_close(best.distribution.probs.max(1).values, torch.ones(2))


def test_tested_acts_are_the_same_in_each_row():
    model = BBQN("MlpPolicy", vec_env(five_states(), 2), learning_starts=10, seed=0)
    model.learn(100)
    belief = torch.as_tensor(model.env.reset()[:1])
    q = model.policy._tested(belief.repeat(9, 1))
    assert (q == q[0]).all()
    torch.testing.assert_close(q[0], model.policy._tested(belief)[0])


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 10, (4,), np.float64),
        spaces.Box(0, 10, (2, 3), np.float32),
        spaces.Discrete(5),
    ],
    ids=["float64", "matrix", "discrete"],
)
def test_curiosity_reads_observations_as_values_do(space):
    env = Clock(space=space)
    kwargs = {"policy_kwargs": {"curiosity": {}}, "learning_starts": 10, "batch_size": 8}
    model = DQN("MlpPolicy", env, **kwargs, seed=0)
    model.learn(40)
    assert model._n_updates > 0


@pytest.mark.parametrize("credit", ["own", "equal", "share", "winner"])
def test_a_committees_member_keeps_what_it_learned_when_scales_are_new(credit):
    model = Committee("GPPolicy", Clock(), credit=credit, scales_after=3, seed=0, kernel="rbf")
    model.learn(20)
    assert model.history is None  # scales were learned
    assert model.process is model.members[model.coordinates.domain]
    assert len(model.process) > 0


def test_the_other_members_of_a_committee_learn_once():
    other = GPSarsa("GPPolicy", Clock(), seed=0, kernel="rbf")
    other.learn(10)
    found = {}
    for scales_after in (0, 4):
        model = Committee(
            "GPPolicy", Clock(), credit="equal", members={"other": other}, seed=0,
            scales_after=scales_after, kernel="rbf",
        )  # fmt: skip
        model.learn(20)
        here = np.full((1, 4), 0.2)
        found[scales_after] = model.members["other"].predict(here, [model.coordinates.acts[1]])[1]
    np.testing.assert_allclose(found[4], found[0])


def test_a_committee_begins_from_what_another_learned():
    source = GPSarsa("GPPolicy", Clock(), seed=0)
    source.learn(50)
    model = Committee("GPPolicy", Clock(), seed=0)
    policy = model.policy
    policy.start_from(source.policy)
    assert model.policy is policy
    assert len(model.process) == len(source.process) > 0
    beliefs = np.full((2, 4), 0.1)
    np.testing.assert_allclose(model.estimate(beliefs)[0], source.estimate(beliefs)[0], rtol=1e-6)
