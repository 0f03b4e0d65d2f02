"""Seconds of dialogues with a language model as user, whose service waits before it answers.

    python -m benchmarks.model_users [--episodes 64]

The service is a process of its own, and waits 100 ms. Beside it the tape that was recorded, which
asks nobody. Seconds are of a machine and its load.
"""

import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dialgym
from benchmarks.tables.records import Figures, run_measurement
from dialgym.experiments.tables import markdown_table
from dialgym.io.http_server import listening

NAME, COMMAND = "model_users", "python -m benchmarks.model_users"
ENV_ID, POLICY, MOST_TURNS = "SlotFilling-v0", "handcrafted", 12
WAIT, ANSWER = 0.1, "I want something else."
ABOUT = {"record": "asked, and recorded on a tape", "replay": "replayed from that tape"}
HEAD = ("user", "dialogues", "replies", "rounds", "seconds", "of them waited", "CPU ms a reply")


def measure(episodes: int) -> dict[str, dict[str, float]]:
    """Figures of a user that is recorded, and of the tape."""
    with tempfile.NamedTemporaryFile(suffix=".tape") as tape, service() as url:
        play(1, {"base_url": url})  # imports
        return {how: play(episodes, {"base_url": url, how: tape.name}) for how in ABOUT}


def play(episodes: int, settings: dict[str, str]) -> dict[str, float]:
    """Figures of dialogues in rounds."""
    user = {"lm": {"model": "stub", **settings}}
    made = {"simulator": user, "language": "english", "turns": MOST_TURNS}
    since, used = time.perf_counter(), time.process_time()
    result = dialgym.evaluate(POLICY, ENV_ID, episodes, [0], made, num_envs=episodes)
    seconds, cpu = time.perf_counter() - since, time.process_time() - used
    replies = result.usage.get("requests", 0) + result.usage.get("replayed", 0)
    rounds = int(result[ENV_ID].lengths.max())
    asked = rounds if "requests" in result.usage else 0
    return {
        "dialogues": episodes,
        "replies": replies,
        "rounds": asked,
        "seconds": round(seconds, 2),
        "waited": asked * WAIT,
        "cpu": round(1e3 * cpu / replies, 2),
    }


@contextmanager
def service() -> Iterator[str]:
    """URL of a service in a process of its own, ended after."""
    listener = listening("stub")
    running = multiprocessing.get_context("fork").Process(target=_serve, args=[listener])
    running.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        running.terminate()
        running.join()
        listener.close()


def _serve(listener: Any) -> None:
    import uvicorn
    from fastapi import FastAPI

    app = FastAPI()
    message = {"role": "assistant", "content": ANSWER}
    usage = {"prompt_tokens": 100, "completion_tokens": 5}

    @app.post("/v1/chat/completions")
    async def answer() -> dict[str, Any]:
        await asyncio.sleep(WAIT)
        return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}

    uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listener])


def table(figures: Figures) -> str:
    """A row for a user that is asked, and one for its tape."""
    return markdown_table([HEAD, *[_row(how, figures[how]) for how in ABOUT]])


def _row(how: str, found: dict[str, float]) -> list[str]:
    counts = [f"{found[name]:,}" for name in ("dialogues", "replies", "rounds")]
    times = [f"{found['seconds']:.2f}", f"{found['waited']:.2f}", f"{found['cpu']:.2f}"]
    return [ABOUT[how], *counts, *times]


if __name__ == "__main__":
    run_measurement(__doc__, NAME, COMMAND, 64, measure, table)
