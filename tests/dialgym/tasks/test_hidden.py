"""Hidden state: it refuses to be read in the copies that scripted policies are given."""

import copy
import pickle

import numpy as np
import pytest

import dialgym
from dialgym.experiments import Result, benchmark, evaluate
from dialgym.registry import entries, make_task
from dialgym.rollouts import Player
from dialgym.tasks import Hidden, HiddenStateError, reveal
from dialgym.testing import check_task
from tests.support.signals import Signals

SYSTEM = "system"
WORLDS = ("maze:Maze", "text_nav:TextNav")
FIRSTS = [*{entry.row.task: entry for entry in reversed(list(entries().values()))}.values()]


class Cheat:
    """Says the secret word."""

    def reply(self, task, state, rng):
        return task.answers[state.secret]


class Oracle(Cheat):
    oracle = True


class BatchCheat(Cheat):
    def reply_many(self, task, states, rngs):
        return [self.reply(task, state, rng) for state, rng in zip(states, rngs)]


class TwoCheat(BatchCheat):
    def reply(self, task, state, rng):
        return task.table.guesses[state.item]


class Ungracious:
    """Ends the game in its favour, by the state that it is given."""

    def reply(self, task, state, rng):
        state.turns = -100
        state.guesses.clear()
        return "crane"


class Expects:
    """Says what the task would answer, which it tries out beforehand."""

    def reply(self, task, state, rng):
        task.speak(state, "crane", rng)
        return "crane"


class TellsAct:
    """Chooses the act that the user's true wish asks for."""

    def act(self, task, state, rng):
        return len(state.user_state.goal.constraints)


def hidden():
    return Hidden(3, ("Wordle", "system", "secret"))


@pytest.mark.parametrize(
    "ask",
    [
        lambda value: value == 3,
        lambda value: value != 3,
        lambda value: value < 3,
        lambda value: value in (1, 2),
        lambda value: {value},
        lambda value: "abcd"[value],
        lambda value: np.arange(4)[value],
        lambda value: np.asarray(value),
        lambda value: int(value),
        lambda value: value + 1,
        lambda value: len(value),
        lambda value: list(value),
        lambda value: value[0],
        lambda value: value.anything,
        lambda value: value(),
        lambda value: not value,
    ],
)
def test_whatever_is_asked_is_refused(ask):
    with pytest.raises(HiddenStateError, match=r"Wordle: the system is not told 'secret'.*oracle"):
        ask(hidden())


def test_hidden_values_can_be_copied_and_printed():
    for value in (hidden(), hidden().copy(), copy.deepcopy(hidden()), copy.copy(hidden()),
                  pickle.loads(pickle.dumps(hidden()))):  # fmt: skip
        assert isinstance(value, Hidden)
        assert repr(value) == "<hidden: secret>"
        assert reveal(value) == 3
    assert reveal(5) == 5


@pytest.mark.parametrize(
    ("policy", "env", "name"),
    [
        (Cheat(), "Wordle-20-v0", "secret"),
        (Expects(), "Wordle-v0", "secret"),
        (BatchCheat(), "Wordle-20-v0", "secret"),
        (TwoCheat(), "TwentyQuestions-v0", "item"),
        (TellsAct(), "SlotFilling-act-v0", "user_state"),
    ],
)
def test_a_policy_that_asks_for_the_hidden_state_is_told_no(policy, env, name):
    # where many are asked at once, the error that names the row has it as its cause
    with pytest.raises(RuntimeError, match=f"is not told '{name}'"):
        evaluate(policy, env, 3, (0,))
    with pytest.raises(RuntimeError, match=f"is not told '{name}'"):
        dialgym.collect(env, policy, 3)


def test_oracles_play_and_are_marked(tmp_path):
    result = evaluate(Oracle(), "Wordle-20-v0", 3, (0,))
    assert result.mean_return == 0.0
    assert result.oracle
    assert "| Oracle (oracle) |" in result.to_markdown()
    assert "knows what is hidden" in result.to_markdown()
    result.to_json(tmp_path / "result.json")
    assert Result.from_json(tmp_path / "result.json").oracle
    found = benchmark({"mine": Oracle(), "random": "random"}, ["Wordle-20-v0"], 3, (0,))
    assert [result.name for result in found.results] == ["mine (oracle)", "random"]
    assert {game.policy for game in found.games} == {"mine (oracle)", "random"}


def test_what_a_policy_changes_is_its_own_copy():
    (played,) = Player("Wordle-v0", Ungracious()).play([(0, 0)])
    assert played.lengths.tolist() == [6]


@pytest.mark.parametrize(
    ("env", "names"),
    [
        ("Comments-v0", {"logged", "best"}),
        ("DailyDialog-v0", {"reference"}),
        ("Wordle-v0", set()),
        ("TwentyQuestions-v0", set()),
        ("SlotFilling-v0", set()),
    ],
)
def test_which_policies_are_oracles(env, names):
    task = make_task(dialgym.registry.entry_of(env), {})
    policies = {name: task.speaker_named(SYSTEM, name) for name in task.speakers[SYSTEM]}
    assert {name for name, policy in policies.items() if getattr(policy, "oracle", 0)} == names


def try_out(task, state):
    """See what utterances would lead to."""
    for text in ("hello", "yes", "bye"):
        task.speak(state, text, np.random.default_rng(0))


HIDING = [entry for entry in FIRSTS if entry.row.task != "dialgym.tasks.endgames:Endgames"]
SETTINGS = {f"dialgym.tasks.{task}": {"observation": "partial"} for task in WORLDS}


@pytest.mark.parametrize("entry", HIDING, ids=lambda entry: entry.id)
def test_what_a_system_sees_of_each_task_hides_something(entry):
    task = make_task(entry, SETTINGS.get(entry.row.task, {}))
    state = task.initial(np.random.default_rng(0))
    seen = task.observed(state, SYSTEM)
    other = "user"
    twice = task.observed(seen, SYSTEM)  # as a language model does with what a player has hidden
    for hidden in (seen, twice):
        assert list(task.transcript(hidden, SYSTEM)) == list(task.transcript(state, SYSTEM))
    if any(line.private for line in task.transcript(state, other)):
        with pytest.raises(HiddenStateError):
            list(task.transcript(seen, other))
    task.constraint(seen, SYSTEM)
    with pytest.raises(HiddenStateError):
        try_out(task, seen)


@pytest.mark.parametrize("env", ["Endgames-v0", "Maze-v0", "TextNav-v0"])
def test_a_system_that_is_told_all_can_try_out_what_it_would_say(env):
    task = make_task(dialgym.registry.entry_of(env), {})
    try_out(task, task.observed(task.initial(np.random.default_rng(0)), SYSTEM))


def test_names_in_facts_are_attributes_by_default():
    task = Signals()
    check_task(task, 3)
    seen = task.observed(task.initial(np.random.default_rng(0)), SYSTEM)
    with pytest.raises(HiddenStateError, match="'letter'"):
        seen.letter == "a"  # noqa: B015


class Open(Signals):
    def observed(self, state, party):
        return state.copy()


class Deaf(Signals):
    hidden_fields = {"system": ("letter",), "user": ("letter",)}


class Same(Signals):
    def observed(self, state, party):
        state.lines.reverse()
        return super().observed(state, party)


def test_the_check_finds_what_is_not_hidden():
    with pytest.raises(AssertionError, match=r"observed\(\) of system .* hides nothing"):
        check_task(Open(), 3)
    with pytest.raises(HiddenStateError, match="the user is not told 'letter'"):
        check_task(Deaf(), 3)
    with pytest.raises(AssertionError, match="observed"):
        check_task(Same(), 3)
