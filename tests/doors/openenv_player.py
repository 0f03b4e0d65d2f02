"""The player of OpenEnv's door: its own client at a server, one for each environment."""

import asyncio
import json
from contextlib import ExitStack

from dialgym.bridges import openenv
from tests.support.openenv_server import openenv_server, play_openenv

_URLS: dict[str, str] = {}
_SERVERS = ExitStack()  # in threads that end with the process


def play(env_id, settings, seed, texts):
    key = json.dumps([env_id, settings])
    if key not in _URLS:
        app = openenv.app(env_id, **settings)
        _URLS[key] = _SERVERS.enter_context(openenv_server(app))
    return asyncio.run(play_openenv(_URLS[key], texts, seed=seed))
