"""Learning algorithms and policies for dialogue tasks, in the shape of Stable-Baselines3.

`import agents` loads nothing heavy: each public name is imported when it is first used. Algorithms
and policies are those of the table in `agents.registry`.
"""

# ruff: noqa: E402, F401

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dialgym.optional import check_one_distribution

__version__ = "0.1.0"
check_one_distribution(__version__, __file__)

from agents.registry import ALGORITHMS, PARTS, POLICIES, register
from dialgym.errors import did_you_mean

if TYPE_CHECKING:  # a class that is not named here is Any to a type checker
    from agents.acts.a2c import A2C
    from agents.acts.acer import ACER, ActorQPolicy
    from agents.acts.bbqn import BBQN
    from agents.acts.dqn import DQN
    from agents.acts.enac import ENAC
    from agents.acts.feudal.acer import FeudalACER, FeudalActorPolicy
    from agents.acts.feudal.dqn import FeudalDQN, FeudalQPolicy
    from agents.acts.feudal.gain import FeudalGain
    from agents.acts.gdpl import GDPL, Estimation
    from agents.acts.gp.committee import Committee
    from agents.acts.gp.policy import GPPolicy
    from agents.acts.gp.sarsa import GPSarsa
    from agents.acts.groups import ActExpertIteration, ActGRPO
    from agents.acts.madpl import MADPL
    from agents.acts.pg import PG
    from agents.acts.q_network import QPolicy
    from agents.acts.tracer import TRACER
    from agents.buffers.episodes import EpisodeRolloutBuffer, MaskableEpisodeRolloutBuffer
    from agents.chat.act_agent import ActAgent
    from agents.chat.agent import ChatAgent
    from agents.chat.planning import PlanningAgent
    from agents.chat.speaker import load_speaker
    from agents.duration import LongTrainingWarning
    from agents.guesser.training import train_guesser
    from agents.models.build import Execution
    from agents.offline.archer import OfflineArCHer
    from agents.offline.bc import BC
    from agents.offline.chai import CHAI, CHAIPolicy
    from agents.offline.cql import CQL
    from agents.offline.decision_transformer import DecisionTransformer, ReturnGPTPolicy
    from agents.offline.dpo import DPO
    from agents.offline.ilql import ILQL, SingleStepRL
    from agents.offline.losses import ValueLosses
    from agents.offline.mle import MLE
    from agents.offline.psi import PsiLearning
    from agents.offline.q_sft import QSFT
    from agents.offline.utterance_ilql import UtteranceILQL
    from agents.online.archer import ArCHer
    from agents.online.expert_iteration import ExpertIteration
    from agents.online.grpo import GRPO
    from agents.online.nlpo import NLPO
    from agents.online.ppo import SequencePPO
    from agents.online.reference import KLControl
    from agents.online.refuel import REFUEL
    from agents.online.self_play import SelfPlay
    from agents.policies.belief import BeliefPolicy, ValueBeliefPolicy
    from agents.policies.decoded import with_decoding
    from agents.policies.gpt import GPTPolicy, MaskableGPTPolicy
    from agents.policies.init_from import start_from
    from agents.policies.speakers import BeamSpeaker, RankedSpeaker
    from agents.policies.utterance import UtteranceGPTPolicy
    from agents.policies.utterance_critic import ArCHerPolicy
    from agents.policies.value import ValueGPTPolicy
    from agents.publishing import from_hub, push_to_hub
    from agents.reward_model.training import train_reward_model
    from agents.storage.models import load, save
    from agents.storage.values import storable
    from agents.training.config import TrainConfig
    from agents.training.interrupts import Interrupted
    from agents.training.run import run_training, train
    from agents.updater import Compute

# Another distribution installs a package of this name; whoever imports us can tell them apart.
__dialgym_agents__ = True

_HOMES = {
    "ActAgent": "agents.chat.act_agent",
    "BeamSpeaker": "agents.policies.speakers",
    "ChatAgent": "agents.chat.agent",
    "Interrupted": "agents.training.interrupts",
    "LongTrainingWarning": "agents.duration",
    "PlanningAgent": "agents.chat.planning",
    "RankedSpeaker": "agents.policies.speakers",
    "from_hub": "agents.publishing",
    "push_to_hub": "agents.publishing",
    "SelfPlay": "agents.online.self_play",
    "DialogueStream": "agents.buffers.stream",
    "load": "agents.storage.models",
    "load_speaker": "agents.chat.speaker",
    "save": "agents.storage.models",
    "start_from": "agents.policies.init_from",
    "storable": "agents.storage.values",
    "TrainConfig": "agents.training.config",
    "run_training": "agents.training.run",
    "train": "agents.training.run",
    "train_guesser": "agents.guesser.training",
    "train_reward_model": "agents.reward_model.training",
    "with_decoding": "agents.policies.decoded",
}
_TABLED = (*(r.home for r in ALGORITHMS.values()), *POLICIES.values(), *PARTS.values())
_HOMES |= {
    name: module
    for module, _, name in (home.partition(":") for home in _TABLED)
    if module.startswith("agents.")
}

__all__ = sorted([*_HOMES, "register"])


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        hint = did_you_mean(name, () if name.startswith("_") else __all__)
        hint = hint or f" It has {', '.join(__all__)}."
        raise AttributeError(f"module 'agents' has no attribute {name!r}.{hint}")
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
