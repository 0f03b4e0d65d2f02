"""Reading of published logs of PyDial, of which the figures beside ours are means."""

import pytest

from agents.experiments.published import LogCurve, Score
from benchmarks.tables.pydial_logs import agrees, mean_of, read_tests

LOG = """
RESULTS:: *** Training Iteration e-00.0->e-00.1: iter=0, error-rate=0, num-dialogs=1000 ***
RESULTS:: Average reward  = 1.56 +- 0.80
RESULTS:: Average success = 79.50 +- 2.51
RESULTS:: *** Evaluating e-00.1: error-rate=0 num-dialogs=500 ***
RESULTS:: Average reward  = {reward} +- 0.59
RESULTS:: Average success = {success} +- 2.50
RESULTS:: Average turns   = 8.81 +- 0.25
RESULTS:: *** Training Iteration e-00.1->e-00.2: iter=1, error-rate=0, num-dialogs=1000 ***
RESULTS:: Average success = 90.30 +- 1.84
RESULTS:: *** Evaluating e-00.2: error-rate=0 num-dialogs=500 ***
RESULTS:: Average reward  = -1.0 +- 0.59
"""


def read(success, reward):
    return read_tests(LOG.format(success=success, reward=reward).splitlines())


def test_a_log_has_the_tests_that_have_ended_and_not_the_success_in_training():
    assert read(79.7, 7.13) == {1000: Score(79.7, 7.13)}


def test_means_are_over_trainings_and_compared_as_they_are_rounded():
    (mean,) = mean_of([read(80.0, 7.0), read(70.04, 6.0)], [1000])
    assert mean == pytest.approx((75.02, 6.5))
    curve = LogCurve("CR-Env1", "DQN", 2, "a/b", "*.log", {1000: Score(75.0, 6.5)})
    assert agrees(curve, [mean])
    assert not agrees(curve, [mean._replace(success=75.2)])
