"""Rows and a server for NeMo-Gym, whose rows need no library: the server needs `nemo-gym`.

NeMo-Gym is in no extra, as it does not install on every Python. Words stand in the place of what
its model server answers.
"""

import asyncio
import sys
from importlib.util import find_spec
from types import SimpleNamespace

from dialgym.bridges import nemo_gym

rows = nemo_gym.rows("Wordle-20-v0", 2, seed=3)
nemo_gym.write_rows(rows, "runs/bridges/train.jsonl")
for message in rows[0]["responses_create_params"]["input"]:
    print(f"{message['role']}: {message['content']}")
print({name: value for name, value in rows[0].items() if name != "responses_create_params"})

if find_spec("resources_servers") is None:
    print("NeMo-Gym is not installed: no server is made.")
    sys.exit()


async def play(server, row):
    """Play a dialogue of the server, as its agent does over HTTP."""
    await server.reset(row, "a session")
    for word in ("quiet", "crisp"):
        said = SimpleNamespace(type="output_text", text=word)
        response = SimpleNamespace(output=[SimpleNamespace(type="message", content=[said])])
        heard, reward, *_, info = await server.step(response, row, "a session")
        print(f"assistant: {word}\nuser: {heard}  ({reward:g})")
    print(info)


# In NeMo-Gym's folder of servers a module ends with nemo_gym.server().run_webserver()
asyncio.run(play(nemo_gym.server().model_construct(session_state={}), rows[0]))
