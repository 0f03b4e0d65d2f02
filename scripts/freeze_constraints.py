"""Pin every package that the running environment holds, as a pip constraints file.

    .freeze-venv/bin/python scripts/freeze_constraints.py constraints.txt

`make freeze` makes a fresh environment for it. Local version labels are dropped (`2.13.0+cpu`
becomes `2.13.0`), so that the pins hold for each build of a release.
"""

import os
import sys
from importlib.metadata import distributions
from pathlib import Path

HEADER = "# The versions that CI installs. Made by `make freeze`: do not edit.\n"
NOT_PINNED = {"dialgym", "pip"}


def pins() -> list[str]:
    """`name==version` of each installed package, sorted by name."""
    versions = {dist.name: dist.version.partition("+")[0] for dist in distributions()}
    names = sorted(versions.keys() - NOT_PINNED, key=str.lower)
    return [f"{name}=={versions[name]}" for name in names]


def main(path: Path) -> None:
    part = path.with_suffix(".part")
    part.write_text(HEADER + "\n".join(pins()) + "\n", encoding="utf-8")
    os.replace(part, path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(f"usage: {sys.argv[0]} CONSTRAINTS_FILE")
    main(Path(sys.argv[1]))
