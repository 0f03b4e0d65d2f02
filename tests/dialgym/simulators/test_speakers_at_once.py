"""The other party by name with settings, in one call for many dialogues, and at the same time."""

import asyncio
import pickle
import threading
import time

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.registry import RegistryEntry, Row
from dialgym.simulators import Asynchronous, BatchSpeaker, Concurrent
from dialgym.tasks.daily_dialog import DailyDialog
from dialgym.tasks.daily_dialog.policies import Retrieval
from dialgym.tasks.replies import LoggedReply
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.policies import SlotAgendaPolicy
from dialgym.tasks.wordle import Wordle
from dialgym.tasks.wordle.batch import WordleBatch
from dialgym.tasks.wordle.policies import RandomWord, StartWords, WordMixture
from dialgym.views.dialogue import LoopedBatch, make_batch
from dialgym.views.making import split_kwargs
from dialgym.views.speakers import find_speaker
from dialgym.views.utterance_env import UtteranceEnv
from dialgym.views.utterance_vector_env import UtteranceVectorEnv
from tests.support.commands import fail, succeed
from tests.support.waiting import HANG_GUARD

TALK = {"data": None, "turns": 3, "rewards": {"length": 1.0}}
ROWS = 32


class Choosy:
    """Guesses one of some words; `first` is always the first."""

    def __init__(self, words: int = 5, first: str = "crane") -> None:
        self.words, self.first = words, first

    def reply(self, task, state, rng):
        return task.answers[int(rng.integers(self.words))] if state.guesses else self.first


class Counted(Choosy):
    """Notes how many dialogues it was asked in at once."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def reply_many(self, task, states, rngs):
        self.calls.append(len(states))
        return [self.reply(task, *each) for each in zip(states, rngs)]


class Together(SlotAgendaPolicy):
    """A user who replies once all rows have been asked."""

    def __init__(self):
        super().__init__()
        self.all_asked = threading.Barrier(ROWS, timeout=HANG_GUARD)

    def reply(self, task, state, rng):
        self.all_asked.wait()
        return super().reply(task, state, rng)


class Awaited:
    """A user who is awaited; notes how many wait at once."""

    def __init__(self):
        self.now = self.most = 0

    async def areply(self, task, state, rng):
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.02)
        self.now -= 1
        return state.planned[0]


class AwaitedTogether(Awaited):
    """A user who is awaited, and replies once all rows have been asked."""

    async def areply(self, task, state, rng):
        self.now += 1
        while self.now % ROWS:
            await asyncio.sleep(0)
        return state.planned[0]


class Broken(Choosy):
    def reply(self, task, state, rng):
        if len(state.guesses) == 1:
            raise KeyError("the line is dead")
        return super().reply(task, state, rng)


# named, with settings


@pytest.mark.parametrize("name", ["retrieval", "dialgym.tasks.daily_dialog.policies:Retrieval"])
def test_a_simulator_can_be_named_with_settings(name):
    named = {"name": name, "nearest": 3}
    env = gym.make("dialgym/DailyDialog-Conversation-v0", simulator=named)
    batch = gym.make_vec("dialgym/DailyDialog-Conversation-v0", 2, simulator=named)
    for other in (env.unwrapped.dialogue.other, batch.dialogues.partner):
        assert isinstance(other, Retrieval)
        assert other.nearest == 3
    pool = dialgym.sb3_vec_env("dialgym/DailyDialog-Conversation-v0", 2, simulator=named)
    assert pool.env.dialogues.partner.nearest == 3


def test_settings_alone_are_those_of_the_default():
    other = find_speaker(Wordle(), "user", {"name": "optimal", "guesses": "all"})
    assert other.guesses == "all"
    assert isinstance(find_speaker(SlotFilling(), "system", {}), SlotAgendaPolicy)


@pytest.mark.parametrize(
    ("simulator", "message"),
    [
        ({"name": "retrieval", "nearst": 3}, r"unknown setting 'nearst' in speaker 'retrieval'.*"
         r"Did you mean 'nearest'\? Known: nearest\."),
        ({"name": "retrival"}, "Did you mean 'retrieval'"),
        ({"name": "script", "nearest": 3}, "unknown setting 'nearest'.*Known: none"),
        ({"name": "no_such_module:User"}, "no module 'no_such_module' here"),
        ({"name": "dialgym.tasks.wordle:User"}, "module 'dialgym.tasks.wordle' has no 'User'"),
        ({"name": "dialgym.simulators:Concurrent"}, "needs the setting 'speaker'"),
        (3, "a mapping of a name and settings"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_simulator_is_said(simulator, message):
    with pytest.raises(ValueError, match=message):
        gym.make("dialgym/DailyDialog-Conversation-v0", simulator=simulator)


def test_settings_reach_evaluation_and_collection(tmp_path):
    kwargs = {"learner": "user", "simulator": {"name": "mixture", "weights": [0.0, 1.0]}}
    asked = dialgym.evaluate("host", "Wordle-20-v0", 5, env_kwargs=kwargs)
    plain = dialgym.evaluate(
        "host", "Wordle-20-v0", 5, env_kwargs={"learner": "user", "simulator": "optimal"}
    )
    assert asked.overall.returns.mean() > plain.overall.returns.mean()  # the host wins by misses
    stored = dialgym.collect(
        "Wordle-20-v0", "host", 3, 0, path=tmp_path / "games", env_kwargs=kwargs
    )
    assert len(stored) == 3
    assert (
        dialgym.load_dataset(tmp_path / "games").environment()[1]["simulator"]
        == kwargs["simulator"]
    )


def test_a_row_of_the_registry_can_name_a_simulator():
    kwargs = {"learner": "user", "simulator": {"name": "optimal", "guesses": "all"}}
    row = Row("x", "dialgym.tasks.wordle:Wordle", "", settings={"words": 20}, env_kwargs=kwargs)
    entry = RegistryEntry("x", row, "utterance")
    found = split_kwargs(entry, UtteranceEnv, {})
    assert (len(found["task"].answers), found["learner"]) == (20, "user")
    assert UtteranceEnv(**found).dialogue.other.guesses == "all"
    assert split_kwargs(entry, UtteranceEnv, {"simulator": "random"})["simulator"] == "random"


# many at once


def play(task, simulator, steps=6, **kwargs):
    """The results of a script in a batch of users of Wordle, or of systems of other tasks."""
    env = UtteranceVectorEnv(task, ROWS, simulator=simulator, **kwargs)
    seen = [env.reset(seed=0)[0]]
    text = "crane" if kwargs.get("learner") == "user" else "hello()"
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step([text] * ROWS)
        seen += [observation, reward.tolist(), terminated.tolist(), truncated.tolist()]
    return seen


def test_all_that_wait_are_asked_in_one_call_a_round():
    counted, task = Counted(), Wordle(words=40)
    env = UtteranceVectorEnv(task, ROWS, learner="user", simulator=counted)
    env.reset(seed=0)
    assert counted.calls == []
    *_, info = env.step(["crane"] * ROWS)
    longest = max(text.count("system:") for text in info["transcript"])
    assert counted.calls[0] == ROWS
    assert len(counted.calls) == longest
    assert sum(counted.calls) == sum(text.count("system:") for text in info["transcript"])


@pytest.mark.parametrize("wrap", [lambda s: Counted(), lambda s: Concurrent(s, 4)])
def test_asked_at_once_they_say_what_they_say_one_by_one(wrap):
    task = Wordle(words=40)
    one_by_one = play(task, Choosy(), learner="user")
    assert play(task, wrap(Choosy()), learner="user") == one_by_one


def test_rewards_and_the_partner_are_each_asked_once():
    class Partner(LoggedReply):
        calls = 0

        def reply_many(self, task, states, rngs):
            self.calls += 1
            return super().reply_many(task, states, rngs)

    partner, task = Partner(), DailyDialog(**TALK)
    batch = make_batch(task, ROWS, "system", partner)
    assert not isinstance(batch, LoopedBatch)
    rngs = [np.random.default_rng(i) for i in range(ROWS)]
    rows = np.arange(ROWS)
    over = batch.begin(rows, batch.draw(rows, rngs, {}), rngs).terminated
    while (rows := np.flatnonzero(~over)).size:
        before = partner.calls
        outcome = batch.say(rows, np.array(["yes"] * len(rows)), rngs)
        over[rows] = outcome.terminated
        assert partner.calls - before <= 1
    assert partner.calls > 0


def test_arrays_are_asked_as_states_are():
    """`WordMixture` reads the arrays of Wordle's batch, and states where there are none."""
    task = Wordle(words=40)
    batch, rows = WordleBatch(task, 6), np.arange(6)
    rngs = [np.random.default_rng(i) for i in range(6)]
    batch.begin(rows, batch.draw(rows, rngs, {}), rngs)
    for guess in ("crane", "zzzzz", "aback"):
        batch.say(rows, np.array([guess] * 6), rngs)
        states = batch.states(rows)
        for speaker in (RandomWord(), WordMixture(0.5)):
            said = [
                speaker.reply_many(task, asked, [np.random.default_rng(i) for i in rows])
                for asked in (states, list(states))
            ]
            singly = [
                speaker.reply(task, s, np.random.default_rng(i)) for i, s in enumerate(states)
            ]
            assert said == [singly, singly]
    assert [s.secret for s in states[2:4]] == batch.secret[2:4].tolist()


class Silent:
    """Says nothing at all, which no rules know."""

    def reply(self, task, state, rng):
        return None


def test_a_reply_that_is_no_text_is_found():
    task, message = Wordle(words=40), "Silent of Wordle: expected a string in .*; got None"
    many = UtteranceVectorEnv(task, 3, learner="user", simulator=Silent())
    many.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        many.step(["crane"] * 3)
    one = UtteranceEnv(task, learner="user", simulator=Silent())
    one.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        one.step("crane")
    with pytest.raises(ValueError, match=message):
        dialgym.evaluate(Silent(), "dialgym/Wordle-20-v0", 2)


@pytest.mark.parametrize("wrap", [lambda s: s, lambda s: Concurrent(s, 4)])
def test_an_error_names_the_row_and_the_cause(wrap):
    env = UtteranceVectorEnv(Wordle(words=40), 4, learner="user", simulator=wrap(Broken()))
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match="of Wordle failed in row 0: KeyError: 'the line is"):
        env.step(["crane"] * 4)


@pytest.mark.parametrize(
    ("said", "message"),
    [(["slate"] * 3, "asked for 4 texts; got 3"), ([None] * 4, "a string in row 0; got None")],
)
def test_replies_that_are_none_are_found(said, message):
    class Mute(Choosy):
        def reply_many(self, task, states, rngs):
            return said

    env = UtteranceVectorEnv(Wordle(words=40), 4, learner="user", simulator=Mute())
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(["crane"] * 4)


# slow


def openings(simulator):
    """The first utterances of many users."""
    return UtteranceVectorEnv(SlotFilling(), ROWS, simulator=simulator).reset(seed=0)[0]


@pytest.mark.parametrize(
    "simulator", [Concurrent(Together(), ROWS), Asynchronous(AwaitedTogether())]
)
def test_slow_users_are_waited_for_together(simulator):
    assert openings(simulator) == openings(SlotAgendaPolicy())


def test_no_more_are_awaited_than_allowed():
    user = Awaited()
    openings(Asynchronous(user, most=5))
    assert user.most == 5


def test_an_awaited_user_works_where_a_loop_is_running():
    async def inside():
        env = UtteranceEnv(SlotFilling(), simulator=Asynchronous(Awaited()))
        return env.reset(seed=0)[0]

    assert asyncio.run(inside()) == UtteranceEnv(SlotFilling()).reset(seed=0)[0]


def test_threads_stay_at_home_when_a_speaker_travels():
    for speaker in (Concurrent(SlotAgendaPolicy(), 4), Asynchronous(Awaited())):
        assert isinstance(speaker, BatchSpeaker)
        openings(speaker)
        copy = pickle.loads(pickle.dumps(speaker))
        assert openings(copy) == openings(speaker)


def test_a_failure_waits_for_the_others():
    ended, first = [], threading.Semaphore(1)

    class Uneven(Choosy):
        def reply(self, task, state, rng):
            if first.acquire(blocking=False):
                raise OSError("no answer")
            time.sleep(0.05)
            ended.append(1)
            return "crane"

    env = UtteranceVectorEnv(Wordle(), 4, learner="user", simulator=Concurrent(Uneven(), 4))
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match="OSError: no answer"):
        env.step(["crane"] * 4)
    assert len(ended) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Concurrent(Choosy(), 0), "workers must be a whole number from 1; got 0"),
        (lambda: Concurrent(Awaited()), "areply is for Asynchronous"),
        (lambda: Asynchronous(Choosy()), "a plain reply is for Concurrent"),
    ],
)
def test_what_is_wrong_with_the_speaker_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_workers_of_a_pool_have_simulators_with_settings():
    make = {"learner": "user", "simulator": {"name": "repeat", "first_n": 1}}
    pool = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 2, workers=1, **make)
    alone = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 2, **make)
    for env in (pool, alone):
        env.seed(3)
    try:
        assert np.array_equal(pool.reset(), alone.reset())
        for _ in range(12):
            results = [env.step(np.array([5, 1])) for env in (pool, alone)]
            assert np.array_equal(results[0][0], results[1][0])
    finally:
        pool.close()


def test_start_words_need_no_more_than_reply():
    assert not isinstance(StartWords(), BatchSpeaker)


def test_the_command_line_takes_settings_of_a_simulator():
    asked = ["evaluate", "host", "Wordle-20-v0", "-n", "2", "--seeds", "0", "-s", "learner=user"]
    succeed(*asked, "-s", "simulator={name: optimal, guesses: all}")
    error = fail(*asked, "-s", "simulator={name: optimal, gueses: all}")
    assert (
        "unknown setting 'gueses' in speaker 'optimal' of Wordle. Did you mean 'guesses'" in error
    )
