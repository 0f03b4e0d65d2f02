"""The public checks find what is broken, and say so."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from dialgym.language import Utterance
from dialgym.tasks.base import Facts, Outcome, Task
from dialgym.testing import check_batch, check_task, check_views
from dialgym.views.dialogue import LoopedBatch
from tests.support.toy_pictures import SIZE, NameIt

BOTH = {"system": 1, "user": 1}


class Echo:
    """The user of `Sound`: repeats what it has heard."""

    def reply(self, task, state, rng):
        return state.lines[-1].text


@dataclass
class Talk:
    """A state that is just its lines."""

    lines: list[Utterance] = field(default_factory=list)

    def copy(self):
        return type(self)(self.lines.copy())


class Sound(Task):
    """A sound task of one exchange: the system says something, the user repeats it."""

    name = "Sound"
    speakers = {"user": {"echo": Echo}}
    facts = Facts(
        turn_limit=1,
        longest={"system": 3, "user": 4},
        heard={"system": BOTH, "user": BOTH},
        returns={"system": (0, 4), "user": (0, 0)},
        charset="ab",
        may_end=("user",),
    )

    def initial(self, rng, options=None):
        self.check_options(options)
        return Talk()

    def speaker(self, state):
        return "user" if len(state.lines) % 2 else "system"

    def transcript(self, state, party):
        return state.lines.copy()

    def speak(self, state, text, rng):
        speaker = self.speaker(state)
        state.lines.append(Utterance(speaker, text))
        rewards = {"system": float(len(text) if speaker == "system" else 0), "user": 0.0}
        done = speaker == "user"
        return Outcome(rewards, terminated=done, success=True if done else None)


def test_a_sound_task_passes():
    check_task(Sound(), 10)
    check_views(Sound(), 10)
    check_batch(Sound(), steps=80)


def broken(**changes):
    return type("Broken", (Sound,), changes)()


def facts(**changes):
    from dataclasses import replace

    return {"facts": replace(Sound.facts, **changes)}


def forgetful(self, state, party):
    return state.lines[-1:]


def dice(self, state, text, rng):
    outcome = Sound.speak(self, state, text, rng)
    self.count = getattr(self, "count", 0) + 1
    return outcome._replace(rewards={"system": float(self.count), "user": 0.0})


class Shallow(Talk):
    """A state whose copy is itself."""

    def copy(self):
        return self


@dataclass
class Vague(Talk):
    """A state that does not say what it holds."""

    more: list = field(default_factory=list)


class Forgetful(Talk):
    """A state with more than its fields."""

    def copy(self):
        again = super().copy()
        again.turn = len(self.lines)
        return again


def begins_with(state):
    def initial(self, rng, options=None):
        self.check_options(options)
        return state()

    return {"initial": initial}


def lax(self, rng, options=None):
    return Talk()


def endless(self, state, text, rng):
    state.lines.append(Utterance(self.speaker(state), text))
    return Outcome({"system": 0.0, "user": 0.0})


def gossip(self, state, party):
    return [line._replace(private=True) for line in state.lines]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transcript": forgetful}, "the transcript of system is not append-only"),
        ({"speak": dice}, "gave two outcomes"),
        (begins_with(Vague), "from a file: more: the type list has no form in JSON"),
        (begins_with(Forgetful), r"from a file: Forgetful has attributes .* \(\['turn'\]\)"),
        (begins_with(Shallow), r"speaking on state.copy\(\) changed the state"),
        ({"initial": lax}, r"initial\(\) accepted an unknown option"),
        ({"secrets": lambda self: [{}, {}]}, r"secrets\(\) has some options several times"),
        (
            {"secrets": lambda self: [{"word": "aa"}]},
            r"secrets\(\) has \{'word': 'aa'\}, which initial\(\) refuses: unknown option 'word'",
        ),
        ({"speak": endless}, "facts.heard allows 1"),
        ({"transcript": gossip}, "sees a private utterance of the other party"),
        (facts(returns={"system": (0, 1), "user": (0, 0)}), "facts.returns allows 0 to 1"),
        (facts(may_end=("system",)), "an utterance of user ended the dialogue"),
        (facts(heard={"system": {}, "user": BOTH}), "facts.heard allows 0"),
        (facts(turn_limit=0), "facts.turn_limit is 0"),
        ({"speaker": lambda self, state: "host"}, "speaker.. gave 'host', which is no party"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_broken_tasks_are_found(changes, message):
    with pytest.raises(AssertionError, match=message):
        check_task(broken(**changes))


def shared(self, state, party):
    return PIXELS if party == "system" else None


def lone(self, state, party):
    return [id(state)]


PIXELS = np.zeros(SIZE, np.float32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": lambda self, state, party: None}, "features of system: expected Features"),
        ({"features": lambda self, state, party: PIXELS.copy()}, "features of user: expected None"),
        ({"features": lambda *a: NameIt.features(*a) if a[2] == "user" else PIXELS[:3]},
         r"expected Features.*got float32 \(3,\)"),
        ({"features": lambda *a: PIXELS + 9 if a[2] == "system" else None}, "from 9.0 to 9"),
        ({"features": shared}, "two calls gave one array"),
        ({"situation": lone}, "in a pickled copy"),
    ],
)  # fmt: skip
def test_broken_features_and_anchors_are_found(changes, message):
    check_task(NameIt(), 3)
    with pytest.raises(AssertionError, match=message):
        check_task(type("Broken", (NameIt,), changes)(), 3)


@pytest.mark.parametrize("measured", [{}, {"other": 1.0}, {"length": float("nan")}])
def test_metrics_that_are_not_those_declared_are_found(measured):
    length = {**facts(metrics=("length",)), "metrics": lambda self, state: {"length": 1.0}}
    check_task(broken(**length))
    with pytest.raises(AssertionError, match=r"metrics\(\) gave .* facts.metrics names"):
        check_task(broken(**{**length, "metrics": lambda self, state: measured}))


def test_a_batch_that_differs_is_found():
    class Wrong(LoopedBatch):
        def say(self, rows, texts, rngs):
            outcome = super().say(rows, texts, rngs)
            return outcome._replace(reward=outcome.reward + (rows == 1))

    task = broken(batch=lambda self, n, learner, other: Wrong(self, n, learner, Echo()))
    with pytest.raises(AssertionError, match="row 1 of the batch has another reward"):
        check_batch(task)
    check_views(task)  # one row: it is right there


def test_views_that_differ_are_found():
    class Deaf(LoopedBatch):
        def say(self, rows, texts, rngs):
            outcome = super().say(rows, texts, rngs)
            return outcome._replace(success=outcome.success & False)

    task = broken(batch=lambda self, n, learner, other: Deaf(self, n, learner, Echo()))
    with pytest.raises(AssertionError, match="the batched token view gave"):
        check_views(task)
