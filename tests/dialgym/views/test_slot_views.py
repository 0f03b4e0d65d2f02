"""Slot filling through its token, text and two-party views."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from dialgym.language.acts import parse_act
from dialgym.language.tokenizers import END, FIRST_TEXT
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.testing import check_task
from dialgym.views.act_env import ActEnv
from dialgym.views.token_env import TokenEnv
from dialgym.views.token_vector_env import TokenVectorEnv
from dialgym.views.utterance_env import UtteranceEnv

TASKS = [
    ("Restaurants", 4),
    *(
        pytest.param(*task, marks=pytest.mark.slow)
        for task in (("Restaurants", 1), ("CityRestaurants", 6), ("Laptops", 3))
    ),
]


def in_words(domain="Restaurants", env=1, **kwargs):
    return SlotFilling(domain, env=env, language="words", **kwargs)


def spell(env, text):
    return [*env.unwrapped.tokenizer.encode(text), END]


def say(env, text):
    for token in spell(env, text):
        result = env.step(token)
    return result


@pytest.mark.parametrize("language", [pytest.param("acts", marks=pytest.mark.slow), "english"])
def test_the_rules_keep_their_word_in_other_languages(language):
    check_task(SlotFilling("Shops", env=3, language=language), episodes=2)


def test_the_window_and_the_vocabulary():
    env = gym.make("dialgym/CamRestaurants-Env1-v0").unwrapped
    assert env.observation_space.shape == (26 * 4 + 25 * 18,)
    noisy = gym.make("dialgym/CamRestaurants-Env3-v0").unwrapped
    assert noisy.observation_space.shape == (26 * 4 + 25 * 26,)
    assert env.task.tokenizer == "word"
    assert env.action_space.n == FIRST_TEXT + len(env.task.words())


def test_an_utterance_ends_at_its_limit_and_what_is_no_act_is_null():
    env = TokenEnv(in_words())
    env.reset(seed=0)
    ids = env.tokenizer.encode("area request food")
    env.step(ids[0])
    env.step(ids[1])
    assert env.step(ids[2])[-1]["utterance"] == "area request food"  # full length: no <end>
    assert env.dialogue.state.system_act == parse_act("null()")


@pytest.mark.parametrize(("domain", "env"), TASKS)
def test_masks_are_the_phrases_of_the_act_views_masks(domain, env):
    """Word by word: what may be said is just the phrases of the summary acts that are allowed."""
    task = in_words(domain, env)
    view, rng = TokenEnv(task), np.random.default_rng(env)
    view.reset(seed=env)
    for _ in range(40):
        allowed = task.acts["system"].mask(view.dialogue.state)
        phrases = {p for p, free in zip(task.summary_acts.phrases, allowed) if free}
        assert sayable(view) == phrases
        text = str(rng.choice(sorted(phrases)))
        *_, terminated, truncated, _ = say(view, text)
        if terminated or truncated:
            view.reset()


def sayable(view):
    """The phrases that the masks allow, of one and of two words."""
    tokens, saved, found = view.tokenizer.tokens, view.clone_state(), set()
    for token in np.flatnonzero(view.action_masks()):
        view.step(int(token))
        following = view.action_masks()
        view.restore_state(saved)
        found |= {f"{tokens[token]} {tokens[t]}" for t in np.flatnonzero(following) if t != END}
        found |= {tokens[token]} if following[END] else set()
    return found


def test_the_grammar_is_static_where_nothing_is_masked():
    free, masked = in_words(env=2), in_words(env=1)
    assert masked.static_constraint("system") is None
    grammar = free.static_constraint("system").words
    assert set(grammar) == set(free.summary_acts.phrases) - {"repeat", "restart"}
    assert len(grammar) == 14
    env = TokenEnv(free)
    assert env.observation_space.automaton is not None
    assert TokenEnv(masked).observation_space.automaton is None


@pytest.mark.parametrize(("domain", "env"), TASKS)
def test_tokens_and_acts_are_the_same_dialogues(domain, env):
    """The same summary acts by words and by number: the same beliefs, rewards and ends."""
    words, acts = TokenEnv(in_words(domain, env)), ActEnv(SlotFilling(domain, env=env))
    rng = np.random.default_rng(0)
    for seed in range(12):
        words.reset(seed=seed)
        belief, over = acts.reset(seed=seed)[0], False
        while not over:
            chosen = int(rng.choice(np.flatnonzero(acts.action_masks())))
            belief, reward, over, _, info = acts.step(chosen)
            _, got, ended, _, told = say(words, words.task.summary_acts.phrases[chosen])
            assert np.array_equal(belief, words.task.acts["system"].observe(words.dialogue.state))
            assert (got, ended) == (reward, over)
            assert told["reward_components"] == info["reward_components"]
        assert told["is_success"] == info["is_success"]


@pytest.mark.parametrize(("domain", "env"), [("Restaurants", 2), ("Laptops", 4)])
def test_no_window_overflows_in_25_turns(domain, env):
    """A system that never says goodbye, masks or not; each dialogue ends by the rules."""
    batch, rng = TokenVectorEnv(in_words(domain, env), 16), np.random.default_rng(0)
    batch.reset(seed=0)
    ends, longest = 0, 0
    bye = batch.tokenizer.encode("bye")[0]
    for _ in range(160):
        mask = batch.action_masks()
        assert mask.any(1).all()
        mask[:, bye] &= mask.sum(1) == 1
        actions = np.array([rng.choice(np.flatnonzero(row)) for row in mask])
        observation, _, terminated, truncated, _ = batch.step(actions)
        assert not truncated.any()
        ends += terminated.sum()
        longest = max(longest, (observation > 0).sum(1).max())
    assert ends > 20
    assert longest > 150


def test_a_full_dialogue_of_the_longest_utterances_fits():
    """25 turns of lists that are as long as a list can be, and of phrases of two words."""
    task = in_words(env=3, error_rate=0.0)

    class Talkative:
        def reply(self, task, state, rng):
            return "inform " + "food thai " * 12

    env = TokenEnv(task, simulator=Talkative())
    env.reset(seed=0)
    for turn in range(25):
        _, _, terminated, truncated, info = say(env, "request area")
        assert not truncated
        assert terminated == (turn == 24)
        assert turn == 24 or len(info["reply"].split()) == 24


def test_gymnasium_checker_in_english():
    check_env(UtteranceEnv(SlotFilling(language="english")), skip_render_check=True)


# two parties


@pytest.mark.parametrize("view", [TokenEnv, UtteranceEnv])
def test_the_user_as_the_learner_sees_its_goal_and_what_the_system_means(view):
    task = in_words(env=3)
    env = view(task, learner="user", simulator="handcrafted")
    options = {"constraints": {"food": "thai"}, "requests": ["phone"]}
    observation, _ = env.reset(seed=0, options=options)
    if view is TokenEnv:
        observation = env.tokenizer.decode(observation[observation > 0])
    goal, greeting = task.transcript(env.dialogue.state, "user")
    assert goal[1:] == ("inform food thai request name phone", True)
    assert greeting[:2] == ("system", "hello")
    assert "inform food thai request name phone" in observation
    texts = ["inform food thai", "inform area dontcare", "inform pricerange dontcare"]
    for text in texts:
        info = (say(env, text) if view is TokenEnv else env.step(text))[-1]
        assert "name" in info["reply"] or info["reply"].split()[0] in ("request", "confirm")


def test_the_user_learner_is_heard_through_noise():
    task = in_words(env=6)
    heard = []
    for seed in range(60):
        env = UtteranceEnv(task, learner="user", simulator="handcrafted")
        env.reset(seed=seed)
        env.step("inform food thai")
        heard.append(env.dialogue.state.heard_by_system[1].text)
        assert env.dialogue.state.heard_by_user[1].text == "inform food thai"
    wrong = sum(not text[text.index(" ") :].startswith(" inform food thai") for text in heard)
    assert 8 <= wrong <= 30  # 18 of 60 are expected


def test_the_user_learner_can_win():
    """By saying what it wants, and asking for what is missing."""
    task = in_words()
    env = UtteranceEnv(task, learner="user", simulator="handcrafted")
    options = {"constraints": {"food": "indian", "area": "centre"}, "requests": ["phone"]}
    env.reset(seed=1, options=options)
    for text in ("inform food indian area centre pricerange dontcare", "request phone", "bye"):
        _, reward, over, _, info = env.step(text)
    assert (over, reward, info["is_success"]) == (True, 19.0, True)
