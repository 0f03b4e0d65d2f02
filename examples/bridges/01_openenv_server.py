"""A dialogue behind OpenEnv's server, and a client that plays it: needs the extra `openenv`."""

import asyncio
import threading

from dialgym.bridges import openenv
from dialgym.io.http_server import listening
from dialgym.optional import check_installed

check_installed("openenv", "this example", "openenv", "uvicorn")
import uvicorn
from openenv.core import GenericEnvClient

listener = listening("example")
server = uvicorn.Server(uvicorn.Config(openenv.app("Wordle-20-v0"), log_level="error"))
threading.Thread(target=server.run, args=([listener],), daemon=True).start()


async def play(url: str) -> None:
    """Play one dialogue by the client that comes with OpenEnv."""
    async with GenericEnvClient(base_url=url) as client:
        result = await client.reset(seed=3)
        for message in result.observation["messages"]:
            print(f"{message['role']}: {message['content']}")
        for word in ("quiet", "crisp"):
            result = await client.step({"text": word})
            print(f"assistant: {word}\nuser: {result.observation['text']}  ({result.reward:g})")


asyncio.run(play(f"http://127.0.0.1:{listener.getsockname()[1]}"))
server.should_exit = True
