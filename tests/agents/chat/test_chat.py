"""Agents that one can talk to: what they read, how they draw, and who may be one."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete
from stable_baselines3 import PPO

import dialgym
from agents import (
    BC,
    ILQL,
    NLPO,
    ChatAgent,
    DecisionTransformer,
    GPTPolicy,
    SequencePPO,
    UtteranceILQL,
)
from agents.decoding.replies import PolicyTalker, Turn, newest
from agents.decoding.sampling import Sampling, generator_of
from agents.models.masking import FORBIDDEN
from dialgym.language import AnyText, Utterance
from dialgym.language.tokenizers import END, FIRST_TEXT, TAGS
from dialgym.simulators import Speaker
from dialgym.views.spaces import TokenBox
from tests.agents.models.test_pretrained import save_model
from tests.support.toy_dialogues import dialogues, echo
from tests.support.toy_tokens import TOKENIZER, box

SYSTEM, USER = TAGS["system"], TAGS["user"]
SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}
ID = "dialgym/Wordle-20-v0"
A = FIRST_TEXT  # the token of the letter a


def policy(space, seed=0, **kwargs):
    torch.manual_seed(seed)
    made = GPTPolicy(space, Discrete(space.vocab_size), lambda _: 1e-3, **{**SMALL, **kwargs})
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return made


def free(window=40, **limits):
    return TokenBox(TOKENIZER, window, SYSTEM, AnyText(), limits)


class Spy:
    """A policy that says one thing and keeps what it was asked."""

    def __init__(self, space, said=(A, END)):
        self.observation_space, self.said = space, list(said)

    def set_training_mode(self, mode):
        assert not mode

    def utter(self, prompt, most, sampling, generator, masks):
        self.prompt, self.most = list(prompt), most
        return self.said


# What is read


def test_a_chat_is_written_as_the_environment_writes_it():
    spy = Spy(free())
    said = ChatAgent(PolicyTalker(spy)).chat("cd", ["a", "b", "ab", "ba"])
    assert said == "a"
    a, b, c, d = range(A, A + 4)
    first = [USER, a, END, SYSTEM, b, END, USER, a, b, END, SYSTEM, b, a, END]
    assert spy.prompt == [*first, USER, c, d, END, SYSTEM]
    assert spy.most == 10  # a quarter of the window


def test_the_history_ends_with_the_agents_own_words():
    spy = Spy(free())
    ChatAgent(PolicyTalker(spy)).chat("c", ["b"])
    assert spy.prompt == [SYSTEM, A + 1, END, USER, A + 2, END, SYSTEM]
    ChatAgent(PolicyTalker(spy)).chat(None)
    assert spy.prompt == [SYSTEM]


def test_limits_are_those_of_the_task():
    spy = Spy(free(user=2, system=3))
    agent = ChatAgent(PolicyTalker(spy))
    agent.chat("abc", ["d"], max_tokens=9)
    assert spy.prompt == [SYSTEM, A + 3, END, USER, A, A + 1, SYSTEM]  # cut, and no <end>
    assert spy.most == 3
    agent.chat("abc", max_tokens=2)
    assert spy.most == 2


def test_tokens_are_those_of_the_token_view():
    """Prompt for prompt what a dialogue of Wordle shows."""
    env = dialgym.sb3_vec_env(ID, 1, seed=0)
    space = env.observation_space
    seen, lines = env.reset()[0], []
    for guess in ("crane", "slimy"):
        spy = Spy(space)
        ChatAgent(PolicyTalker(spy)).chat(lines[-1] if lines else None, lines[:-1])
        assert spy.prompt == seen[seen > 0].tolist()
        for token in [*space.tokenizer.encode(guess), END]:
            [seen], _, _, infos = env.step(np.array([token]))
        lines += [guess, infos[0]["reply"]]


@pytest.mark.parametrize("window", range(8, 30))
def test_whole_oldest_utterances_leave(window):
    spy = Spy(free(window))
    history = ["a", "bb", "ccc", "dddd", "a", "b", "c", "d"]
    ChatAgent(PolicyTalker(spy)).chat("ab", history, max_tokens=3)
    assert len(spy.prompt) + 3 <= window
    whole = Spy(free(99))
    ChatAgent(PolicyTalker(whole)).chat("ab", history, max_tokens=3)
    left_out = len(whole.prompt) - len(spy.prompt)
    assert whole.prompt[left_out:] == spy.prompt
    assert spy.prompt[0] in (SYSTEM, USER)
    tags = [i for i, t in enumerate(whole.prompt) if t in (SYSTEM, USER)]
    before = max((i for i in tags if i < left_out), default=None)
    assert before is None or len(whole.prompt) - before + 3 > window  # one more has no room


def test_an_utterance_longer_than_the_window_is_an_error():
    agent = ChatAgent(PolicyTalker(Spy(free(12))))
    message = "the last utterance has 14 tokens, the window has room for 8 beside a reply"
    with pytest.raises(ValueError, match=message):
        agent.chat("a" * 12, max_tokens=3)
    with pytest.raises(ValueError, match="lower max_tokens"):
        agent.chat("a", max_tokens=12)
    assert newest([[1, 2], [3]], 1) == [[3]]


# How it is drawn


def test_a_reply_is_what_the_policy_says_token_by_token():
    own = policy(free())
    agent = ChatAgent(PolicyTalker(own), deterministic=True, max_tokens=8)
    said = agent.chat("ab", ["b", "c"])
    tokens = torch.zeros(1, 40, dtype=torch.int64)
    spy = Spy(free())
    ChatAgent(PolicyTalker(spy)).chat("ab", ["b", "c"])
    tokens[0, : len(spy.prompt)] = torch.tensor(spy.prompt)
    expected, place = [], len(spy.prompt)
    while len(expected) < 8:
        actions, _, _ = own(tokens, deterministic=True)
        if actions.item() == END:
            break
        expected.append(actions.item())
        tokens[0, place] = actions.item()
        place += 1
    assert said == TOKENIZER.decode(expected)
    assert said


def test_a_reply_costs_one_reading_and_a_step_a_token():
    own = policy(box(40, said=6))
    agent = ChatAgent(PolicyTalker(own))
    first = agent.chat("abcd", seed=1)
    assert len(first) == 6
    cache = own.caches._get(1)
    assert (
        cache.computed == 7 + 6
    )  # <user> a b c d <end> <system>, and the six to find what follows
    agent.chat("b", ["abcd", first], seed=2)
    assert cache.computed == 13 + 5 + 6  # <end> <user> b <end> <system>: only what is new is read


def test_draws_follow_from_the_seed_and_nothing_else():
    agent = ChatAgent(PolicyTalker(policy(free())), max_tokens=8)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    replies = [agent.chat("a", seed=seed) for seed in range(12)]
    assert torch.equal(torch.get_rng_state(), before)
    assert replies == [agent.chat("a", seed=seed) for seed in range(12)]
    assert len(set(replies)) > 6
    generator = generator_of(0)
    drawn = [agent.chat("a", seed=generator) for _ in range(4)]
    assert drawn[0] == replies[0]
    assert len(set(drawn)) > 1
    assert len({agent.chat("a") for _ in range(6)}) > 1


def test_a_token_is_drawn_by_its_probability():
    logits = torch.tensor([0.0, 1.0, 2.0, FORBIDDEN, -1.0])
    generator = generator_of(0)
    counts = np.zeros(5)
    for _ in range(4000):
        counts[Sampling(temperature=2.0).next_token(logits, generator)] += 1
    expected = (logits / 2).softmax(0).numpy()
    assert counts[3] == 0
    assert np.abs(counts / 4000 - expected).max() < 0.03
    two = {Sampling(top_k=2).next_token(logits, generator) for _ in range(200)}
    assert two == {1, 2}
    half = {Sampling(top_p=0.6).next_token(logits, generator) for _ in range(200)}
    assert half == {2}
    hot = [Sampling(temperature=1e9).next_token(logits, generator) for _ in range(400)]
    assert set(hot) == {0, 1, 2, 4}


def test_masks_of_the_task_hold():
    own = policy(box(40, said=3))
    agent = ChatAgent(PolicyTalker(own), temperature=5.0)
    assert {len(agent.chat("a", seed=seed)) for seed in range(20)} == {3}
    bare = policy(TokenBox(TOKENIZER, 40, SYSTEM))  # no masks, and special tokens are not said
    replies = [ChatAgent(PolicyTalker(bare)).chat("a", seed=s, temperature=9.0) for s in range(20)]
    assert all(set(reply) <= set("abcd") for reply in replies)
    assert len(set(replies)) > 10


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"temperature": 0}, "temperature must be above 0, got 0; deterministic=True"),
        ({"top_k": 0}, "top_k of sampling must be a whole number from 1; got 0"),
        ({"max_tokens": 0}, "max_tokens of sampling must be a whole number from 1; got 0"),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1, got 1.5"),
        ({"temprature": 1}, "unknown setting 'temprature' in sampling. Did you mean 'temperature'"),
        ({"history": "abc"}, "history: expected the utterances so far"),
        ({"history": [("a", "b")]}, "history: expected the utterances so far"),
    ],
)
def test_bad_arguments(setting, message):
    agent = ChatAgent(PolicyTalker(Spy(free())))
    with pytest.raises(ValueError, match=message):
        agent.chat("a", **setting)
    with pytest.raises(ValueError, match="text: expected a string"):
        agent.chat(3)


# Learners


@pytest.mark.parametrize("learner", [BC, ILQL, UtteranceILQL, DecisionTransformer])
def test_a_cloned_agent_answers_as_it_was_taught(learner, tmp_path):
    env = echo(turns=2, said=1)
    right = dialogues(400, seed=1)
    model = learner(
        "GPTPolicy", env, right, learning_rate=3e-3, policy_kwargs={**SMALL, "n_embd": 32}, seed=0
    ).learn(2)
    reply = model.chat("b", seed=0, max_tokens=1)
    assert reply in "abcd"
    model.save(tmp_path / "model")
    loaded = ChatAgent.load(tmp_path / "model.zip")
    same = [loaded.chat("c", ["b", "a"], seed=s) for s in range(8)]
    assert same == [model.chat("c", ["b", "a"], seed=s) for s in range(8)]
    assert model.chat("a", deterministic=True) == model.chat("a", deterministic=True)


def test_a_learner_by_playing_chats_as_well(tmp_path):
    model = SequencePPO("GPTPolicy", echo(), n_steps=8, policy_kwargs=SMALL, seed=0)
    (tmp_path / "run").mkdir()
    model.save(tmp_path / "run" / "model.zip")
    agent = ChatAgent.load(tmp_path / "run")
    for _ in range(2):
        assert agent.chat("a", seed=5) == model.chat("a", seed=5)
        model.learn(16)  # a cache of old weights would tell
        agent = ChatAgent.load(model)
    model.save(tmp_path / "run" / "model.zip")
    assert ChatAgent(str(tmp_path / "run")).chat("a", seed=5) == model.chat("a", seed=5)
    stock = PPO(GPTPolicy, echo(), n_steps=8, batch_size=8, policy_kwargs=SMALL, seed=0)
    assert len(ChatAgent.load(stock).chat("a")) == 1


def test_nlpo_keeps_to_its_nucleus():
    model = NLPO("GPTPolicy", echo(), n_steps=8, top_p=0.01, min_tokens=1, policy_kwargs=SMALL)
    for weight in model.policy.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    model.mask_policy.follow(model.policy)
    hot = {model.chat("a", seed=seed, temperature=20.0) for seed in range(10)}
    assert hot <= {"", model.chat("a", deterministic=True)}  # <end> may be said at any time
    free = ChatAgent(PolicyTalker(model.policy), temperature=20.0)
    assert len({free.chat("a", seed=seed) for seed in range(10)}) > 2


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_cannot_talk_says_so(tmp_path):
    with pytest.raises(ValueError, match="expected an agent with a GPT policy and observations"):
        ChatAgent.load(PPO("MlpPolicy", "CartPole-v1"))
    with pytest.raises(FileNotFoundError, match=r"chat: there is no file or folder '.*none.zip'"):
        ChatAgent.load(tmp_path / "none.zip")
    with pytest.raises(FileNotFoundError, match=r"chat: no model in .*: expected a run with m"):
        ChatAgent.load(tmp_path)
    (tmp_path / "model.zip").write_text("no zip")
    with pytest.raises(ValueError, match="is no saved model"):
        ChatAgent.load(tmp_path)


# Others to talk with


class Parrot:
    """Replies with what it was told last."""

    def answer(self, turns, sampling, generator):
        self.turns = turns
        return turns[-1].text if turns else "first"


def test_an_agent_is_a_speaker_of_either_party():
    parrot = Parrot()
    assert isinstance(ChatAgent(parrot), Speaker)
    lines = [Utterance("user", "hi"), Utterance("system", "hello"), Utterance("user", "bye")]
    for party in ("system", "user"):
        task = SimpleNamespace(speaker=lambda _, p=party: p, transcript=lambda *_: lines)
        assert ChatAgent(parrot).reply(task, None, np.random.default_rng(0)) == "bye"
        assert parrot.turns == [Turn(line.speaker == party, line.text) for line in lines]
    assert PolicyTalker(Spy(free())).answer([], Sampling(), generator_of(0)) == "a"


def test_speech_follows_from_the_generator_of_the_dialogue():
    env = dialgym.sb3_vec_env(ID, 1)
    model = SequencePPO("GPTPolicy", env, n_steps=8, policy_kwargs=SMALL, seed=0)
    agent = ChatAgent(PolicyTalker(model.policy))
    first, second = (dialgym.evaluate(agent, ID, 3, seeds=(4,)) for _ in range(2))
    assert first[ID].returns.tolist() == second[ID].returns.tolist()


# Threads


def in_threads(agent, lines):
    """Replies to each line, asked for by five threads at once, over and over."""
    with ThreadPoolExecutor(5) as threads:
        jobs = [(line, seed) for seed in range(5) for line in lines]
        said = list(threads.map(lambda job: agent.chat(job[0], seed=job[1]), jobs))
    alone = [agent.chat(line, seed=seed) for line, seed in jobs]
    return said, alone


def test_threads_get_the_replies_that_they_would_get_alone():
    agent = ChatAgent(PolicyTalker(policy(free())))
    said, alone = in_threads(agent, ["a", "ab", "dcba", "cc", "bad"])
    assert said == alone
    assert len(set(alone)) > 5


def test_threads_share_a_language_model(tmp_path):
    save_model(tmp_path)
    said, alone = in_threads(ChatAgent.load(str(tmp_path), max_tokens=6), ["ab", "c", "dab"])
    assert said == alone
