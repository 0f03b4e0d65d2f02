"""The learner that is timed, and the parts of its iteration one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stable_baselines3.common.vec_env import VecEnv

from agents.models.gpt import GPT
from agents.online.ppo import SequencePPO
from agents.policies.gpt import GPTPolicy


class Learner:
    """PPO, or another learner, with a GPT, ready for its first rollout.

    Args:
        env: whose tokens are said and heard.
        n_steps: of a rollout, in each dialogue.
        batch_size: transitions of a minibatch.
        n_epochs: of an update.
        policy: arguments of the policy; by default a "mini" GPT (4 layers of 256).
        kind: class of the learner.
        more: further arguments of it.
    """

    def __init__(
        self,
        env: VecEnv,
        n_steps: int,
        batch_size: int,
        n_epochs: int,
        policy: Mapping[str, Any] | None = None,
        kind: Any = SequencePPO,
        **more: Any,
    ) -> None:
        self.ppo: Any = kind(
            GPTPolicy,
            env,
            n_steps=n_steps,
            batch_size=batch_size,
            n_epochs=n_epochs,
            gamma=1.0,
            policy_kwargs=dict(policy or {"preset": "mini"}),
            seed=0,
            device="cpu",
            **more,
        )
        self.steps = env.num_envs * n_steps
        _, self._callback = self.ppo._setup_learn(total_timesteps=self.steps)

    @property
    def model(self) -> GPT:
        """The GPT."""
        return self.ppo.policy.backbone

    def rollout(self) -> None:
        """All that SB3's `collect_rollouts` does, on weights not seen before."""
        ppo = self.ppo
        ppo.policy.set_training_mode(True)  # as an update leaves it: nothing cached holds
        ppo.collect_rollouts(ppo.env, self._callback, ppo.rollout_buffer, ppo.n_steps)

    def update(self) -> None:
        """All that SB3's `train` does, on the rollout at hand."""
        self.ppo.train()

    def iterate(self) -> None:
        """A rollout and its update."""
        self.rollout()
        self.update()

    @property
    def tokens(self) -> int:
        """Tokens that an epoch on the rollout at hand needs to read: each dialogue once."""
        return int(self.ppo.rollout.sequences.lengths.sum())
