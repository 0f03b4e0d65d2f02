"""A person in the place of a party."""

import numpy as np
import pytest

from dialgym.registry import entry_of, make_task
from dialgym.tasks.lookup import parse_options
from dialgym.viewer.api import open_viewer
from dialgym.viewer.chat_session import ChatChoice, ChatSession
from dialgym.viewer.query import Query

SMALL = "dialgym/Wordle-20-v0"


@pytest.fixture
def viewer(tmp_path):
    pytest.importorskip("pyarrow")
    return open_viewer([], tmp_path / "ratings")


def session(env=SMALL, party="system", **more) -> ChatSession:
    return ChatSession(ChatChoice(env, party, **more))


def test_a_game_is_played_to_its_end():
    game = session(options={"word": "sleep"})
    assert game.say("WHITE ") is None
    found = game.shown()
    assert [turn["text"] for turn in found["turns"]] == ["white", "b b b b y"]
    assert (found["turn"], found["left"], found["return"], found["over"]) == (1, 5, -1.0, False)
    assert found["turns"][0]["reward"] == -1
    assert found["turns"][0]["components"] == {"wrong guess": -1.0}
    assert found["hidden"] == []
    assert game.say("sleep") is None
    found = game.shown()
    assert (found["over"], found["success"], found["return"]) == (True, True, -1.0)
    assert [line["text"] for line in found["hidden"]] == ["sleep"]
    with pytest.raises(ValueError, match="the dialogue is over"):
        game.say("white")


def test_what_the_rules_do_not_foresee_is_asked_again():
    game = session(options={"word": "sleep"})
    assert game.say("zzzzz") == ("zzzzz", "")
    assert game.shown()["turns"] == []
    assert game.say("zzzzz", sure=True) is None
    assert game.shown()["turns"][1]["text"] == "invalid"


def test_turns_are_taken_back_even_the_last():
    game = session(options={"word": "sleep"})
    with pytest.raises(ValueError, match="nothing has been said"):
        game.undo()
    game.say("white")
    before = game.shown()
    game.say("sleep")
    assert game.shown()["over"]
    game.undo()
    assert game.shown() == before
    game.undo()
    assert game.shown()["turns"] == []
    assert not game.shown()["undo"]


def test_a_seed_gives_the_same_dialogue_and_hints_change_nothing():
    first, second = session(seed=3), session(seed=3)
    for _ in range(2):
        text = first.hint()
        assert text in first.shown()["words"]
        first.say("white")
        second.say("white")
    assert first.shown()["turns"] == second.shown()["turns"]


def test_playing_the_host():
    game = session(party="user", seed=1)
    assert game.shown()["turns"] == []
    assert game.say("sleep") is None
    found = game.shown()
    assert found["over"]
    assert found["turns"][0]["private"]


def test_acts_are_chosen_by_number():
    game = session("dialgym/CamRestaurants-Env1-act-v0", seed=1)
    acts = game.shown()["acts"]
    forbidden = next(act["number"] for act in acts if not act["allowed"])
    with pytest.raises(ValueError, match=f"act {forbidden} cannot be chosen now"):
        game.choose(forbidden)
    with pytest.raises(ValueError, match="act 999 cannot be chosen now"):
        game.choose(999)
    game.choose(next(act["number"] for act in acts if act["allowed"]))
    assert game.shown()["turn"] == 1


def test_an_act_is_said_alike_after_a_hint_and_after_it_was_taken_back():
    game, other = (session("dialgym/SlotFilling-act-v0", "user", seed=3) for _ in range(2))
    act = next(act["number"] for act in game.shown()["acts"] if act["allowed"])
    for _ in range(3):
        game.hint()
        game.choose(act)
        said = game.shown()["turns"]
        game.undo()
    other.choose(act)
    game.choose(act)
    assert game.shown()["turns"] == other.shown()["turns"] == said


def test_the_picture_is_shown_to_who_knows_it():
    scene = {"seed": 0, "settings": {"pool": "scenes"}}
    asking, answering = (
        session("dialgym/VisualDialogue-v0", party, **scene) for party in ("system", "user")
    )
    assert asking.picture() is None
    assert not asking.shown()["picture"]
    picture = answering.picture()
    assert picture is not None
    assert picture.dtype == np.uint8
    while not asking.game.over:
        asking.say("how many balls are there", sure=True)
    assert asking.picture() is not None


def test_a_seed_that_was_drawn_can_be_named(viewer, monkeypatch):
    monkeypatch.setattr("dialgym.viewer.api.secrets.randbelow", lambda most: most - 1)
    drawn = viewer.begin(Query({"env": SMALL}))["seed"]
    assert viewer.begin(Query({"env": SMALL, "seed": drawn}))["seed"] == drawn


def test_a_simulator_among_the_settings_is_the_other_party(tmp_path):
    viewer = open_viewer([], tmp_path / "ratings", {"simulator": "nobody"})
    with pytest.raises(ValueError, match="'nobody' in Wordle"):
        viewer.begin(Query({"env": SMALL}))


def test_what_cannot_begin_is_said(viewer):
    for query, message in [
        ({"env": "Wordel-v0"}, "Did you mean"),
        ({"env": SMALL, "party": "referee"}, "learner of Wordle must be one of"),
        ({"env": SMALL, "against": "nobody"}, "unknown speaker for the user 'nobody'"),
        ({"env": SMALL, "options": "word=zzzzz"}, "option 'word' of Wordle"),
        ({"env": SMALL, "options": "word"}, "expected KEY=VALUE"),
        ({"env": SMALL, "seed": -1}, "seed of the request must be a whole number"),
    ]:
        with pytest.raises(ValueError, match=message):
            viewer.begin(Query(query))
    with pytest.raises(LookupError, match="begin another one"):
        viewer.say(Query({"game": "0", "text": "a"}))
    with pytest.raises(LookupError, match="--model"):
        viewer.chat(Query({"text": "hello"}))


def test_an_option_that_is_a_word_of_yaml_stays_a_word():
    words, comments = (make_task(entry_of(f"{name}-v0"), {}) for name in ("Wordle", "Comments"))
    written = ["word = false ", "size=1e3"]
    assert parse_options(words, written, "options") == {"word": "false", "size": 1000.0}
    assert parse_options(comments, ["index=null"], "options") == {"index": None}


def test_an_environment_is_described_before_it_begins(viewer):
    found = viewer.about(Query({"env": "Wordle-v0"}))
    assert found["parties"] == ["system", "user"]
    assert "optimal" in found["speakers"]["system"]
    assert found["options"] == ["word"]
    assert "Args:" not in found["about"]
    begun = viewer.begin(Query({"env": SMALL, "options": "word=sleep", "seed": 4}))
    hint = viewer.hint(Query({"game": begun["game"]}))["hint"]
    said = viewer.say(Query({"game": begun["game"], "text": hint}))
    assert said["refused"] is None
    assert viewer.undo(Query({"game": begun["game"]}))["turns"] == []
    assert viewer.picture(Query({"game": begun["game"]}))["picture"] is None


def test_settings_may_be_of_the_view(tmp_path):
    pytest.importorskip("pyarrow")
    viewer = open_viewer([], tmp_path / "ratings", {"reward_scale": 2.0, "turns": 2})
    assert "optimal" in viewer.policies(Query({"env": SMALL}))["policies"]
    begun = viewer.begin(Query({"env": SMALL, "seed": 1, "options": "word=sleep"}))
    assert viewer.say(Query({"game": begun["game"], "text": "sleep"}))["over"]


def test_a_saved_model_plays_either_side(tmp_path):
    pytest.importorskip("stable_baselines3")
    import agents
    import dialgym

    env = dialgym.sb3_vec_env(SMALL, 2)
    policy = {"preset": "nano", "n_layer": 1}
    model = agents.SequencePPO("GPTPolicy", env, n_steps=24, policy_kwargs=policy, seed=0)
    agents.save(model, tmp_path / "mine" / "model.zip")
    (tmp_path / "mine" / "config.yml").write_text(f"env_id: {SMALL}\n", "utf-8")
    viewer = open_viewer([str(tmp_path / "mine")], tmp_path / "ratings")
    assert viewer.policies(Query({"env": SMALL}))["runs"] == ["mine"]
    assert viewer.policies(Query({"env": "TwentyQuestions-v0"}))["runs"] == []
    begun = viewer.begin(Query({"env": SMALL, "party": "user", "against": "mine", "seed": 1}))
    said = viewer.say(Query({"game": begun["game"], "text": "sleep"}))
    assert said["over"]
    assert any(turn["party"] == "system" for turn in said["turns"])
    sides = {"first": {"policy": "mine"}, "second": {"policy": "random"}}
    found = viewer.compare(Query({**sides, "env": SMALL, "episodes": 3}))
    assert len(found["rows"]) == 3


def test_a_person_talks_in_english_to_a_trained_policy_over_acts(tmp_path):
    pytest.importorskip("stable_baselines3")
    import agents

    settings = {"hyperparameters": {"buffer_size": 100}, "n_envs": 1, "progress_bar": False}
    acts, words = "CamRestaurants-Env1-act-v0", "CamRestaurants-Env1-utterance-v0"
    agents.train(acts, "dqn", total_timesteps=30, log_dir=tmp_path / "mine", **settings)
    viewer = open_viewer([str(tmp_path / "mine")], tmp_path / "ratings")
    assert viewer.policies(Query({"env": words}))["runs"] == ["mine"]
    begun = viewer.begin(Query({"env": words, "party": "user", "against": "mine", "seed": 1}))
    said = viewer.say(Query({"game": begun["game"], "text": "I want something cheap."}))
    assert [turn["party"] for turn in said["turns"]].count("system") >= 2


def test_a_language_model_can_speak_in_any_words(tmp_path):
    (tmp_path / "smol").mkdir()
    (tmp_path / "smol" / "config.json").write_text("{}", "utf-8")
    viewer = open_viewer([str(tmp_path / "smol")], tmp_path / "ratings")
    assert viewer.policies(Query({"env": "TwentyQuestions-v0"}))["runs"] == ["smol"]
    assert viewer.policies(Query({"env": "CamRestaurants-Env1-act-v0"}))["runs"] == []
    assert viewer.about(Query({"env": SMALL}))["runs"] == ["smol"]


def test_a_run_that_is_called_as_a_policy_hides_it_not(tmp_path):
    (tmp_path / "optimal").mkdir()
    (tmp_path / "optimal" / "config.json").write_text("{}", "utf-8")
    viewer = open_viewer([str(tmp_path / "optimal")], tmp_path / "ratings")
    assert viewer.policies(Query({"env": SMALL}))["runs"] == ["run optimal"]
    assert viewer.about(Query({"env": SMALL}))["runs"] == ["run optimal"]
    sides = {"first": {"policy": "optimal"}, "second": {"policy": "random"}}
    found = viewer.compare(Query({**sides, "env": SMALL, "episodes": 3}))
    assert found["sides"][0]["mean"] > -3
    with pytest.raises(ValueError, match="run optimal"):
        viewer.begin(Query({"env": SMALL, "party": "user", "against": "nobody", "seed": 1}))


def test_dialogues_that_people_hold_are_kept_as_a_data_set(tmp_path):
    pytest.importorskip("pyarrow")
    import dialgym
    from dialgym.viewer.replay import replayed

    viewer = open_viewer([], tmp_path / "ratings", games=tmp_path / "games")
    for seed in (1, 2):
        wanted = {"env": SMALL, "options": "word=sleep", "seed": seed}
        game = viewer.begin(Query(wanted))["game"]
        for text in ("white", "sleep"):
            said = viewer.say(Query({"game": game, "text": text}))
        assert said["kept"].endswith(".parquet")
        viewer.undo(Query({"game": game}))  # the last turn again: one dialogue, not two
        viewer.say(Query({"game": game, "text": "sleep"}))
    act = {"env": "CamRestaurants-Env1-act-v0", "party": "system", "seed": 3}
    game = viewer.begin(Query(act))["game"]
    while not (shown := viewer._sessions.get(game).shown())["over"]:
        number = next(act["number"] for act in shown["acts"][::-1] if act["allowed"])
        viewer.say(Query({"game": game, "act": number}))
    data = dialgym.load_dataset(tmp_path / "games")
    words = data.filter(data["env"] == "dialgym/Wordle-20-utterance-v0")
    assert len(data) == 3
    assert set(data["policy"]) == {"person"}
    assert words.returns.tolist() == [-1, -1]
    assert words[0]["options"] == '{"word": "sleep"}'
    assert all(replayed(data.select([row]))["same"] for row in range(3))
    assert len(words.tokens()) == 2
