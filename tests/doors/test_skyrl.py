"""SkyRL-Gym's door against the real package."""

import pytest

import dialgym
from dialgym.bridges import skyrl

skyrl_gym = pytest.importorskip("skyrl_gym", reason="needs the extra `skyrl`")

IDS = ["Wordle-20-v0", "TwentyQuestions-16-v0", "SlotFilling-v0"]


@pytest.mark.parametrize("env_id", IDS)
def test_a_row_gives_the_same_dialogue_as_a_chat(env_id):
    for row in skyrl.rows(env_id, 3, seed=5):
        env = skyrl_gym.make(skyrl.register(), extras=row)
        chat = dialgym.Chat(env_id)
        opening = chat.reset(row["seed"])
        assert env.init(row["prompt"]) == (opening, {})
        assert row["prompt"] == opening
        earned, reply = 0.0, None
        while reply is None or not reply.over:
            reply, result = chat.step("quiet"), env.step("quiet")
            earned += reply.reward
            assert (result["reward"], result["done"]) == (reply.reward, reply.over)
            heard = [] if reply.over else [{"role": "user", "content": reply.text}]
            assert result["observations"] == heard
            assert result["metadata"]["truncated"] == reply.truncated
            assert result["metadata"]["components"] == reply.components
        assert env.get_metrics() == {"success": float(reply.info["is_success"]), "return": earned}
        env.close()


def test_rollouts_of_a_row_begin_alike_and_those_of_two_rows_do_not():
    def heard(row):
        env = skyrl_gym.make(skyrl.register(), extras=row)
        env.init(row["prompt"])
        return [env.step(word)["observations"] for word in ("quiet", "crisp")]

    rows = skyrl.rows("Wordle-20-v0", 6)
    answers = [heard(row) for row in rows]
    assert answers == [heard(row) for row in rows]
    assert any(answer != answers[0] for answer in answers)


def test_a_row_without_an_id_is_refused():
    skyrl.register()
    with pytest.raises(ValueError, match="env_id"):
        skyrl_gym.make("dialgym", extras={"seed": 1})
