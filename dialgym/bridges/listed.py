"""Lists of dialogues to be begun by a name and a number, as of OpenEnv's task providers."""

from typing import Any

from dialgym.errors import one_of

SEEDS = "seeds"
"""The split of dialogues by their seeds, 0 and so on."""
SIZE = 1000


class ListedBySeed:
    """The first dialogues of an id by their seeds, as a split.

    Args:
        env_id: whose they are.
    """

    def __init__(self, env_id: str) -> None:
        self._env_id = env_id

    def list_splits(self) -> list[str]:
        """Names of the sets of dialogues."""
        return [SEEDS]

    def num_tasks(self, split: str) -> int:
        """Dialogues of a split."""
        one_of("split", split, self.list_splits(), self._env_id)
        return SIZE

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """The dialogue of a split with this index, to be begun by ``reset(split=, index=)``."""
        if not 0 <= index < self.num_tasks(split):
            raise IndexError(f"index of {split!r}: expected 0 to {SIZE - 1}; got {index}.")
        return {"id": f"{self._env_id}#{index}", "index": index, "seed": index}

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """All dialogues of a split."""
        return self.get_task_range(split)

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[dict[str, Any]]:
        """Dialogues of a split from `start` to before `stop`, as of slices."""
        numbers = range(self.num_tasks(split))[start:stop]
        return [self.get_task(split, number) for number in numbers]
