"""Greedy decoding that does not say whole utterances of the learner's own again."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

import agents.storage.spaces  # noqa: F401  (how spaces are kept)
from agents.decoding.repeats import MOST_DECIDED, Decided, Earlier, leading_along, unrepeated
from agents.models.observations import Observed
from agents.policies.value import ValueGPTPolicy
from agents.storage.values import Packer, Unpacker
from dialgym.language import WordTrie, compile_constraint
from dialgym.language.tokenizers import END, TAGS
from dialgym.views.spaces import TokenBox
from tests.support.toy_policies import SMALL, policy
from tests.support.toy_tokens import TOKENIZER, V, box

YOU, USER = TAGS["system"], TAGS["user"]
A, B, C, D = 5, 6, 7, 8
WINDOW, LAST = 40, 9
REPLY = [USER, C, END, YOU]
SAID_AB = [YOU, A, B, END, *REPLY]
SAID_AB_CD = [*SAID_AB, C, D, END, *REPLY]
ENDS = {END: 1.0}


class Table:
    """Probabilities of the next token by the utterance so far; it ends where nothing is written."""

    def __init__(self, table):
        self.table, self.asked = table, 0

    def row(self, window):
        start = max(place for place, token in enumerate(window) if token == YOU) + 1
        said = self.table.get(tuple(window[start:]), ENDS)
        row = torch.zeros(LAST + 1)
        row[list(said)] = torch.tensor(list(said.values()))
        return row

    def __call__(self, seen):
        self.asked += len(seen.lengths)
        windows = [row[:n].tolist() for row, n in zip(seen.tokens, seen.lengths, strict=True)]
        return torch.stack([self.row(window) for window in windows])

    def next_token(self, window, least=0.1, decided=None):
        """Of the window, in a batch with one that has no earlier utterance."""
        rows = [[YOU], window]
        padded = torch.zeros(2, WINDOW, dtype=torch.int32)
        for place, row in enumerate(rows):
            padded[place, : len(row)] = torch.tensor(row)
        now = torch.stack([self.row(row) for row in rows])
        chosen = unrepeated(now, Observed.of(padded), YOU, least, self, decided or Decided())
        assert chosen[0] == now[0].argmax()
        return int(chosen[1])

    def utterance(self, window, decided=None):
        said = []
        while len(said) < 4 and END not in said:
            said.append(self.next_token([*window, *said], 0.1, decided))
        return said


CASES = {
    "a first utterance is the likeliest": ([YOU], {(): {A: 0.6, C: 0.4}}, [A, END]),
    "what only begins alike is no repeat": (
        SAID_AB, {(): {A: 0.6, C: 0.4}, (A,): {C: 0.6, B: 0.4}}, [A, C, END],
    ),
    "a repeat is left at once": (
        SAID_AB, {(): {A: 0.6, C: 0.3, D: 0.1}, (A,): {B: 0.8, D: 0.2}}, [C, END],
    ),
    "or later, where the alternative is likelier": (
        SAID_AB, {(): {A: 0.7, C: 0.3}, (A,): {B: 0.6, D: 0.4}}, [A, D, END],
    ),
    "or goes on where it ended": (
        SAID_AB, {(): {A: 0.8, C: 0.2}, (A,): {B: 1.0}, (A, B): {END: 0.7, D: 0.3}}, [A, B, D, END],
    ),
    "or ends before": (SAID_AB, {(): {A: 1.0}, (A,): {B: 0.6, END: 0.4}}, [A, END]),
    "without an alternative it is said": (
        SAID_AB, {(): {A: 0.95, C: 0.05}, (A,): {B: 0.91, D: 0.09}}, [A, B, END],
    ),
    "an alternative is no other repeat": (
        SAID_AB_CD, {(): {A: 0.5, C: 0.3, D: 0.2}, (A,): {B: 1.0}, (C,): {D: 1.0}}, [D, END],
    ),
    "an alternative may begin as another utterance": (
        SAID_AB_CD, {(): {A: 0.5, C: 0.3, D: 0.2}, (A,): {B: 1.0}, (C,): {A: 1.0}}, [C, A, END],
    ),
    "an alternative makes no repeat by its own end": (
        [*SAID_AB, A, END, *REPLY],
        {(): {A: 0.9, D: 0.1}, (A,): {B: 0.5, END: 0.4}}, [D, END],
    ),
    "an utterance that reached the limit has no end": (
        [YOU, A, B, *REPLY], {(): {A: 0.6, C: 0.4}, (A,): {B: 1.0}}, [C, END],
    ),
    "what others said may be said": (SAID_AB, {(): {C: 0.8, A: 0.2}}, [C, END]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_said(case):
    window, table, expected = case
    assert Table(table).utterance(window) == expected


def test_an_alternative_needs_the_probability_that_is_asked():
    table = Table({(): {A: 0.95, C: 0.05}, (A,): {B: 1.0}})
    assert [table.next_token(SAID_AB, least) for least in (0.04, 0.06, None)] == [C, A, A]


def test_what_a_search_decided_is_not_looked_for_again():
    table, decided = Table({(): {A: 0.7, C: 0.3}, (A,): {B: 0.6, D: 0.4}}), Decided()
    assert table.utterance(SAID_AB, decided) == [A, D, END]
    assert table.asked == 2  # what follows A, and A B
    assert table.utterance(SAID_AB) == [A, D, END]
    assert table.asked == 2 + 3  # and A once more


def test_what_was_decided_by_other_probabilities_is_forgotten():
    table, decided = Table({(): {A: 0.7, C: 0.3}, (A,): {B: 0.6, D: 0.4}}), Decided()
    assert table.next_token(SAID_AB, 0.1, decided) == A
    for said, expected in (({B: 0.6, C: 0.4}, C), ({C: 0.6, B: 0.4}, C), ({B: 1.0}, B)):
        table.table[A,] = said
        assert table.next_token([*SAID_AB, A], 0.1, decided) == expected


def test_what_is_remembered_has_a_bound():
    decided = Decided()
    for place in range(MOST_DECIDED + 3):
        decided.add(place, torch.tensor([0.4, 0.6]), 0)
    assert len(decided.tokens) == 3
    assert decided.get(MOST_DECIDED, torch.tensor([0.4, 0.6])) == 0
    assert decided.get(MOST_DECIDED, torch.tensor([0.5, 0.5])) is None
    assert len(pickle.loads(pickle.dumps(decided)).tokens) == 0


def test_nothing_is_looked_ahead_where_nothing_can_be_left():
    for said in ({A: 0.96, C: 0.04}, {C: 0.6, A: 0.4}):  # no alternative; not along a repeat
        table = Table({(): said, (A,): {B: 0.5, D: 0.5}})
        table.next_token(SAID_AB)
        assert table.asked == 0


def test_what_does_not_fit_into_the_window_is_no_repeat():
    table = Table({(): {A: 0.6, C: 0.4}, (A,): {B: 1.0}})
    filled = [*SAID_AB[:-1], *[C] * (WINDOW - 2 - len(SAID_AB)), YOU]
    assert table.next_token(filled) == C
    assert table.next_token([*filled[:-1], C, C, YOU]) == A


# Random tables: the tokens of an utterance follow one plan


def tables():
    spread = st.permutations([0.4, 0.3, 0.2, 0.06, 0.04])
    paths = [(), *((a,) for a in (A, B, C)), *((a, b) for a in (A, B, C) for b in (A, B, C))]
    rows = st.builds(lambda p: dict(zip([END, A, B, C, D], p, strict=True)), spread)
    return st.fixed_dictionaries(dict.fromkeys(paths, rows))


def greedy(table, path):
    path = [*path]
    while len(path) < 4 and END not in path:
        path.append(int(table.row([YOU, *path]).argmax()))
    return path


def planned(table, path, earlier, least):
    """The utterance from `path` on, planned at once for as long as it is greedy."""
    whole = greedy(table, path)
    if whole not in earlier:
        return whole
    others = [
        (-float(p), [*whole[:place], token])
        for place in range(len(path), len(whole))
        for token, p in enumerate(table.row([YOU, *whole[:place]]))
        if p >= least and token != whole[place]
    ]
    for _, other in sorted(others, key=lambda pair: pair[0])[:8]:
        if other not in earlier and greedy(table, other) not in earlier:
            return planned(table, other, earlier, least)
    return whole


@settings(max_examples=60, deadline=None)
@given(tables(), st.lists(st.sampled_from([(), (A,), (B,), (C,), (A, C), (C, A)]), max_size=4))
def test_tokens_follow_the_plan_of_the_whole_utterance(rows, starts):
    jitter = np.random.default_rng(0)  # no two probabilities are equal
    rows = {
        path: {token: p + 1e-4 * jitter.random() for token, p in row.items()}
        for path, row in rows.items()
    }
    table, window = Table(rows), [YOU]
    earlier = [greedy(table, start) for start in starts]
    for said in earlier:
        window = [*window, *said, USER, END, YOU]
    assert table.utterance(window) == planned(table, [], earlier, 0.1)
    assert table.utterance(window, Decided()) == planned(table, [], earlier, 0.1)


@given(st.lists(st.sampled_from([A, B, END, YOU, USER]), min_size=1, max_size=20), st.data())
def test_rows_that_lead_along_are_those_of_a_search(window, data):
    token = data.draw(st.sampled_from([A, B, END]))
    rows = np.zeros((3, WINDOW), np.int32)
    rows[1, : len(window) + 1] = [YOU, *window]
    lengths = np.array([1, len(window) + 1, 1])
    found = leading_along(rows, lengths, YOU, np.full(3, token))
    *_, under_way = "".join(map(str, [YOU, *window])).split(str(YOU))
    wanted = f"{YOU}{under_way}{token}"
    before = "".join(map(str, [YOU, *window])).rpartition(str(YOU))[0]
    assert found.tolist() == ([1] if wanted in before else [])


def test_earlier_utterances_end_where_others_speak():
    earlier = Earlier(np.array([*SAID_AB[:-1], YOU, C, USER, D, END, YOU]), YOU)
    assert earlier.whole == {(A, B, END), (C,)}
    assert earlier.leads_on([A, B])
    assert not earlier.leads_on([B])


# Policies


def test_it_is_on_where_the_learners_utterances_are_known():
    assert policy().config["avoid_repeats"] == 0.05
    assert policy(spaces.Box(0, V - 1, (12,), int)).config["avoid_repeats"] is None
    assert policy(avoid_repeats=None).config["avoid_repeats"] is None


def windows():
    """Dialogues of two letters a turn, in which half of all pairs have been said."""
    rng = np.random.default_rng(0)
    rows = np.zeros((40, 64), np.int32)
    for row in rows:
        turns = [(5 + pair // 4, 5 + pair % 4) for pair in rng.permutation(16)[:8]]
        said = [t for turn in turns for t in (YOU, *turn, END, USER, A, END)]
        row[: len(said) + 1] = [*said, YOU]
    return rows


@pytest.mark.parametrize("kind", ["policy", "values", "values apart"])
def test_a_policy_gives_the_same_with_and_without_its_cache(kind):
    chosen = {}
    for cache in (True, False):
        for least in (None, 0.01):
            torch.manual_seed(1)
            more = {"execution": {"cache": cache}, "avoid_repeats": least, "init_std": 0.2}
            if kind != "policy":
                more |= {"decoding": {"beta": 0.1}, "share_features_extractor": kind == "values"}
            made = type(policy()) if kind == "policy" else ValueGPTPolicy
            model = made(box(64), spaces.Discrete(V), lambda _: 1e-3, **SMALL, **more)
            chosen[cache, least] = [*model.predict(windows(), deterministic=True)[0]]
    assert chosen[True, 0.01] == chosen[False, 0.01] != chosen[True, None]


def utterances(model, rows):
    """What the model says after each of the rows, at most 4 tokens."""
    rows = rows.copy()
    ends = (rows != 0).sum(1)
    for place in range(4):
        rows[np.arange(len(rows)), ends + place] = model.predict(rows, deterministic=True)[0]
    return rows.tolist()


def changed(kind):
    """A policy that has spoken, and is another one now."""
    torch.manual_seed(1)
    model = policy(box(64), init_std=0.2, avoid_repeats=0.01)
    utterances(model, windows())
    weights = {"head": model.policy_head, "trunk": model.backbone}
    if kind in weights:
        with torch.no_grad():
            for weight in weights[kind].parameters():
                weight += 0.01 * torch.randn_like(weight)
    else:
        model.config["avoid_repeats"] = 0.1
    return model


@pytest.mark.parametrize("kind", ["head", "trunk", "setting"])
def test_a_policy_forgets_what_it_decided_before_it_changed(kind):
    model = changed(kind)
    fresh = deepcopy(model)
    assert model.decided.tokens
    assert not fresh.decided.tokens
    assert utterances(model, windows()) == utterances(fresh, windows())
    model.set_training_mode(True)
    assert not model.decided.tokens


def stubborn(masked: str):
    """A policy that would say "ab" again, and has learned nothing of what it may never say.

    Without masks `d`, which it may not say, is the likeliest after every letter; of what it may,
    `a` (0.6) or `c` first, `b` second, and the end after two. `masked`: who knows masks ahead.
    """
    words = WordTrie(["ab", "cb"])
    spaces_of = {
        "space": TokenBox(TOKENIZER, 64, YOU, words),
        "union": TokenBox(TOKENIZER, 64, YOU, union=words),
        "nobody": TokenBox(TOKENIZER, 64, YOU),
    }
    model = policy(spaces_of[masked])
    bias = torch.full((V,), -20.0)
    bias[[A, C, D, B, END]] = torch.tensor([2.0, 1.6, 9.0, 1.0, 0.0])
    model.policy_head = Constant(bias)
    return model


class Constant(torch.nn.Module):
    """A head with the same logits everywhere."""

    def __init__(self, logits):
        super().__init__()
        self.logits = torch.nn.Parameter(logits)

    def forward(self, hidden):  # (..., d) to (..., V)
        return self.logits.expand(*hidden.shape[:-1], -1)


def said_with_masks(model):
    """What is said after "ab", with masks given for one token at a time, as an env gives them."""
    automaton = compile_constraint(WordTrie(["ab", "cb"]), TOKENIZER)
    window, said = [*SAID_AB], []
    while END not in said and len(said) < 4:
        row = np.zeros((1, 64), np.int32)
        row[0, : len(window)] = window
        mask = automaton.allowed[automaton.walk(said)][None]
        said.append(int(model._predict(torch.from_numpy(row), True, mask)))
        window.append(said[-1])
    return said


@pytest.mark.parametrize(
    ("masked", "says"),
    [("space", [C, B, END]), ("union", [C, B, END]), ("nobody", [A, B, END])],
)
def test_what_may_never_be_said_is_not_planned(masked, says):
    assert said_with_masks(stubborn(masked)) == says


def test_a_saved_space_keeps_the_union(tmp_path):
    space = TokenBox(TOKENIZER, 64, YOU, union=WordTrie(["ab", "cb"]))
    packer = Packer()
    kept = Unpacker(packer.arrays).unpack(packer.pack(space))
    assert kept.automaton is None
    assert (kept.union_automaton.allowed == space.union_automaton.allowed).all()
    assert (kept.union_automaton.transitions == space.union_automaton.transitions).all()


@pytest.mark.parametrize("least", [0.0, -1, 1.5])
def test_refuses_what_is_no_probability(least):
    with pytest.raises(ValueError, match="avoid_repeats: expected a probability"):
        policy(avoid_repeats=least)
