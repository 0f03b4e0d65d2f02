"""Folders of imported dialogues elsewhere: what lies beside the dialogues goes with them."""

import json
import shutil
from pathlib import Path
from typing import Any

from dialgym.datasets.foreign.sizes import BPE
from dialgym.datasets.schema import FOLDER, arrow
from dialgym.io.files import parse_json
from dialgym.tasks.logged.corpus import CARD


def beside(table: Any) -> Path | None:
    """The folder of the dialogues that a table's settings name; None where they name none."""
    folders = {
        settings.get("data")
        for text in table["settings"].unique().to_pylist()
        if isinstance(settings := parse_json(text, "settings"), dict)
    }
    folder = Path(str(folders.pop())) if len(folders) == 1 else None
    return folder if folder is not None and (folder / CARD).is_file() else None


def copy_beside(source: Path, target: Path) -> None:
    """Copy what says how to read dialogues into another folder."""
    for name in (CARD, BPE):
        if (source / name).is_file():
            target.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target / name)


def relative(table: Any) -> Any:
    """A table whose settings name the folder that it lies in, and its dialogues by their places."""
    pa = arrow()
    texts = table["settings"].to_pylist()
    known = {text: json.dumps({**_without_split(text), "data": FOLDER}) for text in set(texts)}
    options = [json.dumps({"dialogue": place}) for place in range(len(texts))]
    columns = {"settings": [known[text] for text in texts], "options": options}
    for name, values in columns.items():
        place = table.column_names.index(name)
        table = table.set_column(place, table.schema.field(name), pa.array(values, pa.string()))
    return table


def _without_split(text: str) -> dict[str, Any]:
    """Settings for a folder that has these dialogues alone."""
    return {k: v for k, v in parse_json(text, "settings").items() if k != "split"}
