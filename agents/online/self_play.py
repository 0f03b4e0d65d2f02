"""Self-play: both parties of a dialogue learn at once, each a policy of its own over tokens.

They play each other in the two-party token view (`dialgym.aec_env`), and both learn from the same
dialogues: what a party is given between two of its tokens is the first one's reward, whoever was
speaking then. All utterances of one party end before those of the other begin, so that a step of
either policy is one of many dialogues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import MaybeCallback

from agents.online.grpo import GRPO
from agents.online.self_play_env import OVER, PairedDialogues, SelfPlayEnv
from agents.registry import TOKENS
from agents.updater import check_rewards
from dialgym.registry import Environment, entry_of
from dialgym.views.making import split_kwargs
from dialgym.views.two_party import TokenTwoPartyEnv


class SelfPlay:
    """Dialogues whose parties learn together, each by a `GRPO` of its own.

    Make a learner for the side of each party, then let them `learn`. Each is an ordinary model: it
    may begin as a clone (`agents.start_from`), has hyperparameters of its own, is saved by itself,
    and then speaks in any env. In another's place, as `simulator={"name": "agents:ChatAgent",
    "talker": "answerer.zip"}`, it shows whether what the two have come to is a language that others
    speak too; `kl` holds a learner near to what it began as.

    Args:
        env_id: an id of a token view, or a task.
        n_envs: dialogues at a time.
        seed: of the dialogues; the learners have their own.
        kwargs: settings of the task and arguments of the view, as of `dialgym.aec_env`.

    Attributes:
        sides: the env of each party's learner, by the names of the parties.
        dialogues: what both sides are of.

    Raises:
        ValueError: the id or an argument is unknown, or the view is another one.
    """

    def __init__(
        self, env_id: Environment, n_envs: int, seed: int | None = None, **kwargs: Any
    ) -> None:
        entry = entry_of(env_id)
        if entry.kind.actions != TOKENS:
            raise ValueError(
                f"SelfPlay: expected an id of a token view, got {entry.id!r} ({entry.view} view); "
                f"take {entry.row.id('token')!r}, or for acts agents.MADPL"
            )
        arguments = split_kwargs(entry, TokenTwoPartyEnv, kwargs)
        self.dialogues = PairedDialogues([TokenTwoPartyEnv(**arguments) for _ in range(n_envs)])
        self.sides = {party: SelfPlayEnv(self.dialogues, party) for party in self.dialogues.parties}
        self.rng = np.random.default_rng(seed)

    def learn(
        self,
        learners: Mapping[str, GRPO],
        total_timesteps: int,
        learning: Sequence[str] | None = None,
        callbacks: Mapping[str, MaybeCallback] | None = None,
        log_interval: int = 1,
    ) -> None:
        """Play and improve until `total_timesteps` tokens have been said, by both together.

        Args:
            learners: a `GRPO` for each party, made with its side; their `group_size` is one.
            total_timesteps: schedules fall over them.
            learning: the parties that learn; the others only play. None: both. Of none, ``()``, it
                is play alone: `dialogues` and each learner's `rollout` have what was said.
            callbacks: of each learner, as everywhere in Stable-Baselines3.
            log_interval: rollouts from one line of the learners' logs to the next.

        Raises:
            ValueError: a learner is missing, or has settings that are unavailable here.
            FloatingPointError: a reward, loss or gradient is not finite.
        """
        self._check(learners)
        heard = {party: (callbacks or {}).get(party) for party in learners}
        made = {
            party: learner._setup_learn(total_timesteps, heard[party])[1]
            for party, learner in learners.items()
        }
        for callback in made.values():
            callback.on_training_start(locals(), globals())
        rollouts = 0
        while (said := sum(one.num_timesteps for one in learners.values())) < total_timesteps:
            for learner in learners.values():
                learner._update_current_progress_remaining(said, total_timesteps)
            if not self._play(learners, made):
                break
            rollouts += 1
            for party in learners if learning is None else learning:
                if len(learners[party].rollout_buffer):
                    learners[party].train()
            if rollouts % log_interval == 0:
                for learner in learners.values():
                    learner.dump_logs(rollouts)
        for callback in made.values():
            callback.on_training_end()

    def _play(
        self, learners: Mapping[str, GRPO], callbacks: Mapping[str, BaseCallback]
    ) -> bool:  # fmt: skip
        """Play a dialogue in each row, and leave it as each learner's `rollout`.

        Returns:
            False when a callback asked to stop.
        """
        self._begin(learners, callbacks)
        held: dict[str, list[np.ndarray]] = {party: [] for party in learners}
        while (party := self.dialogues.speaking()) is not None:
            learner, rows = learners[party], self.dialogues.holds(party)
            if len(held[party]) == learner.n_steps:
                break  # what goes on counts as it stands
            held[party].append(rows)
            learner._last_obs = self.sides[party].observe()
            if learner._step(self.sides[party], callbacks[party], rows) is None:
                return False
        for party, learner in learners.items():
            self._end(party, learner, held[party])
            callbacks[party].update_locals(locals())
            callbacks[party].on_rollout_end()
        return True

    def _begin(
        self, learners: Mapping[str, GRPO], callbacks: Mapping[str, BaseCallback]
    ) -> None:  # fmt: skip
        """Begin all dialogues, those of a group alike."""
        [size] = {learner.group_size for learner in learners.values()}
        count = len(self.dialogues.games) // (size or 1)
        seeds = np.repeat(self.rng.integers(2**31, size=count), size or 1)
        self.dialogues.begin([int(seed) for seed in seeds])
        for party, learner in learners.items():
            learner.policy.set_training_mode(False)
            learner.rollout_buffer.reset()
            learner._last_episode_starts = np.ones(len(seeds), bool)
            callbacks[party].on_rollout_start()

    def _end(self, party: str, learner: GRPO, held: list[np.ndarray]) -> None:
        """Give a learner its rollout, and its log the dialogues."""
        said = np.sum(held, 0) if held else np.zeros(len(self.dialogues.games), int)
        for row, game in enumerate(self.dialogues.games):
            earned = float(self.dialogues.returns[party][row])
            learner.ep_info_buffer.append({"r": earned, "l": int(said[row]), "t": 0.0})  # type: ignore[union-attr]
            if self.dialogues.floor[row] == OVER:
                learner.ep_success_buffer.append(bool(game.infos[party]["is_success"]))  # type: ignore[union-attr]
        learner._last_obs = self.sides[party].observe()
        if held:
            rewards = np.stack(self.dialogues.rewards[party])
            check_rewards(rewards, learner._where)
            learner.rollout_buffer.replace("rewards", rewards)
            learner.rollout = learner._rollout(np.stack(held))

    def _check(self, learners: Mapping[str, GRPO]) -> None:
        """Raises ValueError for learners that cannot play here."""
        if set(learners) != set(self.sides):
            raise ValueError(
                f"SelfPlay: expected a learner for each of {sorted(self.sides)}, got "
                f"{sorted(learners)}"
            )
        for party, learner in learners.items():
            if not isinstance(learner, GRPO) or learner.get_env() is not self.sides[party]:
                raise ValueError(
                    f"SelfPlay: expected for {party!r} a GRPO made with sides[{party!r}], got "
                    f"{type(learner).__name__} with another env"
                )
            known = learner.credit in ("episode", "turn")
            several = learner.processes.count > 1
            if learner.resample or learner.truth_gain or not known or several:
                raise ValueError(
                    "SelfPlay: resample, truth_gain, credits but 'episode' and 'turn', and several "
                    f"processes are unavailable; got resample={learner.resample}, truth_gain="
                    f"{learner.truth_gain}, credit={learner.credit!r} and "
                    f"{learner.processes.count} process(es) for {party!r}"
                )
        sizes = {party: learner.group_size for party, learner in learners.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"SelfPlay: expected one group_size, got {sizes}")
