"""The player of OpenEnv's door: a server for each id, and its own client over a WebSocket."""

import asyncio
import json
from contextlib import ExitStack
from functools import cache

from dialgym.bridges import openenv
from tests.support.app_server import app_server
from tests.support.openenv_client import play_openenv

SERVERS = ExitStack()


def play(env_id, settings, seed, texts):
    """Play the texts in a session."""
    url = served(env_id, json.dumps(settings))
    return asyncio.run(play_openenv(url, texts, seed=seed))


@cache
def served(env_id, settings):
    """Address of a server that lives as long as this process."""
    app = openenv.app(env_id, **json.loads(settings))
    return SERVERS.enter_context(app_server(app))
