"""Splits of secrets: disjoint, complete, the same everywhere; they decide what is drawn alone."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialgym
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.domain.goals import goal_name
from dialgym.tasks.splits import SPLITS, Secrets, split_of
from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.wordle import Wordle
from dialgym.testing import check_batch, check_task, check_views

TASKS = {
    "wordle": lambda split: Wordle(words=200, guesses="answers", split=split),
    "things": lambda split: TwentyQuestions(split=split),
    "cities": lambda split: TwentyQuestions("cities", split=split),
}
KNOWN = {
    "heard": "train", "while": "validation", "crisp": "test",
    "a cat": "train", "a lion": "validation", "New York": "test",
}  # fmt: skip


def secrets(task):
    return [next(iter(option.values())) for option in task.secrets()]


@given(st.lists(st.text(), unique=True), st.randoms())
def test_every_name_is_in_one_split_wherever_it_stands(names, random):
    rows = {}
    for split in SPLITS:
        try:
            rows[split] = {names[i] for i in Secrets(names, split, "Task", "names")}
        except ValueError:
            rows[split] = set()
    assert sum(map(len, rows.values())) == len(names)
    assert set().union(*rows.values()) == set(names)
    random.shuffle(names)
    assert all(name in rows[split_of(name)] for name in names)


def test_the_split_of_a_name_is_the_same_in_any_process():
    code = f"from dialgym.tasks.splits import split_of; print(*map(split_of, {[*KNOWN]!r}))"
    env = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)}
    run = [sys.executable, "-c", code]
    told = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
    assert dict(zip(KNOWN, told.stdout.split())) == KNOWN


@pytest.mark.parametrize("name", TASKS)
def test_the_splits_of_a_task_cover_its_secrets(name):
    whole, *parts = (TASKS[name](split) for split in (None, *SPLITS))
    assert sorted(word for part in parts for word in secrets(part)) == sorted(secrets(whole))
    shares = [len(secrets(part)) / len(secrets(whole)) for part in parts]
    assert shares == pytest.approx([0.7, 0.1, 0.2], abs=0.1)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", TASKS)
def test_secrets_of_the_split_alone_are_drawn_and_all_may_be_said(name, split):
    task, whole = TASKS[name](split), TASKS[name](None)
    rng = np.random.default_rng(0)
    drawn = {task.truth(task.initial(rng)) for _ in range(30 * len(task.drawn))}
    assert drawn == {*task.drawn}
    state = task.initial(rng)
    assert (
        task.hypotheses(state) == whole.hypotheses(state) == np.count_nonzero(task.posterior(state))
    )
    assert task.words() == whole.words()
    assert task.static_constraint("system") == whole.static_constraint("system")
    assert task.conditions("system") == whole.conditions("system")


@pytest.mark.parametrize("task", [
    Wordle(words=40, split="test"), Wordle(words=40, split="train", hard_mode=True),
    TwentyQuestions(items=40, split="train"),
], ids=str)  # fmt: skip
def test_views_and_batches_agree(task):
    check_task(task, episodes=2)
    check_views(task, episodes=2)
    check_batch(task, num_envs=4, steps=60)


@pytest.mark.parametrize(("env_id", "policy"), [
    ("Wordle-200-v0", "optimal"), ("TwentyQuestions-16-v0", "optimal"),
    ("GuessMyCity-v0", "greedy"),
])  # fmt: skip
def test_policies_that_know_the_whole_list_play(env_id, policy):
    found = dialgym.evaluate(policy, env_id, 20, env_kwargs={"split": "test"})
    assert found[env_id].success > 0.9


def test_the_host_chooses_a_word_of_the_split():
    task = Wordle(words=200, guesses="answers", split="test")
    rng = np.random.default_rng(0)
    mine, other = secrets(task)[0], next(w for w in task.answers if split_of(w) != "test")
    assert mine in task.static_constraint("user").words
    assert other not in task.static_constraint("user").words
    for said, chosen in ((mine, True), (other, False)):
        state = task.initial(rng, {"word": secrets(task)[1]})
        task.speak(state, said, rng)
        assert (task.answers[state.secret] == said) is chosen


def test_goals_of_a_split():
    whole, *parts = (SlotFilling(goals={"split": split}).goals for split in (None, *SPLITS))
    assert sum(len(part.probability) for part in parts) == len(whole.probability)
    for split, part in zip(SPLITS, parts, strict=True):
        assert part.probability.sum() == pytest.approx(1)
        rng = np.random.default_rng(0)
        names = {goal_name(part.draw(rng).constraints) for _ in range(200)}
        assert {*map(split_of, names)} == {split}


REFUSED = {
    "no such split": (lambda: Wordle(split="tests"), "split of Wordle must be one of .*'tests'"),
    "none of the split": (
        lambda: TwentyQuestions(items=2, split="test"),
        "expected things of the split 'test'; got 2 things, of which none is",
    ),
    "no goal of the split": (
        lambda: SlotFilling(goals={"split": "no"}),
        "split of goals of Restaurants must be one of 'train'",
    ),
    "no fixed secret": (
        lambda: Wordle(split="test", host="adversarial"),
        "expected secret='fixed' and a host who is not 'adversarial', as those take any answer; "
        "got 'fixed' and 'adversarial'. Set them",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    make, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("task", "option"), [
    (Wordle(split="test"), {"word": "heard"}),
    (TwentyQuestions(split="train"), {"item": "whale"}),
], ids=str)  # fmt: skip
def test_an_option_of_another_split_is_refused(task, option):
    count, (name,) = len(task.drawn), option
    with pytest.raises(
        ValueError,
        match=rf"option '{name}' .* its {count} .* of the split '{task.drawn.split}'; got",
    ):
        task.initial(np.random.default_rng(0), option)


def test_constraints_of_another_split_are_refused():
    goal = SlotFilling(goals={"split": "train"}).goals.draw(np.random.default_rng(0))
    with pytest.raises(
        ValueError, match=r"option 'constraints' .* expected some of the split 'test'"
    ):
        SlotFilling(goals={"split": "test"}).initial(
            np.random.default_rng(0), {"constraints": goal.constraints}
        )
