"""verifiers' door: a taskset of dialogues, the environment that plays them, and a harness.

A task is a seed: its prompt is the opening of a chat, and rollouts of it begin alike. The model is
the environment's agent ``player``; the chat answers as its user. A trace has the reward ``return``,
the metric ``success`` and one for each component of the reward, and in `info` the
``turn_rewards``, ``turn_components``, ``terminated``, ``truncated`` and ``closing`` words.

The harness that goes with it sends each turn to the model from this process: no program, no
container, no package from the network.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from dialgym.bridges.rows import check_same
from dialgym.bridges.verifiers_harness import EXTRA, PURPOSE, in_process
from dialgym.optional import require
from dialgym.registry import Environment
from dialgym.views.chat import Chat, ChatReply

MAKER = "its taskset"


class Classes(NamedTuple):
    """Classes that a package of verifiers exports, each once."""

    taskset: Any
    env: Any
    harness: Any


def classes(id_or_task: Environment, **settings: Any) -> Classes:
    """The classes of a task, to be exported by a package of its own.

    Args:
        id_or_task, settings: as of `dialgym.Chat`.

    Raises:
        ImportError: verifiers is missing.
        ValueError: there is no such id or setting.
    """
    vf = require("verifiers.v1", EXTRA, PURPOSE)
    first = Chat(id_or_task, **settings)

    class DialogueData(vf.TaskData):  # type: ignore[name-defined, misc]
        seed: int

    class DialogueTask(vf.Task[DialogueData, vf.State, vf.TaskConfig]):  # type: ignore[name-defined, misc]
        pass

    class DialoguesConfig(vf.TasksetConfig):  # type: ignore[name-defined, misc]
        seed: int = 0
        count: int = 1000

    class VerifiersDialogues(vf.Taskset[DialogueTask, DialoguesConfig]):  # type: ignore[name-defined, misc]
        def load(self) -> Any:
            chat, begin = first.clone(), self.config.seed
            for seed in range(begin, begin + self.config.count):
                brief, *prompt = chat.reset(seed)
                told = {"system_prompt": brief["content"], "prompt": prompt}
                data = DialogueData(name=f"{chat.env_id}#{seed}", seed=seed, **told)
                yield DialogueTask(data, self.config.task)

    class DialogueEnvConfig(vf.EnvConfig):  # type: ignore[name-defined, misc]
        player: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())  # type: ignore[name-defined]

    class VerifiersEnv(vf.Env[DialogueEnvConfig]):  # type: ignore[name-defined, misc]
        async def run(self, task: Any, agents: Any) -> None:
            chat, replies = first.clone(), list[ChatReply]()
            opening = await asyncio.to_thread(chat.reset, task.data.seed)
            told = [{"content": each.content, "seed": task.data.seed} for each in task.data.prompt]
            check_same(told, opening[1:], MAKER)  # a brief may be the harness's own
            async with agents.player.interaction(task) as talk:
                turn = await talk.turn()
                note_rewards(talk.trace, replies)
                while not turn.terminated:
                    replies.append(await asyncio.to_thread(chat.step, turn.last_reply))
                    note_rewards(talk.trace, replies)
                    if replies[-1].over:
                        break
                    turn = await talk.turn(replies[-1].text)

    return Classes(VerifiersDialogues, VerifiersEnv, in_process(vf))


def note_rewards(trace: Any, replies: Sequence[ChatReply]) -> None:
    """Record in a trace what was earned, up to where it was cut."""
    trace.record_reward("return", sum(reply.reward for reply in replies))
    trace.record_metric("success", bool(replies) and replies[-1].info["is_success"])
    for name in replies[-1].components if replies else ():
        trace.record_metric(f"reward_{name}", sum(reply.components[name] for reply in replies))
    trace.info["turn_rewards"] = [reply.reward for reply in replies]
    trace.info["turn_components"] = [dict(reply.components) for reply in replies]
    for name in ("terminated", "truncated"):
        trace.info[name] = bool(replies) and getattr(replies[-1], name)
    trace.info["closing"] = replies[-1].text if replies and replies[-1].over else ""
