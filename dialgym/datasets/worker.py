"""A worker of a collection: told which shards to write, by its standard input."""

import os
import pickle
import sys
from typing import Any, BinaryIO

from dialgym.datasets.collector import Collector
from dialgym.datasets.folder import Folder


def main() -> None:
    """Collect what the parent asks for, until it hangs up."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a policy prints is no answer
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        _serve(sys.stdin.buffer, answers)
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        os._exit(0)  # the parent is gone; nothing is left to flush


def _serve(orders: BinaryIO, answers: BinaryIO) -> None:
    def answer(value: Any) -> None:
        pickle.dump(value, answers)
        answers.flush()

    collector: Collector | None = None
    try:
        recipe, path = pickle.load(orders)
        collector = Collector(recipe)
    except EOFError:
        raise
    except Exception as error:
        answer(error)
        return
    while True:
        part = pickle.load(orders)
        try:
            Folder(path).write(part, collector.table(part, answer))
        except BrokenPipeError:
            raise
        except Exception as error:
            answer(error)
        else:
            answer(None)
