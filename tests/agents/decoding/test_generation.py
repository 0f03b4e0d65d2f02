"""Whole utterances, drawn and searched for, against everything that can be said."""

from collections import Counter

import numpy as np
import pytest
import torch
from gymnasium import spaces

from agents.decoding import generation
from agents.decoding.beams import beam_search
from agents.decoding.generation import draw, read_prompts, sample_utterances
from agents.models.build import Execution
from agents.policies.value import ValueGPTPolicy
from dialgym.language.constraints import AnyText, WordTrie
from dialgym.language.tokenizers import END, FIRST_TEXT
from dialgym.views.spaces import TokenBox
from tests.support.by_day import by_day
from tests.support.toy_tokens import SYSTEM, TOKENIZER, USER, V, box

MOST, WINDOW = 3, 12
LETTERS = range(FIRST_TEXT, V)
PROMPTS = [
    [USER, FIRST_TEXT, END, SYSTEM],
    [USER, FIRST_TEXT + 1, FIRST_TEXT + 2, END, SYSTEM],
    [USER, FIRST_TEXT, END, SYSTEM, FIRST_TEXT + 3],  # an utterance has begun
    [USER, FIRST_TEXT, END, SYSTEM, FIRST_TEXT, FIRST_TEXT],
]


def policy(**kwargs) -> ValueGPTPolicy:
    """Utterances of any letters; values and policy far from uniform."""
    torch.manual_seed(0)
    space = TokenBox(TOKENIZER, WINDOW, SYSTEM, AnyText())
    kwargs = {"n_layer": 2, "n_head": 2, "n_embd": 16, **kwargs}
    made = ValueGPTPolicy(space, spaces.Discrete(V), lambda _: 1e-3, **kwargs)
    for head in made.q_heads:
        torch.nn.init.normal_(head.outer.weight)
    made.target_q_heads.load_state_dict(made.q_heads.state_dict())
    torch.nn.init.normal_(made.backbone.wte.weight, std=0.5)
    return made


def rows(prompts=PROMPTS) -> torch.Tensor:
    tokens = torch.zeros(len(prompts), WINDOW, dtype=torch.int64)
    for row, prompt in zip(tokens, prompts, strict=True):
        row[: len(prompt)] = torch.tensor(prompt)
    return tokens


@torch.no_grad()
def everything(model: ValueGPTPolicy, prompt: list[int]) -> dict[tuple[int, ...], float]:
    """Log-probabilities of all that may be said, each token read from the start."""
    room = MOST - (len(prompt) - 1 - prompt.index(SYSTEM))
    model.config["execution"] = Execution(cache=False)
    found = {}

    def walk(said: tuple[int, ...], log_prob: float) -> None:
        if said and (said[-1] == END or len(said) == room):
            found[said] = log_prob
            return
        logits = model.get_distribution(rows([[*prompt, *said]])).distribution.logits[0]
        for token in [END, *LETTERS]:
            walk((*said, token), log_prob + logits[token].item())

    walk((), 0.0)
    model.config["execution"] = Execution()
    return found


def said(utterances, row: int, j: int) -> tuple[int, ...]:
    return tuple(utterances.tokens[row, j, : utterances.lengths[row, j]].tolist())


SPEAKERS = [
    {},
    {"decoding": {"beta": 2.0, "top_k": 4}},
    {"decoding": {"beta": 2.0}, "share_features_extractor": False},
]


@pytest.mark.parametrize("kwargs", by_day(SPEAKERS, SPEAKERS[1]))
def test_samples_come_as_often_as_they_are_likely(kwargs):
    model, count = policy(**kwargs), 3000
    prompts = read_prompts(model, rows(), MOST)
    assert prompts.room.tolist() == [3, 3, 2, 1]
    torch.manual_seed(1)
    drawn = sample_utterances(model, prompts, count)
    for row, prompt in enumerate(PROMPTS):
        table = everything(model, prompt)
        assert sum(np.exp(list(table.values()))) == pytest.approx(1, abs=1e-5)
        each = [said(drawn, row, j) for j in range(count)]
        known = [table[words] for words in each]
        np.testing.assert_allclose(drawn.log_prob[row].tolist(), known, rtol=0, atol=1e-4)
        seen = Counter(each)
        error = [seen[words] / count - np.exp(table[words]) for words in table]
        assert np.abs(error).sum() / 2 < 0.12  # total variation, of a few dozen utterances


@pytest.mark.parametrize("kwargs", SPEAKERS)
def test_a_wide_beam_finds_the_best_in_order_and_a_narrow_one_is_greedy(kwargs):
    model = policy(**kwargs)
    prompts = read_prompts(model, rows(), MOST)
    wide, narrow = beam_search(model, prompts, 90), beam_search(model, prompts, 1)
    for row, prompt in enumerate(PROMPTS):
        table = everything(model, prompt)
        best = sorted((p for p in table.values() if p > -1e6), reverse=True)
        found = [wide.log_prob[row, j].item() for j in range(len(best))]
        assert found == pytest.approx(best, abs=1e-4)
        assert all(table[said(wide, row, j)] == pytest.approx(found[j], abs=1e-4) for j in (0, 1))
        assert wide.lengths[row, len(best) :].tolist() == [0] * (90 - len(best))
        assert (wide.log_prob[row, len(best) :] == -torch.inf).all()
        greedy, step = [], 0
        while not greedy or (greedy[-1] != END and step < prompts.room[row]):
            seen = rows([[*prompt, *greedy]])
            with torch.no_grad():
                greedy.append(model.get_distribution(seen).get_actions(deterministic=True).item())
            step += 1
        assert said(narrow, row, 0) == tuple(greedy)


def test_a_beam_of_some_width_is_the_slow_one():
    model, width = policy(decoding={"beta": 1.0}), 3
    found = beam_search(model, read_prompts(model, rows(), MOST), width)
    for row, prompt in enumerate(PROMPTS):
        room = MOST - (len(prompt) - 1 - prompt.index(SYSTEM))
        beams = [((), 0.0)]
        for _ in range(room):
            longer = [b for b in beams if b[0] and b[0][-1] == END]
            for words, score in (b for b in beams if b not in longer):
                seen = rows([[*prompt, *words]])
                with torch.no_grad():
                    logits = model.get_distribution(seen).distribution.logits[0]
                longer += [((*words, t), score + logits[t].item()) for t in [END, *LETTERS]]
            beams = sorted(longer, key=lambda b: -b[1])[:width]
        assert [said(found, row, j) for j in range(len(beams))] == [words for words, _ in beams]
        scores = [score for _, score in beams]
        assert found.log_prob[row, : len(beams)].tolist() == pytest.approx(scores, abs=1e-4)


def test_hidden_states_are_those_of_plain_reading_and_pieces_change_nothing(monkeypatch):
    model = policy()
    uniform = torch.rand(len(PROMPTS), 5, MOST, generator=torch.Generator().manual_seed(2))
    prompts = read_prompts(model, rows(), MOST)
    whole = sample_utterances(model, prompts, 5, uniform, random=2, keep_hidden=True)
    monkeypatch.setattr(generation, "CPU_TOKENS", 1)
    pieces = sample_utterances(model, prompts, 5, uniform, random=2, keep_hidden=True)
    assert torch.equal(whole.tokens, pieces.tokens)
    torch.testing.assert_close(whole.hidden, pieces.hidden, atol=1e-5, rtol=1e-4)
    for row, prompt in enumerate(PROMPTS):
        for j in range(5):
            words = said(whole, row, j)
            with torch.no_grad():
                plain = model.backbone(torch.tensor([[*prompt, *words]]))[0, len(prompt) :]
            torch.testing.assert_close(
                whole.hidden[row, j, : len(words)], plain, atol=1e-5, rtol=1e-4
            )
            assert not whole.hidden[row, j, len(words) :].any()


def test_all_that_is_said_is_allowed():
    torch.manual_seed(0)
    space, kwargs = box(WINDOW, said=2), {"n_layer": 1, "n_head": 1, "n_embd": 8}
    model = ValueGPTPolicy(space, spaces.Discrete(V), lambda _: 1e-3, **kwargs)
    prompts = read_prompts(model, rows(PROMPTS[:3]))
    sampled = sample_utterances(model, prompts, 40, random=20)
    for drawn in (sampled, beam_search(model, prompts, 4)):
        for row, prompt in enumerate(PROMPTS[:3]):
            for j in range(drawn.tokens.shape[1]):
                words = said(drawn, row, j)
                letters = [*prompt[prompt.index(SYSTEM) + 1 :], *words[:-1]]
                assert words[-1] == END
                assert len(letters) == 2
                assert set(letters) <= set(LETTERS)


@pytest.mark.parametrize("known", ["constraint", "union"])  # the same in every state, or not
def test_beams_of_words_of_many_lengths_are_all_words(known):
    words = {"a", "ab", "abc", "bcd", "cc", "dad"}
    torch.manual_seed(0)
    space = TokenBox(TOKENIZER, WINDOW, SYSTEM, **{known: WordTrie(words)})
    kwargs = {"n_layer": 1, "n_head": 1, "n_embd": 8}
    model = ValueGPTPolicy(space, spaces.Discrete(V), lambda _: 1e-3, **kwargs)
    torch.nn.init.normal_(model.backbone.wte.weight)
    prompts = read_prompts(model, rows(PROMPTS[:2]))
    for drawn in (beam_search(model, prompts, 8), sample_utterances(model, prompts, 99, random=99)):
        for row in range(2):
            found = {TOKENIZER.decode(said(drawn, row, j)[:-1]) for j in range(8)}
            assert found - {""} <= words
    wide = beam_search(model, prompts, 8)
    for row in range(2):
        found = [said(wide, row, j) for j in range(8)]
        assert {TOKENIZER.decode(tokens[:-1]) for tokens in found[:6]} == words
        assert found[6:] == [(), ()]
        assert wide.log_prob[row, :6].exp().sum().item() == pytest.approx(1, abs=1e-5)


def test_random_utterances_are_uniform_over_what_may_be_said():
    model = policy()
    prompts = read_prompts(model, rows(PROMPTS[-1:]), MOST)
    torch.manual_seed(3)
    drawn = sample_utterances(model, prompts, 2000, random=2000)
    assert drawn.log_probs[0, :, 0].tolist() == pytest.approx([-np.log(5)] * 2000)
    counts = np.bincount(drawn.tokens[0, :, 0], minlength=V)
    assert counts[[END, *LETTERS]].sum() == 2000
    assert (np.abs(counts[[END, *LETTERS]] - 400) < 80).all()


def test_each_token_costs_one_cached_forward():
    model, calls = policy(), []
    extend = model.backbone.extend
    model.backbone.extend = lambda *args: calls.append(len(args[3])) or extend(*args)
    prompts = read_prompts(model, rows(), MOST)
    assert len(calls) <= 3  # rows of other lengths are read apart
    calls.clear()
    sample_utterances(model, prompts, 8)
    assert len(calls) <= MOST - 1


def test_an_utterance_ends_at_the_end_of_the_window():
    model = policy()
    prompt = [USER, *[FIRST_TEXT] * 8, SYSTEM, FIRST_TEXT]
    prompts = read_prompts(model, rows([prompt]))
    assert prompts.room.tolist() == [1]
    full = read_prompts(model, rows([[*prompt, FIRST_TEXT]]))
    drawn = sample_utterances(model, full, 4, keep_hidden=True)
    assert drawn.lengths.tolist() == [[1] * 4]


def test_draws_are_the_inverse_of_the_cumulative_distribution():
    log_probs = torch.tensor([[0.2, 0.0, 0.5, 0.3]]).log().expand(5, 4)
    numbers = torch.tensor([0.0, 0.29, 0.31, 0.79, 0.81])
    assert draw(log_probs, numbers).tolist() == [3, 3, 2, 2, 0]


def test_a_beam_without_width_is_one_clear_error():
    model = policy()
    with pytest.raises(ValueError, match="width must be at least 1, got 0"):
        beam_search(model, read_prompts(model, rows()), 0)
