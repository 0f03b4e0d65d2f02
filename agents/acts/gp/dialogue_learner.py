"""Base of learners from whole dialogues: GP-SARSA and committees."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.vec_env import VecEnv

from agents.acts.base import DialogueRollouts
from agents.acts.gp.open_dialogues import BootstrapValue, OpenDialogues, Returns
from agents.acts.gp.policy import GPPolicy
from agents.learner import SetupOptions
from agents.models.act_masks import allowed, allowed_at_the_end
from agents.updater import check_rewards
from dialgym.views.info import group_of


class ProcessOptions(SetupOptions, total=False):
    """Arguments of all learners by Gaussian processes."""

    gamma: float


class DialogueLearner(DialogueRollouts):
    """A learner whose rollouts go on until a dialogue ends, in any row of the env.

    An algorithm says how acts are chosen (`explore`), what its objectives are, what it believes to
    follow a dialogue that was cut off (`bootstrap_value`), and learns from returns (`absorb`).

    Attributes:
        generator: what acts are drawn with.
        open: the dialogues that are being held; saved with the model.
        ended: returns of those that have ended in this rollout.
        dialogues: how many have been learned from.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"GPPolicy": GPPolicy}
    action_spaces = (spaces.Discrete,)
    policy: GPPolicy  # type: ignore[assignment]
    generator: np.random.Generator
    objectives: dict[str, float] | None = None

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        gamma: float = 0.99,
        **run: Unpack[SetupOptions],
    ) -> None:
        """`device` is taken, as of every algorithm, and not used: processes are NumPy's."""
        self.open = OpenDialogues(0, gamma)
        self.ended: list[Returns] = []
        self.dialogues = 0
        run["device"] = "cpu"
        super().__init__(policy, env, 1.0, gamma, **run)

    def _setup_model(self) -> None:
        """The policy, and a generator where a file has given none."""
        if not hasattr(self, "generator"):
            self.generator = np.random.default_rng(self.seed)
        super()._setup_model()
        self.policy.rng = self.generator

    # What an algorithm says

    def explore(self, beliefs: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """(n,) acts for beliefs (n, B) within masks (n, A), in training."""
        raise NotImplementedError

    def bootstrap_value(self, belief: np.ndarray, mask: np.ndarray) -> BootstrapValue:
        """Estimate the value that follows a belief (1, B) within its mask (1, A)."""
        raise NotImplementedError

    def absorb(self, found: Returns) -> None:
        """Learn from dialogues that have ended."""
        raise NotImplementedError

    # Learning

    def _setup_learn(self, *args: Any, **kwargs: Any) -> tuple[int, BaseCallback]:
        """Dialogues that the env begins again are not gone on with."""
        if self._begins_again(*args, **kwargs):
            self.open = OpenDialogues(self.n_envs, self.gamma)
        return super()._setup_learn(*args, **kwargs)

    def learn(  # type: ignore[override]
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 100,
        **kwargs: Any,
    ) -> Any:
        """As everywhere in Stable-Baselines3; a rollout of `log_interval` is about a dialogue."""
        return super().learn(total_timesteps, callback, log_interval, **kwargs)

    def collect(self, env: VecEnv, callback: BaseCallback) -> bool:
        """Play until a dialogue ends; False where a callback wants to stop.

        Raises:
            FloatingPointError: a reward is not finite; nothing is learned from it.
        """
        while not self.ended:
            seen: Any = self._last_obs
            masks = allowed(env)
            actions = self.explore(seen, masks)
            after, rewards, dones, infos = env.step(actions)
            earned = self._rewards(rewards, infos)
            check_rewards(earned.sum(1), self._where)
            self._last_obs = after  # type: ignore[assignment]
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            self.open.add(seen, actions, earned)
            ended = np.flatnonzero(dones).tolist()
            self.ended += [self._end(row, infos[row], masks[[row]]) for row in ended]
            self._update_info_buffer(infos, dones)
            if not callback.on_step():
                self.train()
                return False
        return True

    def _rewards(self, rewards: np.ndarray, infos: list[dict[str, Any]]) -> np.ndarray:
        """(n, K): of each objective."""
        if not self.objectives:
            return rewards[:, None].astype(float)
        parts = [group_of(info, "reward_components") for info in infos]
        return np.array([[part.get(name, 0.0) for name in self.objectives] for part in parts])

    def _end(self, row: int, info: dict[str, Any], mask: np.ndarray) -> Returns:
        following = None
        if info.get("TimeLimit.truncated"):
            last = allowed_at_the_end(mask, [info], self.action_space)
            following = self.bootstrap_value(info["terminal_observation"][None], last)
        return self.open.end(row, following)

    def train(self) -> None:
        """Learn what the dialogues of the rollout led to."""
        if not self.ended:
            return
        found, count = Returns.joined(self.ended), len(self.ended)
        self.ended = []
        self.dialogues += count
        self.absorb(found)
        self._n_updates += 1
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    # Stable-Baselines3

    def q_distribution(
        self, observation: Any, action_masks: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Means and deviations (n, A) of Q of every act, for beliefs (n, B)."""
        return self.policy.q_distribution(observation, action_masks)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "ended"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy"], []
