"""Rules and faults: what is judged, and what no desk is paid for."""

import re

import pytest

from dialgym.tasks.service_desk.desk_goals import goal_of
from dialgym.tasks.service_desk.domains import DOMAINS, NONE
from dialgym.tasks.service_desk.types import (
    CONFIRM,
    FIND,
    GET,
    IDENTIFY,
    REFUSE,
    TELL,
    WRITE,
    DeskAct,
)
from tests.support.desk_dialogues import (
    ENGLISH,
    PHONE,
    RNG,
    SHOP,
    allowed_change,
    first_goal,
    serve,
)


def spelt(text):
    """A text with its numbers of two digits in words."""
    tens = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    units = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    units = f"{units} fifteen sixteen seventeen eighteen nineteen".split()

    def words(found):
        ten, unit = divmod(int(found[0]), 10)
        if ten < 2:
            return units[int(found[0]) - 1]
        return f"{tens[ten - 2]}-{units[unit - 1]}" if unit else tens[ten - 2]

    return re.sub(r"\b[1-9]\d\b", words, text)


@pytest.mark.parametrize("task", [SHOP, PHONE, *ENGLISH.values()], ids=repr)
def test_the_spelling_of_numbers_changes_no_reward(task):
    class Spells:
        """Says what another speaker says, numbers in words."""

        def __init__(self, speaker):
            self.speaker = speaker

        def reply(self, task, state, rng):
            return spelt(self.speaker.reply(task, state, rng))

    for goal in range(12):
        desk = Spells(task.speaker_named("system", "careful"))
        user = Spells(task.speaker_named("user", "agenda"))
        state = task.initial(RNG, {"goal": goal})
        while not state.over:
            task.speak(state, (user if state.waiting else desk).reply(task, state, RNG), RNG)
        assert task.metrics(state) == task.metrics(serve(task, "careful", goal=goal)[0]), goal
        assert task.metrics(state)["told"], goal


@pytest.mark.parametrize("task", [SHOP, PHONE, *ENGLISH.values()], ids=repr)
@pytest.mark.parametrize("user", ["agenda", "lying"])
def test_a_careful_desk_solves_each_goal_by_what_it_has_heard_and_seen(task, user):
    class Honest:
        """Sees what a desk may see, and nothing else."""

        def reply(self, task, state, rng):
            desk = task.speaker_named("system", "careful")
            return desk.reply(task, task.observed(state, "system"), rng)

    for goal in range(10):
        state, total = serve(task, Honest(), user, goal, "unseen")
        assert total > 0.5, goal
        assert task.metrics(state) == {**dict.fromkeys(task.facts.metrics, 0.0), "database": 1.0,
                                       "told": 1.0, "policy": 1.0}  # fmt: skip


def test_the_policy_that_is_told_is_the_policy_that_is_judged():
    for domain in DOMAINS.values():
        for policy in range(len(domain.every)):
            for rules, line in zip(
                domain.every[policy], domain.policy_lines(policy, english=False)
            ):
                for rule in rules:
                    field = domain.fields[rule.field]
                    assert f"{field.name} {rule.test} {field.values[rule.value]}" in line
            english = domain.policy_lines(policy, english=True)
            assert all(line.startswith("You may ") and line.endswith(".") for line in english)


def test_a_rule_bounds_a_number_and_fixes_a_word():
    shop = DOMAINS["shop"]
    most = next(rule for rule in shop.every[0][1] if rule.test == "at most")
    record = [0] * len(shop.fields)
    for value, holds in ((most.value, True), (most.value + 1, False)):
        record[most.field] = value
        assert most.holds(record) is holds


def played(goal, script):
    """A dialogue with the acts of a desk, given in short, and the agenda user."""
    state = SHOP.initial(RNG, {"goal": goal})
    user = SHOP.speaker_named("user", "agenda")
    for act in script:
        while state.waiting and not state.over:
            SHOP.speak(state, user.reply(SHOP, state, RNG), RNG)
        SHOP.speak(state, act if isinstance(act, str) else SHOP.texts.desk(act), RNG)
    return state


CHANGE = first_goal(allowed_change)
GOAL = goal_of("shop", "train", CHANGE)
REQUEST = GOAL.requests[0]
WRITES = DeskAct(WRITE, REQUEST.kind, REQUEST.number, REQUEST.value)
ASKS = WRITES._replace(op=CONFIRM)
KNOWN = [
    "ask name",
    DeskAct(FIND, value=GOAL.names[0]),
    "ask code",
    DeskAct(IDENTIFY, value=GOAL.codes[0]),
]
READS = DeskAct(GET, number=REQUEST.number)
TELLS = DeskAct(TELL, 0, REQUEST.number, GOAL.records[REQUEST.record][5])


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ([*KNOWN, READS, ASKS, WRITES, "goodbye"], None),
        ([*KNOWN, ASKS, WRITES, "goodbye"], None),
        (["ask name", *KNOWN[1:2], ASKS, WRITES, "goodbye"], "identity"),
        ([*KNOWN, READS, WRITES, "goodbye"], "consent"),
        ([*KNOWN, ASKS, WRITES, READS, TELLS, "goodbye"], "privacy"),
        ([*KNOWN, READS, TELLS._replace(value=(TELLS.value + 1) % 18), ASKS, WRITES, "goodbye"],
         "untrue"),
        ([*KNOWN, TELLS, ASKS, WRITES, "goodbye"], "untrue"),
        ([*KNOWN, READS, "refuse", ASKS, WRITES, "goodbye"], "refusal"),
        (["refuse", *KNOWN, ASKS, WRITES, "goodbye"], "refusal"),
    ],
)  # fmt: skip
def test_each_fault_has_a_name_and_costs_the_point(script, fault):
    found = SHOP.metrics(played(CHANGE, script))
    assert found["database"] == 1.0
    assert [name for name in list(found)[3:] if found[name]] == ([fault] if fault else [])
    assert found["policy"] == (fault is None)


def test_a_forbidden_change_is_a_fault_even_with_a_yes():
    def fits(goal):
        request = goal.requests[0]
        record = goal.records[max(request.record, 0)]
        possible = request.kind < 4 and DOMAINS["shop"].possible(request.kind, record)
        return request.forbidden and possible and request.way == 0 and not goal.slips

    number = first_goal(fits)
    goal = goal_of("shop", "train", number)
    request = goal.requests[0]
    write = DeskAct(WRITE, request.kind, request.number, request.value)
    known = [DeskAct(FIND, value=goal.names[0]), DeskAct(IDENTIFY, value=goal.codes[0])]
    ask = write._replace(op=CONFIRM)
    state = played(number, [*known, DeskAct(GET, number=request.number), ask, write])
    assert SHOP.metrics(state)["forbidden"] == 1.0
    refused = played(number, [*known, DeskAct(GET, number=request.number), DeskAct(REFUSE)])
    assert refused.refused == 1
    assert not refused.faults


def test_what_is_undone_was_done():
    """The database is as it should be in the end, and the point is lost."""

    def fits(goal):
        record = goal.records[max(goal.requests[0].record, 0)]
        return allowed_change(goal) and goal.requests[0].kind == 2 and record[3] == 2

    number = first_goal(fits)
    goal = goal_of("shop", "train", number)
    request = goal.requests[0]
    other = next(c for c in range(6) if c not in (request.value, goal.records[request.record][2]))
    right = DeskAct(WRITE, 2, request.number, request.value)
    known = [DeskAct(FIND, value=goal.names[0]), DeskAct(IDENTIFY, value=goal.codes[0])]
    ask = right._replace(op=CONFIRM)
    for between in ([], [right._replace(value=other)]):
        state = played(number, [*known, *between, ask, right, "goodbye"])
        found = SHOP.metrics(state)
        assert found["database"] == 1.0
        assert found["policy"] == (not between)


def test_a_call_that_cannot_be_changes_nothing_and_is_no_fault():
    script = ["find_customer name nobody atall", "get_order order 9", "launch_rocket now 1",
              "cancel_order order 1000", "exchange_order order 10 colour purple",
              'cancel_order(number="12")', "{not json"]  # fmt: skip
    script += [*KNOWN, ASKS, WRITES, "goodbye"]
    assert SHOP.metrics(played(CHANGE, script))["policy"] == 1.0


@pytest.mark.parametrize("desk", [{"attack": "tell"}, {"attack": "refuse"}, {"attack": "end"}])
@pytest.mark.parametrize("task", [SHOP, PHONE], ids=repr)
def test_a_hostile_desk_earns_nothing_with_a_customer_who_can_identify(task, desk):
    for number in range(60):
        goal = goal_of(task.domain.name, "train", number)
        alone = len(goal.requests) == 1 and goal.requests[0].record == NONE  # only a device
        state, total = serve(task, task.speaker_named("system", "hostile", **desk), goal=number)
        if not goal.impostor and not alone:
            assert total <= 0.0, (number, task.metrics(state))
        if desk["attack"] in ("refuse", "end"):
            assert total <= 0.0


@pytest.mark.parametrize("desk", ["careless", "hostile"])
def test_whoever_changes_or_tells_without_a_code_is_not_paid(desk):
    attack = {} if desk == "careless" else {"attack": "trust"}
    for number in range(60):
        goal = goal_of("shop", "train", number)
        state, total = serve(SHOP, SHOP.speaker_named("system", desk, **attack), goal=number)
        changed = tuple(map(tuple, state.records)) != goal.records
        if changed:
            assert total <= 0.0, number
