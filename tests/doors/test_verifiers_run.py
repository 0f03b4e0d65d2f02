"""verifiers' door without the package: the beginning of a rollout in its environment."""

import asyncio
import sys
import threading
from contextlib import asynccontextmanager
from types import ModuleType, SimpleNamespace

import pytest

import dialgym
from dialgym.bridges import verifiers

ID = "SlotFilling-v0"  # the user speaks first
NAMES = (
    *("TaskData", "Task", "State", "TaskConfig", "TasksetConfig", "Taskset"),
    *("EnvConfig", "Env", "AgentConfig", "SubprocessConfig", "Harness", "HarnessConfig"),
)


class Form:
    def __init__(self, **given):
        pass

    def __class_getitem__(cls, _):
        return cls


@pytest.fixture
def stand_in(monkeypatch):
    module = ModuleType("verifiers.v1")
    vars(module).update({name: type(name, (Form,), {}) for name in NAMES})
    monkeypatch.setitem(sys.modules, "verifiers", ModuleType("verifiers"))
    monkeypatch.setitem(sys.modules, "verifiers.v1", module)


class Player:
    """An agent that leaves before its first turn."""

    @asynccontextmanager
    async def interaction(self, task):
        async def turn():
            return SimpleNamespace(terminated=True)

        noted = {"record_reward": lambda *_: None, "record_metric": lambda *_: None}
        yield SimpleNamespace(turn=turn, trace=SimpleNamespace(info={}, **noted))


class Noted:
    """The user of a task, who notes the threads in which it is asked."""

    def __init__(self):
        self.threads = []

    def reply(self, task, state, rng):
        self.threads.append(threading.current_thread())
        return task.speaker_named("user", "agenda").reply(task, state, rng)


def run(user, opening):
    """Play a task whose prompt is an opening."""
    prompt = [SimpleNamespace(content=message["content"]) for message in opening[1:]]
    task = SimpleNamespace(data=SimpleNamespace(seed=3, prompt=prompt))
    env = verifiers.classes(ID, simulator=user).env()
    asyncio.run(env.run(task, SimpleNamespace(player=Player())))


def test_a_slow_user_who_speaks_first_delays_no_other_rollout(stand_in):
    user = Noted()
    run(user, dialgym.Chat(ID).reset(3))
    assert user.threads
    assert threading.main_thread() not in user.threads


def test_a_dialogue_that_begins_otherwise_than_its_prompt_is_refused(stand_in):
    with pytest.raises(ValueError, match="seed 3 begins otherwise"):
        run(None, dialgym.Chat(ID).reset(4))
