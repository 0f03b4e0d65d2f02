"""``python -m dialgym`` is the command line: what `torchrun -m dialgym train ...` starts."""

import os
import sys
from pathlib import Path


def put_current_folder_last() -> None:
    """Look for modules in the current folder after all others, though Python has put it first.

    A file there hides nothing that is installed. Where dialgym itself lies there, a checkout, it
    stays, so that both of its packages come from one place.
    """
    here = os.getcwd()
    if sys.path[:1] == [here] and Path(__file__).resolve().parents[1] != Path(here).resolve():
        sys.path.append(sys.path.pop(0))


if __name__ == "__main__":
    if not sys.flags.safe_path:
        put_current_folder_last()
    from dialgym.cli import main

    main()
