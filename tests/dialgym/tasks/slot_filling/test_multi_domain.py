"""Several domains in one dialogue: topics, turns, rewards, ends; one domain is the single env."""

import math
import pickle

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from agents.acts.gp.topics import PolicyManager
from dialgym.experiments import Scripted, evaluate_domains
from dialgym.language.acts import act
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.multi_domain import MultiDomain
from dialgym.tasks.slot_filling.multi_domain_acts import TOPICS

testing = pytest.importorskip("pettingzoo.test")

CAM, SF, LAPTOPS = "CamRestaurants", "SFRestaurants", "Laptops11"
CR, SFR, LAP = (f"dialgym/{name}-Env1-act-v0" for name in (CAM, SF, LAPTOPS))
KEYS = ("utterance", "reply", "turn", "reward_components", "is_success", "transcript")
MASKS = [{}, {"action_masks": True}, {"masked_observations": True}]
HELLO, ASK, BYE = range(3)
BOTH = {"domains": [SF, CAM]}


def handcrafted(env, **kwargs):
    names = env.possible_agents[:-1]
    return PolicyManager({name: Scripted(env, name, **kwargs) for name in names})


def choose(env, manager):
    """Let whoever has the turn act."""
    agent = env.agent_selection
    domain, chosen = manager.act(
        None if agent == TOPICS else agent, env.observe(agent), env.action_masks()
    )
    env.step(env.task.acts[TOPICS].names.index(chosen) if domain is None else chosen)


def play(env, manager, **reset):
    """The return of each agent."""
    env.reset(**reset)
    manager.reset()
    gained = dict.fromkeys(env.agents, 0.0)
    while not any(env.terminations.values()):
        choose(env, manager)
        gained = {name: gained[name] + env.rewards[name] for name in gained}
    return gained


def about_sf(**settings):
    """An env in which the user wants both domains, and has just said which is the first."""
    env = dialgym.multi_domain_env([CR, SFR], **settings)
    env.reset(seed=4, options=BOTH)
    env.step(ASK)
    return env


@pytest.mark.parametrize("kwargs", MASKS, ids=str)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_pettingzoos_own_tests_pass(kwargs):
    def make():
        return dialgym.multi_domain_env([CR, SFR], env=3, **kwargs)

    testing.api_test(make(), num_cycles=60, verbose_progress=False)
    testing.seed_test(make, num_cycles=30)


@pytest.mark.parametrize("setting", [1, 3])
def test_one_domain_is_the_single_env_act_for_act(setting):
    single, rng = gym.make(CR, env=setting).unwrapped, np.random.default_rng(0)
    env = dialgym.multi_domain_env([CR], env=setting)
    assert env.possible_agents == [CAM, TOPICS]
    for seed in range(30):
        seen, _ = single.reset(seed=seed)
        env.reset(seed=seed)
        over = False
        while not over:
            assert env.agent_selection == CAM
            assert np.array_equal(env.observe(CAM), seen)
            mask = single.action_masks()
            assert np.array_equal(env.action_masks(), mask)
            action = int(rng.choice(np.flatnonzero(mask)))
            seen, reward, over, _, info = single.step(action)
            env.step(action)
            ours = env.infos[CAM]
            assert env.rewards[CAM] == pytest.approx(reward)
            assert env.terminations[CAM] == over
            for key in KEYS:
                assert ours[key] == info[key]
            assert env.rewards[TOPICS] == 0.0
        assert ours["metrics"] == {f"success_{CAM}": float(info["is_success"])}


def test_a_domain_is_observed_and_rewarded_as_in_its_own_env():
    env = dialgym.multi_domain_env([CR, SFR])
    for id, name in ((CR, CAM), (SFR, SF)):
        single = gym.make(id)
        assert env.observation_space(name) == single.observation_space
        assert env.action_space(name) == single.action_space
        own = evaluate_domains(handcrafted(env), env, 80, seed=3)[name]
        alone = dialgym.evaluate("handcrafted", id, 80, [3])
        assert own.mean_return == pytest.approx(alone.mean_return, abs=1.2)
        assert own.success == pytest.approx(alone.success, abs=0.06)


def test_a_user_goes_on_with_its_next_domain_in_place_of_a_goodbye():
    env = dialgym.multi_domain_env([CR, SFR])
    gained = play(env, handcrafted(env), seed=0, options=BOTH)
    state, info = env.dialogue_state, env.infos[TOPICS]
    assert state.wanted == (SF, CAM)
    assert state.success == {SF: True, CAM: True}
    assert info["transcript"].count("bye()") == 1
    assert "user: bye()" in info["transcript"].splitlines()[-1]
    assert info["is_success"]
    assert info["metrics"] == {f"success_{CAM}": 1.0, f"success_{SF}": 1.0}
    for name in (CAM, SF):  # a turn each, the closing, and success
        dialogue = state.dialogues[name]
        assert gained[name] == 20 - dialogue.turns - 1
    lines = [line.text for line in env.task.transcript(state, TOPICS)]
    first, second = ([u.text for u in state.dialogues[n].heard_by_system] for n in (SF, CAM))
    assert first[-1] == second[-1] == "bye() 1.00"
    about_topics = [text for text in lines if "topic" in text]
    assert [text for text in lines[1:] if text not in about_topics] == first[1:-1] + second[1:]


def test_the_topic_manager_asks_until_the_topic_is_known():
    env = dialgym.multi_domain_env([CR, SFR])
    env.reset(seed=5, options=BOTH)
    assert env.agent_selection == TOPICS
    env.step(HELLO)
    assert env.rewards[TOPICS] == 0.0  # the greeting
    assert env.infos[TOPICS]["reply"].startswith('inform(type="restaurant")')  # could be either
    assert env.agent_selection == TOPICS
    env.step(HELLO)
    assert env.rewards[TOPICS] == -1.0
    assert env.infos[TOPICS]["reply"] == "hello() 1.00"
    env.step(ASK)
    assert env.infos[TOPICS]["reply"] == 'inform(topic="SFRestaurants") 1.00'
    assert env.rewards == {CAM: 0.0, SF: 0.0, TOPICS: -1.0}
    assert env.agent_selection == SF
    assert env.observe(TOPICS).tolist() == pytest.approx([0, 1, 1, 1, 3 / 25])


def test_who_is_asked_at_once_says_the_topic_and_begins():
    env = about_sf()
    lines = [text for _, text, _ in env.task.transcript(env.dialogue_state, TOPICS)]
    assert lines[:2] == ["ask_topic()", 'inform(topic="SFRestaurants") 1.00']
    assert lines[2].startswith("inform(type")
    assert env.agent_selection == SF


def test_noise_can_hide_the_topic():
    asked = {0.0: 0, 0.9: 0}
    for error_rate in asked:
        env = dialgym.multi_domain_env([CR, SFR], error_rate=error_rate)
        for seed in range(20):
            env.reset(seed=seed)
            while env.agent_selection == TOPICS:
                env.step(ASK)
                asked[error_rate] += 1
    assert asked[0.0] == 20
    assert asked[0.9] > 30


def test_the_topic_manager_hangs_up():
    env = dialgym.multi_domain_env([CR, SFR], rewards={"failure": -3.0})
    env.reset(seed=0, options=BOTH)
    env.step(BYE)
    assert all(env.terminations.values())
    assert env.rewards == {CAM: -3.0, SF: -3.0, TOPICS: -1.0}
    assert env.infos[SF]["metrics"] == {f"success_{CAM}": 0.0, f"success_{SF}": 0.0}
    env.reset(seed=0, options={"domains": [CAM]})
    for _ in range(25):
        assert not any(env.terminations.values())
        env.step(HELLO)
    assert all(env.terminations.values())


def test_a_goodbye_or_the_last_turn_of_a_domain_ends_the_dialogue():
    env = about_sf()
    env.step(env.task.acts[SF].names.index("bye"))
    assert all(env.terminations.values())
    assert env.rewards == {CAM: 0.0, SF: -1.0, TOPICS: 0.0}
    assert not env.infos[SF]["is_success"]
    env = about_sf(turns=2)
    for _ in range(2):
        assert not any(env.terminations.values())
        env.step(env.task.acts[SF].names.index("request_food"))
    assert all(env.terminations.values())
    assert env.infos[CAM]["metrics"] == {f"success_{CAM}": 0.0, f"success_{SF}": 0.0}


def test_an_act_can_mean_the_domains_that_have_its_slots_and_values():
    task = MultiDomain(
        [SlotFilling("CamRestaurants"), SlotFilling("SFRestaurants"), SlotFilling("Laptops11")]
    )
    rows = {
        act("hello"): (CAM, SF, LAPTOPS),
        act("inform", ("type", "restaurant")): (CAM, SF),
        act("inform", ("type", "laptop")): (LAPTOPS,),
        act("inform", ("type", "restaurant"), pricerange="cheap"): (CAM, SF),
        act("inform", area="north"): (CAM,),
        act("inform", near="dontcare"): (SF,),
        act("request", ("signature", None)): (CAM,),
        act("inform", ("", "dontcare")): (CAM, SF, LAPTOPS),
        act("inform", topic=SF): (SF,),
        act("inform", food="no such food"): (),
    }
    for said, names in rows.items():
        assert tuple(n for n in task.domains if task._can_mean(said, n)) == names, said


def test_how_many_domains_a_user_has_and_in_which_order():
    task = dialgym.multi_domain_env([CR, SFR, LAP]).task
    rng = np.random.default_rng(0)
    drawn = [task.initial(rng).wanted for _ in range(600)]
    sizes = np.bincount([len(names) for names in drawn], minlength=4) / 600
    assert sizes[1:] == pytest.approx([0.16, 0.48, 0.36], abs=0.06)  # 1 + two with 0.6 each
    assert {names[0] for names in drawn} == {CAM, SF, LAPTOPS}
    fixed = dialgym.multi_domain_env([CR, SFR, LAP], least=2, most=2).task
    assert {len(fixed.initial(rng).wanted) for _ in range(50)} == {2}


def test_goals_can_be_fixed():
    env = dialgym.multi_domain_env([CR, SFR])
    goals = {CAM: {"constraints": {"area": "north"}, "requests": ["phone"]}}
    env.reset(seed=0, options={"domains": [CAM], "goals": goals})
    state = env.dialogue_state.dialogues[CAM].user_state
    assert [(c.slot, c.value) for c in state.constraints] == [("area", "north")]
    assert set(state.requests) == {"name", "phone"}


def test_states_are_copied_and_pickled_without_sharing():
    env = dialgym.multi_domain_env([CR, SFR], env=3)
    env.reset(seed=1, options=BOTH)
    env.step(ASK)
    state = env.dialogue_state
    before, copy = pickle.dumps(state), state.copy()
    rng, acts = np.random.default_rng(0), env.task.acts[SF]
    for _ in range(4):
        env.task.speak(copy, acts.text(copy, 0, rng), rng)
    assert pickle.dumps(state) == before
    assert len(copy.lines) > len(state.lines)
    assert pickle.dumps(pickle.loads(before)) == pickle.dumps(pickle.loads(pickle.dumps(state)))


def test_scores_are_of_the_dialogues_in_which_a_domain_was_wanted():
    env = dialgym.multi_domain_env([CR, SFR, LAP], text_info=False)
    scores = evaluate_domains(handcrafted(env), env, 50)
    again = evaluate_domains(handcrafted(env), env, 50)
    assert list(scores) == ["all", CAM, SF, LAPTOPS]
    assert scores["all"].returns.shape == (1, 50)
    assert scores["all"].success > 0.85
    total = sum(scores[name].returns.shape[1] for name in (CAM, SF, LAPTOPS))
    assert 50 * 2.0 < total < 50 * 2.4
    assert np.array_equal(scores["all"].returns, again["all"].returns)
    parts = sum(scores[name].returns.sum() for name in (CAM, SF, LAPTOPS))
    assert scores["all"].returns.sum() <= parts  # the topic manager's turns cost
    random = evaluate_domains(handcrafted(env, name="random"), env, 20)
    assert random["all"].success < 0.3


@pytest.mark.parametrize(
    ("ids", "settings", "message"),
    [
        ([CR, "dialgym/Wordle-v0"], {}, "expected ids of slot filling"),
        ([CR, CR.replace("Env1", "Env3")], {}, "expected domains with a name each"),
        ([], {}, r"expected domains with a name each; got \[\]"),
        ([CR, SFR], {"least": 3}, "least=3"),
        ([CR, SFR], {"turnz": 3}, "'turnz'"),
    ],
)
def test_what_is_wrong_is_said(ids, settings, message):
    with pytest.raises(ValueError, match=message):
        dialgym.multi_domain_env(ids, **settings)


@pytest.mark.parametrize(
    ("domains", "message"), [(["Moon"], "unknown domain 'Moon'"), ([], "at least one")]
)
def test_domains_that_are_none_are_refused(domains, message):
    with pytest.raises(ValueError, match=message):
        dialgym.multi_domain_env([CR, SFR]).reset(options={"domains": domains})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"domains": math.nan}, "option 'domains' of .*: expected a list of names; got nan"),
        ({"domains": CAM}, "option 'domains' of .*: expected a list of names; got 'Cam"),
        ({"domains": [[]]}, r"unknown domain \[\]"),
        ({"goals": 3}, "option 'goals' of .*: expected a mapping from names to goals; got 3"),
    ],
)
def test_options_of_another_type_are_one_clear_error(options, message):
    env = dialgym.make("dialgym/SlotFilling-Domains-act-v0")
    with pytest.raises(ValueError, match=message):
        env.reset(seed=0, options=options)
