"""NLPO: what may be said is the mask policy's nucleus, in samples and in the update alike."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.env_util import make_vec_env

import dialgym
from agents import NLPO, SequencePPO
from agents.decoding.distributions import nucleus
from agents.models.masking import packed_bits, unpacked_bits
from dialgym.language.tokenizers import END
from tests.agents.online.test_sequence_ppo import SMALL, STEPS, collected, gradient, limited
from tests.support.by_day import by_day
from tests.support.resuming import assert_comes_back
from tests.support.toy_tokens import Echo, V

MASKED = {"top_p": 0.6, "min_tokens": 1, "mask_every": 2}


def slow_nucleus(probabilities, top_p, at_least):
    kept, total = set(), 0.0
    for token in sorted(range(len(probabilities)), key=lambda i: -probabilities[i]):
        if total >= top_p and len(kept) >= at_least:
            break
        kept.add(token)
        total += probabilities[token]
    return kept


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 30),
    top_p=st.floats(0.01, 0.99),
    at_least=st.integers(1, 5),
)
def test_a_nucleus_is_the_fewest_likeliest_tokens(seed, size, top_p, at_least):
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(rng.normal(size=(4, size)) * 3)
    got = nucleus(logits, top_p, at_least)
    for row, mask in zip(logits.softmax(-1).tolist(), got, strict=True):
        assert set(mask.nonzero()[:, 0].tolist()) == slow_nucleus(row, top_p, at_least)
    assert nucleus(logits, 1.0).all()


@given(seed=st.integers(0, 1000), count=st.integers(1, 40))
def test_packed_masks_are_those_of_numpy(seed, count):
    masks = np.random.default_rng(seed).random((3, count)) < 0.5
    packed = packed_bits(torch.from_numpy(masks))
    assert np.array_equal(packed, np.packbits(masks, axis=1))
    assert np.array_equal(unpacked_bits(packed, count), masks)


MASKS = [{}, {"env_masks": True}, {"policy_kwargs": {"mask": False}}]


@pytest.mark.parametrize("more", by_day(MASKS, MASKS[1]))
def test_with_the_whole_vocabulary_it_is_ppo(more):
    kwargs = {"policy_kwargs": {**SMALL, **more.get("policy_kwargs", {})}}
    more = {**more, **kwargs, "ent_coef": 0.1, "kl": {"coef": 0.1}, "batch_size": 60}
    ppo = collected(SequencePPO, make_vec_env(limited, 6, seed=0), **more)
    nlpo = collected(NLPO, make_vec_env(limited, 6, seed=0), top_p=1.0, **more)
    for name in ("actions", "log_probs", "advantages", "targets", "reference_log_probs"):
        assert torch.equal(getattr(ppo.rollout, name), getattr(nlpo.rollout, name))
    np.testing.assert_array_equal(gradient(ppo), gradient(nlpo))


def peaked(env, **more):
    """A learner whose distributions are far from uniform, so that masks leave something out."""
    model = NLPO("GPTPolicy", env, **{**STEPS, **MASKED, **more})
    torch.manual_seed(2)
    with torch.no_grad():
        model.policy.policy_head.weight.normal_(std=0.5)
    return model


def rolled(model, steps=10):
    _, callback = model._setup_learn(10_000)
    callback.on_training_start({}, {})
    torch.manual_seed(1)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, steps)
    return model


def test_samples_are_within_the_nucleus_of_what_the_task_allows():
    model = rolled(peaked(make_vec_env(lambda: Echo(3, 2), 8, seed=0), n_steps=20), 20)
    masker = model.policy.masker
    for batch in model.batches(np.arange(len(model.rollout.sequences.sizes))):
        allowed = unpacked_bits(batch.allowed, V)
        states = masker.states_along(batch.tokens).flatten()[batch.at]
        permitted = masker.allowed[states]
        assert not (allowed & ~permitted).any()
        assert (allowed.sum(-1) < permitted.sum(-1)).float().mean() > 0.2
        assert allowed[torch.arange(len(allowed)), batch.actions].all()
        assert torch.equal(allowed[:, END], permitted[:, END])
        with torch.no_grad():
            hidden = model.policy.backbone(batch.tokens, batch.at)  # the mask policy's, as yet
            logits = model.policy.policy_head(hidden)
        for row, logit in enumerate(logits):
            probabilities = logit.masked_fill(~permitted[row], -1e8).softmax(-1).tolist()
            kept = slow_nucleus(probabilities, 0.6, 1) | {END}
            expected = kept & set(permitted[row].nonzero()[:, 0].tolist())
            assert set(allowed[row].nonzero()[:, 0].tolist()) == expected


def test_the_update_starts_at_a_ratio_of_one_over_the_same_masks():
    model = rolled(peaked(make_vec_env(Echo, 6, seed=0), batch_size=1000))
    model.train()
    logged = model.logger.name_to_value
    assert logged["train/clip_fraction"] == 0
    assert logged["train/approx_kl"] < 1e-6
    assert 0 < logged["rollout/masked"] < 1


def test_the_mask_policy_is_renewed_when_it_is_due():
    model = peaked(make_vec_env(Echo, 4, seed=0), mask_every=2, learning_rate=0.01)
    seen = []

    def as_policy(locals_, globals_):
        ours, theirs = model.policy.backbone.wte.weight, model.mask_policy.backbone.wte.weight
        seen.append(torch.equal(ours, theirs))
        return True

    model.learn(4 * 40, callback=as_policy)
    assert seen[::10] == [True, False, True, False]  # of rollouts of ten steps


@pytest.mark.parametrize("cache", [True, False])
def test_predictions_are_within_the_nucleus(cache):
    env = make_vec_env(Echo, 1, seed=0)
    model = peaked(
        env, top_p=1e-6, policy_kwargs={**SMALL, "execution": {"cache": cache}, "mask": False}
    )
    model.mask_policy.follow(model.policy)
    obs = np.stack([Echo().reset(seed=i)[0] for i in range(8)])
    best = model.predict(obs, deterministic=True)[0]
    drawn = np.stack([model.predict(obs)[0] for _ in range(20)])
    assert ((drawn == best) | (drawn == END)).all()
    assert (drawn == best).any()
    assert model.predict(obs[0], deterministic=True)[0] == best[0]
    masks = np.zeros((8, V), bool)
    masks[:, 6] = True
    allowing = peaked(env, top_p=0.1)
    assert (allowing.predict(obs, action_masks=masks)[0] == 6).all()


def test_adapters_have_a_copy_over_the_same_weights(tmp_path):
    model = peaked(
        make_vec_env(Echo, 4, seed=0),
        learning_rate=0.01,
        policy_kwargs={**SMALL, "lora": {"r": 2}},
    )
    ours = dict(model.policy.backbone.named_parameters())
    for name, weight in model.mask_policy.backbone.named_parameters():
        assert (weight is ours[name]) == ("lora_" not in name)
    model.learn(60)
    trained = [n for n, w in model.mask_policy.backbone.named_parameters() if "lora_B" in n]
    theirs = dict(model.mask_policy.backbone.named_parameters())
    assert all(not torch.equal(ours[name], theirs[name]) for name in trained)
    assert_comes_back(model, tmp_path / "model.zip")


def test_masks_of_the_env_and_of_the_nucleus_hold_together():
    hard = dialgym.sb3_vec_env("dialgym/Wordle-Hard-v0", 4, seed=0, words=20, guesses="answers")
    model = peaked(hard, n_steps=20)
    assert model.env_masks
    model.learn(80)
    for batch in model.batches(np.arange(len(model.rollout.sequences.sizes))):
        allowed = unpacked_bits(batch.allowed, int(hard.action_space.n))
        assert allowed[torch.arange(len(allowed)), batch.actions].all()
        assert not allowed[:, 0].any()
