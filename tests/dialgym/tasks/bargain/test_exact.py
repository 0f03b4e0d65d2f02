"""Fronts, solutions and best responses equal brute force over all that can be said."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialgym.tasks.bargain import Bargain, BargainState
from dialgym.tasks.bargain.best_response import ResponseSearch
from dialgym.tasks.bargain.exact import kalai_smorodinsky, measures, nash, pareto
from dialgym.tasks.bargain.policies import PARTNERS, BayesResponse, BestResponse
from tests.support.by_day import at_night, by_day

POINTS = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=1, max_size=30)


@settings(max_examples=100, deadline=None)
@given(POINTS, st.integers(0, 5))
def test_front_and_solutions_are_those_of_brute_force(pairs, apart):
    system, user = np.array(pairs).T
    front = [not any(c >= a and d >= b and (c, d) != (a, b) for c, d in pairs) for a, b in pairs]
    assert pareto(system, user).tolist() == front
    fair = [i for i, (a, b) in enumerate(pairs) if min(a, b) >= apart]
    products = {i: (pairs[i][0] - apart) * (pairs[i][1] - apart) for i in fair}
    most = max(products.values(), default=0)
    assert nash(system, user, apart).tolist() == [i for i in fair if products[i] == most]
    tops = [max((pairs[i][k] - apart for i in fair), default=0) or 1 for k in (0, 1)]
    shares = {i: sorted((pairs[i][k] - apart) / tops[k] for k in (0, 1)) for i in fair}
    best = max(shares.values(), default=[])
    found = kalai_smorodinsky(system, user, apart).tolist()
    assert found == [i for i in fair if shares[i] == best]


@given(POINTS)
def test_the_nash_point_is_on_the_front_or_worth_nothing(pairs):
    system, user = np.array(pairs).T
    places = nash(system, user)
    on_front = pareto(system, user)[places]
    assert on_front.all() or (system[places] * user[places] == 0).all()


def test_measures_by_hand():
    system, user = np.array([0, 6, 10, 4]), np.array([10, 6, 0, 4])
    assert measures(system, user, (6, 6), 10) == {
        "agreed": 1.0, "points": 0.6, "other": 0.6, "pareto": 1.0, "joint": 1.0, "fairness": 1.0,
    }  # fmt: skip
    worse = measures(system, user, (4, 4), 10)
    assert (worse["pareto"], worse["joint"]) == (0.0, 8 / 12)
    assert worse["fairness"] == pytest.approx(4 / 6)


def brute_force(task: Bargain, state: BargainState, party: int, partner) -> int:
    """The most points of a party, by trying every act in every state."""
    possible, best = task.texts[task.table(state, party)], 0
    for code in [code for code, text in enumerate(possible) if text]:
        then = state.copy()
        task.apply(then, code)
        if not then.over:
            task.apply(then, partner.act(task, then, None))
        points = task.points(then)[party] if then.over else brute_force(task, then, party, partner)
        best = max(best, points)
    return best


GAMES = {game: Bargain(game, turns=2) for game in ("items", "goods", "price")}
COUNTS = {"items": 25, "goods": 6, "price": 25}
"""Of games, in each of two parties and five partners: 560 in all. A game of goods has 64 deals."""
FEWER = {"items": 2, "goods": 1, "price": 2}


@pytest.mark.parametrize(
    ("game", "party", "partner"), list(product(GAMES, (0, 1), PARTNERS)), ids=lambda v: str(v)
)
@pytest.mark.parametrize("counts", [FEWER, at_night(COUNTS)], ids=["fewer", "all"])
def test_best_responses_are_those_of_brute_force(game, party, partner, counts):
    """From the first act of the party on."""
    task, other = GAMES[game], PARTNERS[partner]()
    search = ResponseSearch(other)
    least = 64 if game == "goods" else 24
    small = [
        row
        for row in np.random.default_rng([party, 1]).permutation(len(task.game.scenarios))[:400]
        if task.game.possible[task.game.table_of[0][task.game.scenarios[row, 0]]].sum() <= least
    ][: counts[game]]
    assert len(small) == counts[game]
    for row in small:
        state = BargainState(*task.game.scenarios[row].tolist())
        if party:
            task.apply(state, other.act(task, state, None))
        assert search.best(task, [state])[0] == brute_force(task, state, party, other)


@pytest.mark.parametrize("game", GAMES)
def test_the_most_is_not_to_be_had_of_who_concedes(game):
    """A reference that is always the most would tell nothing of who plays."""
    task = Bargain(game)
    search = ResponseSearch(PARTNERS["conceding"]())
    rows = task.game.scenarios[:: max(len(task.game.scenarios) // 20, 1)].tolist()
    best = [search.best(task, [BargainState(*row)])[0] / task.game.best[0][row[0]] for row in rows]
    assert 0.5 < np.mean(best) < 0.95
    assert len({*best}) > 2


@pytest.mark.parametrize("partner", by_day(PARTNERS, "conceding"))
def test_longer_games_are_searched_as_well(partner):
    task, other = Bargain("price", turns=3), PARTNERS[partner]()
    for row in (0, 40):
        state = BargainState(*task.game.scenarios[row].tolist())
        assert ResponseSearch(other).best(task, [state])[0] == brute_force(task, state, 0, other)


def test_what_is_found_serves_all_tasks_of_a_game_of_as_many_turns(monkeypatch):
    search = ResponseSearch(PARTNERS["fair"]())
    first, second, longer = (Bargain("price", turns=turns) for turns in (2, 2, 3))
    state = BargainState(*first.game.scenarios[0].tolist())
    found = search.best(first, [state])
    assert search.best(longer, [state])[0] >= found[0]
    monkeypatch.setattr(search, "_acts", None)
    assert search.best(second, [state]) == found


@pytest.mark.parametrize("partner", PARTNERS)
@pytest.mark.parametrize("game", ["items", pytest.param("goods", marks=pytest.mark.slow), "price"])
def test_play_by_the_best_response_earns_what_it_promises_and_no_policy_more(game, partner):
    task, rng = Bargain(game, turns=5), np.random.default_rng(0)
    best, other = BestResponse(partner), PARTNERS[partner]()
    for row in rng.integers(len(task.game.scenarios), size=4).tolist():
        start = BargainState(*task.game.scenarios[row].tolist())
        promised = ResponseSearch(other).best(task, [start])[0]
        earned = []
        for policy in (best, *(made() for made in PARTNERS.values())):
            state = start.copy()
            while not state.over:
                task.apply(state, (other if state.waiting else policy).act(task, state, rng))
            earned.append(task.points(state)[0])
        assert earned[0] == promised == max(earned)


@pytest.mark.parametrize("party", [0, 1])
@pytest.mark.parametrize("game", ["items", "price"])
def test_play_by_what_was_said_earns_what_it_promises(game, party):
    """On average over all values that the other one may have."""
    task, rng = Bargain(game, turns=4), np.random.default_rng(0)
    policy, other = BayesResponse("conceding"), PARTNERS["conceding"]()
    row = task.game.scenarios[len(task.game.scenarios) // 2].tolist()
    every = task.suppositions(BargainState(*row), task.parties[party])
    search, known = ResponseSearch(other), BestResponse("conceding")
    promised = search.value(task, every, party)
    earned, bound = [], []
    for start in every:
        for player, points in ((policy, earned), (known, bound)):
            state = start.copy()
            while not state.over:
                who = other if int(state.waiting) != party else player
                task.speak(state, who.reply(task, state, rng), rng)
            points.append(task.points(state)[party])
    assert sum(earned) == promised <= sum(bound)
