"""`ChatAgent`: replies of a saved agent, or of a language model by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents.chat.language_model import CausalTalker
from agents.decoding.replies import PolicyTalker, Talker, Turn, chat
from agents.decoding.sampling import Sampling, Seed, generator_of
from dialgym.errors import with_settings
from dialgym.io.hub import PREFIX
from dialgym.io.saved_models import CHECKPOINT, CONFIGS, find_checkpoint


class ChatAgent:
    """Replies to what was said; an agent to talk to, or to let talk in any party's place.

    It meets `dialgym.simulators.Speaker`: `gym.make(id, simulator=agent)` lets it play the other
    party, and so does `simulator={"name": "agents:ChatAgent", "talker": "runs/user"}`, which is
    stored with the dialogues; `dialgym.evaluate(agent, id)` lets it play the learner.

    Args:
        talker: who speaks; or a path or ``hf:NAME``, as of `load`.
        sampling: how it speaks where a call does not say otherwise: the fields of
            `agents.decoding.sampling.Sampling`.

    Raises:
        FileNotFoundError, ValueError: as of `load`; or a number that cannot be.
    """

    def __init__(self, talker: Talker | str | Path, **sampling: Any) -> None:
        by_name = isinstance(talker, str | Path)
        self.talker: Talker = _talker(talker, "auto", trust=False) if by_name else talker  # type: ignore[arg-type, assignment]
        self.sampling = sampling
        self._sampling({})

    @classmethod
    def load(
        cls, model: Any, device: str = "auto", trust: bool = False, **sampling: Any
    ) -> ChatAgent:
        """The agent of a saved model, a model at hand, or a language model.

        Args:
            model: the zip file of a learner, the folder of its run or ``zoo:NAME``; a learner with
                a GPT policy; or a causal language model of `transformers`: its folder,
                ``hf:NAME``, or ``hf:NAME@REVISION``.
            device: as everywhere in PyTorch.
            trust: read a pickled model, which can run code; see `agents.load`.
            sampling: as of `ChatAgent`.

        Raises:
            FileNotFoundError: there is nothing at that path.
            ValueError: what is there cannot talk.
        """
        if not isinstance(model, str | Path):
            return cls(PolicyTalker(model), **sampling)
        return cls(_talker(model, device, trust), **sampling)

    def with_decoding(self, **sampling: Any) -> ChatAgent:
        """An agent that speaks so where a call does not say otherwise; see `ChatAgent`."""
        return type(self)(self.talker, **{**self.sampling, **sampling})

    def chat(
        self, text: str | None, history: Sequence[str] = (), seed: Seed = None, **sampling: Any
    ) -> str:
        """The agent's reply to `text`.

        Args:
            text: what it is told; None lets it go first, or go on.
            history: the utterances before, oldest first, the parties in turn; the last one is the
                agent's. Whole oldest utterances are left out where the window has no room.
            seed: of this reply; a `torch.Generator` (on the CPU) goes on from where it is, and None
                begins anywhere. PyTorch's own generator is left alone.
            sampling: temperature, top_k, top_p, max_tokens, deterministic; see `ChatAgent`.

        Raises:
            ValueError: a number that cannot be, a history of other things, or a text so long that
                the window has no room for a reply.
        """
        return chat(self.talker, text, history, seed, self._sampling(sampling))

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """The utterance of the party whose turn it is, whichever it learned to be.

        It sees that party's transcript, and is drawn with numbers that follow from `rng`.
        """
        party = task.speaker(state)
        turns = [Turn(line.speaker == party, line.text) for line in task.transcript(state, party)]
        generator = generator_of(int(rng.integers(2**63)))
        return self.talker.answer(turns, self._sampling(self._room(task, party)), generator)

    def _room(self, task: Any, party: str) -> dict[str, int]:
        """As many tokens at most as a task looks at characters, for who knows no limits."""
        if not isinstance(self.talker, CausalTalker) or self.sampling.get("max_tokens"):
            return {}
        bytes_each = 1 if task.facts.charset.isascii() else 4
        return {"max_tokens": bytes_each * task.facts.limit(party)}

    def _sampling(self, changes: dict[str, Any]) -> Sampling:
        made: Sampling = with_settings(Sampling, "sampling", {**self.sampling, **changes})
        return made


def _talker(model: str | Path, device: str, trust: bool) -> Talker:
    from stable_baselines3.common.utils import get_device

    from agents.storage.locate import fetched_agent
    from agents.storage.models import load

    if str(model).startswith(PREFIX):
        model = fetched_agent(model)
    file = find_checkpoint(model)
    if file is not None:
        return PolicyTalker(load(file, device, trust))
    path = Path(model)
    if path.is_dir() and not any((path / name).is_file() for name in CONFIGS):
        raise FileNotFoundError(
            f"chat: no model in {str(model)!r}: expected a run with {CHECKPOINT}, or a language "
            f"model with {CONFIGS[0]} and its tokenizer. Check the path."
        )
    return CausalTalker.load(str(model), get_device(device))
