"""OpenEnv's server in a thread of the test's own process, and dialogues by its own client."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from openenv.core import GenericEnvClient

from dialgym.io.http_server import listening
from dialgym.testing.agreement import lines_of, played


@contextmanager
def openenv_server(app) -> Iterator[str]:
    """Its URL; it is ended after."""
    listener = listening("test")
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server has not come up"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


async def play_openenv(url, texts, **reset):
    """The record of a dialogue at a server, up to its end or that of the texts."""
    async with GenericEnvClient(base_url=url) as client:
        messages = list((await client.reset(**reset)).observation["messages"])
        opening, rewards, told = lines_of(messages), [], []
        for text in texts:
            result = await client.step({"text": text})
            rewards.append(result.reward)
            told.append(result.observation["metadata"])
            messages += [{"role": "assistant", "content": text}, *result.observation["messages"]]
            if result.done:
                break
    ends = told[-1]["terminated"], told[-1]["truncated"]
    assert result.done == any(ends)
    components = [each["components"] for each in told]
    return played(opening, messages, rewards, None, components, ends, told[-1]["is_success"])
