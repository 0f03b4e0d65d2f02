"""`load_speaker`: a saved model in the place of a party, whatever it speaks by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents.chat.act_agent import ActAgent
from agents.chat.agent import ChatAgent
from agents.models.observations import token_space
from agents.policies.decoded import with_decoding
from agents.storage.models import load
from dialgym.io.saved_models import find_checkpoint


def load_speaker(
    model: str | Path, trust: bool = False, device: str = "cpu", **settings: Any
) -> ActAgent | ChatAgent:
    """The speaker of a saved model; `gym.make(id, simulator="runs/user")` calls it.

    Args:
        model: a learner's zip file, the folder of its run, ``zoo:NAME``, or a language model: its
            folder, or ``hf:NAME``.
        trust: read a pickled model, which can run code; see `agents.load`.
        device: as everywhere in PyTorch.
        settings: of the speaker: `deterministic`, `max_tokens` of one that speaks in words, and
            those of `agents.with_decoding`. Of a language model the fields of
            `agents.decoding.sampling.Sampling`.

    Raises:
        FileNotFoundError, ValueError: as of `ActAgent` and `ChatAgent`.
    """
    file = find_checkpoint(model)
    if file is None:
        return ChatAgent.load(model, device, trust, **settings)
    learner = load(file, device, trust)
    in_words = hasattr(token_space(learner.observation_space), "tokenizer")
    whole = {"beam", "candidates"} & settings.keys()  # then max_tokens is of the decoding, too
    kept = {"deterministic", "max_tokens"} if in_words and not whole else {"deterministic"}
    own = {name: settings.pop(name) for name in kept & settings.keys()}
    speaker = with_decoding(learner, **settings) if settings else learner
    return ChatAgent.load(speaker, **own) if in_words else ActAgent(speaker, **own)
