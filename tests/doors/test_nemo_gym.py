"""NeMo-Gym's door against the library where it is installed, and else against its stand-in."""

import asyncio
import json

import pytest
from gymnasium.error import ResetNeeded

import dialgym
from dialgym.bridges import nemo_gym
from tests.doors.nemo_gym_player import response, server

ID = "Wordle-20-v0"


def test_rows_are_lines_whose_input_is_the_opening(tmp_path):
    rows = nemo_gym.rows(ID, 3, seed=4, agent="mine", turns=3)
    nemo_gym.write_rows(rows, tmp_path / "train.jsonl")
    read = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text("utf-8").splitlines()]
    assert read == rows
    chat = dialgym.Chat(ID, turns=3)
    for row in read:
        assert row["responses_create_params"] == {"input": chat.reset(row["seed"])}
        assert row["agent_ref"] == {"type": "responses_api_agents", "name": "mine"}


def test_sessions_play_at_once_and_members_of_a_group_start_alike():
    """Three sessions of a server take turns: two of one row, and one of another."""

    async def played():
        first, second = nemo_gym.rows(ID, 2)
        served, heard = server(), {name: [] for name in "abc"}
        sessions = {"a": first, "b": first, "c": second}
        for name, row in sessions.items():
            await served.reset(row, name)
        for word in ("quiet", "crisp"):
            for name, row in sessions.items():
                heard[name].append((await served.step(response(word), row, name))[0])
        await served.close_session("a")
        assert {*served.session_state} == {"b", "c"}
        return heard

    heard = asyncio.run(played())
    assert heard["a"] == heard["b"] != heard["c"]


def test_a_session_without_a_dialogue_is_refused():
    with pytest.raises(ResetNeeded, match="session 'a' has no dialogue"):
        asyncio.run(server().step(response("quiet"), {}, "a"))
    with pytest.raises(ValueError, match="'env_id' among its columns"):
        asyncio.run(server().reset({"seed": 1}, "a"))


def test_settings_that_json_has_no_form_for_are_refused():
    with pytest.raises(ValueError, match="plain values"):
        nemo_gym.rows("Wordle-v0", 1, answers={"crane"})
