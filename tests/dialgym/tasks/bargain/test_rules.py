"""Deals, ends and points, by hand; English; batches and views."""

from itertools import product

import numpy as np
import pytest

import dialgym
from dialgym.tasks.bargain import Bargain
from dialgym.tasks.bargain.games import GAMES, game_of
from dialgym.tasks.bargain.policies import BestResponse, Conceding, RandomNegotiator, Stubborn
from dialgym.tasks.bargain.types import ACCEPT, ASK, INSIST, LEAVE, NONE, REJECT, TELL
from dialgym.tasks.hidden import HiddenStateError
from dialgym.testing import check_batch, check_returns, check_task, check_views
from tests.support.by_day import by_day

ITEMS, GOODS, PRICE = (Bargain(game) for game in ("items", "goods", "price"))
CAMP = {"table": [2, 1, 3], "system": [1, 2, 2], "user": [2, 0, 2]}
RNG = np.random.default_rng(0)


def say(task, texts, options=None, seed=0):
    state = task.initial(np.random.default_rng(seed), options)
    return state, [task.speak(state, text, RNG) for text in texts]


@pytest.mark.parametrize("game", ["items", "goods", "price"])
def test_all_views_and_batches_are_the_rules(game):
    task = Bargain(game, turns=4)
    check_task(task, 2)
    check_views(task, 1)
    check_batch(task, num_envs=3, steps=60)
    check_returns(task)


NEGOTIATORS = ("random", "tit-for-tat", "deceiving", "best-response", "bayes-response")
BY_DAY = [*zip(NEGOTIATORS, ("goods", "price", "items", "items", "price"), strict=True)]


@pytest.mark.parametrize(
    ("name", "game"), by_day(product(NEGOTIATORS, ("items", "goods", "price")), *BY_DAY)
)
def test_other_negotiators_have_batches_too(name, game):
    task = Bargain(game, turns=4)
    assert task.batch(2, "system", task.speaker_named("user", name)) is not None
    check_batch(task, num_envs=3, steps=60, simulator=name)


@pytest.mark.parametrize("game", ["items", "goods", "price"])
@pytest.mark.parametrize("name", ["conceding", "deceiving", "best-response"])
def test_a_user_that_learns_has_batches(game, name):
    """Tokens of the user and what it is told are those of single dialogues; `check_batch`: acts."""
    task = Bargain(game, turns=4)
    assert task.batch(2, "user", task.speaker_named("system", name)) is not None
    assert task.batch(2, "user", task.speaker_named("system", "random")) is None
    views = [
        dialgym.make_vec(f"dialgym/{env_id}", 3, vectorization_mode=mode, learner="user",
                         simulator=name, turns=4)
        for mode in ("vector_entry_point", "sync")
        for env_id in [ENV_IDS[game]]
    ]  # fmt: skip
    together, singly = (played(env) for env in views)
    for one, other in zip(together, singly, strict=True):
        np.testing.assert_array_equal(one, other)


ENV_IDS = {"items": "Bargain-v0", "goods": "Bargain-Goods-v0", "price": "Bargain-Price-v0"}


def played(env):
    """Observations and rewards of some tokens that are legal by what a first row allows."""
    found = [env.reset(seed=0)[0]]
    env.action_space.seed(0)
    for _ in range(60):
        observation, reward, terminated, _, _ = env.step(env.action_space.sample())
        found += [observation, reward, terminated]
    env.close()
    return found


def test_a_deal_gives_each_party_its_own_points():
    state, outcomes = say(ITEMS, ["i take 0 books 1 hat and 3 balls", "i accept"], CAMP)
    assert [o.terminated for o in outcomes] == [False, True]
    assert outcomes[-1].rewards == {"system": 8.0, "user": 4.0}
    assert outcomes[-1].success is True
    found = ITEMS.metrics(state)
    assert (found["agreed"], found["points"], found["other"], found["turns"]) == (1, 0.8, 0.4, 0.1)


def test_the_user_proposes_what_it_gets_itself():
    texts = ["what do you need most?", "i take 2 books 0 hats and 3 balls", "i accept"]
    _, outcomes = say(ITEMS, texts, CAMP)
    assert outcomes[-1].rewards == {"system": 2.0, "user": 10.0}


@pytest.mark.parametrize(("task", "apart"), [(ITEMS, 0), (GOODS, 5), (PRICE, 0)])
def test_without_a_deal_each_gets_what_the_game_says(task, apart):
    state, outcomes = say(task, ["i leave"])
    assert outcomes[-1].terminated
    assert outcomes[-1].success is False
    assert outcomes[-1].rewards == {"system": apart, "user": apart}
    assert task.metrics(state)["agreed"] == 0.0
    assert task.metrics(state)["joint"] == -1.0
    _, outcomes = say(task, ["blah"] * 20)
    assert [o.terminated for o in outcomes] == [False] * 19 + [True]


def test_offers_stand_until_they_are_rejected_or_replaced():
    mine, theirs = "i take 1 book 1 hat and 3 balls", "i take 2 books 0 hats and 3 balls"
    _, outcomes = say(ITEMS, ["i accept", mine, "what do you need most?", "i accept"], CAMP)
    assert not any(o.terminated for o in outcomes), "nobody accepts an own offer, or none"
    state, outcomes = say(ITEMS, [mine, "i reject that", "blah", "i accept"], CAMP)
    assert not outcomes[-1].terminated
    assert state.understood == 3
    _, outcomes = say(ITEMS, [mine, theirs, "i insist on my offer", "i accept"], CAMP)
    assert outcomes[-1].rewards == {"system": 9.0, "user": 2.0}


class Asking(Stubborn):
    """Asks for needs and nothing else, so that what stood before stands."""

    def choose_in(self, task, party, states, rngs):
        return np.full(len(rngs), task.game.size + ASK)


def test_nobody_rejects_an_own_offer_in_a_batch_either():
    batch, rows, rngs = ITEMS.batch(1, "system", Asking()), np.zeros(1, np.int64), [RNG]
    batch.begin(rows, batch.draw(rows, rngs, CAMP), rngs)
    mine = "i take 1 book 1 hat and 3 balls"
    state, _ = say(ITEMS, [mine, "what do you need most?", "i reject that"], CAMP)
    for text in (mine, "i reject that"):
        batch.say(rows, np.array([text]), rngs)
    assert state.open == batch.open[0] != NONE


def test_a_price_is_worth_less_with_each_step_from_the_target():
    options = {"table": 100, "system": 12, "user": 18}
    for price, points in ((60, (10, 4)), (75, (7, 7)), (90, (4, 10)), (110, (0, 10))):
        _, outcomes = say(PRICE, [f"i offer {price} dollars", "i accept"], options)
        assert tuple(outcomes[-1].rewards.values()) == points


G = ITEMS.game.size
SHARE = ITEMS.game.code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("I take 1 book, 0 hats and 2 balls.", SHARE((1, 0, 2))),
        ("I'd like the hat and all the balls", SHARE((0, 1, 3))),
        ("You can have both books, I take the rest", SHARE((0, 1, 3))),
        ("how about you get one ball?", SHARE((2, 1, 2))),
        ("I want 9 books", NONE),
        ("Ok, deal!", G + ACCEPT),
        ("Sounds good to me", G + ACCEPT),
        ("No, I can't do that", G + REJECT),
        ("I stand by my offer", G + INSIST),
        ("What do you want?", G + ASK),
        ("I really love hats", G + TELL + 1),
        ("bye", G + LEAVE),
        ("the weather is nice", NONE),
    ],
)
def test_english_is_understood_by_rules(text, code):
    table = ITEMS.game.tables.index((2, 1, 3))
    assert ITEMS.understanding.read(table, text) == code


@pytest.mark.parametrize(
    ("text", "step"), [("I could pay $70", 14), ("80?", 16), ("5 bucks", None)]
)
def test_prices_are_read_from_any_sentence(text, step):
    assert PRICE.understanding.read(0, text) == (NONE if step is None else step - 8)


def test_every_text_of_an_act_is_read_as_that_act():
    for task in (ITEMS, GOODS, PRICE):
        for table, texts in enumerate(task.texts):
            for code, text in enumerate(texts):
                assert not text or task.understanding.read(table, text) == code
                assert not text or task.understanding.read(table, text.upper()) == code


def test_contexts_are_those_of_the_games():
    items = game_of(GAMES["items"])
    for system, user in items.scenarios[::97]:
        (table, own), (same, other) = items.profiles[0][system], items.profiles[1][user]
        assert table == same
        assert 5 <= sum(table) <= 7
        assert np.dot(table, own) == np.dot(table, other) == 10
    assert len(game_of(GAMES["goods"]).scenarios) == 36
    assert game_of(GAMES["goods"]).points[0].max() == 36


def test_nobody_is_told_the_values_of_the_other():
    for task in (ITEMS, GOODS, PRICE):
        state = task.initial(np.random.default_rng(0))
        with pytest.raises(HiddenStateError):
            int(task.observed(state, "system").user)
        for name in ("conceding", "random", "tit-for-tat"):
            task.speaker_named("system", name).reply(task, task.observed(state, "system"), RNG)


def test_an_asked_negotiator_tells_its_need_and_a_deceiver_the_opposite():
    for name, need in (("conceding", "i need books most"), ("deceiving", "i need hats most")):
        state, _ = say(ITEMS, ["what do you need most?"], CAMP)
        assert ITEMS.speaker_named("user", name).reply(ITEMS, state, RNG) == need


def test_bad_settings_and_options_are_one_clear_error():
    with pytest.raises(ValueError, match="game of Bargain must be one of 'items'"):
        Bargain("houses")
    with pytest.raises(ValueError, match="expected a table and values of the game 'items'"):
        say(ITEMS, [], {"table": [9, 9, 9]})
    with pytest.raises(ValueError, match="table in options of Bargain: expected whole numbers"):
        say(ITEMS, [], {"table": "many"})
    with pytest.raises(ValueError, match="partner of best-response must be one of"):
        BestResponse("random")


def test_conceding_gives_way_and_stubborn_does_not():
    for maker, changes in ((Conceding, True), (Stubborn, False)):
        state = ITEMS.initial(np.random.default_rng(3))
        offers = []
        while not state.over:
            if state.waiting:
                ITEMS.apply(state, maker().act(ITEMS, state, RNG))
                offers.append(state.last[1])
            else:
                ITEMS.apply(state, NONE)
        assert (len(set(offers)) > 1) is changes


def test_two_parties_can_both_learn():
    env = dialgym.aec_env("Bargain-utterance-v0")
    env.reset(seed=0, options=CAMP)
    for text in ("i take 0 books 1 hat and 3 balls", "i accept"):
        env.step(text)
    assert all(env.terminations.values())
    assert env.rewards == {"system": 8.0, "user": 4.0}


def test_random_play_keeps_to_the_masks():
    task, policy = ITEMS, RandomNegotiator()
    state = task.initial(np.random.default_rng(1))
    while not state.over:
        acts = task.acts[task.speaker(state)]
        assert acts.mask(state)[policy.act(task, state, RNG)]
        task.apply(state, policy.act(task, state, RNG))


def test_a_mixture_holds_dialogues_of_five_negotiators():
    def returns(policy, episodes):
        return dialgym.collect("dialgym/Bargain-act-v0", policy, episodes, seed=0).returns

    mixed = returns("mixture", 120)
    names = ("conceding", "tit-for-tat", "stubborn", "fair", "random")
    each = [returns(name, 40) for name in names]
    error = mixed.std() / 120**0.5
    assert (
        abs(mixed.mean() - np.mean(each)) < 3 * error < min(np.ptp([one.mean() for one in each]), 1)
    )
    np.testing.assert_array_equal(mixed, returns("mixture", 120))
