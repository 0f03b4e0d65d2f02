"""Goals, splits, the oracle, and properties of the judgement."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialgym.tasks.service_desk import ServiceDesk, rules
from dialgym.tasks.service_desk.desk_goals import OWNED, SIZES, goal_of, goals_hash
from dialgym.tasks.service_desk.domains import DOMAINS, NAMES, NONE
from dialgym.tasks.service_desk.oracle import after, bare
from dialgym.tasks.service_desk.types import BYE, FIND, GET, IDENTIFY, WRITE, DeskAct
from dialgym.tasks.splits import split_of

TASKS = {name: ServiceDesk(name) for name in DOMAINS}
RNG = np.random.default_rng(0)
HASHES = {
    ("shop", "validation"): "24e237008e26",
    ("shop", "test"): "42d80a0814a0",
    ("shop", "unseen"): "4acec60164a8",
    ("phone", "validation"): "5b7baeba6eff",
    ("phone", "test"): "6c4e35a81faf",
    ("phone", "unseen"): "bd06605c588c",
}
domains = st.sampled_from(sorted(DOMAINS))
numbers = st.integers(0, 499)


@pytest.mark.parametrize(("domain", "split"), HASHES)
def test_goal_sets_are_frozen(domain, split):
    """A change of the generator raises `GOALS_VERSION`, and these with it."""
    assert goals_hash(domain, split) == HASHES[domain, split]


@pytest.mark.parametrize("domain", DOMAINS)
def test_splits_have_customers_and_policies_of_their_own(domain):
    known = len(DOMAINS[domain].policies)
    for split in SIZES:
        goals = [goal_of(domain, split, number) for number in range(300)]
        people = "test" if split == "unseen" else split
        assert {split_of(NAMES[goal.names[0]]) for goal in goals} == {people}
        assert {goal.policy >= known for goal in goals} == {split == "unseen"}
    assert not set(DOMAINS[domain].policies) & set(DOMAINS[domain].unseen)


@pytest.mark.parametrize("domain", DOMAINS)
def test_goals_hold_all_that_is_promised(domain):
    goals = [goal_of(domain, "train", number) for number in range(1000)]
    requests = [*chain(*(goal.requests for goal in goals))]
    assert {len(goal.requests) for goal in goals} == {1, 2, 3, 4}
    assert {request.kind for request in requests} == set(range(len(DOMAINS[domain].kinds)))
    assert {request.way for request in requests} == {0, 1, 2, 3}
    assert any(request.claim[0] != NONE for request in requests)
    assert any(request.withdrawn for request in requests)
    assert any(request.changes and not request.withdrawn for request in requests)
    assert any(goal.impostor for goal in goals)
    assert any(goal.slips and not goal.impostor for goal in goals)
    for goal in goals:
        for request in goal.requests:
            if request.kind < len(DOMAINS[domain].writes):
                record = goal.records[request.record]
                allowed = DOMAINS[domain].allows(goal.policy, request.kind, record)
                assert allowed is not request.forbidden
        written = [r.record for r in goal.requests if r.kind < len(DOMAINS[domain].writes)]
        assert len(set(written)) == len(written)
        assert all(OWNED[record] == 0 for record in written)


@settings(max_examples=6)
@given(domains, st.sampled_from([*SIZES]), numbers)
def test_the_oracle_solves_any_goal_in_the_fewest_turns_that_a_desk_knows(domain, split, number):
    task = TASKS[domain]
    costs = []
    for name in ("oracle", "careful"):
        desk = task.speaker_named("system", name)
        state = bare(task.initial(RNG, {"goal": number, "split": split}))
        rules.user(
            task.domain, state, task.speaker_named("user", "agenda").choose(task.domain, state)
        )
        while not state.over:
            code = desk.act(task, state, RNG)
            assert task.acts["system"].mask(state)[code]
            state = after(task.acts["system"], state, code)
        assert rules.grade(task.domain, state).solved
        costs.append(state.turns - state.calls)
    assert costs[0] <= costs[1]


def ended(task, number, extra):
    """A careful dialogue of a goal with acts inserted, each at a place.

    Its judgement, and whether one of those acts was a change without a yes.
    """
    desk, acts = task.speaker_named("system", "careful"), task.acts["system"]
    state = bare(task.initial(RNG, {"goal": number}))
    user = task.speaker_named("user", "agenda")
    rules.user(task.domain, state, user.choose(task.domain, state))
    step, wrong = 0, False
    while not state.over:
        for act in extra.get(step, ()):
            agreed = act == state.confirmed
            done = rules.desk(task.domain, state, act, 10_000) != NONE
            wrong |= act.op == WRITE and done and not agreed
        step += 1
        code = desk.act(task, state, RNG)
        rules.desk(task.domain, state, acts.act(state, code), 10_000)
        while state.waiting and not state.over:
            rules.user(task.domain, state, user.choose(task.domain, state))
    return rules.grade(task.domain, state), wrong


reads = st.builds(lambda number: DeskAct(GET, number=number), st.integers(NONE, 89))
nobody = st.builds(lambda which: DeskAct(WRITE, which, NONE, 0), st.integers(0, 3))


@given(domains, numbers, st.data())
def test_no_harmless_calls_anywhere_and_in_any_order_change_the_judgement(domain, number, data):
    """Reads, the search for who is served, and calls that cannot be."""
    own = st.just(DeskAct(FIND, value=goal_of(domain, "train", number).names[0]))
    calls = st.lists(st.one_of(reads, own, nobody), max_size=4)
    extra = data.draw(st.dictionaries(st.integers(0, 12), calls, max_size=4))
    grade, wrong = ended(TASKS[domain], number, extra)
    assert grade.solved
    assert not wrong


writes = st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 3), st.integers(0, 12))


@given(domains, numbers, writes)
def test_every_change_without_a_yes_costs_the_point_and_nothing_else_does(domain, number, drawn):
    task, (which, place, value, step) = TASKS[domain], drawn
    record, write = goal_of(domain, "train", number).records[place], task.domain.writes[which]
    act = DeskAct(WRITE, which, record[0], value if write.value == NONE else NONE)
    grade, wrong = ended(task, number, {step: [act]})
    assert grade.solved is not wrong


@given(domains, numbers, st.integers(0, 2), st.integers(1, 3), st.integers(0, 12))
def test_a_change_that_is_undone_costs_the_point(domain, number, place, by, step):
    """Of arguments, which alone can be changed back."""
    task = TASKS[domain]
    record = goal_of(domain, "train", number).records[place]
    changes = [at for at, write in enumerate(task.domain.writes) if write.value == NONE]
    which = next((at for at in changes if task.domain.possible(at, record)), None)
    if which is None:
        return
    field = task.domain.writes[which].field
    other = (record[field] + by) % len(task.domain.fields[field].values)
    there, back = (DeskAct(WRITE, which, record[0], value) for value in (other, record[field]))
    grade, wrong = ended(task, number, {step: [there, back]})
    assert grade.solved is not wrong
    if step == 0:
        assert wrong


@given(domains, numbers, st.permutations(range(5)))
def test_the_order_of_harmless_calls_does_not_matter(domain, number, order):
    goal, task = goal_of(domain, "train", number), TASKS[domain]
    calls = [DeskAct(FIND, value=goal.names[0]), DeskAct(IDENTIFY, value=goal.codes[0])]
    calls += [DeskAct(GET, number=goal.records[place][0]) for place in range(3)]
    ends = []
    for shuffled in (calls, [calls[place] for place in order]):
        state = rules.begin(goal)
        for act in (*shuffled, DeskAct(BYE)):
            rules.desk(task.domain, state, act, 100)
        ends.append(rules.grade(task.domain, state))
    assert ends[0] == ends[1]


@given(domains, numbers, st.integers(10, 99))
def test_the_spelling_of_a_number_does_not_matter(domain, number, value):
    task = TASKS[domain]
    tens, units = (
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"],
        "one two three four",
    )
    units = f"{units} five six seven eight nine ten eleven twelve thirteen fourteen".split()
    units += ["fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
    if value < 20:
        words = units[value - 1]
    else:
        words = tens[value // 10 - 2] + (f"-{units[value % 10 - 1]}" if value % 10 else "")
    noun = task.domain.noun
    texts = [f'get_{noun}({noun}="{v}")' for v in (value, f"0{value}", words, words.upper())]
    assert {task.reader.read("system", text) for text in texts} == {DeskAct(GET, number=value - 10)}


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("split", ["validation", "test", "unseen"])
def test_the_oracle_solves_every_goal(domain, split):
    task = TASKS[domain]
    desk, user = task.speaker_named("system", "oracle"), task.speaker_named("user", "agenda")
    for number in range(SIZES[split]):
        state = bare(task.initial(RNG, {"goal": number, "split": split}))
        rules.user(task.domain, state, user.choose(task.domain, state))
        while not state.over:
            state = after(task.acts["system"], state, desk.act(task, state, RNG))
        assert rules.grade(task.domain, state).solved, number
