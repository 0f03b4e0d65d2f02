"""`with_decoding`: other settings of speech for a saved model, whatever its policy is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from gymnasium import spaces

from agents.decoding.repeats import fitting_repeats
from agents.policies.belief import BeliefPolicy
from agents.policies.gpt import GPTActorCritic
from agents.policies.speakers import BeamSpeaker, RankedSpeaker
from agents.policies.utterance import UtteranceGPTPolicy
from agents.policies.value import ValueGPTPolicy, ValueHeads
from dialgym.errors import unknown
from dialgym.rollouts.policies import DRAWING

BEAM = ("beam", "max_tokens")
RANKED = ("candidates", "advantage_weight", "log_prob_weight", "max_tokens")


def with_decoding(model: Any, **settings: Any) -> Any:
    """Change how a model speaks from now on; return it, or the speaker that speaks for it.

    What was set before and is not given again stays. A learner that is saved keeps what is of
    single tokens or acts, and `avoid_repeats`.

    Args:
        model: a learner or its policy, or an `agents.ChatAgent`.
        settings: `temperature`, `top_k`, `top_p` of the tokens or acts that are drawn, and
            `avoid_repeats` of a policy of tokens; of one with values the fields of its `Decoding`,
            such as `beta`. `beam` is the width of an `agents.BeamSpeaker`, `candidates` the number
            of an `agents.RankedSpeaker`, which take their other arguments with it.

    Raises:
        ValueError: the model has no such setting, or a value is impossible.
    """
    if hasattr(model, "with_decoding"):
        return model.with_decoding(**settings)
    policy = getattr(model, "policy", model)
    check_known(policy, settings)
    tokens = {name: settings[name] for name in settings if name in _token_settings(policy)}
    spoken = {name: settings[name] for name in settings if name not in tokens}
    kept = _change_tokens(policy, tokens)
    if "avoid_repeats" in spoken:
        kept |= _change_repeats(policy, spoken.pop("avoid_repeats"))
    if hasattr(model, "policy_kwargs"):
        model.policy_kwargs = {**model.policy_kwargs, **kept}
    return _speaker(model, spoken) if spoken else model


def check_known(policy: Any, settings: Mapping[str, Any]) -> None:
    """Raise a ValueError for settings that a policy does not have."""
    known = [*_token_settings(policy), *_utterance_settings(policy)]
    if not known:
        raise ValueError(
            f"decoding: expected a model with a policy of ours, over tokens or one act at a time; "
            f"got {type(policy).__name__}, which has no {', '.join(settings)}. Leave them out."
        )
    for name in settings:
        if name not in known:
            raise unknown("setting", name, known, f"the decoding of {type(policy).__name__}")


def _token_settings(policy: Any) -> list[str]:
    """Names of the settings by which single tokens or acts are chosen."""
    if isinstance(policy, ValueHeads):
        return [field.name for field in fields(policy.decoding)]
    discrete = isinstance(getattr(policy, "action_space", None), spaces.Discrete)
    ours = isinstance(policy, GPTActorCritic | BeliefPolicy)
    return [*DRAWING] if ours and discrete else []


def _utterance_settings(policy: Any) -> list[str]:
    """Names of the settings by which whole utterances are chosen."""
    if not isinstance(policy, GPTActorCritic) or isinstance(policy, UtteranceGPTPolicy):
        return []
    ranked = RANKED if isinstance(policy, ValueGPTPolicy) else ()
    return list(dict.fromkeys(["avoid_repeats", *BEAM, *ranked]))


def _change_tokens(policy: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Set `policy.decoding`, or `policy.sampling` where it has no values; the argument for it."""
    if not settings:
        return {}
    name = "decoding" if isinstance(policy, ValueHeads) else "sampling"
    changed = replace(getattr(policy, name), **settings)
    setattr(policy, name, changed)
    return {name: asdict(changed)}


def _change_repeats(policy: GPTActorCritic, least: float | None) -> dict[str, Any]:
    """Set `avoid_repeats` of a policy; the argument for it.

    Raises:
        ValueError: it is no probability, or the observations do not tell whose an utterance is.
    """
    fitting = fitting_repeats(least, policy.token_space)
    if fitting != least:
        raise ValueError(
            "avoid_repeats: expected an observation space with a `learner_tag`, which tells the "
            "learner's utterances from others', got "
            f"{type(policy.token_space).__name__}; leave it out"
        )
    policy.config["avoid_repeats"] = fitting
    return {"avoid_repeats": fitting}


def _speaker(model: Any, settings: dict[str, Any]) -> BeamSpeaker | RankedSpeaker:
    """The speaker in the place of a model.

    Raises:
        ValueError: the settings are of no one speaker.
    """
    kinds = [kind for kind in ("beam", "candidates") if kind in settings]
    if len(kinds) != 1 or not {*(BEAM if kinds == ["beam"] else RANKED)} >= settings.keys():
        raise ValueError(
            "decoding: expected beam, with or without max_tokens, or candidates, with or without "
            f"{', '.join(RANKED[1:])}; got {', '.join(settings)}"
        )
    if kinds == ["beam"]:
        return BeamSpeaker(model, settings.pop("beam"), **settings)
    return RankedSpeaker(model, **settings)
