"""The tables that learning tests use have the optimum that they say they have."""

import numpy as np
import pytest

from agents.models.act_masks import allowed
from tests.support.act_mdps import (
    Table,
    TableEnv,
    five_states,
    greedy_return,
    long_chain,
    noisy_bandit,
    vec_env,
)


class Best:
    """Chooses by the table's own Q values."""

    def __init__(self, table: Table) -> None:
        self.q = table.q_values(1.0)

    def predict(self, observation, deterministic, action_masks):
        return self.q.argmax(1), None


@pytest.mark.parametrize(
    ("table", "best"), [(five_states(), 0.7), (noisy_bandit(), 0.85), (long_chain(), 1.0)]
)
@pytest.mark.parametrize("features", [None, 12])
def test_the_best_return_is_known(table, best, features):
    assert table.best_return() == pytest.approx(best)
    assert greedy_return(Best(table), table, features) == pytest.approx(best)


def test_a_forbidden_act_is_an_error_and_masks_are_those_of_each_row():
    env = vec_env(noisy_bandit(), rows=6, seed=3)
    beliefs = env.reset()
    masks = allowed(env)
    assert masks.tolist() == [noisy_bandit().masks[belief.argmax()].tolist() for belief in beliefs]
    assert 0 < beliefs[:, 0].sum() < 6
    with pytest.raises(AssertionError, match="is forbidden in state"):
        env.step(np.where(masks[:, 3], 4, 3))


def test_a_long_episode_is_truncated():
    env = TableEnv(five_states())
    env.reset(seed=0)
    ends = [env.step(2 if turn % 2 else 0)[2:4] for turn in range(20)]
    assert ends == [(False, False)] * 19 + [(False, True)]
