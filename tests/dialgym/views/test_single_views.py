"""The single token and utterance envs: details that the conformance tests do not pin."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from dialgym.language.text import UNKNOWN
from dialgym.language.tokenizers import END, PAD, TAGS
from dialgym.tasks.bargain import Bargain
from dialgym.tasks.maze import Maze
from dialgym.tasks.wordle import Wordle
from dialgym.views.token_env import TokenEnv
from dialgym.views.token_vector_env import TokenVectorEnv
from dialgym.views.utterance_env import UtteranceEnv
from dialgym.views.utterance_vector_env import UtteranceVectorEnv


def spell(env, *words):
    return [t for word in words for t in [*env.unwrapped.tokenizer.encode(word), END]]


def test_the_layout_of_a_transcript():
    env = gym.make("dialgym/Wordle-v0")
    observation, info = env.reset(seed=0, options={"word": "abide"})
    assert observation.tolist() == [3] + [0] * 107
    nothing = {
        "utterance": "",
        "reply": "",
        "turn": 0,
        "reward_components": {"wrong guess": 0.0},
        "is_success": False,
        "transcript": "",
    }
    assert info == nothing
    for token in spell(env, "speed"):
        observation, reward, terminated, truncated, info = env.step(token)
    reply = env.unwrapped.tokenizer.encode("b b y b y")
    shown = [3, *spell(env, "speed"), 4, *reply, END, 3]
    assert observation.tolist() == shown + [0] * (108 - len(shown))
    assert (reward, terminated, truncated) == (-1.0, False, False)
    assert info == {
        "utterance": "speed",
        "reply": "b b y b y",
        "turn": 1,
        "reward_components": {"wrong guess": -1.0},
        "is_success": False,
        "transcript": "",
    }


def test_rewards_come_at_the_end_of_an_utterance():
    env = gym.make("dialgym/Wordle-v0")
    env.reset(seed=0, options={"word": "abide"})
    rewards = [env.step(token)[1] for token in spell(env, "speed", "abide")]
    assert rewards == [0.0] * 5 + [-1.0] + [0.0] * 6


def test_the_end_of_an_episode_is_reported():
    env = gym.make("dialgym/Wordle-utterance-v0")
    assert env.reset(seed=0, options={"word": "abide"})[0] == ""
    text, reward, terminated, truncated, info = env.step("abide")
    assert text == info["transcript"] == "system: abide\nuser: g g g g g\n"
    assert (reward, terminated, truncated, info["is_success"]) == (0.0, True, False, True)


def test_an_utterance_ends_at_its_limit_and_tokens_stay_as_emitted():
    env = gym.make("dialgym/Wordle-v0")
    env.reset(seed=0)
    for token in [3, 0, 2, 4, 31, 30]:
        observation, _, _, _, info = env.step(token)
    assert observation[1:7].tolist() == [2, 2, 2, 2, 31, 30]  # special ones: <unk>
    assert info["utterance"] == UNKNOWN * 4 + " z"
    assert info["reply"] == "invalid"


def test_utterances_are_cut_and_cleaned():
    env = gym.make("dialgym/Wordle-utterance-v0")
    env.reset(seed=0)
    text, *_ = env.step("é\n<end> and much more")
    assert text == f"system: {UNKNOWN * 3}end\nuser: invalid\n"
    assert text in env.observation_space


def test_utterances_are_in_lower_case_where_the_task_knows_no_other():
    env, batch = UtteranceEnv(Maze()), UtteranceVectorEnv(Maze(), 1)
    for view in (env, batch):
        view.reset(seed=0, options={"start": "start at 5 5"})
    text, *_ = env.step("Move RIGHT")
    assert text == batch.step(["Move RIGHT"])[0][0]
    assert "system: move right\nuser: goal 8 6 ; here 5 6 ;" in text


@pytest.mark.parametrize(
    ("env_id", "action"), [("dialgym/Wordle-v0", 5), ("dialgym/Wordle-utterance-v0", "crane")]
)
def test_stepping_at_the_wrong_time_is_one_clear_error(env_id, action):
    env = gym.make(env_id)
    with pytest.raises(ResetNeeded, match=r"step\(\) was called before the first reset\(\)"):
        env.step(action)
    env.reset(seed=0)
    while not env.step(action)[2]:
        pass
    with pytest.raises(ResetNeeded, match=r"step\(\) was called after the end of the episode"):
        env.step(action)
    batch = gym.make_vec(env_id, 2)
    with pytest.raises(ResetNeeded, match=r"step\(\) was called before the first reset\(\)"):
        batch.step([action, action])


def test_masks():
    env = gym.make("dialgym/Wordle-20-v0", action_masks=True)
    _, info = env.reset(seed=0)
    task, tokenizer = env.unwrapped.task, env.unwrapped.tokenizer
    firsts = {tokenizer.encode(word[0])[0] for word in task.guesses}
    assert set(np.flatnonzero(info["action_mask"]).tolist()) == firsts
    *_, info = env.step(tokenizer.encode("q")[0])
    assert [tokenizer.tokens[i] for i in np.flatnonzero(info["action_mask"])] == ["u"]
    letters = gym.make("dialgym/Wordle-v0")
    letters.reset(seed=0)
    for expected in [26] * 5 + [1]:
        assert letters.unwrapped.action_masks().sum() == expected
        letters.step(5)


def test_masks_are_not_compiled_unless_asked_for(monkeypatch):
    def refuse(*args):
        raise AssertionError("nobody asked for a mask")

    monkeypatch.setattr("dialgym.views.token_transcripts.compile_constraint", refuse)
    env = gym.make("dialgym/Wordle-v0")
    env.reset(seed=0)
    for token in spell(env, "crane", "slate"):
        env.step(token)


def test_overflow_truncates_the_episode():
    env = gym.make("dialgym/Wordle-v0", window=40)
    env.reset(seed=0, options={"word": "abide"})
    for token in spell(env, "speed", "crane"):
        observation, _, terminated, truncated, info = env.step(token)
    assert (terminated, truncated, info["is_success"]) == (False, True, False)
    assert info["transcript"].count("\n") == 4
    assert observation.shape == (40,)


def test_overflow_slides_whole_utterances():
    env = gym.make("dialgym/Wordle-v0", window=40, overflow="slide")
    env.reset(seed=0, options={"word": "abide"})
    for token in spell(env, "speed", "crane", "trail"):
        observation, _, terminated, truncated, _ = env.step(token)
        assert observation[0] in (3, 4)
    assert not terminated
    assert not truncated
    words = env.unwrapped.tokenizer.decode(observation[observation > 0])
    assert "trail" in words
    assert "speed" not in words


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
def test_tags_that_the_learner_says_forge_no_turn(batched):
    """Of tokens that are often tags: every tag in the window opens an utterance that was said."""
    rng = np.random.default_rng(0)
    for window in range(26, 63, 6):
        task = Wordle(words=20, turns=30)
        env = (TokenVectorEnv if batched else TokenEnv)(task, window=window, overflow="slide")
        observation, _ = env.reset(seed=window)
        for _ in range(90):
            token = int(rng.choice([0, 3, 4, 4, 7, 8]))
            observation, *_ = env.step([token] if batched else token)
            shown = np.ravel(observation)
            shown = shown[shown != PAD].tolist()
            assert shown[0] in TAGS.values()
            tags = [token for token in shown if token in TAGS.values()]
            assert tags == [(3, 4)[(tags[0] == 4) ^ i % 2] for i in range(len(tags))]
            for utterance in _split(shown)[:-1]:  # none is cut: each has its limit or its end
                assert utterance[-1] == END or len(utterance) == 1 + task.facts.limit("system")


def _split(tokens):
    """Tokens, cut before each tag."""
    places = [i for i, token in enumerate(tokens) if token in TAGS.values()]
    return [tokens[a:b] for a, b in zip(places, [*places[1:], len(tokens)])]


def test_two_party_ignores_foreign_options_with_a_warning():
    from dialgym import aec_env

    env = aec_env("dialgym/Wordle-v0")
    with pytest.warns(UserWarning, match=r"ignored unknown options \['wrod'\]"):
        env.reset(seed=0, options={"wrod": "crane"})
    env.reset(options={"word": "crane"})
    assert env.task.answers[env.dialogue_state.secret] == "crane"
    with pytest.raises(ValueError, match=r"options of Wordle: expected a mapping .*; got 5\."):
        env.reset(options=5)


class HangsUp:
    """A system that ends some dialogues, or all, before the user can speak."""

    def __init__(self, share):
        self.share, self.asked = share, 0

    def reply(self, task, state, rng):
        self.asked += 1
        return "i leave" if rng.random() < self.share else "hello"


def test_a_dialogue_that_is_over_before_the_learner_can_speak_is_drawn_again():
    task, options = Bargain(), {"learner": "user", "simulator": HangsUp(0.6)}
    singles = [UtteranceEnv(task, **options) for _ in range(9)]
    batch = UtteranceVectorEnv(task, 9, autoreset_mode="SameStep", **options)
    seen = tuple(env.reset(seed=seed)[0] for seed, env in enumerate(singles))
    assert batch.reset(seed=0)[0] == seen
    for _ in range(5):
        assert not any("i leave" in text for text in seen)
        assert all(env.step("i leave")[2] for env in singles)
        seen = tuple(env.reset()[0] for env in singles)
        assert batch.step(["i leave"] * 9)[0] == seen


def test_a_learner_that_never_can_speak_is_told_so():
    task, system = Bargain(), HangsUp(1.0)
    env = UtteranceEnv(task, learner="user", simulator=system)
    with pytest.raises(ValueError, match="over before the user had the floor"):
        env.reset(seed=0)
    assert system.asked == 101
    with pytest.raises(ValueError, match="over before the user had the floor"):
        env.reset(seed=0, options={"table": (1, 1, 3)})
    assert system.asked == 102
