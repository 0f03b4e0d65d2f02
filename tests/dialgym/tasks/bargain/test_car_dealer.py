"""A dealer's customers by hand, English, and exact values against brute force over beliefs."""

from itertools import product

import numpy as np
import pytest

import dialgym
from dialgym.rollouts.episodes import every_secret
from dialgym.tasks import ExactPosterior, ExactValue
from dialgym.tasks.bargain import Bargain
from dialgym.tasks.bargain.best_response import ResponseSearch
from dialgym.tasks.bargain.car_dealer import CarDealer
from dialgym.tasks.bargain.dealers import Customer
from dialgym.tasks.bargain.policies import PARTNERS
from dialgym.tasks.bargain.types import NONE
from dialgym.testing import check_batch, check_returns, check_task, check_views
from tests.support.by_day import by_day
from tests.support.chat_server import chat_server

RNG = np.random.default_rng(0)
TASK = CarDealer()
GAME = TASK.game


def begun(task, **options):
    return task.initial(np.random.default_rng(0), options)


def held(texts, user, task=TASK):
    """Answers of the default customer, and the state."""
    state, customer, answers = begun(task, user=user), Customer(), []
    for text in texts:
        task.speak(state, text, RNG)
        if not state.over:
            answers.append(customer.reply(task, state, RNG))
            task.speak(state, answers[-1], RNG)
    return answers, state


def test_all_views_and_batches_are_the_rules():
    task = CarDealer(turns=4)
    check_task(task, 2)
    check_views(task, 1)
    check_batch(task, num_envs=3, steps=60)
    check_returns(task)


@pytest.mark.parametrize("name", ["conceding", "tit-for-tat", "random"])
def test_other_customers_have_batches_too(name):
    check_batch(CarDealer(turns=3), num_envs=3, steps=40, simulator=name)


def test_a_price_is_worth_its_share_of_the_list_price():
    _, state = held(["the suv for 17000 dollars"], [19, 1, 1])
    assert state.deal == GAME.code(1, 17)
    assert TASK.points(state) == (17, 3)
    assert TASK.metrics(state)["pareto"] == 1.0


def test_another_car_is_worth_less_to_the_customer():
    assert GAME.points[1][GAME.rows[1][GAME.tables[0], (19, 1, 1)]][GAME.code(0, 14)] == 2
    _, state = held(["the sedan for 7000 dollars"], [19, 1, 1])
    assert not state.over
    _, state = held(["the sedan for 6500 dollars"], [19, 1, 1])
    assert TASK.points(state) == (13, 3)


@pytest.mark.parametrize(
    ("talk", "most"),
    [("blah", 17), ("let us talk about the brand", 19), ("let us talk about the features", 15),
     ("let us talk about a discount", 15), ("what do you need most?", 17)],
)  # fmt: skip
def test_what_a_customer_pays_depends_on_what_was_said(talk, most):
    """It cares about the brand; its limit is 19 steps."""
    assert not held([talk, f"the suv for {most + 1}000 dollars"], [19, 1, 1])[1].over
    assert held([talk, f"the suv for {most}000 dollars"], [19, 1, 1])[1].deal == GAME.code(1, most)


def test_a_discount_is_a_price_that_has_come_down():
    assert not held(["the suv for 18000 dollars"], [19, 1, 0])[1].over
    come = ["the suv for 20000 dollars", "the suv for 18000 dollars"]
    assert held(come, [19, 1, 0])[1].deal == GAME.code(1, 18)
    assert not held(["let us talk about a discount", come[1]], [19, 1, 0])[1].over


def test_it_loses_patience():
    talk = ["let us talk about the brand"]
    for wait, most in ((1, 19), (2, 18), (3, 17)):
        said = [*talk, *["blah"] * (wait - 1)]
        assert not held([*said, f"the suv for {most + 1}000 dollars"], [19, 1, 1])[1].over
        assert held([*said, f"the suv for {most}000 dollars"], [19, 1, 1])[1].over


def test_it_tells_what_it_cares_about_and_offers_for_the_car_that_it_wishes():
    answers, state = held(["what do you need most?", "blah", "i accept"], [15, 2, 2])
    assert answers == ["let us talk about the features", "the truck for 26000 dollars"]
    assert TASK.points(state) == (13, 3)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("I can do the suv for $18,500.", (1, 18)),
        ("How about 18.5k?", (1, 18)),
        ("I'd sell you this truck for 38,000 dollars", (2, 19)),
        ("5% off the sedan", (0, 19)),
        ("the suv at 95 percent of the list price", (1, 19)),
        ("It has 7 seats, and the suv costs 20000", (1, 20)),
        ("the sedan is 9,500 but the truck is 40,000", (2, 20)),
        ("the suv for 10000", NONE),
        ("10 % off", NONE),
        ("This one is very reliable.", "let us talk about the brand"),
        ("it has a camera and heated seats", "let us talk about the features"),
        ("I could make it cheaper for you", "let us talk about a discount"),
        ("what is your budget?", "what do you need most?"),
        ("Deal!", "i accept"),
        ("no, that is too much", "i reject that"),
        ("goodbye", "i leave"),
        ("nice weather", NONE),
    ],
)  # fmt: skip
def test_english_is_understood(text, meant):
    code = meant
    if isinstance(meant, str):
        code = TASK.texts[0].index(meant)
    elif meant != NONE:
        code = GAME.code(*meant)
    assert TASK.understanding.read(0, text) == code


def brute_force(task, belief, party, partner):
    """The most points, summed over a belief, by trying every act in every state."""
    best = 0
    table = task.table(belief[0], party)
    for code in [code for code, text in enumerate(task.texts[table]) if text]:
        points, parts = 0, {}
        for state in belief:
            then, answer = state.copy(), None
            task.apply(then, code)
            if not then.over:
                answer = int(partner.act(task, then, None))
                task.apply(then, answer)
            if then.over:
                points += task.points(then)[party]
            else:
                parts.setdefault(answer, []).append(then)
        best = max(best, points + sum(brute_force(task, p, party, partner) for p in parts.values()))
    return best


@pytest.mark.parametrize("seed", by_day(range(4), 0))
def test_values_over_beliefs_are_those_of_brute_force(seed):
    """Of four customers, from the first and from the second of two turns on."""
    task, rng = CarDealer(turns=2), np.random.default_rng(seed)
    every = task.suppositions(begun(task), "system")
    belief = [every[at] for at in rng.choice(len(every), 4, replace=False)]
    found = ResponseSearch(Customer()).best(task, belief)
    assert found[0] == brute_force(task, belief, 0, Customer())
    assert ResponseSearch(Customer()).values(task, belief, [found[1]]) == [found[0]]


@pytest.mark.parametrize("care", range(3))
def test_values_of_customers_who_care_about_the_same_are_those_of_brute_force(care):
    task = CarDealer(turns=2)
    belief = [begun(task, user=[limit, 1, care]) for limit in (19, 21)]
    assert ResponseSearch(Customer()).best(task, belief)[0] == brute_force(
        task, belief, 0, Customer()
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_values_of_longer_dialogues_are_those_of_brute_force(seed):
    """Of two customers and three turns."""
    task, rng = CarDealer(turns=3), np.random.default_rng(seed)
    every = task.suppositions(begun(task), "system")
    belief = [every[at] for at in rng.choice(len(every), 2, replace=False)]
    best = ResponseSearch(Customer()).best(task, belief)[0]
    assert best == brute_force(task, belief, 0, Customer())


@pytest.mark.parametrize(
    ("game", "partner"),
    by_day(product(("items", "price"), PARTNERS), ("items", "fair"), ("price", "tit-for-tat")),
)
def test_other_games_of_bargaining_have_values_over_beliefs(game, partner):
    task, other = Bargain(game, turns=2), PARTNERS[partner]()
    for row in (0, len(task.game.scenarios) // 3):
        state = begun(task, table=list(task.game.profiles[0][task.game.scenarios[row, 0]][0]))
        belief = task.suppositions(state, "system")[:3]
        best = ResponseSearch(other).best(task, belief)[0]
        assert best == brute_force(task, belief, 0, other)


def test_the_optimal_dealer_earns_what_is_promised_and_no_other_more():
    """In each dialogue with one of the 36 customers."""
    task = CarDealer(turns=4)
    promised = task.value(begun(task))
    means = {}
    for name in ("optimal", "dealer", "random", "best-response"):
        policy, returns = task.speaker_named("system", name), []
        for options in every_secret(task.secrets(), 36):
            state = begun(task, **options)
            while not state.over:
                who = Customer() if state.waiting else policy
                task.speak(state, who.reply(task, state, RNG), RNG)
            returns.append(task.points(state)[0])
        means[name] = np.mean(returns)
    assert means["optimal"] == pytest.approx(promised, abs=1e-12)
    assert means["random"] < means["dealer"] < means["optimal"] < means["best-response"]


def test_values_of_acts_lead_to_the_value():
    task = CarDealer(turns=3)
    assert isinstance(task, ExactPosterior)
    assert isinstance(task, ExactValue)
    state, rng = begun(task, user=[17, 0, 2]), np.random.default_rng(3)
    while not state.over:
        values = task.action_values(state)
        assert values.max() == pytest.approx(task.value(state))
        np.testing.assert_array_equal(values > -np.inf, task.acts["system"].mask(state))
        before = task.value(state)
        task.speak(state, task.texts[0][values.argmax()], rng)
        assert state.over or task.value(state) == pytest.approx(before)
        if not state.over:
            task.speak(state, Customer().reply(task, state, rng), rng)
    assert task.value(state) == 0.0
    assert not task.action_values(state).any()


def test_the_posterior_is_those_who_would_have_said_the_same():
    texts = ["what do you need most?", "the suv for 19000 dollars"]
    answers, state = held(texts, [17, 1, 1])
    found = TASK.posterior(state)
    for options, share in zip(TASK.secrets(), found, strict=True):
        assert (held(texts, options["user"])[0] == answers) == (share > 0)
    assert found.sum() == pytest.approx(1)
    assert 0 < found[TASK.truth(state)] < 1


def test_who_is_no_customer_by_the_rules_may_be_anyone():
    task = CarDealer(turns=3)
    state = begun(task, user=[17, 1, 1])
    for text in ("blah", "the truck for 44000 dollars"):
        task.speak(state, text, RNG)
    np.testing.assert_allclose(task.posterior(state), 1 / 36)
    assert task.value(state) == 22, "the offer can be accepted"


def test_a_search_that_is_too_long_is_one_clear_error():
    search, short = ResponseSearch(Customer(), most=5), CarDealer(turns=1)
    for customer in short.suppositions(begun(short), "system"):
        assert search.best(short, [customer])[0] > 0, "others are forgotten"
    with pytest.raises(ValueError, match="best response in CarDealer: expected at most 5 beliefs"):
        search.best(TASK, TASK.suppositions(begun(TASK), "system"))


def test_stored_dialogues_are_of_graded_skill():
    short = {"human_like": 1}
    data = dialgym.collect(
        "CarDealer-act-v0", "graded", 72, policy_kwargs=short, env_kwargs={"turns": 4}
    )
    kinds = data["kind"]
    means = {kind: data.returns[kinds == kind].mean() for kind in np.unique(kinds)}
    assert means["random"] < means["mixed"] < means["greedy"]


def talks(body):
    """A customer who speaks freely: an offer first, then a deal."""
    said = [line["content"] for line in body["messages"] if line["role"] == "assistant"]
    return "OK, it's a deal!" if said else "I would pay $31,900 for the truck, is it reliable?"


def test_a_language_model_can_be_the_customer():
    pytest.importorskip("httpx", reason="the extra lm")
    with chat_server(talks) as server:
        customer = {"lm": {"model": "stub", "base_url": server.url}}
        env = dialgym.make("CarDealer-utterance-v0", simulator=customer)
        env.reset(seed=0)
        info = env.step("Good morning! What are you looking for?")[-1]
        assert info["reply"].startswith("I would pay")
        assert env.unwrapped.dialogue.state.open == GAME.code(2, 16)
        _, reward, over, _, info = env.step("I could let you have it for 36k")
    assert (reward, over, info["is_success"]) == (18.0, True, True)
    assert any("at most" in line["content"] for line in server.bodies[0]["messages"])


def test_a_customer_that_cannot_be_is_one_clear_error():
    text = r"values of the game 'cars' that go together, such as user=\[15, 0, 0\]; got"
    with pytest.raises(ValueError, match=text):
        begun(TASK, user=[16, 0, 0])
