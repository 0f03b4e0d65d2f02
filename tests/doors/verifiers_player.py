"""The player of verifiers' door: its own rollout, whose model is a scripted service."""

import asyncio
import sys
from types import ModuleType

import verifiers.v1 as vf
from verifiers.v1.utils.loaders import load_environment, resolve_env_config

from dialgym.bridges import verifiers
from dialgym.language.messages import Message
from dialgym.testing.agreement import lines_of, record_of
from dialgym.views.chat import ChatReply
from tests.support.chat_server import chat_server

PACKAGE = "dialgym_door"


def play(env_id, settings, seed, texts):
    with chat_server(rule_of(texts)) as server:
        episode = asyncio.run(rollout(env_id, settings, seed, server.url))
    (trace,) = episode.traces
    assert trace.ok, trace.errors
    return record_of_trace(trace.model_dump())


def rule_of(texts):
    """A model that says the texts one after the other."""
    left = iter(texts)
    return lambda body: next(left)


async def rollout(env_id, settings, seed, url, player=None):
    """The episode of a seed, played by verifiers itself."""
    module = sys.modules[PACKAGE] = ModuleType(PACKAGE)
    found = verifiers.classes(env_id, **settings)
    vars(module).update(found._asdict(), __all__=found._fields)
    taskset = {"id": PACKAGE, "seed": seed, "count": 1}
    env = load_environment(resolve_env_config({"taskset": taskset, "player": player or {}}))
    (task,) = env.taskset
    context = vf.ModelContext("scripted", vf.EvalClientConfig(base_url=url))
    async with env.serving():
        return await env.run_slot(env.slots(task)[0], context)


def record_of_trace(trace):
    """The record of a trace as it is written."""
    messages = [Message(**each["message"]) for each in trace["nodes"]]
    said = [place for place, each in enumerate(trace["nodes"]) if each["sampled"]]
    told = trace["info"]
    if told["closing"]:
        messages.append(Message(role="user", content=told["closing"]))
    success = {"is_success": trace["metrics"]["success"]}
    ends = told["terminated"], told["truncated"]
    pairs = zip(told["turn_rewards"], told["turn_components"])
    replies = [ChatReply("", reward, parts, *ends, success) for reward, parts in pairs]
    return record_of(lines_of(messages[: said[0]]), messages, said, replies)
