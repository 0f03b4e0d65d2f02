"""The Bayesian committee machine, its members, and several domains in one dialogue."""

import io

import numpy as np
import pytest

import agents
import dialgym
from agents.acts.gp.committee import Committee, combined, credits_of
from agents.acts.gp.kernels import kind_of
from agents.acts.gp.q_process import QProcess
from agents.acts.gp.topics import PolicyManager, TopicManager
from tests.support.act_mdps import beliefs_of, five_states, greedy_return, vec_env
from tests.support.by_day import by_day
from tests.support.close import assert_close

SMALL = {"gamma": 0.99, "sigma": 0.3, "nu": 1e-6, "seed": 0}
CR, SFR = "CamRestaurants-Env1-act-v0", "SFRestaurants-Env1-act-v0"


def test_the_machine_is_the_prior_times_what_each_member_has_learned_beyond_its_own():
    """Against densities on a grid; of equal priors it is the committee machine of Tresp (2000)."""
    rng = np.random.default_rng(0)
    means, variances = rng.normal(size=(3, 4, 2, 1)), 0.1 + rng.random((3, 4, 2))
    prior = np.full((4, 2), 5.0)
    priors = variances * (1.5 + 20 * rng.random((3, 4, 2)))
    priors[:, 0] = prior[0]
    mean, variance = combined(means, variances, priors, prior)
    grid = np.linspace(-30, 30, 60001)
    for n in range(4):
        for a in range(2):
            log = -(grid**2) / (2 * prior[n, a])
            for i in range(3):
                log += grid**2 / (2 * priors[i, n, a])
                log -= (grid - means[i, n, a]) ** 2 / (2 * variances[i, n, a])
            density = np.exp(log - log.max())
            density /= density.sum()
            assert_close(mean[n, a, 0], density @ grid, 1e-5)
            assert_close(variance[n, a], density @ (grid - density @ grid) ** 2, 1e-5)


def test_a_committee_of_one_is_its_member_and_of_ignorant_ones_the_prior():
    prior = np.full((2, 3), 9.0)
    mean, variance = combined(np.ones((1, 2, 3, 1)), np.full((1, 2, 3), 0.5), prior[None], prior)
    assert_close(mean, np.ones((2, 3, 1)))
    assert_close(variance, np.full((2, 3), 0.5))
    ignorant = np.array([9.0, 0.01, 400.0, 3.0])[:, None, None]  # each as much as it was at first
    mean, variance = combined(np.zeros((4, 1, 1, 1)), ignorant, ignorant, prior[:1, :1])
    assert_close(variance, [[9.0]])


def test_what_is_less_sure_than_its_own_prior_counts_nothing():
    one, more = np.ones((2, 1, 1)), np.array([[[1.0]], [[50.0]]])
    found = combined(np.array([1.0, 77.0]).reshape(2, 1, 1, 1), more, 2 * one, 2 * one[0])
    assert_close(found[0], [[[1.0]]])
    assert_close(found[1], [[1.0]])


@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_members_may_have_other_length_scales(scale):
    """The unseen is as uncertain as the committee's own prior says."""
    table = five_states()
    env = vec_env(table)
    model = Committee("GPPolicy", env, **SMALL)
    features, acts = model.coordinates.features, model.coordinates.acts
    scales = {kind_of(name): scale for name in features}
    for name in ("second", "third", "fourth"):
        model.members[name] = QProcess(
            features, model.kernel, model.act_kernel, 0.3, 1e-6, 100, scales=scales
        )
    beliefs = beliefs_of(env)
    assert_close(model.q_distribution(beliefs)[1], np.ones((5, 4)))
    # One of them sees returns of 2 of an act: a regression on a single weight, in closed form.
    model.members["third"].observe(beliefs[:1], acts[:1], np.array([[2.0]]), np.ones(1))
    means, deviations = model.q_distribution(beliefs[:1])
    likelihood = 0.3**2  # the variance of Q by that return alone, whatever the scale
    assert_close(deviations[0, 0] ** 2, 1 / (1 + 1 / likelihood))
    assert_close(means[0, 0], 2.0 / likelihood / (1 + 1 / likelihood))
    assert_close(deviations[0, 1:], np.ones(3))


def test_credits_of_a_decision():
    variances = np.array([[1.0, 4.0], [3.0, 1.0]])
    assert_close(credits_of("equal", variances), np.ones((2, 2)))
    assert_close(credits_of("share", variances), [[0.75, 0.2], [0.25, 0.8]])
    assert_close(credits_of("winner", variances), [[1, 0], [0, 1]])


@pytest.mark.parametrize("credit", by_day(["own", "equal", "share", "winner"], "own", "share"))
def test_it_finds_the_best_way_with_the_help_of_an_expert(credit):
    table = five_states()
    expert = agents.GPSarsa("GPPolicy", vec_env(table), **SMALL).learn(800)
    env = vec_env(table)
    model = Committee("GPPolicy", env, members={"other": expert}, credit=credit, **SMALL)
    assert greedy_return(model, table) == pytest.approx(0.7)
    means, variances, _ = model.opinions(beliefs_of(env))
    assert means.shape == (2, 5, 4, 1)
    assert variances.shape == (2, 5, 4)
    known = len(expert.process)
    before = model.members["other"].predict(np.eye(5), model.coordinates.acts)[1]
    model.learn(400)
    assert greedy_return(model, table) == pytest.approx(0.7)
    after = model.members["other"].predict(np.eye(5), model.coordinates.acts)[1]
    assert (after < before).any() == (credit != "own")
    assert len(expert.process) == known  # the expert itself stays as it is


def test_a_saved_committee_is_the_same():
    table = five_states()
    expert = agents.GPSarsa("GPPolicy", vec_env(table), **SMALL).learn(200)
    model = Committee("GPPolicy", vec_env(table), members={"other": expert}, **SMALL).learn(200)
    file = io.BytesIO()
    agents.save(model, file)
    file.seek(0)
    loaded = agents.load(file, env=vec_env(table))
    assert type(loaded) is Committee
    assert list(loaded.members) == ["other", "domain"]
    for ours, theirs in zip(model.q_distribution(np.eye(5)), loaded.q_distribution(np.eye(5))):
        assert np.array_equal(ours, theirs)
    loaded.learn(50)
    assert loaded.members["domain"] is loaded.process


def test_it_moves_from_domain_to_domain_with_a_member_for_each():
    env, other = (dialgym.sb3_vec_env(name, 4, seed=100) for name in (CR, SFR))
    model = Committee(
        "GPPolicy", env, act_kernel={"kernel": "kind", "similarity": 0.5}, seed=0
    ).learn(300)
    moved = model.transferred(other).learn(200)
    first, second = (e.get_attr("acts")[0].structure.domain for e in (env, other))
    assert list(model.members) == [first]
    assert list(moved.members) == [first, second]
    back = moved.transferred(env)
    assert list(back.members) == [first, second]
    assert back.process is back.members[first]
    manager = PolicyManager({first: back, second: moved})
    assert manager.act(None) == (None, "hello")
    for domain, row in ((first, env), (second, other)):
        mask = row.env_method("action_masks")[0]
        choice = manager.act(domain, row.reset()[0], mask)
        assert choice.domain == domain
        assert mask[choice.act]
    with pytest.raises(ValueError, match="unknown domain 'Moon'"):
        manager.act("Moon")


def test_the_topic_manager_greets_asks_and_hangs_up():
    topics = TopicManager(attempts=2)
    assert [topics.act() for _ in range(4)] == ["hello", "ask_topic", "ask_topic", "bye"]
    topics.reset()
    assert topics.act() == "hello"
    topics.mark_known()
    assert [topics.act() for _ in range(3)] == ["ask_topic", "ask_topic", "bye"]
    with pytest.raises(ValueError, match="at least 1"):
        TopicManager(0)


def test_members_must_be_alike():
    table = five_states()
    expert = agents.GPSarsa("GPPolicy", vec_env(table), kernel="rbf", **SMALL)
    with pytest.raises(ValueError, match="of 'other'"):
        Committee("GPPolicy", vec_env(table), members={"other": expert}, **SMALL)
