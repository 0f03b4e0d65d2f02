"""Tinker's door: groups of dialogues for the reinforcement learning of the Tinker cookbook.

A group is a seed, so its members start alike. Observations are token ids that are only appended
to: each has the last one and what the model has sampled as its beginning, so a trajectory is
trained on as one sequence, in which the model's own ids are the actions.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialgym.bridges.rows import begin, chat_of, rows_of
from dialgym.bridges.token_chats import TokenChat
from dialgym.optional import require
from dialgym.registry import Environment

EXTRA, PURPOSE = "tinker", "training by Tinker"
NO_ROOM, BY_RULES, CUT = "max_tokens", "completed", "max_turns"
"""The cookbook's names of reasons for which a dialogue stops."""


def groups(
    id_or_task: Environment,
    tokenizer: Any,
    count: int,
    size: int,
    seed: int = 0,
    max_length: int | None = None,
    **settings: Any,
) -> "list[Group]":
    """Groups of dialogues, those of `seed` and on.

    Args:
        id_or_task, settings: as of `dialgym.Chat`; settings must be plain values.
        tokenizer: of the model, with a chat template.
        count: groups.
        size: members of each.
        max_length: as of `Group`.

    Raises:
        ValueError: there is no such id or setting, or one is no plain value.
    """
    rows = rows_of(id_or_task, count, seed, **settings)
    return [Group(row, tokenizer, size, max_length) for row in rows]


@dataclass(frozen=True)
class Group:
    """A group in the form of the cookbook's ``EnvGroupBuilder``; it can be pickled.

    Args:
        row: of the dialogue, as `dialgym.bridges.rows.rows_of` makes it.
        tokenizer: of the model, with a chat template.
        size: members.
        max_length: ids of a completion, those of others included, after which no turn begins;
            None for no bound.
        template: further arguments of the chat template.
    """

    row: Mapping[str, Any]
    tokenizer: Any
    size: int
    max_length: int | None = None
    template: Mapping[str, Any] = field(default_factory=dict)

    async def make_envs(self) -> "Sequence[TinkerDialogue]":
        """New members, each for one episode."""
        return [TinkerDialogue(self) for _ in range(self.size)]

    async def compute_group_rewards(
        self, trajectory_group: Sequence[Any], env_group: Sequence[Any]
    ) -> list[tuple[float, dict[str, float]]]:
        """No rewards beside those of the turns."""
        return [(0.0, {}) for _ in trajectory_group]

    async def cleanup(self) -> None:
        """Nothing is held."""

    def logging_tags(self) -> list[str]:
        """The id, by which the cookbook's metrics are grouped."""
        return [self.row["env_id"]]


class TinkerDialogue:
    """A dialogue in the form of the cookbook's ``Env``, for one episode.

    Args:
        group: whose member it is.

    Raises:
        ImportError: the cookbook is missing.
        ValueError: there is no such id or setting.
    """

    def __init__(self, group: Group) -> None:
        self._types = require("tinker_cookbook.rl.types", EXTRA, PURPOSE)
        self._group, self._chat = group, chat_of(group.row)

    async def initial_observation(self) -> tuple[Any, list[int]]:
        """Ids of the opening, and those of which one ends a turn."""
        opening = await asyncio.to_thread(begin, self._chat, self._group.row)
        self._dialogue = TokenChat(self._group.tokenizer, opening, **self._group.template)
        return self._observed(self._dialogue.tokens.ids), self._dialogue.tokens.ends

    async def step(self, action: list[int], *, extra: Any = None) -> Any:
        """Say a turn as it was sampled.

        Returns:
            The cookbook's ``StepResult``: its ``metrics`` have the parts of the reward, and at the
            end ``success``, ``terminated``, ``truncated`` and the reason to stop; ``logs`` what was
            ``heard``. After the end nothing is observed.
        """
        dialogue = self._dialogue
        dialogue.hear(await asyncio.to_thread(self._chat.step, dialogue.say(action)))
        reply, stop = dialogue.replies[-1], self._stop()
        metrics = {f"reward/{name}": value for name, value in reply.components.items()}
        if stop:
            told = dialogue.outcome()
            metrics |= {name: float(told[name]) for name in ("success", "terminated", "truncated")}
            metrics[f"stop/{stop}"] = 1.0
        return self._types.StepResult(
            reward=reply.reward,
            episode_done=bool(stop),
            next_observation=self._observed([] if stop else dialogue.tokens.ids),
            next_stop_condition=dialogue.tokens.ends,
            metrics=metrics,
            logs={"heard": reply.text},
        )

    def _stop(self) -> str:
        """Reason to stop after the last turn; "" for none."""
        last, most = self._dialogue.replies[-1], self._group.max_length
        if last.over:
            return BY_RULES if last.terminated else CUT
        used = len(self._dialogue.tokens.ids) - self._dialogue.tokens.prompt_length
        return NO_ROOM if most is not None and used >= most else ""

    def _observed(self, ids: Sequence[int]) -> Any:
        return require("tinker", EXTRA, PURPOSE).ModelInput.from_ints([*ids])


class GroupDataset:
    """Groups in batches, in the form of the cookbook's ``RLDataset``.

    Args:
        groups: those of an epoch.
        batch_size: groups of a batch; what is left over is left out.
    """

    def __init__(self, groups: Sequence[Group], batch_size: int) -> None:
        self._groups, self._size = groups, batch_size

    def get_batch(self, index: int) -> Sequence[Group]:
        """The groups of a batch."""
        return self._groups[index * self._size : (index + 1) * self._size]

    def __len__(self) -> int:
        return len(self._groups) // self._size
