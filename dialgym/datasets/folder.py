"""A folder of Parquet files that a collection fills, shard by shard."""

import json
import re
from pathlib import Path
from typing import Any

from dialgym.datasets.collector import Recipe
from dialgym.datasets.tables import write_table
from dialgym.files import write_text

RECIPE = "collection.json"
_NAME = re.compile(r"dialogues-(\d+)-(\d+)\.parquet")


class Folder:
    """The files of one collection; the name of each says which episodes it holds.

    A file that is there is whole, so what is missing is what no file is named after.

    Args:
        path: where the files are.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def prepare(self, recipe: Recipe, episodes: int) -> list[range]:
        """Make the folder ready to take `episodes` of a recipe; the shards that are missing.

        Raises:
            ValueError: it holds another collection, or a longer one.
        """
        self._claim(recipe)
        wanted = [recipe.episodes(shard, episodes) for shard in range(recipe.shards(episodes))]
        have = self.files()
        longest = max((part.stop for part in have), default=0)
        if longest > episodes:
            raise ValueError(
                f"collect: {str(self.path)!r} holds {longest} episodes already; got "
                f"episodes={episodes}. Load it with load_dataset, or give another path."
            )
        for part in have.keys() - set(wanted):  # the last shard of a shorter collection
            have[part].unlink()
        return [part for part in wanted if part not in have]

    def _claim(self, recipe: Recipe) -> None:
        facts, file = recipe.facts(), self.path / RECIPE
        if not file.exists():
            if self.path.exists() and any(self.path.glob("*.parquet")):
                raise ValueError(
                    f"collect: {str(self.path)!r} holds Parquet files of something else. "
                    "Give another path."
                )
            write_text(file, json.dumps(facts, indent=1))
            return
        before = json.loads(file.read_text("utf-8"))
        if before.get("env") == facts["env"].partition("/")[2]:  # as it was given
            before["env"] = facts["env"]
        changed = [k for k in facts if json.dumps(before.get(k)) != json.dumps(facts[k])]
        if changed:
            what = ", ".join(f"{k} {before.get(k)!r}, now {facts[k]!r}" for k in changed)
            raise ValueError(
                f"collect: {str(self.path)!r} holds another collection ({what}). "
                "Give the same arguments to go on with it, or another path."
            )

    def files(self) -> dict[range, Path]:
        """The files by their episodes, in order."""
        found = {}
        for file in sorted(self.path.glob("dialogues-*.parquet")):
            if match := _NAME.fullmatch(file.name):
                found[range(int(match[1]), int(match[2]))] = file
        return found

    def write(self, part: range, table: Any) -> None:
        """Write a shard, whole or not at all."""
        file = self.path / f"dialogues-{part.start:09d}-{part.stop:09d}.parquet"
        write_table(file, table)

    def tidy(self) -> None:
        """Remove what killed collectors left."""
        for file in self.path.glob(".dialogues-*.parquet"):
            file.unlink(missing_ok=True)
