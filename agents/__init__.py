"""Agents that talk: Stable-Baselines3-style learners for dialogue tasks.

`import agents` loads nothing heavy: each public name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.buffers.episodes import EpisodeRolloutBuffer, MaskableEpisodeRolloutBuffer
    from agents.chat.agent import ChatAgent
    from agents.offline.bc import BC
    from agents.offline.chai import CHAI, CHAIPolicy
    from agents.offline.cql import CQL
    from agents.offline.decision_transformer import DecisionTransformer, ReturnGPTPolicy
    from agents.offline.ilql import ILQL, SingleStepRL
    from agents.offline.psi import PsiLearning
    from agents.offline.utterance_ilql import UtteranceILQL
    from agents.online.grpo import GRPO
    from agents.online.nlpo import NLPO
    from agents.online.ppo import SequencePPO
    from agents.policies.gpt import GPTPolicy, MaskableGPTPolicy
    from agents.policies.speakers import BeamSpeaker, RankedSpeaker
    from agents.policies.utterance import UtteranceGPTPolicy
    from agents.policies.value import ValueGPTPolicy
    from agents.reward_model.training import train_reward_model
    from agents.saved import load, start_from
    from agents.training.train import train

# Another distribution installs a package of this name; whoever imports us can tell them apart.
__dialgym_agents__ = True

__all__ = [
    "BC",
    "CHAI",
    "CQL",
    "GRPO",
    "ILQL",
    "NLPO",
    "BeamSpeaker",
    "CHAIPolicy",
    "ChatAgent",
    "DecisionTransformer",
    "EpisodeRolloutBuffer",
    "GPTPolicy",
    "MaskableEpisodeRolloutBuffer",
    "MaskableGPTPolicy",
    "PsiLearning",
    "RankedSpeaker",
    "ReturnGPTPolicy",
    "SequencePPO",
    "SingleStepRL",
    "UtteranceGPTPolicy",
    "UtteranceILQL",
    "ValueGPTPolicy",
    "load",
    "start_from",
    "train",
    "train_reward_model",
]

_HOMES = {
    "ChatAgent": "agents.chat.agent",
    "BeamSpeaker": "agents.policies.speakers",
    "RankedSpeaker": "agents.policies.speakers",
    "DecisionTransformer": "agents.offline.decision_transformer",
    "ReturnGPTPolicy": "agents.offline.decision_transformer",
    "CHAI": "agents.offline.chai",
    "CHAIPolicy": "agents.offline.chai",
    "UtteranceGPTPolicy": "agents.policies.utterance",
    "UtteranceILQL": "agents.offline.utterance_ilql",
    "ValueGPTPolicy": "agents.policies.value",
    "PsiLearning": "agents.offline.psi",
    "CQL": "agents.offline.cql",
    "SingleStepRL": "agents.offline.ilql",
    "ILQL": "agents.offline.ilql",
    "BC": "agents.offline.bc",
    "GRPO": "agents.online.grpo",
    "NLPO": "agents.online.nlpo",
    "EpisodeRolloutBuffer": "agents.buffers.episodes",
    "GPTPolicy": "agents.policies.gpt",
    "MaskableEpisodeRolloutBuffer": "agents.buffers.episodes",
    "MaskableGPTPolicy": "agents.policies.gpt",
    "SequencePPO": "agents.online.ppo",
    "load": "agents.saved",
    "start_from": "agents.saved",
    "train": "agents.training.train",
    "train_reward_model": "agents.reward_model.training",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'agents' has no attribute {name!r}; it has {__all__}")
    try:
        value = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"agents.{name} needs {error.name}, which is not installed. "
            'Install it with: pip install "dialgym[agents]"'
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
