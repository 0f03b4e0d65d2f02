"""Both parties learn together."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.logger import Logger

import agents
import dialgym
from agents import MADPL, MLE, ActAgent
from agents.acts.madpl import HybridValues
from agents.acts.pairs import OwnRewards, Played
from dialgym.tasks import PartyActs
from tests.support.toy_acts import COST, THINGS

ID = "tests.support.toy_acts:Wishes-act"


def made(rows=8, **settings):
    env = dialgym.sb3_vec_env(ID, rows, seed=0)
    model = MADPL("MlpPolicy", env, **{"seed": 0, "values_hidden": 16, **settings})
    model.set_logger(Logger(None, []))
    return model


@pytest.fixture(scope="module")
def model():
    """After one rollout, before the first update."""
    model = made(gamma=0.9, gae_lambda=0.8, ent_coef=0.1, normalize_advantage=True)
    model.train = lambda: None
    model.learn(1)
    del model.train
    return model


def test_a_rollout_is_a_dialogue_of_each_pair(model):
    system, user = model.turns
    assert len(system.log_probs) == model.num_timesteps
    for turns in (system, user):
        assert turns.last.sum() == 8
        assert (turns.both[0].shape[1], turns.both[1].shape[1]) == (9, 12)
        assert turns.actions.shape[1] == THINGS
        can_be_1 = turns.masks.reshape(-1, THINGS, 2)[..., 1]
        assert not (turns.actions.bool() & ~can_be_1).any()
        going = ~turns.last[:-1]
        assert torch.equal(turns.both_after[0][:-1][going], turns.both[0][1:][going])
        assert not (turns.terminated & ~turns.last).any()
    assert len(user.log_probs) == len(system.log_probs)  # the user has the last word
    # what the system's own words cost in the first place is before the user's first decision
    first = torch.cat([torch.tensor([True]), system.last[:-1]]).sum()
    gap = system.rewards[:, 1].sum() - user.rewards[:, 1].sum()
    assert gap.item() == pytest.approx(-COST * first.item(), abs=1e-4)


def test_silence_is_paid_for_by_whoever_is_silent(model):
    for turns in model.turns:
        silent = ~turns.actions.bool().any(-1)
        assert torch.equal(turns.rewards[:, 0], torch.where(silent, -5.0, 0.0))


def test_own_rewards_of_the_task_count(model):
    costs = OwnRewards(0.5, 2.0)

    class Blamed(PartyActs):
        names, size = ("a", "b"), 1

        def own_reward(self, state, action):
            return -3.0 * state

        def observe(self, state): ...

        def text(self, state, action, rng): ...

    acts = Blamed()
    assert costs.of(acts, 1, np.array([0, 1])) == -1.5
    assert costs.of(acts, 1, np.array([0, 0])) == -3.5
    assert costs.of(acts, 2, np.array(0)) == -3.0  # one act at a time is never silent


def test_the_global_reward_until_the_next_decision_is_the_partys():
    played = Played()
    played.gain(9.0)  # before it has said anything
    seen = np.zeros(1, np.float32)
    for own in (0.0, -1.0):
        played.add((seen, seen, np.ones(2), np.ones(4), -0.5), own)
        played.gain(1.0)
        played.gain(0.5)
    played.end((seen + 1, seen + 2), True)
    columns = played.columns()
    assert columns[6].tolist() == [-0.5, -0.5]
    assert columns[7].tolist() == [[0.0, 1.5], [-1.0, 1.5]]
    assert [c.tolist() for c in columns[8:]] == [[False, True]] * 2
    assert columns[2].tolist() == [[0], [1]]
    assert columns[3].tolist() == [[0], [2]]


@pytest.mark.parametrize("party", [0, 1])
def test_advantages_are_those_of_a_slow_version(model, party):
    turns = model.turns[party]
    found = model.valued(party, turns)
    with torch.no_grad():
        values = model.target_values(turns.both, party)
        ahead = model.target_values(turns.both_after, party)
    for kind in (0, 1):
        total = 0.0
        for i in range(len(turns.last) - 1, -1, -1):
            total = 0.0 if turns.last[i] else total
            after = 0.0 if turns.terminated[i] else ahead[kind][i].item()
            error = turns.rewards[i, kind].item() + 0.9 * after - values[kind][i].item()
            total = error + 0.72 * total
            assert found.advantages[i, kind].item() == pytest.approx(total, abs=1e-4)
            reached = total + values[kind][i].item()
            assert found.returns[i, kind].item() == pytest.approx(reached, abs=1e-4)


@pytest.mark.parametrize("party", [0, 1])
def test_losses_are_those_of_slow_versions(model, party):
    batch = model.valued(party, model.turns[party])
    batch = batch._replace(log_probs=batch.log_probs - 0.3)  # ratios of more than the clip range
    loss, _ = model.loss(batch)
    policy = model.policies[party]
    advantages = batch.advantages.sum(-1).double().numpy()
    advantages = (advantages - advantages.mean()) / (advantages.std(ddof=1) + 1e-8)
    total = 0.0
    for i in range(len(advantages)):
        one = slice(i, i + 1)
        _, log_prob, entropy = policy.evaluate_actions(
            batch.both[party][one], batch.actions[one], batch.masks[one]
        )
        ratio = np.exp(log_prob.item() - batch.log_probs[i].item())
        clipped = min(max(ratio, 0.8), 1.2)
        total -= min(ratio * advantages[i], clipped * advantages[i]) + 0.1 * entropy.item()
    assert loss.item() == pytest.approx(total / len(advantages), rel=1e-4)
    own, common = (v.detach().numpy() for v in model.values(batch.both, party))
    wanted = ((own - batch.returns[:, 0].numpy()) ** 2).mean()
    wanted += ((common - batch.returns[:, 1].numpy()) ** 2).mean()
    assert model.value_loss(batch).item() == pytest.approx(wanted, rel=1e-4)


def test_the_common_value_reads_both_and_the_own_one_belief_alone():
    values = HybridValues((3, 2), 4)
    both = torch.rand((1, 3), requires_grad=True), torch.rand((1, 2), requires_grad=True)
    for party in (0, 1):
        own, common = values(both, party)
        grads = torch.autograd.grad(own.sum(), both, allow_unused=True, retain_graph=True)
        assert [g is not None for g in grads] == [party == 0, party == 1]
        assert all(g.abs().sum() > 0 for g in torch.autograd.grad(common.sum(), both))


@pytest.mark.slow
def test_both_learn(tmp_path):
    """From nothing: the system to ask, the user to tell, better than with the random other."""
    model = made(64, learning_rate=5e-3, n_epochs=2, ent_coef=0.0)
    model.learn(8000)
    model.save(tmp_path / "pair")
    pair = {"name": "agents:ActAgent", "model": str(tmp_path / "pair.zip"), "deterministic": True}
    together = dialgym.evaluate(model, ID, 200, env_kwargs={"simulator": pair}).mean_return
    random = dialgym.evaluate("random", ID, 200, env_kwargs={"simulator": "random"}).mean_return
    best = dialgym.evaluate("ask-all", ID, 200).mean_return
    assert together > best - 0.1 > random + 0.1
    user = model.side("user")
    assert type(user) is MLE
    user.save(tmp_path / "user")
    alone = {"name": "agents:ActAgent", "model": str(tmp_path / "user.zip")}
    heard = dialgym.evaluate("ask-all", ID, 200, env_kwargs={"simulator": alone}).mean_return
    assert heard > best - 0.1
    scored = dialgym.evaluate(tmp_path / "user.zip", ID, 50, env_kwargs={"learner": "user"})
    assert scored.mean_return > best - 0.2
    with pytest.raises(ValueError, match=r"MADPL: expected a party, \('system', 'user'\)"):
        model.side("somebody")


def test_one_act_at_a_time_will_do():
    """Of slot filling, where the system speaks first and acts are single; silence has no form."""
    env = dialgym.sb3_vec_env("dialgym/SlotFilling-act-v0", 3, seed=0)
    model = MADPL("MlpPolicy", env, seed=0).learn(3)
    for turns in model.turns:
        assert turns.actions.dtype == torch.int64
        assert not turns.rewards[:, 0].any()
        assert turns.masks[torch.arange(len(turns.actions)), turns.actions].all()


def test_both_begin_as_clones(tmp_path):
    users = dialgym.collect(ID, "tell-all", 40, seed=0, env_kwargs={"learner": "user"})
    env = dialgym.sb3_vec_env(ID, 2, learner="user", seed=0)
    clone = MLE("MlpPolicy", env, users, policy_kwargs={"net_arch": [16]}, seed=0).learn(20)
    clone.save(tmp_path / "user")
    model = made(2, partner=str(tmp_path / "user.zip"))
    seen = torch.rand((5, 12))
    own = model.partner_policy.get_distribution(seen).logits
    torch.testing.assert_close(own, clone.policy.get_distribution(seen).logits)
    model.save(tmp_path / "pair")
    (tmp_path / "user.zip").unlink()
    again = agents.load(tmp_path / "pair")
    torch.testing.assert_close(again.partner_policy.get_distribution(seen).logits, own)
    system = MLE("MlpPolicy", dialgym.sb3_vec_env(ID, 2), seed=0)
    with pytest.raises(ValueError, match="MADPL: expected a partner that sees"):
        made(2, partner=system)


def test_an_agent_plays_whichever_side_has_the_floor(model):
    agent = ActAgent(model)
    assert isinstance(agent, ActAgent)
    assert agent.choosers.keys() == {"system", "user"}


# Opponents


BARGAIN = "dialgym/Bargain-Goods-act-v0"


def opponents(**settings):
    env = dialgym.sb3_vec_env(BARGAIN, 8, seed=0, turns=3)
    narrow = {"net_arch": [8]}
    given = {"seed": 0, "values_hidden": 8, "gamma": 1.0, "policy_kwargs": narrow, **settings}
    model = MADPL("MlpPolicy", env, **given)
    model.set_logger(Logger(None, []))
    return model


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_each_is_paid_its_own_reward_or_the_mean_of_both(share):
    model = opponents(own_share=share)
    model.train = lambda: None
    model.learn(1)
    ends = [pair.dialogue_state for pair in model.pairs]
    points = np.array([model.pairs[0].task.points(state) for state in ends], float)
    for party, turns in enumerate(model.turns):
        said = turns.last.cumsum(0) - turns.last.long()
        spoke = [row for row, state in enumerate(ends) if state.turns - (party and state.waiting)]
        paid = np.zeros((len(spoke), 2))
        np.add.at(paid, said.numpy(), turns.rewards.numpy())
        assert np.allclose(paid[:, 0], share * points[spoke, party])
        assert np.allclose(paid[:, 1], (1 - share) * points[spoke].mean(1))


def test_who_is_an_earlier_self_does_not_learn():
    model = opponents(past={"share": 0.5, "kept": 2, "every": 2})
    heard = []
    speakers = model._speakers
    model._speakers = lambda *given: heard.extend(speakers(*given)) or speakers(*given)
    model.learn(1)
    played = [int(turns.last.sum()) for turns in model.turns]
    assert played[0] == 6  # of eight dialogues two have an earlier system, two an earlier user
    assert 0 < played[1] <= 6
    past = [policy for policy, _ in heard if policy not in model.policies]
    assert past
    assert all(any(policy is one for pair in model.past.kept for one in pair) for policy in past)


def test_earlier_selves_are_those_of_every_so_many_rollouts():
    model = opponents(past={"share": 0.25, "kept": 2, "every": 2})
    seen, after = torch.rand((3, model.observation_space.shape[0])), []

    def says(policy):
        return policy.get_distribution(seen).distribution.logits.detach()

    first = says(model.policy)
    train = model.train
    model.train = lambda: (after.append(says(model.policy)), train())
    while len(after) < 4:
        model.learn(1, reset_num_timesteps=False)
    kept = [says(pair[0]) for pair in model.past.kept]
    torch.testing.assert_close(kept[0], first)
    torch.testing.assert_close(kept[1], after[2])
    assert not torch.equal(kept[1], first)


def test_a_saved_pair_keeps_its_earlier_selves(tmp_path):
    model = opponents(past={"share": 0.5}).learn(1)
    model.save(tmp_path / "pair")
    again = agents.load(tmp_path / "pair")
    for one, other in zip(model.past.parameters(), again.past.parameters(), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(("settings", "message"), [
    ({"past": {"share": 2}}, "share of past of MADPL must be from 0 to 1"),
    ({"past": {"kept": 0}}, "kept of past of MADPL must be a whole number from 1"),
    ({"past": {"part": 1}}, "unknown setting 'part'"),
    ({"own_share": -1}, "own_share of MADPL must be from 0 to 1"),
])  # fmt: skip
def test_settings_of_opponents_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        opponents(**settings)
