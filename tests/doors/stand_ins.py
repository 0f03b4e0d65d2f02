"""Stand-ins of libraries that do not install on every Python: what a door touches, and no more.

Signatures, fields and defaults are those of the sources that are named here; a field that there is
none of is refused. Where the library itself is installed, it is used in the place of its stand-in.
"""

import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import ModuleType
from typing import Any
from unittest.mock import patch


@dataclass
class TokenOutput:
    """Answer of verl's server (0.9.1, ``verl/workers/rollout/replica.py``)."""

    token_ids: list[int]
    log_probs: list[float] | None = None
    routed_experts: Any = None
    stop_reason: str | None = None
    num_preempted: int | None = None
    extra_fields: dict[str, Any] = field(default_factory=dict)


@dataclass
class AgentLoopMetrics:
    """Seconds (verl 0.9.1, ``verl/experimental/agent_loop/agent_loop.py``)."""

    generate_sequences: float = 0.0
    tool_calls: float = 0.0
    compute_score: float = 0.0
    num_preempted: int = -1


@dataclass(kw_only=True)
class AgentLoopOutput:
    """A rollout of verl (0.9.1, the same file); pydantic makes a mapping of metrics an object."""

    prompt_ids: list[int]
    response_ids: list[int]
    response_mask: list[int]
    response_logprobs: list[float] | None = None
    routed_experts: Any = None
    multi_modal_data: dict[str, Any] | None = None
    reward_score: float | None = None
    num_turns: int = 0
    metrics: AgentLoopMetrics
    extra_fields: dict[str, Any] = field(default_factory=dict)
    mm_processor_kwargs: dict[str, Any] | None = None

    def __post_init__(self):
        self.metrics = AgentLoopMetrics(**self.metrics)
        parts = (self.prompt_ids, self.response_ids, self.response_mask)
        assert all(type(part) is list and {*map(type, part)} <= {int} for part in parts)
        assert {*map(type, self.response_logprobs or [])} <= {float}


class GymnasiumServer:
    """Base of servers of NeMo-Gym (0.7.0, ``resources_servers/gymnasium/base.py``)."""

    session_state: dict[str | None, Any]

    @classmethod
    def model_construct(cls, **fields):
        """As of pydantic's models, of which it is one; a runner gives it a configuration."""
        made = cls()
        vars(made).update(fields)
        return made

    async def reset(self, metadata: dict, session_id: str | None = None):
        return None, {}

    async def step(self, action, metadata: dict, session_id: str | None = None):
        raise NotImplementedError

    async def close_session(self, session_id: str | None) -> None:
        self._cleanup_session(session_id)

    def _cleanup_session(self, session_id: str | None) -> None:
        self.session_state.pop(session_id, None)


def extract_text(response) -> str:
    """All text of a response's messages (NeMo-Gym 0.7.0, the same file)."""
    messages = [item for item in response.output if item.type == "message"]
    parts = [part for message in messages for part in message.content]
    return "".join([part.text for part in parts if part.type == "output_text"])


MODULES = {
    "verl": {
        "verl.experimental.agent_loop.agent_loop": (AgentLoopMetrics, AgentLoopOutput),
        "verl.workers.rollout.replica": (TokenOutput,),
    },
    "resources_servers": {"resources_servers.gymnasium": (GymnasiumServer, extract_text)},
}
"""By library, the modules that stand in for its own."""


@contextmanager
def standing_in(library):
    """Import the library as usual, or where it is missing its stand-in while the context lasts."""
    if find_spec(library) is not None:
        yield
        return
    modules = {}
    for name, members in MODULES[library].items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            part = ".".join(parts[:end])
            modules.setdefault(part, ModuleType(part))
        vars(modules[name]).update({each.__name__: each for each in members})
    with patch.dict(sys.modules, modules):
        yield
