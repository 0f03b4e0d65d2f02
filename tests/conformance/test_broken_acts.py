"""The public checks find acts that do not keep their word, and act views that disagree."""

import numpy as np
import pytest

from dialgym.tasks import RandomActs
from dialgym.testing import check_batch, check_task, check_views
from dialgym.views.dialogue import LoopedBatch
from tests.support.toy_acts import Asking, Telling, Wishes


def with_acts(party="system", **changes):
    """The toy with other acts of a party."""
    kind = {"system": Asking, "user": Telling}[party]
    task = Wishes()
    task.acts = {**task.acts, party: type("Broken", (kind,), changes)()}
    return task


def wide(self, state):
    return Asking.observe(self, state).astype(np.float64)


def large(self, state):
    return np.full(9, 2.0, np.float32)


ONE = np.zeros(9, np.float32)


def shared(self, state):
    return ONE


def numbers(self, state):
    return np.ones(4)


def short(self, state):
    return np.ones(3, bool)


def mute(self, state, action, rng):
    return None


def greedy(self, state, action, rng):
    state.told |= {0}
    return "ask 0"


class Index(RandomActs):
    def act(self, task, state, rng):
        return 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observe": wide}, r"observe\(\) gave .* not in Box"),
        ({"observe": large}, r"observe\(\) gave .* not in Box"),
        ({"observe": shared}, r"two calls of observe\(\) gave different arrays, or one"),
        ({"mask": numbers}, r"expected \(4,\) bool of mask\(\); got"),
        ({"mask": short}, r"expected \(4,\) bool of mask\(\); got"),
        ({"text": mute}, r"text\(\) of .* gave None"),
        ({"text": greedy}, "choosing an act changed the state"),
        ({"policies": {"first": Index}}, "policy 'first' chose 0; expected MultiBinary"),
        ({"names": ("ask_0",) * 4}, "acts of system .*: names"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else str(value),
)
def test_acts_that_break_their_word_are_found(changes, message):
    with pytest.raises(AssertionError, match=message):
        check_task(with_acts(**changes))


def test_a_mask_that_leaves_nothing_is_found():
    changes = {"multiple": False, "mask": lambda self, state: np.zeros(4, bool)}
    changes["text"] = lambda self, state, action, rng: f"ask {action}"
    with pytest.raises(AssertionError, match=r"mask\(\) leaves nothing to choose"):
        check_task(with_acts(**changes))


@pytest.mark.parametrize("party", ["system", "user"])
def test_observations_that_depend_on_more_than_the_state_are_found(party):
    """As of acts that count their calls: no two views would see the same."""
    kind = {"system": Asking, "user": Telling}[party]

    def counting(self, state):
        self.calls = getattr(self, "calls", 0) + 1
        return kind.observe(self, state) + np.float32(self.calls)

    with pytest.raises(AssertionError, match=rf"view of the {party} observed .*; the rules gave"):
        check_views(with_acts(party, observe=counting), episodes=2)


def test_a_batch_that_observes_something_else_is_found():
    class Wrong(LoopedBatch):
        def observations(self):
            seen = [self.task.acts["system"].observe(d.state) for d in self.dialogues]
            return np.stack(seen) * (np.arange(len(seen)) != 1)[:, None].astype(np.float32)

        def act_masks(self):
            return np.stack([self.task.acts["system"].mask(d.state) for d in self.dialogues])

    class Batched(Wishes):
        def batch(self, size, learner, simulator):
            if learner == "user":
                return None
            return Wrong(self, size, learner, self.speaker_named("user", "tell-all"))

    with pytest.raises(AssertionError, match="row 1 of the batch has another observation"):
        check_batch(Batched())
