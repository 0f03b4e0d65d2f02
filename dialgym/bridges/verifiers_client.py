"""Door in for verifiers' packages: ``verifiers:PACKAGE``, by episodes whose model is the session.

The package's own environment plays an episode with its agent. That agent has the harness of
`dialgym.bridges.verifiers_harness`, and its model is a service in the same process that answers
with what is said in the session. All other parts are the package's and verifiers' own.
"""

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from itertools import islice
from math import isclose
from threading import Lock, Thread
from typing import Any, NamedTuple

from dialgym.bridges.foreign import ForeignTask, sample_quoted
from dialgym.bridges.verifiers_harness import EXTRA, in_process
from dialgym.optional import require
from dialgym.testing.sessions import Answer, TextEnvironment, TextSession

PURPOSE = "a package of verifiers"
MOST_TASKS = 1000
"""Tasks of a taskset that are played, the first ones."""


class VerifiersTask(ForeignTask):
    """Dialogues with the environment of a package of verifiers.

    A seed is the number of a task, modulo how many there are.
    """

    scheme = "verifiers"

    def find(self) -> TextEnvironment:
        """The environment of an installed package.

        Raises:
            ValueError: it has no tasks, or not one agent.
            ImportError: there is no such package, or verifiers is missing.
        """
        served = ServedPackage(self.address)

        def opened() -> TextSession:
            return VerifiersSession(served)

        return TextEnvironment(self.name, opened, sample_quoted)


class VerifiersSession:
    """A session with the one agent's place in a package's environment.

    The opening is all that the agent is first told, its system prompt included. A turn's reward is
    what the episode has earned since the turn before: of ``info["turn_rewards"]`` of its trace
    where these grow with the turns, else of the rewards that are recorded until then.

    Args:
        served: the environment, shared by all its sessions.
    """

    def __init__(self, served: "ServedPackage") -> None:
        self._served = served
        self._end: Any = None

    def reset(self, seed: int, options: Mapping[str, Any] | None = None) -> Answer:
        """Begin an episode.

        Raises:
            ValueError: options are given.
            RuntimeError: the package has raised an error.
        """
        if options:
            raise ValueError(f"{self._served.name}: expected no options; got {dict(options)!r}.")
        self.close()
        self._episode = Episode(self._served, seed)
        self._end = weakref.finalize(self, self._served.end, self._episode)
        return self._served.submit(self._episode.begin).result()

    def step(self, text: str) -> Answer:
        """Say a text.

        Raises:
            RuntimeError: the package has raised an error.
        """
        episode = self._episode
        return self._served.submit(lambda: episode.say(text)).result()

    def close(self) -> None:
        """End the episode, wherever it stands; a session that is forgotten ends by itself."""
        ending = self._end() if self._end is not None else None
        if ending is not None:
            ending.result()


class Asked(NamedTuple):
    """A request of the agent's model that waits for its answer."""

    messages: Sequence[Mapping[str, Any]]
    trace: Any
    answer: "asyncio.Future[str]"


class Episode:
    """An episode under way; all methods run in the loop that serves its environment."""

    def __init__(self, served: "ServedPackage", seed: int) -> None:
        self._env, self._episodes = served.env, served.episodes
        self._task = served.tasks[seed % len(served.tasks)]
        self._name = f"{served.name}, task {self._task.data.idx}"
        self._traces: list[Any] = []
        self._said, self._given = 0, 0.0

    async def begin(self) -> Answer:
        """Run the episode until its agent is asked."""
        self._requests: asyncio.Queue[Asked] = asyncio.Queue()
        running = self._env.run_episode(self._task, self._env.context, on_trace=self._minted)
        self._run: asyncio.Task[Any] = asyncio.create_task(running)
        return await self._next()

    async def ask(self, messages: Sequence[Mapping[str, Any]], trace_id: str) -> str:
        """The text that answers a request of the model."""
        trace = next(trace for trace in self._traces if trace.id == trace_id)
        answer = asyncio.get_running_loop().create_future()
        self._requests.put_nowait(Asked(messages, trace, answer))
        return await answer

    async def say(self, text: str) -> Answer:
        """Answer the request, and run the episode until the next one."""
        self._said += 1
        self._asked.answer.set_result(text)
        return await self._next()

    async def end(self) -> None:
        """Leave the episode, and wait until it has let go of all it holds."""
        self._run.cancel()
        await asyncio.gather(self._run, return_exceptions=True)
        for trace in self._traces:
            self._episodes.pop(trace.id, None)

    def _minted(self, trace: Any) -> None:
        self._traces.append(trace)
        self._episodes[trace.id] = self

    async def _next(self) -> Answer:
        asking = asyncio.create_task(self._requests.get())
        await asyncio.wait([asking, self._run], return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            self._asked = asking.result()
            return Answer(news(*self._asked[:2]), self._reward(over=False))
        asking.cancel()
        return self._over(self._run.result())

    def _over(self, episode: Any) -> Answer:
        if not self._env.complete(episode):
            errors = [*episode.errors, *(e for trace in self._traces for e in trace.errors)]
            reasons = "; ".join(f"{error.type}: {error.message}" for error in errors)
            raise RuntimeError(f"{self._name} has failed: {reasons or 'no error is told'}")
        trace = self._traces[-1]
        cut = trace.is_truncated or trace.is_timeout or bool(trace.info.get("truncated"))
        told = {**own_fields(trace.task.data), **trace.info, **trace.metrics}
        return Answer(
            str(trace.info.get("closing", "")), self._reward(over=True), not cut, cut, told
        )

    def _reward(self, over: bool) -> float:
        """Reward since the turn before; exactly that of the turn where turns are told."""
        total = float(sum(trace.reward for trace in self._traces))
        turns = self._traces[-1].info.get("turn_rewards")
        reward = total - self._given
        told = isinstance(turns, list) and 0 < self._said == len(turns)
        if told and (not over or isclose(self._given + turns[-1], total, abs_tol=1e-9)):
            reward = float(turns[-1])
        self._given += reward
        return reward


def news(messages: Sequence[Mapping[str, Any]], trace: Any) -> str:
    """Messages of a request that none before has told, as a text: all, or those after a reply."""
    begins = 0
    if trace.num_turns:
        replies = [n for n, each in enumerate(messages) if each["role"] == "assistant"]
        begins = 1 + max(replies, default=-1)
    return "\n\n".join(map(in_words, messages[begins:]))


def in_words(message: Mapping[str, Any]) -> str:
    """A message as a text, with the role of those that are neither the system's nor the user's."""
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    if others := sorted({part["type"] for part in parts} - {"text"}):
        raise ValueError(f"verifiers: expected messages of text; got {', '.join(others)}.")
    text = "\n".join(part["text"] for part in parts)
    plain = message["role"] in ("system", "user")
    return text if plain else f"{message['role']}: {text}"


def own_fields(data: Any) -> dict[str, Any]:
    """Fields of a task's data that its package has added, such as an answer."""
    common = require("verifiers.v1", EXTRA, PURPOSE).TaskData.model_fields
    return {name: value for name, value in data.model_dump().items() if name not in common}


class ServedPackage:
    """The environment of a package, served in a thread that begins with the first session.

    Sessions share it, as verifiers' rollouts do. It ends when none is left.

    Args:
        package: name of the package, as `vf-eval` takes it.

    Attributes:
        name: for messages.
        env: of verifiers.
        tasks: the first ones of its taskset.
        episodes: those under way by the ids of their traces.

    Raises:
        ValueError: it has no tasks, or not one agent.
        ImportError: there is no such package, or verifiers is missing.
    """

    def __init__(self, package: str) -> None:
        self.name = f"verifiers:{package}"
        self.env = environment_of(package, self.name)
        self.tasks = list(islice(self.env.taskset, MOST_TASKS))
        if not self.tasks:
            raise ValueError(f"{self.name} has no tasks.")
        self.episodes: dict[str, Episode] = {}
        self._process, self._lock = 0, Lock()

    def submit(self, call: Any) -> Future[Any]:
        """Run a coroutine function in the thread."""
        with self._lock:
            if self._process != os.getpid():  # none yet, or a fork: the thread is another's
                self._start()
        coroutine: Coroutine[Any, Any, Any] = call()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def end(self, episode: Episode) -> Future[Any] | None:
        """Begin to end an episode; None where it runs in another process."""
        return self.submit(episode.end) if self._process == os.getpid() else None

    def _start(self) -> None:
        ready: Future[tuple[Any, Any]] = Future()
        serving = serve(self.env, self.episodes, ready)
        Thread(target=asyncio.run, args=(serving,), name=self.name, daemon=True).start()
        self._loop, stop = ready.result()
        self._process = os.getpid()
        weakref.finalize(self, self._loop.call_soon_threadsafe, stop.set)


async def serve(env: Any, episodes: Mapping[str, Episode], ready: Future[tuple[Any, Any]]) -> None:
    """Serve an environment and the model of its agent until the event that `ready` is given."""
    stop = asyncio.Event()
    try:
        async with env.serving(), model_service(episodes) as url:
            env.point_to(url)
            ready.set_result((asyncio.get_running_loop(), stop))
            await stop.wait()
    except BaseException as error:
        if ready.done():
            raise
        ready.set_exception(error)


@asynccontextmanager
async def model_service(episodes: Mapping[str, Episode]) -> AsyncIterator[str]:
    """The address of a service of a model that says what is said in the sessions."""
    web = require("aiohttp.web", EXTRA, PURPOSE)

    async def complete(request: Any) -> Any:
        asked, trace_id = await request.json(), request.headers["X-Session-ID"]
        text = await episodes[trace_id].ask(asked["messages"], trace_id)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        about = {"id": trace_id, "object": "chat.completion", "created": 0}
        return web.json_response({**about, "model": asked["model"], "choices": [choice]})

    app = web.Application(client_max_size=2**30)
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app, handler_cancellation=True)  # where an episode is left
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def environment_of(package: str, name: str) -> Any:
    """The environment of a package, whose agent will be asked from this process."""
    vf = require("verifiers.v1", EXTRA, PURPOSE)
    loaders = require("verifiers.v1.utils.loaders", EXTRA, PURPOSE)
    try:
        loaders.taskset_class(package)
        kind = loaders.environment_class(package)
        role = role_of(loaders.env_config_type(package), vf.AgentConfig, name)
        local = {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}}
        config = loaders.resolve_env_config({"taskset": {"id": package}, role: local})
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{name} cannot be played: {error}") from error

    class PlayedEnv(kind):  # type: ignore[misc, valid-type]
        def point_to(self, url: str) -> None:
            client = vf.EvalClientConfig(base_url=url)
            self.context = vf.ModelContext(model="session", client=client)

        async def setup(self, agents: Any) -> None:
            await super().setup(agents)
            agent = getattr(agents, role)
            agent.ctx, agent.harness = self.context, harness

    harness = in_process(vf)(vf.HarnessConfig(id="null"))
    return PlayedEnv(config)


def role_of(config: Any, kind: type, name: str) -> str:
    """The name of the one agent that an environment's config has."""
    fields = config.model_fields.items()
    roles = [role for role, field in fields if isinstance(field.default, kind)]
    if len(roles) == 1:
        return str(roles[0])
    raise ValueError(
        f"{name}: expected an environment of one agent, which is played here; it has "
        f"{', '.join(roles) or 'none'}."
    )
