"""Many dialogues at once are, bit for bit, as many single ones."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.seeding import np_random

import dialgym
from dialgym.simulators import Speaker
from dialgym.tasks.slot_filling import SlotFilling, batch
from dialgym.tasks.slot_filling.batch import SlotFillingBatch
from dialgym.tasks.slot_filling.policies import (
    HandcraftedSystem,
    RandomSlotSystem,
    SlotAgendaPolicy,
)
from dialgym.views.act_vector_env import ActVectorEnv
from dialgym.views.dialogue import LoopedBatch, make_batch

SETTINGS = [
    {"env": 1},
    {"env": 3, "fidelity": "pydial"},
    {"env": 4, "domain": "Notebooks"},
    {"env": 5, "domain": "Laptops", "fidelity": "pydial"},
    {"env": 6, "domain": "CityRestaurants"},
    {"env": 6, "domain": "Transport", "error_rate": 0.5},
    {"env": 3, "masks": {"request": False}, "inform_accepted": 2, "inform_slots": 1},
    {"env": 3, "confreq": True, "venue_count": True},
    {"env": 6, "tracker": {"tracker": "baseline", "requested": 0.3, "accepted": 0.6}},
]
ENGLISH = {"env": 3, "language": "english"}
WORDS = {"env": 6, "language": "words"}
ENGLISH_USER = {"env": 6, "language": "english_user"}


def same(first, second):
    """Arrays, and dicts and tuples of arrays, that are equal bit for bit."""
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, np.ndarray) and first.dtype == object:
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, np.ndarray):
        equal_nan = first.dtype.kind == "f"
        return first.dtype.kind == second.dtype.kind and np.array_equal(first, second, equal_nan)
    return first == second


class OtherUser(SlotAgendaPolicy):
    """Says the same, but is not the user that the vectorised form is made for."""


def looped(task, rows, **kwargs):
    """A batched env that goes row by row."""
    return ActVectorEnv(task, rows, simulator=OtherUser(), **kwargs)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("mode", ["NextStep", pytest.param("SameStep", marks=pytest.mark.slow)])
def test_the_act_view_is_the_same_in_arrays_and_in_a_loop(settings, mode):
    task, rng = SlotFilling(**settings), np.random.default_rng(1)
    arrayed = ActVectorEnv(task, 7, autoreset_mode=mode, action_masks=True)
    plain = looped(task, 7, autoreset_mode=mode, action_masks=True)
    assert isinstance(arrayed.dialogues, SlotFillingBatch)
    assert isinstance(plain.dialogues, LoopedBatch)
    assert same(arrayed.reset(seed=3), plain.reset(seed=3))
    policy = HandcraftedSystem()
    ended = 0
    for step in range(40):
        masks = arrayed.action_masks()
        assert same(masks, plain.action_masks())
        legal = [int(rng.choice(np.flatnonzero(mask))) for mask in masks]
        states = map(arrayed.dialogues.state, range(7))
        actions = [policy.act(task, s, rng) for s in states] if step % 4 else legal
        first, second = arrayed.step(np.array(actions)), plain.step(np.array(actions))
        assert same(first, second), step
        ended += first[2].sum()
    assert ended > 10


@pytest.mark.parametrize("settings", [*SETTINGS[:2], ENGLISH, WORDS, ENGLISH_USER], ids=str)
def test_any_texts_and_any_rows_give_the_same_outcomes(settings):
    task, rng = SlotFilling(**settings), np.random.default_rng(2)
    other = task.speaker_named("user", "agenda")
    batches = [SlotFillingBatch(task, 6), LoopedBatch(task, 6, "system", other)]
    rngs = [[np_random(seed)[0] for seed in range(6)] for _ in batches]
    everyone = np.arange(6)
    assert same(*(begun(b, everyone, own) for b, own in zip(batches, rngs)))
    over, random, ended = np.zeros(6, bool), RandomSlotSystem(), 0
    for _ in range(80):
        if over.any() and rng.random() < 0.5:
            rows = np.flatnonzero(over)
            assert same(*(begun(b, rows, own) for b, own in zip(batches, rngs)))
            over[rows] = False
        rows = rng.permutation(np.flatnonzero(~over))[: rng.integers(1, 7)]
        said = [random.reply(task, batches[0].state(row), rng) for row in rows.tolist()]
        texts = np.array([text if rng.random() < 0.9 else "no (act" for text in said], np.str_)
        outcomes = [b.say(rows, texts, own) for b, own in zip(batches, rngs)]
        assert same(*outcomes)
        over[rows] = outcomes[0].terminated | outcomes[0].truncated
        ended += int(over[rows].sum())
        assert same(*(b.turn(everyone) for b in batches))
        for row in range(6):
            assert batches[0].transcript(row) == batches[1].transcript(row)
            assert same_belief(batches[0].state(row), batches[1].state(row))
    assert ended > 5


def same_belief(first, second):
    names = ("goals", "methods", "discourse", "requested", "entity", "entities", "alternatives")
    beliefs = first.belief, second.belief
    alike = all(same(*(getattr(b, name) for b in beliefs)) for name in names)
    return alike and first.summary == second.summary and first.user_state == second.user_state


def test_options_reach_the_dialogues():
    task = SlotFilling(env=1)
    batch, options = SlotFillingBatch(task, 2), {"constraints": {"area": "dontcare"}}
    begun(batch, np.array([1]), [np_random(seed)[0] for seed in range(2)], options)
    assert [item[:2] for item in batch.state(1).user_state.constraints] == [("area", "dontcare")]
    assert batch.state(0) is None


def test_a_row_may_say_what_its_state_allows():
    batch = SlotFillingBatch(SlotFilling(**WORDS), 2)
    begun(batch, np.arange(2), [np_random(seed)[0] for seed in range(2)])
    allowed = batch.constraint(0).words
    assert allowed == batch.task.constraint(batch.state(0), "system").words
    assert "request area" in allowed
    assert "bye" not in allowed


def test_only_the_agenda_user_is_simulated_in_arrays():
    task = SlotFilling()
    assert isinstance(make_batch(task, 2, "system", None), SlotFillingBatch)
    assert isinstance(make_batch(task, 2, "system", "agenda"), SlotFillingBatch)
    assert isinstance(make_batch(task, 2, "user", None), LoopedBatch)
    agenda = task.speaker_named("user", "agenda")
    assert isinstance(agenda, Speaker)
    assert isinstance(make_batch(task, 2, "system", agenda), SlotFillingBatch)
    assert isinstance(make_batch(task, 2, "system", OtherUser()), LoopedBatch)


def test_what_is_remembered_of_a_domain_is_not_stored():
    env = gym.make_vec("dialgym/SFRestaurants-Env6-act-v0", 2).unwrapped
    env.reset(seed=0)
    before = len(env.get_state())
    env.task.summariser._counted.update({(("area", str(i)),): [] for i in range(5000)})
    assert len(env.get_state()) == before
    env.task.summariser._counted.clear()  # the task is shared


def test_observations_are_copies():
    env = ActVectorEnv(SlotFilling(), 3)
    seen, _ = env.reset(seed=0)
    before = seen.copy()
    env.step(np.zeros(3, int))
    assert (seen == before).all()
    seen[:] = 7
    assert env.reset(seed=0)[0].max() <= 1


def test_a_row_keeps_no_other_row_alive():
    """A view into the goals of all rows would hold on to each step's array."""
    batch = SlotFillingBatch(SlotFilling(env=6), 5)
    begun(batch, np.arange(5), [np_random(seed)[0] for seed in range(5)])
    assert all(state.belief.goals.base is None for state in batch.states(np.arange(5)))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("domain", ["Restaurants", "Laptops"])
def test_summaries_of_any_beliefs_are_the_same(domain, seed):
    """Ties and slots of which nothing is believed are common here, unlike in dialogues."""
    task, rng = SlotFilling(domain, env=1), np.random.default_rng(seed)
    layout, beliefs = task.tracker.layout, [task.tracker.begin() for _ in range(40)]
    for belief in beliefs:
        heard = rng.random(len(belief.goals)) < rng.choice([0.0, 0.02, 0.3])
        goals = np.where(heard, rng.integers(0, 4, len(belief.goals)) / 4, 0.0)
        goals[layout.nones] = rng.integers(0, 3, len(layout.nones)) / 4
        belief.goals = goals
        belief.methods = rng.integers(0, 3, 6) / 3
        belief.discourse = rng.integers(0, 3, 7) / 3
        belief.requested = rng.integers(0, 3, len(belief.requested)) / 2
        belief.entity = str(rng.choice(["", "x"]))
    singly = [task.summariser.summarise(belief) for belief in beliefs]
    assert batch.summarise_many(task.summariser, beliefs) == singly
    found = batch.belief_vectors(task.summariser, beliefs, singly)
    assert same(found, np.stack([task.summariser.vector(*p) for p in zip(beliefs, singly)]))
    found = batch.act_masks(task.summary_acts, beliefs, singly)
    assert same(found, np.stack([task.summary_acts.mask(*p) for p in zip(beliefs, singly)]))


@pytest.mark.parametrize("policy", ["handcrafted", "random"])
@pytest.mark.parametrize("env_id", ["Laptops11-Env5-act-v0", "SlotFilling-v0"])
def test_evaluation_is_the_same_however_many_dialogues_are_held_at_once(policy, env_id):
    kwargs = {"fidelity": "pydial"}
    agenda = {**kwargs, "simulator": OtherUser()}  # one dialogue after the other
    settings = [(kwargs, 1), (kwargs, 5), (kwargs, 128), (agenda, 128)]
    found = [
        dialgym.evaluate(policy, env_id, 4, (0, 3), env_kwargs=k, num_envs=n) for k, n in settings
    ]
    for result in found[1:]:
        for name in ("returns", "solved", "lengths"):
            first, other = (getattr(r.overall, name) for r in (found[0], result))
            assert same(first, other), name


def test_collection_is_the_same_in_arrays(monkeypatch):
    pytest.importorskip("pyarrow")

    def collected():
        found = dialgym.collect(
            "SlotFilling-utterance-v0", "handcrafted", 12, env_kwargs={"env": 3}
        )
        return [dialogue["turns"] for dialogue in found]

    arrayed = collected()
    monkeypatch.setattr(SlotFilling, "batch", lambda *_: None)
    assert arrayed == collected()


def begun(batch, rows, rngs, options=()):
    return batch.begin(rows, batch.draw(rows, rngs, dict(options)), rngs)
