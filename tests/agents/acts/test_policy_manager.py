"""Policies of several domains that learn from the same dialogues."""

import numpy as np
import pytest
from stable_baselines3.common.callbacks import BaseCallback

import agents
import dialgym
from agents import DQN, GPSarsa
from agents.acts.policy_manager import MultiDomainLearner
from agents.training.hyperparameters import read_hyperparameters
from agents.training.session import build
from tests.support.by_day import by_day

ID, CAM, SF = "dialgym/SlotFilling-Domains-act-v0", "CamRestaurants", "SFRestaurants"
SMALL = {"dqn": {"buffer_size": 500, "learning_starts": 50}, "gp-sarsa": {"budget": 60}}
LEARNERS = {"dqn": (DQN, "MlpPolicy"), "gp-sarsa": (GPSarsa, "GPPolicy")}


def made(domains=(CAM, SF), learner="gp-sarsa", **settings):
    env = dialgym.sb3_vec_env(ID, 1, domains=list(domains))
    kwargs = SMALL.get(learner, {}) | settings.pop("learner_kwargs", {})
    return MultiDomainLearner(
        "ManagerPolicy", env, learner=learner, learner_kwargs=kwargs, seed=0, **settings
    )


@pytest.mark.parametrize("learner", by_day(LEARNERS, "gp-sarsa"))
def test_with_one_domain_it_is_that_learner_alone(learner):
    manager = made([CAM], learner).learn(300)
    kind, policy = LEARNERS[learner]
    env = dialgym.sb3_vec_env(f"dialgym/{CAM}-Env1-act-v0", 1)
    alone = kind(policy, env, seed=0, **SMALL[learner]).learn(300)
    own = manager.models[CAM]
    assert own.num_timesteps == alone.num_timesteps
    seen = np.stack([env.reset()[0] for _ in range(20)])
    if learner == "dqn":
        for ours, theirs in zip(own.policy.parameters(), alone.policy.parameters()):
            assert (ours == theirs).all()
    else:
        assert all(map(np.array_equal, own.estimate(seen), alone.estimate(seen)))


def test_each_learns_from_its_own_turns_until_its_domain_is_over():
    manager = made(learner="dqn").learn(400)
    spoken = sum(model.num_timesteps for model in manager.models.values())
    assert 0 < spoken < manager.num_timesteps  # the rest are the topic manager's
    for name, model in manager.models.items():
        buffer, count = model.replay_buffer, model.num_timesteps
        rewards, dones = buffer.rewards[:count, 0], buffer.dones[:count, 0].astype(bool)
        assert set(rewards[~dones]) == {-1.0}, name
        assert set(rewards[dones]) <= {-2.0, -1.0, 18.0, 19.0}
        assert dones.any()


class Totals(BaseCallback):
    """The returns of whole dialogues."""

    def __init__(self):
        super().__init__()
        self.returns = []

    def _on_step(self):
        self.returns += [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        return True


def test_shared_rewards_are_those_of_the_whole_dialogue():
    manager, totals = made(learner="dqn", rewards="shared"), Totals()
    manager.learn(300, totals)
    for name, model in manager.models.items():
        count, left = model.num_timesteps, iter(totals.returns)
        rewards = model.replay_buffer.rewards[:count, 0]
        ends = np.flatnonzero(model.replay_buffer.dones[:count, 0]) + 1
        returns = [part.sum() for part in np.split(rewards, ends)[:-1]]
        assert len(returns) > 5, name
        # of the dialogues, in their order, in which the domain had turns
        assert all(any(one == pytest.approx(total) for total in left) for one in returns)


@pytest.mark.parametrize("credit", by_day(["own", "equal", "winner", "share"], "own", "share"))
def test_committees_share_their_members_and_the_credit(credit):
    manager = made(learner="committee", learner_kwargs={"credit": credit, "budget": 40})
    cam, sf = manager.models[CAM], manager.models[SF]
    assert set(map(id, cam.members.values())) == set(map(id, sf.members.values()))
    learned = {name: [] for name in manager.models}
    for name, model in manager.models.items():
        observe = model.process.observe
        model.process.observe = lambda x, *rest, n=name, o=observe: (learned[n].append(len(x)),
                                                                     o(x, *rest))  # fmt: skip
    manager.learn(150)
    taught = {name: sum(counts) for name, counts in learned.items()}
    own = {name: model.num_timesteps for name, model in manager.models.items()}
    if credit == "own":
        assert all(taught[name] <= own[name] for name in own)
    if credit in ("equal", "share"):
        assert taught[CAM] == taught[SF]
    if credit == "winner":
        assert 0 < sum(taught.values()) <= sum(own.values())


def test_it_is_saved_played_and_learns_on(tmp_path):
    manager = made().learn(200)
    manager.save(tmp_path / "model.zip")
    again = agents.load(tmp_path / "model.zip")
    before = dialgym.evaluate(manager, ID, 5, env_kwargs={"domains": [CAM, SF]}, deterministic=True)
    after = dialgym.evaluate(again, ID, 5, env_kwargs={"domains": [CAM, SF]}, deterministic=True)
    assert np.array_equal(before.overall.returns, after.overall.returns)
    assert {"success_CamRestaurants", "success_SFRestaurants"} == set(after[ID].metrics)
    more = agents.load(tmp_path / "model.zip", env=manager.env)
    learned = {name: model.num_timesteps for name, model in more.models.items()}
    more.learn(100, reset_num_timesteps=False)
    assert all(model.num_timesteps > learned[name] for name, model in more.models.items())
    own = tmp_path / "cam.zip"
    more.models[CAM].save(own)
    assert dialgym.evaluate(str(own), f"dialgym/{CAM}-Env1-act-v0", 3).mean_return


def test_errors_of_a_learner_are_raised_where_it_learns():
    manager = made(learner="dqn")

    def fail(*args, **kwargs):
        raise ArithmeticError("no")

    manager.models[CAM].train = fail
    with pytest.raises(ArithmeticError, match="no"):
        manager.learn(400)


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="expected the system's act view of SlotFilling-Domains"):
        MultiDomainLearner("ManagerPolicy", dialgym.sb3_vec_env(ID, 2))
    with pytest.raises(ValueError, match="expected the system's act view of SlotFilling-Domains"):
        MultiDomainLearner("ManagerPolicy", dialgym.sb3_vec_env("SlotFilling-act-v0", 1))
    with pytest.raises(ValueError, match="rewards"):
        made(rewards="mine")
    with pytest.raises(ValueError, match="gp-sarsi"):
        made(learner="gp-sarsi")


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"learner": "dqn"}, None),
        ({"learner": "committee", "learner_kwargs": {"credit": "equal"}}, {"credit": "equal"}),
        ({"learner_kwargs": {"budget": 40}}, {"scale": 2.0, "budget": 40}),
    ],
)
def test_another_learner_is_made_without_the_arguments_of_the_configured_one(change, left):
    config = read_hyperparameters("policy-manager", ID, change)
    assert config.get("learner_kwargs") == left
    assert build("policy-manager", config, dialgym.sb3_vec_env(ID, 1, domains=[CAM])).models[CAM]


@pytest.mark.parametrize("length", [{"dialogues": 20}, {"total_timesteps": 300}], ids=str)
def test_schedules_of_each_policy_fall_over_the_whole_run(length):
    change = {"learner": "dqn", "learner_kwargs": SMALL["dqn"]}
    settings = {"env_kwargs": {"domains": [CAM, SF]}, "final_episodes": 0}
    trained = agents.train(
        ID, "policy-manager", seed=0, hyperparameters=change, **length, **settings
    )
    assert all(each._current_progress_remaining < 0.3 for each in trained.models.values())


@pytest.mark.slow
def test_the_policies_of_two_domains_learn():
    trained = agents.train(
        ID, "policy-manager", total_timesteps=6000, env_kwargs={"domains": [CAM, SF]}, seed=0
    )
    result = dialgym.evaluate(trained, ID, 100, env_kwargs={"domains": [CAM, SF]})
    assert result.success > 0.5
