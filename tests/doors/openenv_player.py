"""The player of OpenEnv's door: a server for each id, and its own client over a WebSocket."""

import asyncio
import json
import threading
from functools import cache

import uvicorn
from openenv.core import GenericEnvClient

from dialgym.bridges import openenv
from dialgym.io.http_server import listening
from dialgym.testing.agreement import lines_of, played


def play(env_id, settings, seed, texts):
    """Play the texts in a session."""
    return asyncio.run(session(served(env_id, json.dumps(settings)), seed, texts))


@cache
def served(env_id, settings):
    """Address of a server that lives as long as this process."""
    listener = listening("test")
    app = openenv.app(env_id, **json.loads(settings))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    threading.Thread(target=server.run, args=([listener],), daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


async def session(url, seed, texts):
    async with GenericEnvClient(base_url=url) as client:
        messages = list((await client.reset(seed=seed)).observation["messages"])
        opening, rewards, told = lines_of(messages), [], []
        for text in texts:
            result = await client.step({"text": text})
            rewards.append(result.reward)
            told.append(result.observation["metadata"])
            messages += [{"role": "assistant", "content": text}, *result.observation["messages"]]
    ends = told[-1]["terminated"], told[-1]["truncated"]
    components = [each["components"] for each in told]
    return played(opening, messages, rewards, None, components, ends, told[-1]["is_success"])
