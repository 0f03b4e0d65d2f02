"""Errors of the views: what, where, expected, got, and the next step."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import dialgym
from dialgym.errors import UnexpectedArgument
from dialgym.rewards import Reward
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.wordle import Wordle
from dialgym.testing.views import spell
from dialgym.views.act_env import ActEnv
from dialgym.views.act_vector_env import ActVectorEnv
from dialgym.views.chat_batch import ChatBatch
from dialgym.views.token_env import TokenEnv
from dialgym.views.token_vector_env import TokenVectorEnv
from dialgym.views.two_party import ActTwoPartyEnv, TokenTwoPartyEnv
from dialgym.views.utterance_env import UtteranceEnv
from dialgym.views.utterance_vector_env import UtteranceVectorEnv
from tests.support.faulty_users import EVERYTHING, FaultyUser
from tests.support.toy_acts import Wishes
from tests.support.toy_pictures import NameIt

TOKENS, ACTS, TEXTS = "Wordle-20-v0", "SlotFilling-act-v0", "Wordle-20-utterance-v0"
WISHES = "tests.support.toy_acts:Wishes-act"
SMALL = {"words": 20}


class Half(SlotFilling):
    """The user has no acts."""

    def __init__(self):
        super().__init__()
        self.acts = {"system": self.acts["system"]}


def env(name, rows=0, **kwargs):
    """A view, or a batch of it."""
    return dialgym.make_vec(name, rows, **kwargs) if rows else dialgym.make(name, **kwargs)


WRONG_ACTS = ([2, 0, 0, 0], [1, 0, 0], 3, "ask", [0.5, 0, 0, 0], None, [-1] * 4)
ACTIONS = [
    (TOKENS, 0, [-1, 32, 1.5, "a", None, np.array([1, 2])],
     "expected a token id, a whole number from 0 to 31; got"),
    (TEXTS, 0, [5], r"expected a string; got 5\. For token ids"),
    (ACTS, 0, [-1, 16, 1.5, "bye", None],
     "action of SlotFilling: expected a whole number from 0 to"),
    (WISHES, 0, WRONG_ACTS, r"action of Wishes: expected \(4,\) of 0 and 1, one"),
    (TOKENS, 2, [np.array([1])], r"whole numbers from 0 to 31; got int64 \(1,\)"),
    (TOKENS, 2, [np.array([1.0, 2.0])], "whole numbers from 0 to 31; got float64"),
    (TOKENS, 2, [np.array([0, 32])], "whole numbers from 0 to 31; got values from 0 to 32"),
    (TEXTS, 2, [None, 3, "text", float("nan"), ["a", 3]], r"expected 2 strings; got \w+\."),
    (ACTS, 2, [[0, -1], [0, 16], [0, 1.5], [0, "bye"], [0, None], [0], 0],
     r"actions of SlotFilling: expected \(2,\) whole numbers from 0 to 15; got"),
    (WISHES, 2, [*WRONG_ACTS, *([action, action] for action in WRONG_ACTS)],
     r"actions of Wishes: expected \(2, 4\) whole numbers from 0 to 1; got"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "rows", "actions", "message"), ACTIONS)
def test_impossible_actions(name, rows, actions, message):
    view = env(name, rows)
    view.reset(seed=0)
    for action in actions:
        with pytest.raises(ValueError, match=message):
            view.step(action)


def test_impossible_actions_of_both_parties():
    both = dialgym.aec_env(ACTS)
    both.reset(seed=0)
    with pytest.raises(ValueError, match="action of SlotFilling: expected a whole number from 0"):
        both.step(10_000)


@pytest.mark.parametrize("actions", [{}, {"system": 0}, None, 0])
def test_the_party_that_has_the_floor_must_act(actions):
    both = dialgym.parallel_env(ACTS)
    _, infos = both.reset(seed=0)
    assert infos["user"]["active_agent"] == "user"
    with pytest.raises(ValueError, match=r"expected .* of the user, who has the floor"):
        both.step(actions)


IMPOSSIBLE_MASKS = [np.zeros(2, bool), np.ones(3, bool), np.ones(2), [True, False], None]


@pytest.mark.parametrize(
    ("name", "rows", "given", "message"),
    [
        *((TOKENS, 2, {"options": {"reset_mask": mask}},
           r"reset_mask of Wordle: expected an array \(2,\) of bool") for mask in IMPOSSIBLE_MASKS),
        (TOKENS, 2, {"seed": [1, 2, 3]}, "expected one whole number or 2 of them; got 3"),
        (TOKENS, 2, {"seed": np.array(3)}, r"one whole number or 2 of them; got array\(3\)"),
        *((TOKENS, 0, {"options": wrong}, "options of Wordle: expected a mapping of names")
          for wrong in (5, [1], "text")),
        *((TOKENS, 0, {"options": {"word": {"x": wrong}}}, "option 'word' of Wordle: expected one")
          for wrong in (5, [1], "text")),
    ],
)  # fmt: skip
def test_impossible_resets(name, rows, given, message):
    view = env(name, rows).unwrapped
    view.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        view.reset(**given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ActEnv(SlotFilling()).step(0), "before the first reset"),
        (lambda: ActEnv(SlotFilling()).action_masks(), "before"),
        (lambda: ActVectorEnv(SlotFilling(), 1).action_masks(), "before"),
        (lambda: env(TOKENS, render_mode="ansi").unwrapped.render(), "before the first reset"),
        *((lambda call=call: call(dialgym.aec_env(TOKENS)), "before the first reset") for call in (
            lambda both: both.step(5), lambda both: both.observe("system"),
            lambda both: both.last(), lambda both: both.action_masks())),
        (lambda: dialgym.parallel_env(TOKENS).step({"system": 5, "user": 5}), "before the first"),
        (lambda: TokenEnv(Wordle(**SMALL)).clone_state(), r"clone_state\(\) was called before"),
        (lambda: env(TOKENS, 2).reset(options={"reset_mask": np.array([True, False])}),
         "reset_mask was given before the first reset"),
    ],
)  # fmt: skip
def test_a_reset_comes_first(call, message):
    with pytest.raises(ResetNeeded, match=message):
        call()


def test_a_closed_view_has_no_dialogue():
    parallel = dialgym.parallel_env(TOKENS)
    views = [env(TOKENS), env(TOKENS, 2), dialgym.aec_env(TOKENS), parallel]
    for view, action in zip(views, (5, [5, 5], 5, {"system": 5, "user": 5})):
        view.reset(seed=0)
        view.close()
        with pytest.raises(ResetNeeded, match=r"step\(\) was called after close\(\)"):
            view.step(action)


ALL, FEW = [1, 1, 1, 1], [1, 0, 0, 0]
UNANSWERED = [
    (ActEnv, {}, ALL, FEW),
    (UtteranceEnv, {}, EVERYTHING, "ask 0"),
    (TokenEnv, {}, EVERYTHING, "ask 0"),
    (ActVectorEnv, {"num_envs": 2}, [FEW, ALL], [FEW, FEW]),
    (UtteranceVectorEnv, {"num_envs": 2}, ["ask 0", EVERYTHING], ["ask 0"] * 2),
    (dialgym.Chat, {}, EVERYTHING, "ask 0"),
    (ChatBatch, {"num_chats": 2}, {0: "ask 0", 1: EVERYTHING}, {0: "ask 0"}),
]
HALFWAY = "was called after a step that failed halfway"


def act(view, action):
    """What a step gives, or all the tokens of an utterance."""
    if isinstance(view, TokenEnv):
        return [view.step(token) for token in spell(view, "system", action)][-1]
    return view.step(action)


@pytest.mark.parametrize(("make", "settings", "fails", "action"), UNANSWERED)
def test_nobody_speaks_in_the_place_of_a_simulator_that_failed(make, settings, fails, action):
    """What the learner says next would else be the user's."""
    view, twin = (make(Wishes(), simulator=FaultyUser(), **settings) for _ in range(2))
    for one in (view, twin):
        one.reset(0) if hasattr(one, "messages") else one.reset(seed=0)
    saved = view.clone_state() if hasattr(view, "clone_state") else None
    with pytest.raises(Exception, match="the service of users answered 503"):
        act(view, fails)
    for _ in range(2):
        with pytest.raises(ResetNeeded, match=rf"step\(\) {HALFWAY}"):
            act(view, action)
    expected = act(twin, action)
    if saved is not None:
        with pytest.raises(ResetNeeded, match=rf"clone_state\(\) {HALFWAY}"):
            view.clone_state()
        view.restore_state(saved)
        for got, wanted in zip(act(view, action)[:4], expected[:4]):
            assert np.array_equal(got, wanted)
    view.reset()
    act(view, action)


def test_rows_of_a_batch_that_failed_begin_together():
    batch = ActVectorEnv(Wishes(), 2, simulator=FaultyUser())
    batch.reset(seed=0)
    saved, written = batch.clone_state(), batch.get_state()
    with pytest.raises(Exception, match="503"):
        batch.step([FEW, ALL])
    for call in (
        lambda: batch.reset(options={"reset_mask": np.array([True, False])}),
        lambda: batch.restore_state(saved[:1], rows=[0]),
        batch.get_state,
        batch.action_masks,
    ):
        with pytest.raises(ResetNeeded, match="after a step that failed halfway"):
            call()
    batch.set_state(written)
    batch.step([FEW, FEW])


class Leaves:
    """A system that asks, until it is gone."""

    gone = False

    def reply(self, task, state, rng):
        if self.gone:
            raise ConnectionError("nobody there")
        return "ask 0"


def test_chats_that_could_not_begin_are_not_gone_on_with():
    chats = ChatBatch(Wishes(), 2, learner="user", simulator=(system := Leaves()))
    chats.reset(0)
    system.gone = True
    with pytest.raises(Exception, match="nobody there"):
        chats.reset(1)
    with pytest.raises(ResetNeeded, match=r"rows \[0\]"):
        chats.step({0: "want 0"})


class FailingJudge(Reward):
    def score(self, replies):
        raise ConnectionError("no judge")


def test_a_dialogue_whose_reward_failed_is_over():
    view = UtteranceEnv(Wordle(**SMALL), truths=True, final_reward={"judge": FailingJudge()})
    _, info = view.reset(seed=0)
    with pytest.raises(ConnectionError):
        view.step(info["truth"])
    with pytest.raises(ResetNeeded, match=HALFWAY):
        view.step("about")


def without(view, option):
    """A class of views that does not take an option."""
    return lambda: view(Wordle(**SMALL), **{option: True}), f"^{view.__name__} got an un.*{option}"


TEXT_INFO = r"text_info of Wordle must be True or False; got"
NO_ACTS = r"expected a task with dialogue acts .* got Wordle"
NO_ACTS_OF_THE_USER = r"expected a party with acts \(system\); got 'user', which has none"
NO_MASKS = r"expected a token or act view"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        without(UtteranceEnv, "action_masks"),
        without(UtteranceEnv, "features"),
        without(TokenEnv, "max_episode_steps"),
        without(TokenEnv, "masked_observations"),
        without(TokenTwoPartyEnv, "truths"),
        (lambda: env(TOKENS, text_info="no"), f"{TEXT_INFO} 'no'"),
        (lambda: env(TOKENS, 2, text_info="no"), f"{TEXT_INFO} 'no'"),
        (lambda: UtteranceEnv(Wordle(**SMALL), text_info=1), f"{TEXT_INFO} 1"),
        *((lambda limit=limit: env(TOKENS, 2, max_episode_steps=limit),
           "max_episode_steps of Wordle must be a whole number") for limit in (0, -3, 2.5, "4")),
        (lambda: dialgym.Chat(TEXTS, max_episode_steps=0), "max_episode_steps of Wordle must be"),
        *((lambda name=name: env(name, 2, render_mode="ansi"),
           r"draws no pictures; got 'ansi'\. Use vectoriz") for name in (TOKENS, ACTS, TEXTS)),
        # acts
        (lambda: ActEnv(Wordle()), NO_ACTS),
        (lambda: ActTwoPartyEnv(Wordle()), NO_ACTS),
        (lambda: ActEnv(Half(), learner="user"), NO_ACTS_OF_THE_USER),
        (lambda: ActTwoPartyEnv(Half()), NO_ACTS_OF_THE_USER),
        # features, truths, bits
        (lambda: TokenEnv(Wordle(), features=True), "features of Wordle: .*the system is given"),
        (lambda: TokenVectorEnv(NameIt(), 2, learner="user", features=True), "the user is given"),
        (lambda: TokenTwoPartyEnv(Wordle(), features=True), "it is given none"),
        (lambda: ActEnv(SlotFilling(env=1), truths=True),
         "truths of SlotFilling: expected a task whose learner"),
        (lambda: env("DailyDialog-v0", truths=True), "truths"),
        (lambda: ActEnv(SlotFilling(env=1), belief_gain=1.0),
         "belief_gain of SlotFilling: expected a task with an"),
        (lambda: env("DailyDialog-v0", belief_gain=1.0), "belief_gain"),
        *((lambda weight=weight: env("TwentyQuestions-8-v0", belief_gain=weight),
           "belief_gain of TwentyQuestions must be a finite")
          for weight in ("x", float("nan"), 10**400, True)),
        # wrappers
        (lambda: dialgym.ReplaceForbidden(env(TEXTS)), f"{NO_MASKS}.*got .*UtteranceEnv"),
        (lambda: dialgym.MaskedObservation(env(TEXTS)), f"{NO_MASKS}.*got .*UtteranceEnv"),
        (lambda: dialgym.VectorReplaceForbidden(gym.make_vec("CartPole-v1", 2)), NO_MASKS),
        (lambda: dialgym.VectorMaskedObservation(gym.make_vec("CartPole-v1", 2)), NO_MASKS),
        (lambda: dialgym.ReplaceForbidden(env(TOKENS), "best"),
         "choose of ReplaceForbidden must be one of 'random'"),
        (lambda: dialgym.MaskedObservation(env(TOKENS), "obs"), "keys: expected two names"),
        # pools
        (lambda: dialgym.sb3_vec_env(TEXTS, 2), r"utterance view\)\. Use 'dialgym/Wordle-20-v0'"),
        (lambda: dialgym.make_sb3_pool(TOKENS, 2, vec_env="subprocess"),
         r"unknown vec_env 'subprocess'.*Did you mean"),
    ],
)  # fmt: skip
def test_impossible_arguments(call, message):
    with pytest.raises((ValueError, UnexpectedArgument), match=message):
        call()


@pytest.mark.parametrize("wrapper", [dialgym.ReplaceForbidden, dialgym.MaskedObservation])
def test_a_wrapper_hands_on_an_impossible_action(wrapper):
    wrapped = wrapper(env(TOKENS))
    wrapped.reset(seed=0)
    for action in (99, 7.9, "7", np.array(7.0)):
        with pytest.raises(ValueError, match="expected a token id"):
            wrapped.step(action)


def test_a_pool_has_no_env_objects():
    pool = dialgym.sb3_vec_env(TOKENS, 2)
    with pytest.raises(AttributeError, match="no env objects to call 'render' on"):
        pool.env_method("render")
    with pytest.raises(AttributeError, match="cannot set 'x'"):
        pool.set_attr("x", 1)


def test_a_pool_refuses_impossible_seeds_and_options_at_once():
    pool = dialgym.sb3_vec_env(TOKENS, 2, seed=0)
    for seed in (-1, "x", 1.5, [1, 2, 3], np.array(3)):
        with pytest.raises(ValueError, match=r"seed of Wordle: expected .* got"):
            pool.seed(seed)
    for options in ("x", 3, [{}]):
        with pytest.raises(ValueError, match="options of Wordle: expected a mapping for all rows"):
            pool.set_options(options)
    assert np.array_equal(pool.reset(), env(TOKENS, 2).reset(seed=0)[0])


def test_a_truth_that_is_never_settled_begins_nothing():
    view = env("Wordle-v0", words=20, truths=True, host="adversarial")
    with pytest.raises(ValueError, match="never settles on a secret"):
        view.reset(seed=0)
    with pytest.raises(ResetNeeded, match="before the first reset"):
        view.step(0)


def test_saved_dialogues_of_another_view_or_number():
    single, other = TokenEnv(Wordle(**SMALL)), UtteranceEnv(Wordle(**SMALL))
    other.reset(seed=0)
    with pytest.raises(ValueError, match="its token view; got one of the utterance view"):
        single.restore_state(other.clone_state())
    batch = TokenVectorEnv(Wordle(**SMALL), 2)
    batch.reset(seed=0)
    with pytest.raises(ValueError, match="as many dialogues as rows and seeds; got 1, 2 and 1"):
        batch.restore_state(batch.clone_state([0]))


@pytest.mark.parametrize("ask", ["observation_space", "action_space", "observe"])
def test_a_party_that_there_is_none_of(ask):
    env = dialgym.aec_env("Wordle-20-v0")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"agent of Wordle must be one of 'system', 'user'"):
        getattr(env, ask)("nobody")


@pytest.mark.parametrize("workers", [-1, 1.5, "two"])
def test_workers_that_are_no_number_of_them(workers):
    with pytest.raises(ValueError, match=r"workers of .* must be a whole number from 0"):
        gym.make_vec("dialgym/Wordle-20-v0", 2, workers=workers)
