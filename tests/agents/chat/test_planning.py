"""Acts chosen by playing the dialogue to its end: against enumeration, and what may be hidden."""

from types import SimpleNamespace

import numpy as np
import pytest

import dialgym
from agents import MLE, ActAgent, PlanningAgent
from dialgym.tasks.bargain import Bargain
from dialgym.tasks.bargain.policies import Fair
from dialgym.tasks.bargain.types import ASK

ID = "dialgym/Bargain-Goods-act-v0"
NARROW = {"net_arch": [4]}


class Certain(Fair):
    """The fair negotiator in the place of a model: what it would do has probability 1."""

    def probabilities(self, task, states):
        codes = self.choose_in(task, int(states[0].waiting), states, [None] * len(states))
        return np.eye(len(task.acts["user"].names))[codes]


@pytest.fixture(scope="module")
def models():
    """Untrained models of both parties."""
    envs = [dialgym.sb3_vec_env(ID, 1, learner=party) for party in ("system", "user")]
    return [MLE("MlpPolicy", env, policy_kwargs=NARROW, seed=0) for env in envs]


def planning(models, **settings):
    """It plans with an untrained model of its own and the fair negotiator."""
    agent = PlanningAgent(*models, **settings)
    agent.partner = Certain()
    return agent


def after_an_offer(task, profile):
    """A dialogue in which a fair user of a profile has rejected all by an offer of its own."""
    state, rng = task.initial(np.random.default_rng(0), {}), np.random.default_rng(0)
    state.system, state.user = 0, profile
    everything = int(task.game.outcome[0][0].argmax())
    task.speak(state, task.texts[0][everything], rng)
    task.speak(state, Fair().reply(task, state, rng), rng)
    return state


def test_the_last_act_is_the_best_by_enumeration_of_what_may_be_hidden(models):
    """Two turns: the user has made an offer, and takes anything with its last one."""
    task, game = Bargain("goods", turns=2), Bargain("goods").game
    state = after_an_offer(task, 3)
    offer = state.open
    agent = planning(models, candidates=1500, rollouts=12)
    act = agent.act(task, state, np.random.default_rng(1))
    may_be = [w.user for w in task.suppositions(state, "system")]
    fits = [u for u in may_be if after_an_offer(task, u).open == offer]
    assert 0 < len(fits) < len(may_be)

    def worth(outcome):
        taken = [game.points[1][user, outcome] > game.apart for user in fits]
        return np.mean(np.where(taken, game.points[0][0, outcome], game.apart))

    best = max(worth(outcome) for outcome in np.flatnonzero(game.possible[0]))
    assert best > game.points[0][0, offer]
    assert worth(game.outcome[0][0, act]) == best


def test_what_the_partner_has_said_tells_what_is_supposed(models):
    task, rng = Bargain("goods"), np.random.default_rng(0)
    state = task.initial(rng, {})
    task.speak(state, task.texts[0][task.game.size + ASK], rng)
    task.speak(state, Fair().reply(task, state, rng), rng)
    [worlds] = planning(models)._suppose(task, [state], "system", [rng])
    needs = task.game.needs_of[1]
    assert {needs[one.user, 0] for one in worlds} == {needs[state.user, 0]}
    assert len({one.user for one in worlds}) == 2
    assert {one.system for one in worlds} == {state.system}


def test_one_candidate_is_not_thought_about(models):
    task = Bargain("goods")
    agent = PlanningAgent(*models, candidates=1)
    agent.partner = None
    states = [task.initial(np.random.default_rng(seed)) for seed in range(3)]
    rngs, same = ([np.random.default_rng(seed) for seed in range(3)] for _ in range(2))
    assert agent.act_many(task, states, rngs) == ActAgent(models[0]).act_many(task, states, same)


def test_it_plays_without_being_told_what_is_hidden_in_company_as_alone(models):
    agent = PlanningAgent(*models, candidates=3, rollouts=2)
    one, other = (
        dialgym.evaluate(agent, ID, 6, [0], {"turns": 3}, num_envs=count)[ID] for count in (1, 6)
    )
    assert one.returns.tolist() == other.returns.tolist()


def test_planning_earns_more_than_the_model_it_draws_from(models):
    settings = {"turns": 3, "simulator": "fair"}
    plain = dialgym.evaluate(ActAgent(models[0]), ID, 40, [0], settings).mean_return
    agent = planning(models, candidates=12, rollouts=6)
    assert dialgym.evaluate(agent, ID, 40, [0], settings).mean_return > plain + 5


def test_a_task_that_cannot_suppose_is_refused(models):
    task = SimpleNamespace(name="Guess", facts=SimpleNamespace(hidden={"system": ("item",)}))
    with pytest.raises(ValueError, match=r"what the system is not told.*Guess hides it"):
        PlanningAgent(*models)._suppose(task, [None], "system", [np.random.default_rng(0)])
    with pytest.raises(ValueError, match="rollouts of PlanningAgent must be a whole number from 1"):
        PlanningAgent(*models, rollouts=0)


def test_probabilities_are_those_that_acts_are_drawn_by(models):
    task = Bargain("goods")
    agent, state = ActAgent(models[0]), task.initial(np.random.default_rng(0))
    rates = agent.probabilities(task, [state, state])
    assert rates.shape == (2, len(task.acts["system"].names))
    assert np.allclose(rates.sum(1), 1)
    assert not rates[0][~task.acts["system"].mask(state)].any()
    rng = np.random.default_rng(0)
    drawn = np.bincount([agent.act(task, state, rng) for _ in range(500)], minlength=len(rates[0]))
    assert np.allclose(drawn / 500, rates[0], atol=0.03)
    stock = ActAgent(models[0])
    stock.choosers[None].several = True
    with pytest.raises(ValueError, match="chooses one act at a time"):
        stock.probabilities(task, [state])
