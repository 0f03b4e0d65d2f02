"""The belief tracker, rule by rule, and against a slow one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialgym
from dialgym.language.acts import parse_act
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.tracker import FocusTracker
from dialgym.testing import check_batch, check_views
from tests.support.slot_domains import REQUESTABLE, VALUES
from tests.support.slot_talk import Ear

OFFER = 'inform(name="venue 0",food="thai",phone="0000")'


def test_at_first_nothing_is_believed():
    ear = Ear()
    assert all(ear.p(slot) == 1 for slot in (*VALUES, "name"))
    assert ear.methods == {"none": 1}
    assert ear.requested == {}
    with pytest.raises(ValueError, match="fidelity of the tracker must be one of 'correct', 'pyd"):
        Ear(fidelity="pydail")


def test_what_is_heard_now_takes_the_room_of_what_was_believed():
    ear = Ear().hear("hello()", ('inform(food="thai")', 0.6), ('inform(food="greek")', 0.1))
    assert [ear.p("food", v) for v in VALUES["food"]] == pytest.approx([0.6, 0.1, 0])
    assert ear.p("food") == pytest.approx(0.3)
    ear.hear("request(food)", ('inform(food="cafe")', 0.5))
    assert [ear.p("food", v) for v in VALUES["food"]] == pytest.approx([0.3, 0.05, 0.5])
    assert ear.p("food") == pytest.approx(0.15)
    ear.hear("request(food)", 'inform(food="dontcare")')
    assert ear.p("food", "dontcare") == 1


@pytest.mark.parametrize(
    ("turns", "value", "p"),
    [
        ([("hello()", ('inform(food="thai")', 0.6)), ("request(area)", "ack()")], "thai", 0.6),
        ([("hello()", 'inform(food="thai")'), ("hello()", 'inform(food="x")')], None, 1),
        ([("request(food)", 'inform(x="y",food="thai")')], "thai", 1),
        ([("hello()", 'inform(food="thai",food="greek")')], "thai", 0),
        ([("hello()", 'inform(food="thai",food="greek")')], "greek", 1),
    ],
    ids=["nobody spoke of it", "no such value", "no such slot", "said twice", "the second counts"],
)
def test_what_is_believed_of_a_slot(turns, value, p):
    ear = Ear()
    for turn in turns:
        ear.hear(*turn)
    assert ear.p("food", value) == pytest.approx(p)


# what acts mean


@pytest.mark.parametrize(
    ("system", "heard", "slot", "value"),
    [
        ("request(food)", 'inform(="dontcare")', "food", "dontcare"),
        ('select(food="thai",food="greek")', 'inform(="dontcare")', "food", "dontcare"),
        ('confirm(food="thai")', 'inform(="dontcare")', "food", "dontcare"),
        ('confirm(food="thai")', "affirm()", "food", "thai"),
        ('confirm(food="thai")', 'affirm(area="north")', "food", "thai"),
        ('confirm(food="thai")', 'affirm(area="north")', "area", "north"),
        ('confirm(food="thai")', 'affirm(food="greek")', "food", "greek"),
        ("request(parking)", "affirm()", "parking", "1"),
        ("request(parking)", "negate()", "parking", "0"),
        ("request(food)", 'negate(food="cafe")', "food", "cafe"),
        ("request(food)", 'deny(food="thai",food="cafe")', "food", "cafe"),
        ("request(food)", 'reqalts(food="cafe")', "food", "cafe"),
        ("request(food)", 'hello(food="cafe")', "food", "cafe"),
        ("request(food)", 'request(phone,name="venue 1")', "name", "venue 1"),
    ],
)
def test_an_act_tells_a_value(system, heard, slot, value):
    assert Ear().hear(system, heard).p(slot, value) == 1


@pytest.mark.parametrize(
    ("system", "heard"),
    [
        ("hello()", 'inform(="dontcare")'),
        ("request(food)", "affirm()"),
        ('confirm(food="thai")', "negate()"),
        ('confirm(food="thai",area="north")', 'affirm(parking="dontcare",type="restaurant")'),
        ("request(food)", 'deny(food="thai")'),
        ("request(food)", 'deny(food="thai",food="dontcare")'),
        ("request(food)", 'deny(food="thai",food="thai")'),
        ("request(food)", 'confirm(food="thai")'),
        ("request(food)", 'inform(food!="thai")'),
        ("request(food)", "inform(food)"),
        ("request(food)", "inform()"),
        ("request(food)", 'inform(phone="1")'),
        ("request(food)", 'null(food="thai")'),
    ],
)
def test_or_none(system, heard):
    ear = Ear().hear(system, heard)
    assert ear.p("food") == ear.p("area") == 1


@pytest.mark.parametrize("system", ['select(food="thai",food="greek")', 'confirm(food="thai")'])
def test_the_original_loses_dontcare_after_all_but_a_request(system):
    ear = Ear(fidelity="pydial").hear(system, 'inform(="dontcare")')
    assert ear.p("food") == 1
    assert ear.methods["byconstraints"] > 0
    assert Ear(fidelity="pydial").hear("request(food)", 'inform(="dontcare")').p("food") == 0


# methods


@pytest.mark.parametrize(
    ("heard", "method"),
    [
        ('inform(food="thai")', "byconstraints"),
        ('inform(food="thai",name="venue 0")', "byname"),
        ("reqalts()", "byalternatives"),
        ('reqalts(food="thai")', "byalternatives"),
        ("bye()", "finished"),
        ("restart()", "restart"),
        ("request(phone)", "byname"),
        ('confirm(food="thai")', "byname"),
        ('deny(food="thai")', "none"),
        ('deny(food="thai",food="greek")', "byconstraints"),
        ('deny(food="thai",food="thai")', "none"),
        ('inform(type="restaurant")', "none"),
        ("ack()", "none"),
        ("affirm()", "none"),
    ],
)
def test_an_act_shows_how_the_user_looks_for_a_row(heard, method):
    ear = Ear().hear("hello()", "ack()").hear(OFFER, heard)
    assert ear.methods == {method: 1}


def test_before_an_offer_a_request_is_about_no_row_but_not_in_the_original():
    assert Ear().hear("hello()", "request(phone)").methods == {"none": 1}
    assert "byname" in Ear(fidelity="pydial").hear("hello()", "request(phone)").methods


def test_methods_go_the_way_of_goals():
    ear = Ear().hear("hello()", ('inform(food="thai")', 0.8))
    assert ear.methods == {"none": 0.2, "byconstraints": 0.8}
    ear.hear(OFFER, ("reqalts()", 0.5))
    assert ear.methods == {"none": 0.1, "byconstraints": 0.4, "byalternatives": 0.5}


def test_the_original_only_normalises_the_belief_in_no_method():
    """After t clear acts it is 1 / (t + 1)."""
    ear = Ear(fidelity="pydial")
    for turn in range(1, 6):
        ear.hear("request(food)", 'inform(food="thai")')
        assert ear.methods["none"] == pytest.approx(1 / (turn + 1), abs=1e-6)
        assert ear.summary.method == "byconstraints"


# requests


def test_requests_stay_until_they_are_answered():
    ear = Ear().hear("hello()", ("request(phone,addr)", 0.7))
    assert ear.requested == pytest.approx({"phone": 0.7, "addr": 0.7})
    ear.hear("request(food)", ("request(phone)", 0.5))
    assert ear.requested == pytest.approx({"phone": 1.0, "addr": 0.7})
    ear.hear('inform(name="venue 0",phone="1")', "ack()")
    assert ear.requested == pytest.approx({"addr": 0.7})
    ear.hear('inform(name="none",addr="x")', "ack()")
    assert ear.requested == pytest.approx({"addr": 0.7})
    question = Ear().hear("hello()", 'confirm(food="thai")')  # about a value: a request too
    assert question.requested == {"food": 1}


def test_a_name_is_told_by_an_offer_but_not_in_the_original():
    for fidelity, left in (("correct", {}), ("pydial", {"name": 1})):
        ear = Ear(fidelity=fidelity).hear("hello()", 'confirm(name="venue 1")')
        assert ear.hear('inform(name="venue 1")', "ack()").requested == left


# what else is done, and what the system did


@pytest.mark.parametrize("act", ["ack", "hello", "repeat", "silence", "thankyou", "bye"])
def test_what_else_the_user_does_is_that_of_this_turn(act):
    ear = Ear().hear("hello()", (f"{act}()", 0.8))
    assert ear.summary.discourse == act
    assert ear.hear("hello()", 'inform(food="thai")').summary.discourse == "none"


def test_offers_are_remembered():
    ear = Ear().hear("hello()", "ack()")
    assert (ear.belief.entity, ear.belief.entities, ear.belief.offered) == ("", (), False)
    ear.hear(OFFER, "reqalts()").hear('inform(name="venue 3")', "ack()")
    assert (ear.belief.entity, ear.belief.offered) == ("venue 3", True)
    assert ear.belief.entities == ("venue 0", "venue 3")
    ear.hear('inform(name="none",name!="venue 0")', "ack()")
    assert (ear.belief.entity, ear.belief.entities) == ("venue 3", ())
    assert (ear.belief.told_none, ear.belief.offered) == (True, False)
    ear.hear("reqmore()", "ack()")
    assert (ear.belief.told_none, ear.belief.offered) == (False, False)


# other trackers


def test_the_baseline_keeps_the_likeliest_value_so_far():
    ear = Ear(tracker="baseline").hear("hello()", ('inform(food="thai")', 0.6))
    assert (ear.p("food", "thai"), ear.p("food")) == pytest.approx((0.6, 0.4))
    ear.hear("hello()", ('inform(food="greek")', 0.5), ('inform(food="cafe")', 0.2))
    assert (ear.p("food", "thai"), ear.p("food", "greek")) == pytest.approx((0.6, 0.0))
    ear.hear("hello()", ('inform(food="greek")', 0.6))  # the later of two alike
    assert (ear.p("food", "thai"), ear.p("food", "greek")) == pytest.approx((0.0, 0.6))
    assert ear.p("area") == 1.0


def test_the_baseline_believes_what_was_asked_and_meant_last():
    ear = Ear(tracker="baseline").hear("hello()", ("request(phone)", 0.7))
    ear.hear("hello()", ("request(phone)", 0.2), ("request(addr)", 0.4))
    assert ear.requested == pytest.approx({"phone": 0.2, "addr": 0.4})
    ear.hear('inform(name="venue 0",phone="1")', "ack()")
    assert ear.requested == pytest.approx({"addr": 0.4})
    ear = Ear(tracker="baseline").hear("hello()", ('inform(food="thai")', 0.8))
    assert ear.methods == {"byconstraints": 0.8, "none": 0.2}
    ear.hear(OFFER, ("reqalts()", 0.3), ("ack()", 0.7))
    assert ear.methods == {"byconstraints": 0.7, "byalternatives": 0.3}


def test_thresholds_say_what_counts():
    heard = ("hello()", ("request(phone)", 0.4), ('inform(food="thai")', 0.55), ("ack()", 0.05))
    least = {"requested": 0.3, "accepted": 0.6}
    for limits, asked, accepted in (({}, (), 1), (least, ("phone",), 0)):
        summary = Ear(tracker={"tracker": "focus", **limits}).hear(*heard).summary
        assert (summary.requested, len(summary.accepted)) == (asked, accepted)
    for sure, said in ((0.5, "none"), (0.4, "thankyou")):
        ear = Ear(tracker={"sure": sure}).hear("hello()", ("thankyou()", 0.45), ("ack()", 0.4))
        assert ear.summary.discourse == said


class Sure:
    """A tracker that believes the first hypothesis, whatever its probability."""

    def __init__(self, ontology):
        self.focus = FocusTracker(ontology)

    def begin(self):
        return self.focus.begin()

    def update(self, belief, system, heard):
        self.focus.update(belief, system, [(heard[0][0], 1.0)])


class Nobody:
    """No tracker."""


@pytest.mark.slow
def test_a_tracker_of_your_own_is_asked_in_every_view():
    named = f"{__name__}:Sure"
    task = SlotFilling(env=6, tracker=named, turns=6)
    check_views(task, episodes=2)
    check_batch(task, num_envs=2, steps=16)
    ours = [named, Sure(task.domain.ontology), "focus", "baseline"]
    by_name, by_object, focus, baseline = map(beliefs, ours)
    assert by_name == by_object
    assert len({by_name, focus, baseline}) == 3


def beliefs(tracker):
    """What the system believes in a dialogue."""
    env = dialgym.make("SlotFilling-act-v0", env=6, tracker=tracker)
    env.reset(seed=0)
    return b"".join(env.step(step % 3)[0].tobytes() for step in range(6))


@pytest.mark.parametrize(
    ("tracker", "message"),
    [
        ("focsu", "unknown tracker 'focsu' in SlotFilling. Did you mean 'focus'"),
        ({"tracker": "focus", "request": 0.3}, "unknown key 'request' in tracker of SlotFilling"),
        ({"requested": 2}, "requested of tracker must be from 0 to 1; got 2"),
        (3, "tracker of SlotFilling: expected an object with begin()"),
        ("nowhere_at_all:Class", "there is no module 'nowhere_at_all' here"),
        (f"{__name__}:Nobody", r"which has no begin\(\)"),
    ],
    ids=str,
)
def test_other_trackers_are_refused(tracker, message):
    with pytest.raises(ValueError, match=message):
        SlotFilling(tracker=tracker)


# all together

ITEM = st.one_of(
    *(st.sampled_from([f'{s}="{v}"' for v in (*known, "dontcare")]) for s, known in VALUES.items()),
    st.sampled_from([*REQUESTABLE, 'name="venue 1"', '="dontcare"', 'type="restaurant"']),
)  # fmt: skip
KINDS = ("inform", "request", "confirm", "affirm", "negate", "deny", "reqalts", "hello", "bye",
         "thankyou", "ack", "repeat", "null", "restart", "silence")  # fmt: skip
USER = st.builds(
    lambda kind, items: f"{kind}({','.join(items)})",
    st.sampled_from(KINDS), st.lists(ITEM, max_size=3),
)  # fmt: skip
SYSTEM = st.sampled_from(
    ["hello()", "request(food)", "request(parking)", 'confirm(food="thai")', "reqmore()", OFFER,
     'confirm(parking="1")', 'select(area="north",area="south")', 'inform(name="none",food="thai")']
)  # fmt: skip
TURN = st.tuples(SYSTEM, st.lists(st.tuples(USER, st.floats(0, 1)), min_size=1, max_size=5))


def normalised(heard):
    total = sum(p for _, p in heard)
    return [(text, p / total) for text, p in heard] if total > 0 else [(heard[0][0], 1.0)]


@given(st.lists(TURN, max_size=8), st.sampled_from(["correct", "pydial"]))
@settings(max_examples=60)
def test_beliefs_are_distributions(turns, fidelity):
    ear = Ear(fidelity=fidelity)
    layout = ear.tracker.layout
    for system, heard in turns:
        ear.hear(system, *normalised(heard))
        for p in (ear.belief.goals, ear.belief.methods, ear.belief.discourse, ear.belief.requested):
            assert (p >= 0).all()
            assert (p <= 1 + 1e-9).all()
        sums = np.add.reduceat(ear.belief.goals, layout.starts)
        assert sums == pytest.approx(np.ones(len(sums)))
        assert ear.belief.methods.sum() == pytest.approx(1)
        assert ear.belief.discourse.sum() == pytest.approx(1)
        vector = ear.summariser.vector(ear.belief, ear.summary)
        assert vector.shape == (ear.tracker.layout.vector_size,)
        assert ((vector >= 0) & (vector <= 1)).all()


@given(st.lists(TURN, max_size=6))
@settings(max_examples=60)
def test_the_arrays_equal_tables_of_each_value(turns):
    """b(v) <- (1 - sum of m) b(v) + m(v), slot by slot and value by value."""
    ear, slow = Ear(), {slot: {} for slot in (*VALUES, "name")}
    for system, heard in turns:
        heard = normalised(heard)
        ear.hear(system, *heard)
        context = ear.tracker.interpreter.context(parse_act(system), ear.belief.entity)
        for slot, believed in slow.items():
            now = {}
            for text, p in heard:
                value = ear.tracker.interpreter.interpret(parse_act(text), context).goals.get(slot)
                if value is not None:
                    now[value] = now.get(value, 0) + p
            room = max(0.0, 1 - sum(now.values()))
            slow[slot] = {v: room * believed.get(v, 0) + now.get(v, 0) for v in {*believed, *now}}
    for slot, believed in slow.items():
        for value, p in believed.items():
            assert ear.p(slot, value) == pytest.approx(p, abs=1e-9)
        assert ear.p(slot) == pytest.approx(1 - sum(believed.values()), abs=1e-9)
