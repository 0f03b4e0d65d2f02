"""The benchmark of training measures what it says, and its bare loops compute what a GPT does."""

import numpy as np
import pytest
import torch

pytest.importorskip("stable_baselines3")
from agents import GPTPolicy
from agents.models.gpt import GPT
from agents.models.gpt_config import PRESETS, GPTConfig
from benchmarks.environments.timing import alternate
from benchmarks.training import bare, beside_trl, grpo, launches, length, tiny
from benchmarks.training.learner import Learner
from benchmarks.training.workload import LENGTH_BONUS, REPLY, Reply, reply_env, unigram_f1
from dialgym.testing import check_batch, check_task, check_views


def small_gpt():
    torch.manual_seed(0)
    return GPT(GPTConfig(vocab_size=11, window=12, n_layer=2, n_head=2, n_embd=8, init_std=0.5))


def logits_of(model, tokens):
    return model(tokens) @ model.embedding.T


def test_rates_fit_together(monkeypatch):
    monkeypatch.setattr(tiny, "ENVS", 8)
    rates = tiny.measure(GPTPolicy, 6, repeats=1, batch_size=24)
    seconds = 1 / rates["rollout"] + tiny.EPOCHS / rates["update"]
    assert rates["end to end"] == pytest.approx(1 / seconds)


def test_the_reference_reads_the_last_token():
    pytest.importorskip("transformers")
    from dialgym.language import CharTokenizer
    from dialgym.views.spaces import TokenBox

    space = TokenBox(CharTokenizer("ab"), 6, 3)
    torch.manual_seed(0)
    extractor = tiny.HuggingFaceGPT(space)
    tokens = torch.tensor([[3, 5, 6, 0, 0, 0], [3, 5, 6, 1, 4, 5]])
    features = extractor(tokens.float())
    alone = extractor(tokens[:1, :3].float())
    assert torch.allclose(features[0], alone[0], atol=1e-5)
    assert not torch.allclose(features[0], features[1], atol=1e-3)


def test_tokens_and_returns_of_grpo_are_counted(monkeypatch):
    for name, number in {"DIALOGUES": 24, "GROUP": 8, "ITERATIONS": 2}.items():
        monkeypatch.setattr(grpo, name, number)
    counts = grpo.counted()
    assert counts.longest == [36, 36]  # six guesses of five letters and an end
    solved = np.concatenate(counts.returns) > -6
    assert 0 < solved.sum() < 48
    assert 36 * (~solved).sum() < counts.tokens < 24 * sum(counts.longest)
    assert counts.logged[-1] == pytest.approx(np.mean(counts.returns))  # the last 100 episodes


def test_grpo_of_trl_learns_in_turns_with_ours():
    pytest.importorskip("trl")
    ours, theirs = beside_trl.measure(8, 2, {"n_layer": 1, "n_head": 1, "n_embd": 16})
    assert len(ours) == len(theirs) == 2
    assert min(*ours, *theirs) > 0


def test_prompts_for_trl_are_those_of_the_environment():
    datasets = pytest.importorskip("datasets")
    rows = beside_trl.prompts(3)
    assert isinstance(rows, datasets.Dataset)
    tokenizer = reply_env(1).observation_space.tokenizer
    text = rows[0]["prompt"]
    for name in ("<user>", "<system>", "<end>"):
        text = text.replace(name, "x")
    assert 56 <= len(text) <= 76  # each word is one character and one token
    assert set(text) - {"x"} <= set(tokenizer.tokens)


def test_without_trl_there_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(beside_trl, "find_spec", lambda name: None)
    assert list(beside_trl.figures(1)) == []
    assert "trl is not installed" in capsys.readouterr().out


def test_works_take_turns():
    order = []
    works = {name: lambda name=name: order.append(name) for name in "ab"}
    spent = alternate(works, 2)
    assert order == ["a", "b"] * 3
    assert set(spent) == {"a", "b"}
    assert min(spent.values()) >= 0
    with pytest.raises(ValueError, match="at least 1, got 0"):
        alternate(works, 0)


def test_the_workload_is_a_task():
    check_task(Reply())
    check_views(Reply())
    check_batch(Reply(), num_envs=2, steps=60)


def test_prompts_have_the_shape_of_daily_dialog():
    env = reply_env(200)
    lengths = np.count_nonzero(env.reset(), axis=1)
    assert env.observation_space.shape == (96,)
    assert env.action_space.n == 512
    assert 56 <= lengths.min() < lengths.max() <= 76
    assert lengths.mean() == pytest.approx(66, abs=1)


@pytest.mark.parametrize(
    ("text", "reference", "f1"),
    [("aab", "abb", 2 / 3), ("", "ab", 0), ("c", "ab", 0), ("ab", "ba", 1), ("a", "aaa", 0.5)],
)
def test_f1_by_hand(text, reference, f1):
    assert unigram_f1(text, reference) == pytest.approx(f1)


def test_a_perfect_reply_gets_everything():
    task, rng = Reply(), np.random.default_rng(0)
    state = task.initial(rng)
    outcome = task.speak(state, state.reference, rng)
    assert outcome.terminated
    assert outcome.rewards["system"] == pytest.approx(1 + LENGTH_BONUS)


def test_bare_logits_are_the_models():
    model = small_gpt()
    tokens = torch.randint(11, (3, 9))
    cache = bare.StaticCache(model, 3, 9)
    with torch.no_grad():
        expected = logits_of(model, tokens)
        prefilled = bare.bare_prefill(model, cache, tokens[:, :7])
        assert torch.allclose(prefilled, expected[:, 6], atol=1e-5)
        for at in (7, 8):
            stepped = bare._step(model, cache, tokens[:, at : at + 1], at)
            assert torch.allclose(stepped, expected[:, at], atol=1e-5)


def test_bare_samples_are_likely():
    """Weights so large that each next token is all but certain: sampling is the argmax."""
    model = small_gpt()
    with torch.no_grad():
        model.wte.weight.mul_(60)
    prompts = torch.randint(11, (4, 5))
    new = bare.bare_rollout(model, prompts, 7)
    with torch.no_grad():
        logits = logits_of(model, torch.cat([prompts, new], 1))[:, 4:-1]
    assert torch.equal(logits.argmax(-1), new)


def test_bare_gradients_are_autograds():
    model, head = small_gpt(), torch.nn.Linear(8, 1)
    tokens = torch.randint(11, (3, 10))
    bare.bare_update(model, head, tokens, 4)
    got = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    hidden = model(tokens[:, :-1])[:, -4:]
    logits = hidden @ model.embedding.T
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, -4:].flatten())
    (loss + head(hidden).square().mean()).backward()
    for gradient, weight in zip(got, model.parameters(), strict=True):
        assert torch.allclose(gradient, weight.grad, atol=1e-6)


def test_a_learner_runs_by_parts(monkeypatch):

    monkeypatch.setitem(PRESETS, "mini", {"n_layer": 1, "n_head": 1, "n_embd": 8})
    learner = Learner(reply_env(2), n_steps=REPLY, batch_size=8, n_epochs=1)
    before = [p.clone() for p in learner.model.parameters()]
    learner.rollout()
    learner.update()
    learner.iterate()
    assert learner.ppo.num_timesteps == 2 * learner.steps == 4 * REPLY
    assert any(not torch.equal(b, p) for b, p in zip(before, learner.model.parameters()))


def test_padding_is_counted():
    learner = length.make_learner(128)
    learner.rollout()
    tokens, rows, attention = length.padding(learner.ppo)
    assert tokens == learner.tokens
    assert tokens <= attention <= rows


def test_launches_are_counted_without_views_and_ours_are_fewer(monkeypatch):
    pytest.importorskip("peft")
    one, other = torch.ones(2, 3), torch.ones(3)
    assert launches.launches(lambda: one.T.reshape(6).add_(one.sum() + other[0])) == 4  # and a copy
    monkeypatch.setattr(launches, "LAYERS", 1)
    found = {figure.what: figure for figure in launches.figures(1)}
    assert found["a step of a rollout, ours, launches"].holds
    assert found["an update's forward and backward, ours, launches"].ratio < 1
