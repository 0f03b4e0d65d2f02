"""Critics of another size, of another pretrained model, and of your own class."""

from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from torch import nn

import agents
from agents import CHAI, ILQL, GPTPolicy, SequencePPO
from agents.models.prefixes import last_hidden
from tests.agents.models.test_pretrained import save_model
from tests.support.by_day import by_day
from tests.support.resuming import assert_comes_back
from tests.support.toy_policies import CLOSE, WINDOW, policy, random_rows
from tests.support.toy_tokens import Echo, V, box

HERE = "tests.agents.models.test_critics"
SMALLER = {"n_layer": 1, "n_head": 1, "n_embd": 8}


@agents.storable
class Recurrent(nn.Module):
    """A critic without a cache of keys and values."""

    def __init__(self, vocab_size: int, window: int, width: int = 8) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.width, self.window = width, window

    @property
    def embedding(self):
        return self.table.weight

    def forward(self, tokens, at=None, bias=None):
        embedded = self.table(tokens.long())
        hidden = self.gru(embedded if bias is None else embedded + bias[:, None])[0]
        return hidden if at is None else hidden.flatten(0, 1)[at]


class Backwards(Recurrent):
    """Reads what comes after."""

    def forward(self, tokens, at=None, bias=None):
        hidden = super().forward(tokens.flip(1)).flip(1)
        return hidden if at is None else hidden.flatten(0, 1)[at]


class NoPlaces(Recurrent):
    """Gives all hidden states, whatever it is asked."""

    def forward(self, tokens, at=None, bias=None):
        return super().forward(tokens)


KINDS = {
    "sizes": SMALLER,
    "adapters": {**SMALLER, "lora": {"r": 2}},
    "class": f"{HERE}:Recurrent",
    "class itself": Recurrent,
    "class with settings": {"class": f"{HERE}:Recurrent", "width": 12},
}


def learner(critic, kind=SequencePPO, **more):
    sizes = {"n_layer": 1, "n_embd": 16}
    kwargs = {**sizes, "share_features_extractor": critic}
    env = make_vec_env(Echo, 4, seed=0)
    return kind(GPTPolicy, env, n_steps=8, policy_kwargs=kwargs, seed=0, **more)


@pytest.mark.parametrize("kind", by_day([SequencePPO, PPO], SequencePPO))
@pytest.mark.parametrize("name", by_day(KINDS, "adapters", "class with settings"))
def test_it_gives_the_values_learns_and_is_saved(name, kind, tmp_path):
    critic = KINDS[name]
    model = learner(critic, kind, batch_size=16)
    actor, values = model.policy.backbone, model.policy.value_backbone
    assert values.width != actor.width
    obs = torch.as_tensor(np.stack([Echo().reset(seed=i)[0] for i in range(4)]))
    nn.init.normal_(model.policy.value_head.linear.weight)
    with torch.no_grad():
        before = model.policy.predict_values(obs)
        expected = model.policy.value_head(last_hidden(values, obs))
    torch.testing.assert_close(before, expected, **CLOSE)
    first = {name: weight.clone() for name, weight in values.state_dict().items()}
    model.learn(64)
    changed = [name for name, w in values.state_dict().items() if not torch.equal(w, first[name])]
    assert changed
    if "lora" in str(critic):
        assert all("lora_" in name for name in changed)
    after = model.policy.predict_values(obs)
    assert_comes_back(model, tmp_path / "model.zip")
    torch.testing.assert_close(
        agents.load(tmp_path / "model.zip").policy.predict_values(obs), after
    )


def test_the_actor_begins_as_without_it():
    plain, own = policy().state_dict(), policy(share_features_extractor=SMALLER).state_dict()
    alike = [name for name in plain if name.startswith(("backbone.", "policy_head."))]
    assert all(torch.equal(plain[name], own[name]) for name in alike)


@pytest.mark.parametrize("critic", [SMALLER, Recurrent])
def test_whole_sequences_and_single_observations_have_the_same_values(critic):
    p = policy(share_features_extractor=critic, mask=False)
    nn.init.normal_(p.value_head.linear.weight)
    rows = torch.as_tensor(random_rows(np.random.default_rng(0), 5)).clamp(min=1)
    at = torch.arange(5) * WINDOW + WINDOW - 1
    whole, *_ = p.evaluate_sequences(rows, at, rows[:, 0])
    single, *_ = p.evaluate_actions(rows, rows[:, 0])
    with torch.no_grad():
        _, read, _ = p(rows)
    torch.testing.assert_close(whole, single[:, 0], **CLOSE)
    torch.testing.assert_close(whole, read[:, 0], **CLOSE)


def test_features_have_a_map_to_its_embeddings():
    space = spaces.Dict({"tokens": box(WINDOW), "features": spaces.Box(-1, 1, (3,))})
    kwargs = {"n_layer": 1, "n_embd": 16, "share_features_extractor": SMALLER}
    p = GPTPolicy(space, spaces.Discrete(V), lambda _: 1e-3, **kwargs)
    nn.init.normal_(p.value_head.linear.weight)
    seen = {"tokens": torch.ones(2, WINDOW, dtype=torch.int64), "features": torch.eye(3)[:2]}
    assert p.value_features.linear.out_features == 8
    assert p.predict_values(seen).unique().numel() == 2


@pytest.mark.parametrize("model_type", ["gpt2", "llama"])
def test_another_pretrained_model_is_found_where_it_moved(model_type, tmp_path):
    first = tmp_path / "first"
    save_model(first / "lm", model_type)
    model = learner({"pretrained": str(first / "lm")})
    expected = model.policy.value_backbone.state_dict()
    model.save(first / "model.zip")
    first.rename(tmp_path / "second")
    loaded = SequencePPO.load(tmp_path / "second" / "model.zip")
    named = loaded.policy_kwargs["share_features_extractor"]["pretrained"]
    assert Path(named) == tmp_path / "second" / "lm"
    found = loaded.policy.value_backbone.state_dict()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_learners_of_q_read_it_too():
    kwargs = {"n_layer": 1, "n_embd": 16, "share_features_extractor": SMALLER}
    env = make_vec_env(Echo, 2, seed=0)
    net = ILQL("ValueGPTPolicy", env, policy_kwargs=kwargs, seed=0).policy
    tokens = torch.as_tensor(env.reset())
    hidden, of_values, of_targets = net.hidden_states(tokens, torch.tensor([3]))
    assert [h.shape[-1] for h in (hidden, of_values, of_targets)] == [16, 8, 8]
    assert net.q_values(of_values).shape == (2, 1, V)
    with pytest.raises(ValueError, match="values read the frozen language model"):
        CHAI("CHAIPolicy", env, policy_kwargs=kwargs)


@pytest.mark.parametrize(
    ("critic", "message"),
    [
        ({"n_layers": 1}, r"unknown setting 'n_layers' in share_features_extractor\. Did you mean"),
        ({"preset": "huge"}, "GPT preset: expected one of"),
        ({"pretrained": "x", "n_layer": 2}, "pretrained='x' fixes the sizes"),
        ("nowhere:Critic", "share_features_extractor: expected a dotted name such as my_package"),
        ({"class": Recurrent, "depth": 3}, r"got TypeError: .*unexpected .* 'depth'"),
        (nn.Linear, "made with vocab_size, window .* got TypeError"),
        (Backwards, "got hidden states that change with the tokens after them"),
        (NoPlaces, "those at the flat places `at`.* got "),
    ],
)
def test_one_that_cannot_be_is_one_clear_error(critic, message):
    with pytest.raises(ValueError, match=message):
        policy(share_features_extractor=critic)
