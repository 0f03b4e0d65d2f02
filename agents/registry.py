"""The table of algorithms: name, class, what it learns from, hyperparameters file, policy.

`agents.train`, `agents.load`, `import agents`, the command line and the documentation read it.
Nothing heavy is imported before a class is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any

from dialgym.errors import unknown
from dialgym.io.files import parse_yaml, read_file
from dialgym.optional import require

TOKENS, ACTS, STORED = "tokens", "acts", "stored dialogues"
GROUP = "dialgym.algorithms"
"""Entry points of other distributions: a name, and the `module:Class` of an algorithm."""

Config = str | Path | Mapping[str, Any]


@dataclass(frozen=True)
class Algorithm:
    """A row of the table.

    Attributes:
        name: what `agents.train` and the command line call it.
        home: `module:Class`, a `stable_baselines3.common.base_class.BaseAlgorithm`.
        kind: what it learns from: `TOKENS` or `ACTS`, the views that it plays; `STORED` dialogues,
            alone or, beside a view, those of an expert to imitate.
        config: a YAML file of hyperparameters in rl-zoo3's form, or its rows; a name without a
            folder is a file of `agents/configs`.
        policy: the policy, where the hyperparameters name none.
        summary: one line for help and documentation.
    """

    name: str
    home: str
    kind: tuple[str, ...]
    config: Config = field(hash=False)
    policy: str
    summary: str = ""

    @property
    def plays(self) -> bool:
        """Return True if it learns by playing, rather than from stored dialogues alone."""
        return self.kind != (STORED,)

    @property
    def reads(self) -> bool:
        """Return True if it is given stored dialogues."""
        return STORED in self.kind

    def rows(self) -> tuple[Any, str]:
        """The rows of hyperparameters, as they were read, and where they are from."""
        if isinstance(self.config, Mapping):
            return self.config, f"the configuration of {self.name}"
        return read_rows(Path(self.config))

    def load(self) -> Any:
        """The class.

        Raises:
            ImportError: a package is missing; the message has the remedy.
            ValueError: there is no such module or class.
        """
        return load_class(self.home)


def read_rows(path: Path) -> tuple[Any, str]:
    """Read a YAML file; its place too. A name without a folder is one of `agents/configs`."""
    own = files("agents") / "configs" / path.name
    if path.name == str(path) and own.is_file():
        return parse_yaml(own.read_bytes(), str(own)), str(own)
    return parse_yaml(read_file(path), str(path)), str(path)


# fmt: off
_TABLE = (
    ("ppo", "agents.online.ppo:SequencePPO", (TOKENS,),
     "agents.GPTPolicy", "PPO whose update reads each dialogue once"),
    ("nlpo", "agents.online.nlpo:NLPO", (TOKENS,),
     "agents.GPTPolicy", "PPO within the nucleus of a slower copy of the policy"),
    ("grpo", "agents.online.grpo:GRPO", (TOKENS,),
     "agents.GPTPolicy", "group baselines in place of a value function; RLOO, REINFORCE++"),
    ("expert-iteration", "agents.online.expert_iteration:ExpertIteration", (TOKENS,),
     "agents.GPTPolicy", "cloning of the policy's own best dialogues; ReST, RAFT"),
    ("refuel", "agents.online.refuel:REFUEL", (TOKENS,),
     "agents.GPTPolicy", "regression of how much better one of two replies to a prefix turns out"),
    ("archer", "agents.online.archer:ArCHer", (TOKENS,),
     "agents.ArCHerPolicy", "a critic of whole utterances from replay, an actor of tokens"),
    ("bc", "agents.offline.bc:BC", (STORED,),
     "agents.GPTPolicy", "behaviour cloning; of the best dialogues with `top`"),
    ("mle", "agents.offline.mle:MLE", (STORED,),
     "agents.GPTPolicy", "cloning of several acts at once, by weighted entries"),
    ("single-step", "agents.offline.ilql:SingleStepRL", (STORED,),
     "agents.ValueGPTPolicy", "values of the logged policy, one step of improvement"),
    ("ilql", "agents.offline.ilql:ILQL", (STORED,),
     "agents.ValueGPTPolicy", "implicit Q-learning of tokens"),
    ("cql", "agents.offline.cql:CQL", (STORED,),
     "agents.ValueGPTPolicy", "conservative Q-learning of tokens"),
    ("psi", "agents.offline.psi:PsiLearning", (STORED,),
     "agents.ValueGPTPolicy", "KL-regularised Q-learning of tokens"),
    ("q-sft", "agents.offline.q_sft:QSFT", (STORED,),
     "agents.ValueGPTPolicy", "Q values as probabilities, by a weighted cross-entropy"),
    ("dpo", "agents.offline.dpo:DPO", (STORED,),
     "agents.GPTPolicy", "preferences between whole dialogues, by the learner's own turns"),
    ("utterance-ilql", "agents.offline.utterance_ilql:UtteranceILQL", (STORED,),
     "agents.UtteranceGPTPolicy", "implicit Q-learning of whole utterances"),
    ("chai", "agents.offline.chai:CHAI", (STORED,),
     "agents.CHAIPolicy", "Q-learning over candidates of a language model"),
    ("offline-archer", "agents.offline.archer:OfflineArCHer", (STORED,),
     "agents.ArCHerPolicy", "implicit Q-learning of utterances, cloning by advantages"),
    ("decision-transformer", "agents.offline.decision_transformer:DecisionTransformer", (STORED,),
     "agents.ReturnGPTPolicy", "cloning conditioned on the return"),
    ("pg", "agents.acts.pg:PG", (ACTS,),
     "agents.BeliefPolicy", "REINFORCE of whole dialogues, with a baseline or without"),
    ("act-grpo", "agents.acts.groups:ActGRPO", (ACTS,),
     "agents.BeliefPolicy", "GRPO of acts: group baselines in place of a value function"),
    ("act-expert-iteration", "agents.acts.groups:ActExpertIteration", (ACTS,),
     "agents.BeliefPolicy", "cloning of the policy's own best dialogues, by acts"),
    ("gdpl", "agents.acts.gdpl:GDPL", (ACTS, STORED),
     "agents.BeliefPolicy", "PPO on rewards estimated from an expert's dialogues"),
    ("madpl", "agents.acts.madpl:MADPL", (ACTS,),
     "agents.BeliefPolicy", "both parties learn together, with a hybrid value network"),
    ("dqn", "agents.acts.dqn:DQN", (TOKENS, ACTS),
     "MlpPolicy", "deep Q-learning within masks: double, dueling, noisy, bootstrapped, curious"),
    ("bbqn", "agents.acts.bbqn:BBQN", (ACTS,),
     "MlpPolicy", "Q-learning with Gaussian weights, which explores by drawing them"),
    ("a2c", "agents.acts.a2c:A2C", (ACTS,),
     "MlpPolicy", "advantage actor-critic of whole dialogues, with the env's action masks"),
    ("enac", "agents.acts.enac:ENAC", (ACTS,),
     "MlpPolicy", "episodic natural actor-critic"),
    ("acer", "agents.acts.acer:ACER", (ACTS,),
     "MlpPolicy", "actor-critic with replay of dialogues: retrace and a trust region"),
    ("tracer", "agents.acts.tracer:TRACER", (ACTS,),
     "MlpPolicy", "A2C with replay of dialogues and a trust region"),
    ("feudal-dqn", "agents.acts.feudal.dqn:FeudalDQN", (ACTS,),
     "MlpPolicy", "deep Q-learning of a master and its sub-policies, in any domain of slots"),
    ("feudal-acer", "agents.acts.feudal.acer:FeudalACER", (ACTS,),
     "MlpPolicy", "ACER whose policy is a master and its sub-policies, in any domain of slots"),
    ("feudal-gain", "agents.acts.feudal.gain:FeudalGain", (ACTS,),
     "MlpPolicy", "Feudal DQN whose questions are rewarded for what they tell of the goal"),
    ("gp-sarsa", "agents.acts.gp.sarsa:GPSarsa", (ACTS,),
     "GPPolicy", "sparse Gaussian process SARSA with Thompson sampling"),
    ("committee", "agents.acts.gp.committee:Committee", (ACTS,),
     "GPPolicy", "Bayesian committee machine of GP-SARSA processes, one a domain"),
    ("policy-manager", "agents.acts.policy_manager:MultiDomainLearner", (ACTS,),
     "ManagerPolicy", "a policy for each domain of one dialogue, from its own turns"),
    ("stock-ppo", "stable_baselines3.ppo.ppo:PPO", (TOKENS, ACTS),
     "MlpPolicy", "PPO of Stable-Baselines3"),
    ("maskable-ppo", "sb3_contrib.ppo_mask.ppo_mask:MaskablePPO", (TOKENS, ACTS),
     "MlpPolicy", "PPO of sb3-contrib, with the env's action masks"),
    ("recurrent-ppo", "sb3_contrib.ppo_recurrent.ppo_recurrent:RecurrentPPO", (TOKENS, ACTS),
     "MlpLstmPolicy", "PPO of sb3-contrib with an LSTM"),
    ("stock-a2c", "stable_baselines3.a2c.a2c:A2C", (TOKENS, ACTS),
     "MlpPolicy", "advantage actor-critic of Stable-Baselines3"),
    ("trpo", "sb3_contrib.trpo.trpo:TRPO", (TOKENS, ACTS),
     "MlpPolicy", "trust region policy optimisation of sb3-contrib"),
    ("stock-dqn", "stable_baselines3.dqn.dqn:DQN", (TOKENS, ACTS),
     "MlpPolicy", "deep Q-learning of Stable-Baselines3"),
    ("qrdqn", "sb3_contrib.qrdqn.qrdqn:QRDQN", (TOKENS, ACTS),
     "MlpPolicy", "quantile regression DQN of sb3-contrib"),
)
# fmt: on

ALGORITHMS: dict[str, Algorithm] = {
    name: Algorithm(name, home, kind, f"{name}.yml", policy, summary)
    for name, home, kind, policy, summary in _TABLE
}
"""The built-in rows by name."""

POLICIES = {
    "GPTPolicy": "agents.policies.gpt:GPTPolicy",
    "MaskableGPTPolicy": "agents.policies.gpt:MaskableGPTPolicy",
    "ValueGPTPolicy": "agents.policies.value:ValueGPTPolicy",
    "BeliefPolicy": "agents.policies.belief:BeliefPolicy",
    "ValueBeliefPolicy": "agents.policies.belief:ValueBeliefPolicy",
    "QPolicy": "agents.acts.q_network:QPolicy",
    "FeudalActorPolicy": "agents.acts.feudal.acer:FeudalActorPolicy",
    "ActorQPolicy": "agents.acts.acer:ActorQPolicy",
    "FeudalQPolicy": "agents.acts.feudal.dqn:FeudalQPolicy",
    "UtteranceGPTPolicy": "agents.policies.utterance:UtteranceGPTPolicy",
    "ArCHerPolicy": "agents.policies.utterance_critic:ArCHerPolicy",
    "GPPolicy": "agents.acts.gp.policy:GPPolicy",
    "ManagerPolicy": "agents.acts.policy_manager:ManagerPolicy",
    "CHAIPolicy": "agents.offline.chai:CHAIPolicy",
    "ReturnGPTPolicy": "agents.offline.decision_transformer:ReturnGPTPolicy",
}
"""Policies of our own, by the names that saved models have for them."""

PARTS = {
    "Compute": "agents.updater:Compute",
    "Estimation": "agents.acts.gdpl:Estimation",
    "Execution": "agents.models.build:Execution",
    "KLControl": "agents.online.reference:KLControl",
    "RolloutServer": "agents.serving.server:RolloutServer",
    "ValueLosses": "agents.offline.losses:ValueLosses",
    "EpisodeRolloutBuffer": "agents.buffers.episodes:EpisodeRolloutBuffer",
    "MaskableEpisodeRolloutBuffer": "agents.buffers.episodes:MaskableEpisodeRolloutBuffer",
}
"""Other classes of our own that the hyperparameters of a saved model may name."""

NETWORK_KEYS = ("value_head", "q_head", "share_features_extractor")
"""Arguments of policies that may name the class of a network."""

_registered: dict[str, Algorithm] = {}
_classes: dict[str, Any] = {}  # those that were given as objects, by `module:Class`


def register(
    name: str,
    algorithm: str | type,
    config: Config | None = None,
    kind: str | tuple[str, ...] | None = None,
    policy: str | None = None,
    summary: str = "",
) -> Algorithm:
    """Add an algorithm of your own: it then trains and loads by its name, like any other.

    What is left out is taken from the nearest parent class in the table.

    Args:
        name: for `agents.train` and `dialgym train`.
        algorithm: the class, or its `module:Class`.
        config: a YAML file of hyperparameters in rl-zoo3's form, or its rows as a mapping.
        kind: "tokens", "acts", "stored dialogues", or a tuple of them: what it learns from.
        policy: where the hyperparameters name none.
        summary: one line about it.

    Returns:
        Its row.

    Raises:
        ValueError: another class has the name, or an argument is none of these.
        ImportError: the class cannot be imported.
    """
    if isinstance(algorithm, str):
        home = algorithm
    else:
        home = home_of(algorithm)
        _classes[home] = algorithm
    taken = _home(name)
    if taken is not None and taken != home:
        raise ValueError(f"algorithm {name!r} is {taken} already; choose another name for {home}")
    row = _row_of(name, home)
    kinds = (kind,) if isinstance(kind, str) else kind or row.kind
    for one in kinds:
        if one not in (TOKENS, ACTS, STORED):
            raise unknown("kind", one, (TOKENS, ACTS, STORED), f"agents.register({name!r})")
    row = replace(row, kind=kinds, summary=summary or row.summary, policy=policy or row.policy)
    _registered[name] = row if config is None else replace(row, config=config)
    return _registered[name]


def names() -> list[str]:
    """Names of all algorithms: built in, of installed distributions, registered."""
    return [*{**ALGORITHMS, **_installed(), **_registered}]


def find(name: str) -> Algorithm:
    """The row of a name, or of a `module:Class`.

    Raises:
        ValueError: there is no such algorithm; the message names the nearest one.
        ImportError: the class cannot be imported.
    """
    if name in _registered or name in ALGORITHMS:
        return {**ALGORITHMS, **_registered}[name]
    if name in _installed():
        return _row_of(name, _installed()[name])
    if ":" not in name:
        raise unknown("algorithm", name, names())
    known = named(name) or name_of(load_class(name))
    return find(known) if known else _row_of(name, name)


def named(home: str) -> str | None:
    """The name of a `module:Class` in the table; None for one that is not there."""
    return next((name for name in names() if _home(name) == home), None)


def name_of(cls: type) -> str | None:
    """The name of a class in the table; None for one that is not there."""
    return next((name for name in names() if _is(str(_home(name)), cls)), None)


def home_of(cls: type) -> str:
    """`module:Class`."""
    return f"{cls.__module__}:{cls.__qualname__}"


def load_class(home: str) -> Any:
    """The class at `module:Class`.

    Raises:
        ImportError: a package is missing; the message has the remedy.
        ValueError: there is no such module or class.
    """
    if home in _classes:
        return _classes[home]
    module, _, attribute = home.partition(":")
    if module.partition(".")[0] in ("agents", "stable_baselines3", "sb3_contrib"):
        return getattr(require(module, "agents", f"training with {attribute}"), attribute)
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"algorithm: expected module:Class, such as my_module:MyPPO, got {home!r} ({error})"
        ) from error


def _home(name: str) -> str | None:
    """`module:Class` of a name."""
    if name in _registered:
        return _registered[name].home
    return ALGORITHMS[name].home if name in ALGORITHMS else _installed().get(name)


@cache
def _installed() -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=GROUP)}


def _is(home: str, cls: type) -> bool:
    """Return True if `module:Class` is that class, perhaps by a module that imports it."""
    module, _, attribute = home.partition(":")
    return home == home_of(cls) or getattr(sys.modules.get(module), attribute, None) is cls


def _row_of(name: str, home: str) -> Algorithm:
    """A row with what the nearest parent in the table has."""
    for base in load_class(home).__mro__:
        for row in ALGORITHMS.values():
            if _is(row.home, base):
                return replace(row, name=name, home=home)
    return Algorithm(name, home, (TOKENS, ACTS), {"default": {}}, "MlpPolicy")


# Classes by dotted name


def parts_of(name: str) -> tuple[str, str]:
    """The module and the attribute of `package.module.Class` or `package.module:Class`."""
    module, _, attribute = name.rpartition(":" if ":" in name else ".")
    return module, attribute


def load_name(key: str, name: str, example: str = "agents.GPTPolicy") -> Any:
    """The object named `package.module.Class` or `package.module:Class`.

    Args:
        key: what is being set, for the message.
        name: of the object.
        example: of such a name, for the message.

    Raises:
        ValueError: there is none.
    """
    module, attribute = parts_of(name)
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{key}: expected a dotted name such as {example}, got {name!r} ({error})"
        ) from error
