"""Users and judges behind a service: one that is not there is one clear error everywhere."""

import re

import pytest

import dialgym
from dialgym.errors import ServiceError
from dialgym.rewards import make_rewards
from dialgym.rewards.base import Reply
from tests.support.commands import fail
from tests.support.faulty_users import RemoteJudge, RemoteUser

USER = "tests.support.faulty_users:RemoteUser"
SAID = r"no answer from the service at http://127\.0\.0\.1:9/v1 .*Start it, or check its address"
ID = "dialgym/TwentyQuestions-8-utterance-v0"


def test_a_user_whose_service_is_not_there():
    env = dialgym.make(ID, simulator=RemoteUser())
    env.reset(seed=0)
    with pytest.raises(ServiceError, match=f"^RemoteUser of TwentyQuestions: {SAID}") as failed:
        env.step("is it a dog")
    assert failed.value.__suppress_context__  # no traceback of what the client library did
    batch = dialgym.make_vec(ID, 2, simulator=RemoteUser())
    batch.reset(seed=0)
    with pytest.raises(ServiceError, match=f"failed in row 0: {SAID}"):
        batch.step(["is it a dog"] * 2)


def test_it_is_the_same_error_in_a_pool():
    pool = dialgym.make_vec("dialgym/TwentyQuestions-8-v0", 2, workers=1, simulator=USER)
    try:
        pool.reset(seed=0)
        pool.action_space.seed(0)
        steps = (pool.step(pool.action_space.sample()) for _ in range(500))
        with pytest.raises(ServiceError, match=SAID):
            list(steps)  # until an utterance ends
    finally:
        pool.close()


def test_and_at_the_command_line():
    said = fail("evaluate", "random", ID, "-n", "2", "--set", f"simulator={USER}")
    assert re.search(SAID, said)


def test_a_judge_whose_service_is_not_there():
    rewards = make_rewards({"kind": RemoteJudge()})
    with pytest.raises(ServiceError, match=f"^reward 'kind': {SAID}"):
        rewards.score([Reply("hello there", (), ())])


def test_the_address_of_a_service_is_no_name_of_a_user():
    with pytest.raises(ValueError, match=r"behind a service as openai:MODEL, with base_url"):
        dialgym.make(ID, simulator="http://localhost:8000/v1")
