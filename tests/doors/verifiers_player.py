"""The player of verifiers' door: its own rollout, whose model is a scripted service."""

import asyncio
import sys
from types import ModuleType

import verifiers.v1 as vf
from verifiers.v1.utils.loaders import load_environment, resolve_env_config

from dialgym.bridges import verifiers
from dialgym.testing.agreement import lines_of, played
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
    nodes, told = trace["nodes"], trace["info"]
    messages = [{**each["message"], "content": each["message"]["content"] or ""} for each in nodes]
    said = [place for place, each in enumerate(nodes) if each["sampled"]]
    if told["closing"]:
        messages.append({"role": "user", "content": told["closing"]})
    return played(
        lines_of(messages[: said[0]]),
        messages,
        told["turn_rewards"],
        said,
        told["turn_components"],
        (told["terminated"], told["truncated"]),
        trace["metrics"]["success"] == 1.0,
    )
