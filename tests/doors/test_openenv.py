"""OpenEnv's door against the real package, over WebSockets."""

import asyncio

import pytest

import dialgym

pytest.importorskip("openenv", reason="needs the extra `openenv`")
from openenv.cli._validation import validate_running_environment
from openenv.core import GenericEnvClient

from dialgym.bridges import openenv
from tests.support.openenv_serving import Serving

GUESSES = ["quiet", "Crisp ", "", "no such word at all", "level"]


@pytest.fixture(scope="module")
def url():
    with Serving(openenv.app("Wordle-20-v0")) as address:
        yield address


async def played(url, seed, texts=GUESSES):
    async with GenericEnvClient(base_url=url) as client:
        begun = await client.reset(seed=seed)
        results = [begun.observation["messages"]]
        for text in texts:
            result = await client.step({"text": text})
            observation = result.observation
            results.append((observation["text"], result.reward, result.done))
            if result.done:
                break
        return results


def by_chat(seed, texts=GUESSES):
    chat = dialgym.Chat("Wordle-20-v0")
    results = [chat.reset(seed)]
    for text in texts:
        reply = chat.step(text)
        results.append((reply.text, reply.reward, reply.over))
        if reply.over:
            break
    return results


def test_the_package_validates_it(url):
    report = validate_running_environment(url)
    assert report["passed"], report


@pytest.mark.parametrize("seed", range(3))
def test_a_seed_gives_the_same_dialogue_as_a_chat(url, seed):
    assert asyncio.run(played(url, seed)) == by_chat(seed) == asyncio.run(played(url, seed))


def test_64_sessions_at_once_do_not_mix(url):
    async def all_of_them():
        return await asyncio.gather(*(played(url, seed) for seed in range(64)))

    expected = [by_chat(seed) for seed in range(64)]
    assert asyncio.run(all_of_them()) == expected
    assert len({str(results) for results in expected}) > 5


def test_tasks_are_listed_and_begun(url):
    session = openenv.environment("Wordle-20-v0")()
    assert session.list_splits() == ["seeds"]
    assert session.num_tasks("seeds") == len(session.list_tasks("seeds")) == 1000
    assert [task["seed"] for task in session.get_task_range("seeds", 3, 5)] == [3, 4]
    chat = dialgym.Chat("Wordle-20-v0")
    begun = session.reset(split="seeds", index=7)
    assert begun.messages == chat.reset(7)
    assert session.chat.step("quiet").text == chat.step("quiet").text
    for bad in (-1, 1000):
        with pytest.raises(IndexError):
            session.get_task("seeds", bad)


@pytest.mark.parametrize(
    ("reset", "match"),
    [
        ({"seed": -1}, "(?i)seed"),
        ({"split": "none"}, "split"),
        ({"split": "seeds", "index": 1000}, "index"),
        ({"options": {"nothing": 1}}, "unknown option"),
        ({"nothing": 1}, "unexpected"),
    ],
)
def test_a_refused_reset_leaves_the_session_alive(url, reset, match):
    async def session():
        async with GenericEnvClient(base_url=url) as client:
            with pytest.raises(RuntimeError, match=match):
                await client.reset(**reset)
            return (await client.reset(seed=0)).observation["messages"]

    assert asyncio.run(session()) == by_chat(0)[0]


def test_a_turn_out_of_order_or_of_another_form_leaves_the_session_alive(url):
    async def session():
        async with GenericEnvClient(base_url=url) as client:
            with pytest.raises(RuntimeError, match="reset"):
                await client.step({"text": "quiet"})
            await client.reset(seed=0)
            for action in ({"text": 5}, {}, {"text": "quiet", "more": 1}):
                with pytest.raises(RuntimeError, match="Invalid"):
                    await client.step(action)
            await client.step({"text": "x" * 1_000_000})
            return (await client.reset(seed=0)).observation["messages"]

    assert asyncio.run(session()) == by_chat(0)[0]
