"""Several domains with one learner: the dialogues of the agents of each domain, in all views."""

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.tasks import ActSpeaker
from dialgym.tasks.slot_filling.all_domains import SlotFillingDomains
from dialgym.testing import check_task
from dialgym.testing.act_checks import check_act_views
from tests.support.slot_domains import write_bakeries

CAM, SF = "CamRestaurants", "SFRestaurants"
ID = "dialgym/SlotFilling-Domains-act-v0"
TWO = {"domains": [CAM, SF]}


def allowed(env, rng):
    return int(rng.choice(np.flatnonzero(env.action_masks())))


@pytest.mark.parametrize("domains", [[CAM], [CAM, SF]], ids=len)
@pytest.mark.parametrize("setting", [1, 3])
def test_the_dialogues_and_rewards_are_those_of_an_agent_for_each_domain(domains, setting):
    env, rng = gym.make(ID, domains=domains, env=setting).unwrapped, np.random.default_rng(0)
    ids = [f"dialgym/{name}-Env1-act-v0" for name in domains]
    agents = dialgym.multi_domain_env(ids, env=setting)
    for seed in range(5):
        seen, _ = env.reset(seed=seed)
        agents.reset(seed=seed)
        over = False
        while not over:
            owner = agents.agent_selection
            assert env.acts.owner(env.dialogue.state) == owner
            assert np.array_equal(seen[seen.size - agents.observe("topics").size :],
                                  agents.observe("topics"))  # fmt: skip
            mask = np.flatnonzero(env.action_masks())
            own = [env.acts.split(int(action)) for action in mask]
            expected = np.flatnonzero(agents.action_masks()).tolist()
            assert own == [(owner, action) for action in expected]
            chosen = int(rng.integers(len(mask)))
            seen, reward, over, _, info = env.step(int(mask[chosen]))
            agents.step(own[chosen][1])
            assert reward == pytest.approx(sum(agents.rewards.values()))
            assert info["reply"] == agents.infos[owner]["reply"]
            parts = {f"{name}/{part}": value for name, theirs in agents.infos.items()
                     for part, value in theirs["reward_components"].items()}  # fmt: skip
            assert info["reward_components"] == parts
            assert all(agents.terminations.values()) == over
        assert info["metrics"] == agents.infos[owner]["metrics"]
        assert info["is_success"] == agents.infos[owner]["is_success"]
        assert info["transcript"] == agents.infos[owner]["transcript"]


@pytest.mark.parametrize(
    "settings",
    [
        {"domains": [CAM]},
        pytest.param({**TWO, "env": 3}, marks=pytest.mark.slow),
        pytest.param(
            {**TWO, "env": 6, "user": "unfriendly", "rewards": {"failure": -5}},
            marks=pytest.mark.slow,
        ),
        {"domains": [{"domain": "Hotels", "name": "A"}, {"domain": "Hotels", "name": "B"}]},
    ],
    ids=str,
)
def test_the_rules_keep_to_their_facts_and_act_views_agree(settings):
    task = SlotFillingDomains(**settings)
    check_task(task, episodes=2)
    check_act_views(task, 1, 0)


def test_batches_and_stable_baselines_play_it():
    env = dialgym.sb3_vec_env(ID, 3, **TWO)
    seen = env.reset()
    rng = np.random.default_rng(0)
    for _ in range(20):
        masks = np.stack(env.env_method("action_masks"))
        assert masks.shape == (3, env.action_space.n)
        seen, *_ = env.step(np.array([rng.choice(np.flatnonzero(mask)) for mask in masks]))
        assert seen.shape == (3, *env.observation_space.shape)
    batch, single = gym.make_vec(ID, 2, **TWO), gym.make(ID, **TWO)
    first, _ = batch.reset(seed=[4, 5])
    assert np.array_equal(first[1], single.reset(seed=5)[0])


def test_the_user_can_be_the_learner_and_its_agenda_is_the_simulated_user():
    plain = gym.make(ID, **TWO).unwrapped
    system = plain.acts.policy_named("handcrafted")
    env = gym.make(ID, learner="user", simulator=ActSpeaker(system), **TWO).unwrapped
    agenda = env.acts.policy_named("agenda")
    for seed in range(5):
        env.reset(seed=seed)
        plain.reset(seed=seed)
        over = done = False
        while not over:
            state, rng = env.dialogue.state, env.np_random
            _, _, over, _, info = env.step(agenda.act(env.task, state, rng))
        while not done:
            state, rng = plain.dialogue.state, plain.np_random
            _, _, done, _, ours = plain.step(system.act(plain.task, state, rng))
        assert info["is_success"] == ours["is_success"]
        assert env.dialogue.state.user_lines == plain.dialogue.state.user_lines


def test_an_act_of_another_domain_is_said_and_not_understood():
    env = gym.make(ID, **TWO).unwrapped
    env.reset(seed=4, options=TWO)
    env.step(env.acts.number["topics.ask_topic"])
    assert env.acts.owner(env.dialogue.state) == CAM
    _, reward, over, _, info = env.step(env.acts.number[f"{SF}.request_near"])
    assert (reward, over, info["utterance"]) == (-1.0, False, "request(near)")
    assert env.dialogue.state.dialogues[SF].turns == 0


def test_names_of_slots_may_have_dots(tmp_path):
    own = write_bakeries(tmp_path, "price.range")
    acts = SlotFillingDomains([own, CAM]).acts["system"]
    assert "price.range.request_price.range" in acts.names
    for action, name in enumerate(acts.names):
        owner, own = acts.split(action)
        assert name == f"{owner}.{acts.parts[owner].names[own]}"


def test_a_stored_spec_plays_the_same_domains_by_the_same_names():
    env = gym.make(ID, **TWO)
    again = gym.make(env.spec)
    assert again.unwrapped.act_names == env.unwrapped.act_names
    assert list(again.unwrapped.task.domains) == [CAM, SF]


def test_a_domain_may_have_settings_of_its_own():
    noisy = {"domain": "Hotels", "name": "Noisy", "error_rate": 0.9, "noise": "single"}
    task = SlotFillingDomains(["Hotels", noisy])
    assert [each.error_rate for each in task.domains.values()] == [0.0, 0.9]
    assert list(task.domains) == ["Hotels", "Noisy"]


def test_scores_by_domain_are_of_the_dialogues_in_which_it_was_wanted():
    result = dialgym.evaluate("random", ID, 60, (0,), env_kwargs=TWO)
    part = result[ID]
    for name in (CAM, SF):
        values = part.metrics[f"success_{name}"]
        wanted = values[values >= 0]
        assert 0 < len(wanted) < 60
        assert part.measured[f"success_{name}"].value == pytest.approx(wanted.mean())
        assert f"success_{name}" in result.to_markdown()
    solved = np.stack([*part.metrics.values()])
    assert np.array_equal(((solved == 1) | (solved == -1)).all(0), part.solved)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"domains": []}, r"expected domains with a name each; got \[\]"),
        ({"domains": CAM}, "expected a list of names"),
        ({"domains": [CAM, CAM]}, "expected domains with a name each"),
        ({"domains": ["Moon"]}, "unknown domain 'Moon'"),
        ({"domains": [{"domain": CAM, "turnz": 3}]}, "unknown setting 'turnz'"),
        ({"domains": [CAM], "least": 2}, "least=2"),
    ],
)
def test_what_is_wrong_is_said(settings, message):
    with pytest.raises(ValueError, match=message):
        SlotFillingDomains(**settings)
