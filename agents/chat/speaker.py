"""`load_speaker`: a saved model in the place of a party, whatever it speaks by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents.chat.act_agent import ActAgent
from agents.chat.agent import ChatAgent
from agents.models.observations import token_space
from agents.storage.models import load
from dialgym.rollouts.policies import find_checkpoint


def load_speaker(
    model: str | Path, trust: bool = False, device: str = "cpu", **settings: Any
) -> ActAgent | ChatAgent:
    """The speaker of a saved model; `gym.make(id, simulator="runs/user")` calls it.

    Args:
        model: a learner's zip file, the folder of its run, or a language model: its folder, or
            ``hf:NAME``.
        trust: read a pickled model, which can run code; see `agents.load`.
        device: as everywhere in PyTorch.
        settings: of the speaker: `deterministic`, and of one that speaks in words the fields of
            `agents.decoding.sampling.Sampling`.

    Raises:
        FileNotFoundError, ValueError: as of `ActAgent` and `ChatAgent`.
    """
    file = find_checkpoint(model)
    if file is None:
        return ChatAgent.load(model, device, trust, **settings)
    learner = load(file, device, trust)
    if hasattr(token_space(learner.observation_space), "tokenizer"):
        return ChatAgent.load(learner, **settings)
    return ActAgent(learner, **settings)
