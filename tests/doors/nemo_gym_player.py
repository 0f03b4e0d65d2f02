"""The player of NeMo-Gym's door: a session of its server, asked as ``gymnasium_agent`` asks."""

import asyncio
import json
from types import SimpleNamespace

from dialgym.bridges import nemo_gym
from dialgym.testing.agreement import lines_of, played
from tests.doors.stand_ins import standing_in

SESSION = "session"


def server():
    """A new server; NeMo-Gym's own is a pydantic model that a runner gives its configuration."""
    with standing_in("resources_servers"):
        form = nemo_gym.server()
    return form.model_construct(session_state={})


def response(text):
    """A model's response with its thoughts and one message."""
    thought = SimpleNamespace(type="reasoning", summary=[])
    said = SimpleNamespace(type="output_text", text=text)
    return SimpleNamespace(output=[thought, SimpleNamespace(type="message", content=[said])])


def play(env_id, settings, seed, texts):
    """Play the texts by a row that has been written and read."""
    (row,) = json.loads(json.dumps(nemo_gym.rows(env_id, 1, seed=seed, **settings)))
    return asyncio.run(session(server(), row, texts))


async def session(served, row, texts):
    """The record of a session; the agent keeps the information of the last turn alone."""
    opening = row.pop("responses_create_params")["input"]
    messages, rewards = [*opening], []
    assert await served.reset(row, SESSION) == (None, {})
    for text in texts:
        heard, reward, *ends, info = await served.step(response(text), row, SESSION)
        rewards.append(reward)
        messages.append({"role": "assistant", "content": text})
        if any(ends):
            assert heard is None
            await served.close_session(SESSION)
        else:
            messages.append({"role": "user", "content": heard})
    info = json.loads(json.dumps(info))
    assert info["turn_rewards"] == rewards
    assert served.session_state == {}
    if info["closing"]:
        messages.append({"role": "user", "content": info["closing"]})
    return played(
        lines_of(opening),
        messages,
        rewards,
        None,
        info["turn_components"],
        tuple(ends),
        info["is_success"],
    )
