"""MaskablePPO learns in act views, as either party: half a minute on one core."""

import pytest
from sb3_contrib import MaskablePPO

import dialgym

ID = "dialgym/SlotFilling-act-v0"


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "expert"), [("system", "handcrafted"), ("user", "agenda")])
def test_either_party_comes_near_its_expert(learner, expert):
    """A user that learns beats the agenda, which tells and asks one thing after the other."""
    kwargs = {"learner": learner}
    pool = dialgym.sb3_vec_env(ID, 16, seed=0, **kwargs)
    model = MaskablePPO(
        "MlpPolicy", pool, n_steps=64, batch_size=256, learning_rate=1e-3, ent_coef=0.01, seed=0
    )
    model.learn(16 * 64 * 16)
    learnt, random, best = (
        dialgym.evaluate(policy, ID, 100, seeds=[0], env_kwargs=kwargs)
        for policy in (model, "random", expert)
    )
    share = (learnt.mean_return - random.mean_return) / (best.mean_return - random.mean_return)
    assert share > (1.0 if learner == "user" else 0.85)
    assert learnt.success > 0.9
