"""GPT policies inside the stock algorithms: the fast ways give what the slow ways give."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from sb3_contrib import MaskablePPO
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from toy_tokens import SYSTEM, USER, Echo, V, box

from agents import EpisodeRolloutBuffer, GPTPolicy, MaskableEpisodeRolloutBuffer, MaskableGPTPolicy
from agents.common.masking import TokenMasker
from agents.common.prefixes import buckets, group_prefixes, last_hidden, left_aligned, lengths_of
from agents.common.rollout_cache import RolloutCache, RolloutCaches
from agents.models.cache import weights_version
from agents.models.gpt import GPT, GPTConfig
from agents.online.buffers import episode_batches
from dialgym.language.tokenizers import END, FIRST_TEXT

CLOSE = {"atol": 1e-5, "rtol": 1e-4}
SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}
WINDOW = 12


def tiny() -> GPT:
    torch.manual_seed(0)
    return GPT(GPTConfig(V, WINDOW, n_layer=2, n_head=2, n_embd=16))


def policy(space: spaces.Box | None = None, **kwargs) -> GPTPolicy:
    torch.manual_seed(0)
    space = space or box(WINDOW)
    return GPTPolicy(space, spaces.Discrete(V), lambda _: 1e-3, **SMALL, **kwargs)


def random_rows(rng: np.random.Generator, b: int, vocab: int = 3) -> np.ndarray:
    """Rows of few different tokens, so that many are beginnings of others."""
    rows = rng.integers(1, vocab, (b, WINDOW))
    rows[np.arange(WINDOW) >= rng.integers(0, WINDOW + 1, b)[:, None]] = 0
    return rows


def plain(model: GPT, rows: torch.Tensor) -> torch.Tensor:
    ends = lengths_of(rows).tolist()
    return torch.cat([model(row[None, :n])[:, -1] for row, n in zip(rows, ends, strict=True)])


# Prefix grouping


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_groups_are_maximal_and_own_their_beginnings(seed, b):
    rows = random_rows(np.random.default_rng(seed), b)
    ends = lengths_of(torch.tensor(rows)).numpy()
    groups = group_prefixes(rows, ends)
    starts = [tuple(row[:n]) for row, n in zip(rows, ends, strict=True)]
    maximal = {s for s in starts if not any(t != s and t[: len(s)] == s for t in starts)}
    assert sorted(starts[row] for row in groups.maximal) == sorted(maximal)
    for start, owner in zip(starts, groups.owner, strict=True):
        assert starts[groups.maximal[owner]][: len(start)] == start


def test_groups_with_a_large_vocabulary():
    rows = np.array([[70000, 300, 0], [70000, 0, 0], [300, 70000, 1], [300, 0, 0]])
    groups = group_prefixes(rows, np.array([2, 1, 3, 1]))
    assert groups.maximal[groups.owner].tolist() == [0, 0, 2, 2]


@pytest.mark.parametrize("group", [True, False])
def test_prefix_grouped_equals_naive_with_gradients(group):
    model = tiny()
    rows = torch.tensor(random_rows(np.random.default_rng(0), 60))
    torch.testing.assert_close(
        last_hidden(model, rows, group=group, smallest=16), plain(model, rows), **CLOSE
    )
    grads = []
    for hidden in (last_hidden(model, rows, group=group, smallest=16), plain(model, rows)):
        model.zero_grad()
        hidden.square().sum().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    for fast, slow in zip(*grads, strict=True):
        torch.testing.assert_close(fast, slow, atol=1e-4, rtol=1e-3)


def test_grouping_reads_an_episode_once():
    model, read = tiny(), []
    model.register_forward_hook(lambda m, args, out: read.append(args[0].shape))
    episode = torch.tril(torch.ones(WINDOW, WINDOW, dtype=torch.int64))
    last_hidden(model, torch.cat([episode, 2 * episode]))
    assert read == [(2, WINDOW)]


@given(st.lists(st.integers(1, 50), min_size=1), st.integers(1, 200))
def test_buckets_hold_every_row_once_and_waste_little(lengths, smallest):
    lengths = np.array(lengths)
    parts = list(buckets(lengths, 0.5, smallest))
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(lengths)))
    for part in parts:
        held = len(part) * lengths[part].max()
        assert lengths[part].min() >= 0.5 * lengths[part].max() or held < smallest + 50


# The cache of a rollout


def test_cached_equals_plain_for_any_sequence_of_batches():
    model, rng = tiny(), np.random.default_rng(1)
    caches = RolloutCaches(model, kept=2)
    rows = {b: random_rows(rng, b) for b in (1, 4, 7)}
    for _ in range(60):
        b = rng.choice([1, 4, 7])
        changed = rng.random(b) < 0.5
        rows[b][changed] = random_rows(rng, b)[changed]
        obs = torch.tensor(rows[b])
        hidden = caches.last_hidden(obs, lengths_of(obs), version=0)
        torch.testing.assert_close(hidden, plain(model, obs), **CLOSE)
    assert len(caches.caches) == 2


def test_only_new_tokens_are_computed():
    caches = RolloutCaches(tiny())
    rows = torch.ones(3, WINDOW, dtype=torch.int64)
    for n in range(1, WINDOW + 1):
        caches.last_hidden(rows * (torch.arange(WINDOW) < n), torch.full((3,), n), version=0)
    assert caches.caches[3, torch.float32].computed == 3 * WINDOW


@pytest.mark.parametrize("most", [1, 10, 1000])
def test_dialogues_that_go_on_or_begin_are_read_together_in_pieces(most):
    """Each row gets a token, an answer, or another dialogue; what is new is read once."""
    model, rng, read = tiny(), np.random.default_rng(0), []
    cache, extend = RolloutCache(model, 9), model.extend
    cache.most = most
    model.extend = lambda new, *where: read.append(len(new)) or extend(new, *where)
    rows = np.zeros((9, WINDOW), np.int64)
    for _ in range(25):
        new = 0
        for row in rows:
            known, grown = np.count_nonzero(row), rng.choice([1, 1, 1, 4])
            if known in (0, WINDOW) or rng.random() < 0.2:
                known, row[:] = 0, 0
                grown = rng.integers(1, 9)
            end = min(known + grown, WINDOW)
            row[known:end] = rng.integers(1, V, end - known)
            new += end - known
        obs, before = torch.tensor(rows), cache.computed
        read.clear()
        hidden = cache.last_hidden(obs, lengths_of(obs))
        torch.testing.assert_close(hidden, plain(model, obs), **CLOSE)
        assert sum(read) == cache.computed - before <= new
        assert max(read) <= most + WINDOW
        assert most < 1000 or len(read) == 1


def test_whatever_changes_the_weights_changes_their_version():
    model, versions = tiny(), []
    weight = model.blocks[0].attn.qkv.weight
    for change in (
        lambda: None,
        lambda: weight.add_(1),
        lambda: setattr(weight, "data", weight.data.clone()),
        lambda: setattr(model.blocks[0].attn.qkv, "weight", torch.nn.Parameter(weight.clone())),
        lambda: setattr(model.blocks[1], "mlp", torch.nn.Linear(16, 16)),
    ):
        with torch.no_grad():
            change()
        versions.append(weights_version(model))
    assert weights_version(model) == versions[-1]
    with torch.autocast("cpu", torch.bfloat16):
        versions.append(weights_version(model))
    assert len(set(versions)) == len(versions)


def test_each_precision_has_a_cache_of_its_own():
    caches, rows = RolloutCaches(tiny()), torch.ones(2, 3, dtype=torch.int64)
    exact = caches.last_hidden(rows, lengths_of(rows), 0)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = caches.last_hidden(rows, lengths_of(rows), 1)
    assert exact.dtype == rounded.dtype == torch.float32
    assert not torch.equal(exact, rounded)
    dtypes = {key: cache.kv.keys.dtype for key, cache in caches.caches.items()}
    assert dtypes == {(2, d): d for d in (torch.float32, torch.bfloat16)}


def test_an_update_of_the_weights_is_noticed():
    p = policy(mask=False)
    obs = torch.tensor(random_rows(np.random.default_rng(0), 4))
    with torch.no_grad():
        before = p.predict_values(obs)
        p.value_head.linear.bias += 1.0
        p.backbone.wte.weight += torch.randn_like(p.backbone.wte.weight)
        p.value_head.linear.weight += 1.0
        after = p.predict_values(obs)
        assert not torch.allclose(before, after)
        torch.testing.assert_close(after, p.value_head(plain(p.backbone, obs)), **CLOSE)


# Padding


def to_the_right(rows: np.ndarray) -> np.ndarray:
    """Rows padded on the right, padded on the left."""
    ends = WINDOW - (rows != 0).sum(1)
    return np.stack([np.roll(row, n) for row, n in zip(rows, ends, strict=True)])


@given(st.integers(0, 10**6), st.integers(1, 20))
def test_left_padding_is_moved_and_right_padding_left_alone(seed, b):
    rows = random_rows(np.random.default_rng(seed), b)
    for padded in (rows, to_the_right(rows)):
        assert left_aligned(torch.tensor(padded)).tolist() == rows.tolist()


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.booleans())
def test_the_side_of_the_padding_does_not_matter(seed, shared):
    rng = np.random.default_rng(seed)
    p = policy(share_features_extractor=shared)
    for head in (p.value_head.linear.weight, p.policy_head.weight):
        torch.nn.init.normal_(head)
    rows, actions = random_rows(rng, 6, V), torch.tensor(rng.integers(FIRST_TEXT, V, 6))
    left, right = torch.tensor(to_the_right(rows)), torch.tensor(rows)
    mixed = torch.where(torch.tensor(rng.random((6, 1)) < 0.5), left, right)
    for padded in (left, mixed):
        for one, other in zip(
            p.evaluate_actions(padded, actions), p.evaluate_actions(right, actions), strict=True
        ):
            torch.testing.assert_close(one, other, **CLOSE)
        with torch.no_grad():
            for one, other in zip(p(padded, True), p(right, True), strict=True):
                torch.testing.assert_close(one, other, **CLOSE)
            torch.testing.assert_close(p.predict_values(padded), p.predict_values(right), **CLOSE)
        said = p.predict(padded.numpy(), deterministic=True)[0]
        assert said.tolist() == p.predict(rows, deterministic=True)[0].tolist()


# A value network of its own


def test_a_value_network_of_its_own_starts_equal_and_learns_alone():
    p = policy(share_features_extractor=False, mask=False)
    torch.nn.init.normal_(p.value_head.linear.weight)
    obs = torch.tensor(random_rows(np.random.default_rng(0), 5))
    actions = torch.ones(5, dtype=torch.int64)
    hidden = plain(p.backbone, obs)
    torch.testing.assert_close(p.predict_values(obs), p.value_head(hidden), **CLOSE)
    p.evaluate_actions(obs, actions)[0].sum().backward()
    assert all(q.grad is None for q in p.backbone.parameters())
    assert any(q.grad.any() for q in p.value_backbone.parameters())
    with torch.no_grad():
        p.predict_values(obs)  # fills the cache that the update below makes invalid
        for weight in p.value_backbone.parameters():
            weight += 0.1 * torch.randn_like(weight)
        expected = p.value_head(plain(p.value_backbone, obs))
        assert not torch.allclose(expected, p.value_head(hidden))
        at = WINDOW * torch.arange(5) + lengths_of(obs) - 1
        ways = (
            p(obs)[1],
            p.predict_values(obs),
            p.evaluate_actions(obs, actions)[0],
            p.evaluate_sequences(obs, at, actions)[0][:, None],
        )
        for values in ways:
            torch.testing.assert_close(values, expected, **CLOSE)


# Memory and compilation


def test_flags_reach_every_backbone():
    p = policy(gradient_checkpointing=True, compile=True, share_features_extractor=False)
    for backbone in (p.backbone, p.value_backbone):
        assert backbone.gradient_checkpointing
        assert backbone._compiled_call_impl is not None
    assert policy().backbone._compiled_call_impl is None


def test_a_cached_policy_notices_another_precision():
    p = policy(mask=False)
    torch.nn.init.normal_(p.value_head.linear.weight)
    obs = torch.tensor(random_rows(np.random.default_rng(0), 5))
    with torch.no_grad():
        exact = p.predict_values(obs)
        with torch.autocast("cpu", torch.bfloat16):
            rounded = p.predict_values(obs)
            _, values, log_prob = p(obs)
        assert values.dtype == log_prob.dtype == torch.float32
        assert not torch.equal(exact, rounded)
        torch.testing.assert_close(rounded, exact, atol=0.1, rtol=0.1)
        torch.testing.assert_close(p.predict_values(obs), exact, **CLOSE)


# Masks


def test_states_are_those_of_a_walk():
    automaton = box(WINDOW).automaton
    masker = TokenMasker(automaton, SYSTEM)
    rng = np.random.default_rng(0)
    start = [USER, 6, END, SYSTEM]
    rows = np.zeros((50, WINDOW), dtype=np.int64)
    states = []
    for row in rows:
        said = rng.integers(FIRST_TEXT, V, rng.integers(0, 4)).tolist()
        head = [*start, 7, 8, END] if rng.random() < 0.5 else []
        tokens = [*head, *start, *said][-WINDOW:]
        row[: len(tokens)] = tokens
        states.append(automaton.walk(said))
    tokens = torch.tensor(rows)
    assert masker.states(tokens, lengths_of(tokens)).tolist() == states
    assert masker(tokens, lengths_of(tokens)).tolist() == automaton.allowed[states].tolist()


def test_a_row_without_a_tag_is_the_start_of_an_utterance():
    masker = TokenMasker(box(WINDOW).automaton, SYSTEM)
    assert masker.states(torch.tensor([[USER, 6, 0]]), torch.tensor([2])).tolist() == [0]


def test_only_allowed_tokens_have_probability():
    p = policy()
    obs = torch.tensor([[SYSTEM, 0, 0, 0], [SYSTEM, 6, 0, 0], [SYSTEM, 6, 7, 0]])
    obs = torch.nn.functional.pad(obs, (0, WINDOW - 4))
    probabilities = p.get_distribution(obs).distribution.probs
    letters = torch.arange(V) >= FIRST_TEXT
    assert (probabilities[:2, ~letters] == 0).all()
    assert (probabilities[:2, letters] > 0).all()
    assert probabilities[2].tolist() == [0, 1, *[0] * (V - 2)]
    free = policy(mask=False).get_distribution(obs).distribution.probs
    assert (free > 0).all()
    by_hand = np.zeros((3, V), dtype=bool)
    by_hand[:, 2] = True
    assert p.get_distribution(obs, by_hand).distribution.probs[:, 2].tolist() == [1, 1, 1]


def test_gradients_stay_finite_where_one_token_is_allowed():
    p = policy()
    obs = torch.zeros(2, WINDOW, dtype=torch.int64)
    obs[:, :3] = torch.tensor([SYSTEM, 6, 7])
    values, log_prob, entropy = p.evaluate_actions(obs, torch.tensor([END, END]))
    assert log_prob.tolist() == [0, 0]
    (values.sum() + log_prob.sum() + entropy.sum()).backward()
    assert all(torch.isfinite(q.grad).all() for q in p.parameters() if q.grad is not None)


# Whole sequences


@pytest.mark.parametrize("masked", [True, False])
def test_whole_sequences_give_what_each_observation_gives(masked):
    p, rng = policy(mask=False), np.random.default_rng(0)
    for head in (p.value_head.linear.weight, p.policy_head.weight):
        torch.nn.init.normal_(head)
    tokens = torch.tensor(rng.integers(1, V, (5, WINDOW)))
    at = torch.tensor(rng.permutation(5 * WINDOW)[:20])
    actions = torch.tensor(rng.integers(0, V, 20))
    allowed = torch.tensor(rng.random((20, V)) < 0.5)
    allowed[torch.arange(20), actions] = True
    rows = tokens[at // WINDOW] * (torch.arange(WINDOW) <= (at % WINDOW)[:, None])
    given_masks = allowed if masked else None
    expected = p.evaluate_actions(rows, actions, given_masks)
    got = p.evaluate_sequences(tokens, at, actions, given_masks)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other.flatten(), **CLOSE)
    torch.testing.assert_close(p.sequence_log_prob(tokens, at, actions, given_masks), got[1])
    with torch.autocast("cpu", torch.bfloat16):
        got = p.evaluate_sequences(tokens, at, actions, given_masks)
    assert [part.dtype for part in got] == [torch.float32] * 3
    torch.testing.assert_close(got[1], expected[1], atol=0.3, rtol=0.1)


def test_sequences_with_one_allowed_token_have_finite_gradients():
    p = policy()
    allowed = torch.zeros(2, V, dtype=torch.bool)
    allowed[:, END] = True
    tokens, at = torch.ones(2, 3, dtype=torch.int64), torch.tensor([1, 5])
    values, log_prob, entropy = p.evaluate_sequences(tokens, at, torch.tensor([END, END]), allowed)
    assert log_prob.tolist() == entropy.tolist() == [0, 0]
    (values.sum() + log_prob.sum() + entropy.sum()).backward()
    assert all(torch.isfinite(q.grad).all() for q in p.parameters() if q.grad is not None)


# Inside the algorithms

ALGORITHMS = [
    (PPO, GPTPolicy, {"n_steps": 8, "batch_size": 16, "n_epochs": 2}),
    (
        PPO,
        GPTPolicy,
        {"n_steps": 8, "batch_size": 16, "rollout_buffer_class": EpisodeRolloutBuffer},
    ),
    (A2C, GPTPolicy, {}),
    (MaskablePPO, MaskableGPTPolicy, {"n_steps": 8, "batch_size": 16, "n_epochs": 2}),
    (
        MaskablePPO,
        MaskableGPTPolicy,
        {"n_steps": 8, "batch_size": 16, "policy_kwargs": {"share_features_extractor": False}},
    ),
    (
        PPO,
        GPTPolicy,
        {"n_steps": 8, "batch_size": 16, "policy_kwargs": {"share_features_extractor": False}},
    ),
    (A2C, GPTPolicy, {"policy_kwargs": {"share_features_extractor": False}}),
    (
        MaskablePPO,
        MaskableGPTPolicy,
        {
            "n_steps": 8,
            "batch_size": 16,
            "rollout_buffer_class": MaskableEpisodeRolloutBuffer,
        },
    ),
]
NAMES = [
    "ppo",
    "ppo-episodes",
    "a2c",
    "maskable-ppo",
    "maskable-ppo-separate",
    "ppo-separate",
    "a2c-separate",
    "maskable-ppo-episodes",
]


@pytest.mark.parametrize(("algorithm", "policy_class", "options"), ALGORITHMS, ids=NAMES)
def test_learns_evaluates_saves_and_loads(algorithm, policy_class, options, tmp_path):
    options = {**options, "policy_kwargs": {**SMALL, **options.get("policy_kwargs", {})}}
    model = algorithm(policy_class, make_vec_env(Echo, 4, seed=0), seed=0, **options)
    model.learn(64)
    evaluate_policy(model, make_vec_env(Echo, 2, seed=1), n_eval_episodes=4)
    model.learn(64, reset_num_timesteps=False)
    model.save(tmp_path / "model")
    loaded = algorithm.load(tmp_path / "model")
    obs = np.stack([Echo().reset(seed=i)[0] for i in range(6)])
    for deterministic in (True, False):
        torch.manual_seed(0)
        expected = model.predict(obs, deterministic=deterministic)[0]
        torch.manual_seed(0)
        assert expected.tolist() == loaded.predict(obs, deterministic=deterministic)[0].tolist()
    single = loaded.predict(obs[0], deterministic=True)[0]
    assert single.shape == ()
    loaded.set_env(make_vec_env(Echo, 4, seed=0))
    loaded.learn(32)


def test_a_rollout_log_probability_is_what_the_update_computes():
    model = PPO(GPTPolicy, make_vec_env(Echo, 4, seed=0), n_steps=16, policy_kwargs=SMALL, seed=0)
    _, callback = model._setup_learn(64)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 16)
    for batch in model.rollout_buffer.get(32):
        values, log_prob, _ = model.policy.evaluate_actions(
            batch.observations, batch.actions.long().flatten()
        )
        torch.testing.assert_close(log_prob, batch.old_log_prob, **CLOSE)
        torch.testing.assert_close(values.flatten(), batch.old_values, **CLOSE)


def test_fast_and_slow_training_give_the_same_policy():
    weights = []
    for fast in (True, False):
        model = PPO(
            GPTPolicy,
            make_vec_env(Echo, 4, seed=0),
            n_steps=8,
            batch_size=16,
            n_epochs=2,
            policy_kwargs={**SMALL, "group": fast, "cache": fast},
            seed=0,
        )
        model.learn(96)
        weights.append(model.policy.parameters_to_vector())
    np.testing.assert_allclose(*weights, atol=1e-4)


def test_a_policy_alone_can_be_saved_and_loaded(tmp_path):
    p = policy(tie=False)
    p.save(tmp_path / "policy.pt")
    loaded = GPTPolicy.load(tmp_path / "policy.pt")
    obs = random_rows(np.random.default_rng(0), 5)
    assert loaded.predict(obs, deterministic=True)[0].tolist() == (
        p.predict(obs, deterministic=True)[0].tolist()
    )
    assert loaded.config == p.config


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60))
def test_minibatches_are_whole_pieces_of_episodes(seed, batch_size):
    rng = np.random.default_rng(seed)
    starts = rng.random((13, 5)) < 0.3
    batches = list(episode_batches(starts, batch_size, rng))
    assert sorted(np.concatenate(batches).tolist()) == list(range(65))
    place = {int(i): n for n, batch in enumerate(batches) for i in batch}
    for env in range(5):
        for t in range(1, 13):
            if not starts[t, env]:
                assert place[env * 13 + t] == place[env * 13 + t - 1]


# Errors


@pytest.mark.parametrize(
    ("observations", "actions", "message"),
    [
        (spaces.Box(0, 1, (4,)), spaces.Discrete(2), "expected observations Box"),
        (spaces.Discrete(3), spaces.Discrete(2), "use the token view of the task"),
        (box(4), spaces.Discrete(V + 1), rf"expected actions Discrete\({V}\)"),
    ],
)
def test_spaces_that_are_no_tokens_are_explained(observations, actions, message):
    with pytest.raises(ValueError, match=message):
        GPTPolicy(observations, actions, lambda _: 1e-3)


def test_sde_is_refused():
    with pytest.raises(ValueError, match="use_sde=True is for continuous actions"):
        policy(use_sde=True)
