"""Sparse online regression against exact Gaussian processes by plain linear algebra."""

import numpy as np
import pytest

from agents.acts.gp.act_kernels import (
    DeltaKernel,
    DistributedKernel,
    HDCKernel,
    KindKernel,
    act_kernel_named,
    similarities,
)
from agents.acts.gp.kernels import RBF, Linear, Polynomial, covariances, variances
from agents.acts.gp.q_process import QProcess
from agents.acts.gp.sparse import SparseGP
from tests.support.close import assert_close

KERNELS = [Linear(2.0), Polynomial(2, 1.0, 0.5), RBF(4.0)]
RNG = np.random.default_rng(3)
X, ACTS, Y = RNG.random((60, 6)), RNG.integers(3, size=60), RNG.normal(size=(60, 2))
NEW = RNG.random((9, 6))
NOISE = 0.3 + RNG.random(60)
ONE = np.eye(3)
"""Covariances of three acts by the delta kernel."""
SLOT_ACTS = ("slot00.request", "slot01.request", "slot00.confirm")
VECTORS = {"slot00.request": [0.0, 0.0], "slot01.request": [3.0, 1.0], "slot00.confirm": [4.0, 0]}


def predicted(gp, x, acts):
    """Mean (n, K) and variance (n,)."""
    mean, known = gp.predict(x, acts)
    return mean, variances(gp.kernel, x) - known


def exact(kernel, alike, x, acts, y, noise, new, new_acts):
    """Mean (n, K) and variance (n,) by the textbook: K* (K + N)^-1 y, k** - K* (K + N)^-1 K*'."""
    across = covariances(kernel, new, x) * alike[new_acts[:, None], acts]
    gram = covariances(kernel, x, x) * alike[acts[:, None], acts] + np.diag(noise)
    prior = np.diag(covariances(kernel, new, new))
    solved = np.linalg.solve(gram, across.T)
    return solved.T @ y, prior - (across * solved.T).sum(1)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize(
    "acts",
    [KindKernel(0.5), KindKernel(0.9), HDCKernel(), DistributedKernel("", 20.0, VECTORS)],
    ids=str,
)
@pytest.mark.parametrize("block", [1, 7, 60])
def test_the_posterior_is_that_of_exact_regression_at_nu_0(kernel, acts, block):
    alike = similarities(acts, SLOT_ACTS, SLOT_ACTS)
    gp = SparseGP(6, kernel, alike, nu=0.0, outputs=2)
    for start in range(0, 60, block):
        rows = slice(start, start + block)
        gp.observe(X[rows], ACTS[rows], Y[rows], NOISE[rows])
    new_acts = np.full(9, 1)
    mean, variance = predicted(gp, NEW, new_acts)
    wanted, spread = exact(kernel, alike, X, ACTS, Y, NOISE, NEW, new_acts)
    assert_close(mean, wanted, 1e-6)
    assert_close(variance, spread, 1e-6)


def test_the_process_is_the_posterior_of_temporal_differences():
    """r_t = Q_t - gamma Q_t+1 + coloured noise (Engel et al. 2005), against linear algebra."""
    gamma, sigma, kernel = 0.9, 0.7, RBF(2.0)
    names = [f"act{a}" for a in ACTS]
    process = QProcess([f"f{i}" for i in range(6)], kernel, DeltaKernel(), sigma, 0.0, None)
    rewards, start, operator = RNG.normal(size=60), 0, np.eye(60)
    for length in (20, 1, 9, 30):
        rows = np.arange(start, start + length)
        operator[rows[:-1], rows[:-1] + 1] = -gamma
        returns = np.zeros(length + 1)
        for t in reversed(range(length)):
            returns[t] = rewards[rows[t]] + gamma * returns[t + 1]
        acts = [names[row] for row in rows]
        process.observe(X[rows], acts, returns[:-1, None], np.ones(length))
        start += length
    gram = covariances(kernel, X, X) * (ACTS[:, None] == ACTS)
    across = covariances(kernel, NEW, X) * (ACTS == 2)
    noisy = operator @ gram @ operator.T + sigma**2 * operator @ operator.T
    gain = across @ operator.T @ np.linalg.inv(noisy)
    mean, variance = process.predict(NEW, ["act2"])
    assert_close(mean[:, 0, 0], gain @ rewards, 1e-6)
    spread = 2.0 - np.einsum("nm,nm->n", gain, across @ operator.T)
    assert_close(variance[:, 0], spread, 1e-6)


def test_what_the_dictionary_leaves_unexplained_is_at_most_nu():
    gp = SparseGP(6, RBF(1.0), ONE, nu=0.2)
    zeros = np.zeros(60, np.int64)
    gp.observe(X, zeros, Y[:, :1], NOISE)
    assert 1 < len(gp) < 60
    across = covariances(RBF(1.0), X, gp.inputs)
    gram = covariances(RBF(1.0), gp.inputs, gp.inputs)
    left = 1.0 - np.einsum("nm,nm->n", across, np.linalg.solve(gram, across.T).T)
    assert left.max() <= 0.2 + 1e-9


def test_forgetting_an_entry_leaves_what_is_believed_of_the_others():
    gp = SparseGP(6, RBF(1.0), ONE, nu=0.0)
    zeros = np.zeros(20, np.int64)
    gp.observe(X[:20], zeros, Y[:20, :1], NOISE[:20])
    kept = np.arange(20) != 7
    before = predicted(gp, X[:20], zeros)
    gp._forget(7)
    after = predicted(gp, X[:20][kept], zeros[kept])
    assert len(gp) == 19
    assert_close(after[0], before[0][kept], 1e-6)
    assert_close(after[1], before[1][kept], 1e-6)
    unit = gp.whitening @ covariances(RBF(1.0), gp.inputs, gp.inputs) @ gp.whitening.T
    assert_close(unit, np.eye(19), 1e-6)


def test_a_budget_bounds_the_dictionary_and_keeps_what_matters():
    bounded = SparseGP(6, RBF(1.0), ONE, nu=0.0, budget=12)
    for i in range(60):
        bounded.observe(X[i : i + 1], ACTS[:1] * 0, Y[i : i + 1, :1], NOISE[:1])
        assert len(bounded) <= 12
    unbounded = SparseGP(6, RBF(1.0), ONE, nu=0.0)
    unbounded.observe(X, ACTS * 0, Y[:, :1], NOISE)
    near, far = (predicted(gp, NEW, np.zeros(9, np.int64)) for gp in (bounded, unbounded))
    assert np.abs(near[0] - far[0]).max() < 0.5 * np.abs(far[0]).max() + 0.3
    assert (near[1] >= 0).all()


def test_with_forgetting_all_fades_into_the_prior():
    gp = SparseGP(6, RBF(1.0), ONE, nu=0.0, forgetting=0.5)
    gp.observe(X[:5], ACTS[:5] * 0, Y[:5, :1] + 9, NOISE[:5])
    gp._fade(0.0)
    mean, variance = predicted(gp, NEW, np.zeros(9, np.int64))
    assert_close(mean, np.zeros((9, 1)))
    assert_close(variance, np.ones(9))


def test_acts_without_covariances_have_dictionaries_of_their_own():
    names = [("slot00.request", "slot01.request", "inform")[a] for a in ACTS]
    features = [f"f{i}" for i in range(6)]
    for kernel, groups in ((DeltaKernel(), 3), (KindKernel(0.5), 2), (HDCKernel(), 2)):
        process = QProcess(features, Linear(), kernel, 1.0, 0.001, None, 2)
        process.observe(X, names, Y, np.ones(60))
        assert len(process.groups) == groups
        mean, variance = process.predict(NEW, ["slot07.request"])
        assert (np.abs(mean).max() > 0) == (groups == 2)  # of an act that was never seen
        assert (variance < process.prior(NEW)[:, None]).all() == (groups == 2)


def test_features_that_come_later_were_0_before():
    narrow = QProcess(["a", "b"], Linear(), DeltaKernel(), 1.0, 0.0, None)
    narrow.observe(X[:5, :2], ["x"] * 5, Y[:5, :1], np.ones(5))
    before = narrow.predict(NEW[:, :2], ["x"])
    narrow.widen(["b", "c"])
    assert narrow.features == ("a", "b", "c")
    after = narrow.predict(np.pad(NEW[:, :2], ((0, 0), (0, 1))), ["x"])
    assert_close(after[0], before[0])
    assert_close(after[1], before[1])


def test_hdc_is_half_for_the_same_intent_or_slot():
    """As of PyDial, by the names of its summary acts too."""
    for request, other, confirm in (SLOT_ACTS, ("request_food", "request_area", "confirm_food")):
        found = similarities(HDCKernel(), (request, "inform"), (request, other, confirm, "inform"))
        assert found.tolist() == [[1.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]]
        assert similarities(HDCKernel(), [other], [confirm]).tolist() == [[0.0]]
    assert similarities(HDCKernel(), ["act.1"], ["act.2"]).tolist() == [[0.0]]


def vectors_file(folder, rng, size=50):
    """Word vectors of the acts of two slots, and of a word that none of them has."""
    words = "request confirm select food price range inform name more bye other"
    lines = [f"{w} {' '.join(map(str, rng.normal(size=size).round(3)))}" for w in words.split()]
    (folder / "vectors.txt").write_text("\n".join(["11 50", *lines]) + "\n", encoding="utf-8")
    return folder / "vectors.txt"


def test_the_distributed_kernel_compares_the_words_of_acts(tmp_path):
    file = vectors_file(tmp_path, np.random.default_rng(0))
    rows = (line.split() for line in file.read_text(encoding="utf-8").splitlines()[1:])
    vector = {row[0]: np.array(row[1:], float) for row in rows}
    acts = ("slot00.request", "slot01.confirm", "inform_byname", "reqmore", "bye")
    slots = {"slot00": "food", "slot01": "price range"}
    kernel = act_kernel_named({"kernel": "distributed", "vectors": file, "length_scale": 100.0})
    kernel = kernel.of_slots(acts, slots)
    found = similarities(kernel, acts, acts)
    words = ["request food", "confirm price range", "inform name", "request more", "bye"]
    sums = [sum(vector[word] for word in each.split()) for each in words]
    apart = np.array([[np.square(one - two).sum() for two in sums] for one in sums])
    wanted = 1 / (1 + np.exp(-np.exp(-apart / 100.0)))
    np.fill_diagonal(wanted, 1.0)
    assert_close(found, wanted)
    assert kernel.covariance("slot07.request", "bye") == 0.0  # of a domain met later


@pytest.mark.parametrize("scale", [0.5, 5.0, 50.0])
def test_act_kernels_are_positive_definite(scale):
    rng = np.random.default_rng(1)
    acts = [f"slot{i:02}.{kind}" for i in range(12) for kind in ("request", "confirm", "select")]
    vectors = {act: rng.normal(size=3).tolist() for act in acts}
    for kernel in (KindKernel(0.9), HDCKernel(), DistributedKernel("", scale, vectors)):
        assert np.linalg.eigvalsh(similarities(kernel, acts, acts)).min() > -1e-9


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kernel": "kind", "similarity": 1.0}, "0 <= similarity < 1"),
        ("hcd", "unknown act kernel 'hcd'. Did you mean 'hdc'"),
        ({"kernel": "hdc", "similarity": 0.1}, "unknown setting 'similarity'"),
        ("distributed", "needs the setting 'vectors'"),
        ({"kernel": "distributed", "vectors": "nowhere.txt"}, "none at 'nowhere.txt'"),
        ({"kernel": "distributed", "vectors": "short.txt"}, "lacks vectors of .* words food"),
        ({"kernel": "distributed", "vectors": "text.txt"}, "line 2: expected 'food' and numbers"),
        ({"kernel": "distributed", "vectors": "uneven.txt"}, "line 2: its length"),
    ],
    ids=str,
)
def test_other_settings_are_refused(given, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, line in (("short", "bye 1 2"), ("text", "food x"), ("uneven", "food 1")):
        (tmp_path / f"{name}.txt").write_text(f"request 1 2\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        act_kernel_named(given).of_slots(("slot00.request",), {"slot00": "food"})
