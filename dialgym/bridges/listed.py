"""Lists of dialogues to be begun by a name and a number, as of OpenEnv's task providers."""

from collections.abc import Mapping, Sequence
from typing import Any

from dialgym.errors import did_you_mean
from dialgym.tasks import Task

SEEDS = "seeds"
"""The list of tasks that have no fixed lists: dialogues by their seeds, 0 and so on."""
SIZE = 1000
ALONE = ("seed", "options")
"""Arguments of a reset that a listed dialogue has already."""


class ListedDialogues:
    """The fixed lists of a task's dialogues; of other tasks the first dialogues by their seeds.

    The dialogue with index i begins by the seed i, and by the options that its list has for it.

    Args:
        env_id: of the environment.
        task: its rules.
    """

    def __init__(self, env_id: str, task: Task) -> None:
        self._env_id = env_id
        self._splits = task.splits or {SEEDS: ({},) * SIZE}

    def list_splits(self) -> list[str]:
        """Names of the lists."""
        return list(self._splits)

    def num_tasks(self, split: str) -> int:
        """Dialogues of a list.

        Raises:
            IndexError: there is no such list.
        """
        return len(self._options(split))

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """Name of a listed dialogue: to be begun by ``reset(split=, index=)``.

        Raises:
            IndexError: there is no such dialogue.
        """
        count = self.num_tasks(split)
        if type(index) is not int or index not in range(count):
            raise IndexError(
                f"index of split {split!r}: expected a whole number, 0 to {count - 1}; got "
                f"{index!r:.80}."
            )
        name = f"{self._env_id}/{split}/{index}"
        return {"id": name, "split": split, "index": index, "seed": index}

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """All dialogues of a list."""
        return self.get_task_range(split)

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[dict[str, Any]]:
        """Dialogues of a list from `start` to before `stop`, as of slices."""
        numbers = range(self.num_tasks(split))[start:stop]
        return [self.get_task(split, number) for number in numbers]

    def beginning(self, given: Mapping[str, Any]) -> tuple[Any, Any]:
        """Seed and options by which a dialogue begins, of the arguments of its reset.

        Raises:
            ValueError: ``split`` and ``index`` are not together, or beside others.
            IndexError: there is no such dialogue.
        """
        names = sorted(name for name, value in given.items() if value is not None)
        if not {"split", "index"}.intersection(names):
            return given["seed"], given["options"]
        if names != ["index", "split"]:
            raise ValueError(
                "reset of OpenEnv: expected 'split' and 'index' together and without "
                f"{' and '.join(map(repr, ALONE))}, which a listed dialogue has already; got "
                f"{', '.join(map(repr, names))}."
            )
        number = self.get_task(given["split"], given["index"])["seed"]
        return number, self._options(given["split"])[number]

    def _options(self, split: str) -> Sequence[Mapping[str, Any]]:
        if split not in self._splits:
            raise IndexError(
                f"split of {self._env_id}: expected one of {', '.join(self._splits)}; got "
                f"{split!r:.80}.{did_you_mean(str(split), self._splits)}"
            )
        return self._splits[split]
