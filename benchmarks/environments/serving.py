"""Speed of `dialgym serve visual`: ``python -m benchmarks.environments.serving``.

A server in a process of its own, and clients in threads of this one, each of which plays dialogues
of ten random questions: one request to ``/step_rank`` a question, and the next only after the
answer. Requests a second are of wall time, as clients and server share the machine; what either
spends of the CPU on a request stands beside them.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import numpy as np
import psutil
import typer

from benchmarks.environments.timing import print_machine
from dialgym.tasks.visual_dialogue.guessers import Held
from dialgym.tasks.visual_dialogue.pool import Pool, make_pool
from dialgym.tasks.visual_dialogue.remote import Remote
from dialgym.tasks.visual_dialogue.retrieval import of_visdial

ROUNDS = 10
WARM = 1.0  # seconds before it counts


@contextmanager
def server(settings: Sequence[str]) -> Iterator[tuple[str, psutil.Process]]:
    """The URL of a new server, and its process; it is ended after."""
    command = [sys.executable, "-m", "dialgym", "serve", "visual", "--port", "0"]
    arguments = [part for setting in settings for part in ("-s", setting)]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if "http://" not in line:
            raise RuntimeError(f"the server has not come up: {line!r}")
        yield line[line.index("http://") :].partition(";")[0], psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def questions_of(pool: Pool) -> Sequence[str]:
    """Questions that may be asked about the images."""
    if pool.questions:
        return pool.questions
    dialogues = of_visdial(pool, "the benchmark").dialogues
    return [question for dialogue in dialogues for question, _ in dialogue.rounds]


class Clients:
    """Clients who ask, each in a thread of its own.

    Args:
        remote: the server.
        count: of clients.
    """

    def __init__(self, remote: Remote, count: int) -> None:
        self.remote, self.count = remote, count
        self.questions = questions_of(remote.pool)
        self.begin = self.end = 0.0

    def run(self, seconds: float) -> np.ndarray:
        """Seconds that each request took which began after the warm-up."""
        self.begin = time.perf_counter() + WARM
        self.end = self.begin + seconds
        found: list[list[float]] = [[] for _ in range(self.count)]
        threads = [
            threading.Thread(target=self._ask, args=(n, found[n])) for n in range(self.count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return np.array([spent for own in found for spent in own])

    def _ask(self, number: int, spent: list[float]) -> None:
        rng, pool = np.random.default_rng(number), self.remote.pool
        while time.perf_counter() < self.end:
            image = int(rng.integers(len(pool)))
            held = Held(pool.captions[image], (), image)
            for place in rng.integers(len(self.questions), size=ROUNDS).tolist():
                asked, start = self.questions[place], time.perf_counter()
                said = self.remote.answer(held, asked)
                if self.begin <= start < self.end:
                    spent.append(time.perf_counter() - start)
                held = held._replace(history=(*held.history, (asked, said)))


def main(
    pool: Annotated[str, typer.Option(help="The images: scenes, or visdial:PATH.")] = "scenes",
    guesser: Annotated[str, typer.Option(help="Who ranks them.")] = "exact",
    clients: Annotated[int, typer.Option(min=1, help="How many ask at a time.")] = 16,
    seconds: Annotated[float, typer.Option(min=0.1, help="Of a measurement.")] = 10.0,
    repeats: Annotated[int, typer.Option(min=1, help="Measurements.")] = 3,
) -> None:
    """Measure requests a second and how long they take."""
    print_machine()
    with server([f"pool={pool}", f"guesser={guesser}"]) as (url, process):
        remote = Remote(make_pool(pool), url)
        remote.percentile(Held(remote.pool.captions[0], (), 0))
        for count in (1, *[clients] * repeats):
            before, own = sum(process.cpu_times()[:2]), time.process_time()
            spent = Clients(remote, count).run(seconds)
            share = seconds / (seconds + WARM) / len(spent)  # what is measured of the CPU's time
            served = (sum(process.cpu_times()[:2]) - before) * share
            asked = (time.process_time() - own) * share
            middle, late = 1e3 * np.quantile(spent, [0.5, 0.99])
            print(
                f"{count:3} clients: {len(spent) / seconds:7,.0f} requests/s, median "
                f"{middle:5.1f} ms, p99 {late:5.1f} ms; CPU of a request {1e3 * served:.2f} ms in "
                f"the server, {1e3 * asked:.2f} ms in the client; load {os.getloadavg()[0]:.1f}"
            )


if __name__ == "__main__":
    typer.run(main)
