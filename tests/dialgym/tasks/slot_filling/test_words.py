"""Slot filling in words: what is said, what is heard, and that nothing is lost on the way."""

from collections import Counter

import numpy as np
import pytest

from dialgym.language import WordTokenizer
from dialgym.language.acts import Act, SlotValue, parse_act
from dialgym.rollouts.random_text import allowed_text
from dialgym.simulators.human import allows
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.domain.domain import Domain, load_domain
from dialgym.tasks.slot_filling.error_channel import SET1, ListChannel
from dialgym.tasks.slot_filling.languages.words import LIST, SINGLE, SlotFillingWords
from tests.support.slot_acts import BUILT_IN, REAL, system_acts, user_acts
from tests.support.slot_domains import database_of

RNG = np.random.default_rng(0)  # words draw nothing


def words(domain="Restaurants", hypotheses=6):
    return SlotFillingWords(load_domain(domain), hypotheses)


def toy(*names):
    database = database_of(*({"name": name} for name in names))
    return SlotFillingWords(Domain(database.ontology, database, "test"), 1)


@pytest.mark.parametrize(
    ("act", "text"),
    [
        ("hello()", "hello"),
        ('inform(food="sri lankan",area="centre")', "inform food sri_lankan area centre"),
        ('inform(="dontcare",area="north")', "inform dontcare area north"),
        ('inform(type="restaurant")', "inform type restaurant"),
        ("request(name,phone)", "request name phone"),
        ('request(phone,name="bellomere kitchen")', "request phone name bellomere_kitchen"),
        ('deny(food="thai",food="dontcare")', "deny food thai food dontcare"),
        (
            'inform(name="none",name!="bellomere kitchen",food="thai")',
            "inform name none name not bellomere_kitchen food thai",
        ),
    ],
)
def test_what_an_act_is_in_words(act, text):
    assert words().say(parse_act(act), "user", RNG) == text
    assert words().understand(text, "user") == parse_act(act)


@pytest.mark.parametrize(
    "text",
    ["", "foo", "inform foo", "inform food not", "thai", "inform food thai p3", "inform(food)",
     "inform food Thai", "\N{REPLACEMENT CHARACTER} food thai"],
)  # fmt: skip
def test_what_is_no_act(text):
    assert words().understand(text, "user") is None


@pytest.mark.parametrize("name", BUILT_IN)
def test_all_acts_of_a_domain_come_back_from_their_words(name):
    check_round_trip(load_domain(name))


@pytest.mark.parametrize("name", REAL)
def test_all_acts_of_a_real_domain_come_back_from_their_words(name, data):
    check_round_trip(load_domain(data / "pydial" / name))


def check_round_trip(domain):
    language, tokenizer = (
        SlotFillingWords(domain, 6),
        WordTokenizer(SlotFillingWords(domain, 6).vocabulary),
    )
    for party, acts in (("user", user_acts(domain)), ("system", system_acts(domain))):
        for act in acts:
            text = language.say(act, party, RNG)
            assert tokenizer.decode(tokenizer.encode(text)) == text
            assert language.understand(text, party) == act, text


def test_values_that_look_like_other_words_stay_apart():
    names = ("food", "a b", "a_b", "not", "p3", "inform", "a  b")
    language = toy(*names)
    assert len(set(language.vocabulary)) == len(language.vocabulary)
    texts = {language.say(Act("inform", (SlotValue("name", n),)), "user", RNG) for n in names}
    assert len(texts) == len(names)
    for name in names:
        act = Act("inform", (SlotValue("name", name),))
        assert language.understand(language.say(act, "user", RNG), "user") == act


@pytest.mark.parametrize(
    ("heard", "text"),
    [
        ([("inform(area=north)", 1.0)], "p10 inform area north"),
        ([("inform(area=north)", 0.84), ("null()", 0.16)], "p8 inform area north"),
        ([("hello()", 0.85), ("bye()", 0.049), ("null()", 0.1)], "p9 hello p0 bye"),
        ([("null()", 1.0)], "p10 null"),
        ([("null()", 0.7), ("ack()", 0.3)], "p3 ack"),
    ],
)
def test_what_the_system_hears(heard, text):
    hypotheses = [(parse_act(act), p) for act, p in heard]
    assert words().hear("whatever", hypotheses, RNG) == text


def test_what_does_not_fit_is_left_out_whole_and_least_believed_first():
    long = parse_act("inform(food=thai,area=north,pricerange=cheap)")  # 8 words with its p
    short = parse_act("hello()")
    heard = words().hear("", [(long, 0.4), (long, 0.3), (long, 0.2), (short, 0.1)], RNG).split()
    assert len(heard) == LIST == 24
    assert [word for word in heard if word[0] == "p" and word[1:].isdigit()] == ["p4", "p3", "p2"]
    heard = words(hypotheses=1).hear("", [(long, 1.0)], RNG).split()
    assert len(heard) == 8 <= SINGLE


def test_lists_in_noise_are_seldom_cut():
    domain = load_domain("Restaurants")
    language, channel = SlotFillingWords(domain, 6), ListChannel(domain.ontology, 0.15, SET1)
    rng, cut, n = np.random.default_rng(0), 0, 0
    for act in user_acts(domain):
        if len(act.items) > 2:
            continue
        hypotheses = channel.hear(act, rng)
        known = [h for h, _ in hypotheses if h.type != "null"]
        heard = language.hear("", hypotheses, rng).split()
        kinds = Counter(word for word in heard if word in {h.type for h in known})
        cut += sum(kinds.values()) < len(known)
        n += 1
    assert n > 1000
    assert cut / n < 0.02


def simulated(task, system, count):
    """Dialogues of the simulated user with a scripted system: their states at the end."""
    policy, rng = task.speaker_named("system", system), np.random.default_rng(0)
    for _ in range(count):
        state, over = task.initial(rng), False
        while not over:
            text = state.planned[0] if state.user_speaks else policy.reply(task, state, rng)
            over = task.speak(state, text, rng).terminated
        yield state


def test_the_vocabulary_has_all_that_is_heard():
    """Every word of simulated dialogues of a random system is a token."""
    task = SlotFilling("Restaurants", env=3, language="words")
    known = set(task.words())
    for state in simulated(task, "random", 30):
        for party in task.parties:
            for line in task.transcript(state, party):
                assert set(line.text.split()) <= known


@pytest.mark.parametrize("name", ["Restaurants", "Laptops", "CityRestaurants"])
def test_the_user_keeps_to_the_grammar(name):
    """But where it objects to a value that is none of the ontology's."""
    task = SlotFilling(name, env=5, language="words")
    grammar, said = task.static_constraint("user"), set()
    for state in simulated(task, "handcrafted", 40):
        for text in [line.text for line in state.heard_by_user if line.speaker == "user"]:
            assert allows(grammar, text) or "not_available" in text, text
            said.add(text.split()[0])
    assert {"inform", "request", "affirm", "reqalts", "bye", "confirm"} <= said


@pytest.mark.parametrize("name", BUILT_IN)
def test_whatever_the_grammar_admits_is_an_act(name):
    task = SlotFilling(name, language="words")
    grammar, rng = task.static_constraint("user"), np.random.default_rng(0)
    kinds = set()
    for _ in range(60):
        text = allowed_text(task, "user", grammar, rng)
        act = task.language.understand(text, "user")
        assert act is not None or not allows(grammar, text), text
        kinds.add(act and act.type)
    assert len(kinds) > 8


ADMITTED = ("bye", "affirm", "inform dontcare food thai", "deny food thai food dontcare",
            "request name", "request phone name bellomere_kitchen")  # fmt: skip
OTHERS = ("request", "inform", "inform food", "inform thai", "bye food thai", "request food thai",
          "inform food centre")  # fmt: skip


@pytest.mark.parametrize("text", [*ADMITTED, *OTHERS])
def test_what_the_grammar_admits(text):
    assert allows(words().grammar, text) == (text in ADMITTED)


def test_a_domain_of_too_many_words_is_refused_and_says_what_to_do(monkeypatch):
    monkeypatch.setattr("dialgym.tasks.slot_filling.languages.words.MOST_WORDS", 3_000)
    message = r"has 3,0\d\d words; at most 3,000.* Use the act view or language='acts'"
    with pytest.raises(ValueError, match=message):
        toy(*(f"venue {number}" for number in range(1_500)))  # each with a phone number
