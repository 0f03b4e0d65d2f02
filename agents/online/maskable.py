"""The GPT policy for sb3-contrib's MaskablePPO."""

from __future__ import annotations

from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents.online.policies import GPTActorCritic


class MaskableGPTPolicy(GPTActorCritic, MaskableActorCriticPolicy):  # type: ignore[misc]
    """`GPTPolicy` with the env's own action masks: `MaskablePPO(MaskableGPTPolicy, env)`."""
