"""The benchmark of training measures what it says."""

import pytest
import torch

pytest.importorskip("stable_baselines3")
from agents import GPTPolicy
from agents.online import speed


def test_rates_fit_together(monkeypatch):
    monkeypatch.setattr(speed, "ENVS", 8)
    rates = speed.measure(GPTPolicy, 6, batch_size=24)
    seconds = 1 / rates["rollout"] + speed.EPOCHS / rates["update"]
    assert rates["end to end"] == pytest.approx(1 / seconds)


def test_the_reference_reads_the_last_token():
    pytest.importorskip("transformers")
    from dialgym.language import CharTokenizer
    from dialgym.views.spaces import TokenBox

    space = TokenBox(CharTokenizer("ab"), 6, 3)
    torch.manual_seed(0)
    extractor = speed.HuggingFaceGPT(space)
    tokens = torch.tensor([[3, 5, 6, 0, 0, 0], [3, 5, 6, 1, 4, 5]])
    features = extractor(tokens.float())
    alone = extractor(tokens[:1, :3].float())
    assert torch.allclose(features[0], alone[0], atol=1e-5)
    assert not torch.allclose(features[0], features[1], atol=1e-3)
