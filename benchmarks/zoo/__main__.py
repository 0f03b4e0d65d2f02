"""Make the zoo of the best trainings of panels.

    python -m benchmarks.zoo [--rows FOLDER ...] [--out FOLDER] [--chosen FILE]

`zoo.yaml` says which environments have an agent; of each environment's trainings the one with the
highest mean of the panel's metric is taken, of those that have their model on disk. An environment
without any, or whose best is no better than a random policy, has no agent; one that the zoo has
already stays where no better was found. The folder is replaced as a whole, with cards and index. It
is made with the data that come with dialgym: variables that name others, such as
``DIALGYM_PYDIAL``, do not count here.
"""

import argparse
import os
from pathlib import Path

from benchmarks.zoo.candidates import candidates
from benchmarks.zoo.folder import size_of, that_stay, write_zoo
from dialgym.cli.benchmark import ROWS
from dialgym.io.files import read_yaml
from dialgym.io.saved_models import ZOO
from dialgym.tasks.daily_dialog.corpus import DAILYDIALOG
from dialgym.tasks.multiwoz.data import MULTIWOZ
from dialgym.tasks.slot_filling.domain.domain import PYDIAL

HERE = Path(__file__).parent
CHOSEN = HERE / "zoo.yaml"
DATA = (PYDIAL, MULTIWOZ, DAILYDIALOG)
"""Variables that name data which do not come with dialgym."""


def main() -> None:
    """Make the zoo as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=Path, nargs="+", default=[ROWS], help="folders of rows")
    parser.add_argument("--out", type=Path, default=HERE.parents[1] / "zoo", help="the new folder")
    parser.add_argument("--chosen", type=Path, default=CHOSEN, help="environments by panel, YAML")
    given = parser.parse_args()
    for name in DATA:
        os.environ.pop(name, None)
    try:
        chosen = read_yaml(given.chosen)
        found, left_out = candidates(chosen, given.rows)
        stay = that_stay(found, given.out, chosen)
        kept = {agent.id for agent in stay}
        found = [one for one in found if one.environment.id not in kept]
        write_zoo(found, given.out, stay)
    except ValueError as error:
        parser.error(str(error))
    for one in found:
        print(f"{ZOO}{one.name}: seed {one.seed}, the best of {one.among}, mean {one.mean:.1f}")
    print("\n".join(left_out))
    print(f"as they were: {', '.join(agent.name for agent in stay) or 'none'}")
    print(f"in {given.out}: {len(found) + len(stay)} agents, {size_of(given.out):,} bytes")


if __name__ == "__main__":
    main()
