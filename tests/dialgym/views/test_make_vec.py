"""The arguments of `gym.make` and `gym.make_vec`: honoured, or refused by one clear error."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import dialgym
from tests.support.infos import same_infos

TOKENS, ACTS, TEXTS = (
    "dialgym/Wordle-20-v0",
    "dialgym/CamRestaurants-Env1-act-v0",
    "dialgym/Wordle-20-utterance-v0",
)


@pytest.mark.parametrize("error", [TypeError, ValueError])
@pytest.mark.parametrize("make", [gym.make, gym.make_vec])
def test_an_unknown_argument_is_both_errors(make, error):
    """TorchRL probes ``frameskip`` and expects Python's own words; we name the nearest."""
    with pytest.raises(error, match="got an unexpected keyword argument 'frameskip'"):
        make(TOKENS, frameskip=1)
    with pytest.raises(error, match=r"keyword argument 'turn'\. Did you mean 'turns'\?"):
        make(TOKENS, turn=1)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_batches_say_when_they_reset(mode):
    env = gym.make_vec(TOKENS, 2, autoreset_mode=mode)
    assert env.autoreset_mode is env.metadata["autoreset_mode"] is mode


@pytest.mark.parametrize("env_id", [TOKENS, ACTS, TEXTS])
def test_no_render_mode_is_a_render_mode(env_id):
    assert gym.make_vec(env_id, 2, render_mode=None).render_mode is None
    sync = gym.make_vec(env_id, 2, vectorization_mode="sync", render_mode="ansi")
    sync.reset(seed=0)
    assert len(sync.render()) == 2


@pytest.mark.parametrize("env_id", [TOKENS, ACTS])
def test_without_autoreset_the_caller_resets_by_mask(env_id):
    ours = gym.make_vec(env_id, 4, autoreset_mode=AutoresetMode.DISABLED, max_episode_steps=30)
    theirs = SyncVectorEnv(
        [lambda: gym.make(env_id, max_episode_steps=30)] * 4, autoreset_mode=AutoresetMode.DISABLED
    )
    assert np.array_equal(ours.reset(seed=2)[0], theirs.reset(seed=2)[0])
    rng, resets = np.random.default_rng(0), 0
    for _ in range(90):
        actions = rng.integers(1, ours.single_action_space.n, 4)
        result, expected = ours.step(actions), theirs.step(actions)
        for got, wanted in zip(result[:4], expected[:4]):
            assert np.array_equal(got, wanted)
        same_infos(result[4], expected[4])
        over = result[2] | result[3]
        if over.any():
            resets += 1
            (seen, info), (shown, told) = (
                env.reset(options={"reset_mask": over.copy()}) for env in (ours, theirs)
            )
            assert np.array_equal(seen, shown)
            same_infos(info, told)
    assert resets > 1


def test_without_autoreset_a_row_that_is_over_cannot_act():
    env = gym.make_vec(TEXTS, 2, autoreset_mode="Disabled", turns=1)
    env.reset(seed=0)
    env.step(("about", "about"))
    with pytest.raises(ResetNeeded, match=r"rows \[0, 1\], and autoreset is disabled. Call reset"):
        env.step(("about", "about"))
    env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ResetNeeded, match=r"rows \[1\]"):
        env.step(("about", "about"))


def test_seeds_and_options_of_the_rows_that_begin():
    env = gym.make_vec(TEXTS, 2, autoreset_mode="Disabled")
    env.reset(seed=0)
    mask = np.array([False, True])
    before, answers = env.unwrapped.dialogues.secret.tolist(), env.unwrapped.task.answers
    word = answers[(before[1] + 1) % 20]
    options = {"reset_mask": mask, "word": word}
    env.reset(seed=[None, 5], options=options)
    assert set(options) == {"reset_mask", "word"}
    after = env.unwrapped.dialogues.secret.tolist()
    assert [after[0], answers[after[1]]] == [before[0], word]


@pytest.mark.parametrize("mode", ["sync", "async", "vector_entry_point"])
def test_every_vectorization_mode(mode):
    env = gym.make_vec(TOKENS, 2, vectorization_mode=mode)
    assert env.reset(seed=0)[0].shape == (2, *env.single_observation_space.shape)
    env.close()


def test_texts_are_not_read_from_shared_memory():
    """Gymnasium would read them once, before there are any."""
    with pytest.raises(ValueError, match="shared_memory=False"):
        gym.make_vec(TEXTS, 2, vectorization_mode="async")
    kwargs = {"shared_memory": False}
    env = gym.make_vec(TEXTS, 2, vectorization_mode="async", vector_kwargs=kwargs)
    assert env.reset(seed=0)[0] == ("", "")
    assert all(text.startswith("system: crane\n") for text in env.step(("crane",) * 2)[0])
    env.close()


def test_texts_are_drawn_from_characters_in_order():
    space = gym.make(TEXTS).observation_space
    assert list(space.character_list) == sorted(space.character_set)


def test_whole_numbers_of_numpy_are_arguments():
    limits = {"window": np.int64(60), "max_episode_steps": np.int32(3)}
    env = gym.make_vec(TOKENS, np.int64(2), workers=np.int64(2), **limits)
    try:
        assert env.observation_space.shape == (2, 60)
        assert env.spec.max_episode_steps == 3
    finally:
        env.close()


@pytest.mark.parametrize("seed", [np.int64(3), np.int32(3), [np.int64(3), np.int64(4)]])
def test_seeds_of_numpy_are_seeds(seed):
    batch, twin = (gym.make_vec(TOKENS, 2) for _ in range(2))
    batch.reset(seed=seed)
    twin.reset(seed=3)
    assert np.array_equal(batch.unwrapped.dialogues.secret, twin.unwrapped.dialogues.secret)
    if not isinstance(seed, list):
        single = gym.make(TOKENS).unwrapped
        single.reset(seed=seed)
        assert single.dialogue.state.secret == batch.unwrapped.dialogues.secret[0]
        single.restore_state(single.clone_state(), seed=seed)


def test_a_row_that_is_left_alone_ends_once():
    env = gym.make_vec(ACTS, 2, autoreset_mode="Disabled", max_episode_steps=2).unwrapped
    env.reset(seed=0)
    env.step([0, 0])
    assert env.step([0, 0])[3].all()
    env.deactivate(np.array([True, False]))
    env.reset(options={"reset_mask": np.array([False, True])})
    assert [env.step([0, 0])[3].tolist() for _ in range(2)] == [[False, False], [False, True]]


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_pictures_are_collected(mode):
    env = gym.make(ACTS, render_mode=f"{mode}_list")
    env.reset(seed=0)
    env.step(0)
    assert len(env.render()) == 2


@pytest.mark.parametrize("make", [gym.make, dialgym.aec_env])
def test_a_person_sees_how_a_dialogue_begins(make, capsys):
    make(ACTS, render_mode="human").reset(seed=0)
    assert "system: hello()" in capsys.readouterr().out


def test_wrappers_are_refused_by_gymnasium_and_taken_in_sync_mode():
    with pytest.raises(gym.error.Error, match=r"Cannot use `vector_entry_point`.*wrappers"):
        gym.make_vec(TOKENS, 2, wrappers=[dialgym.ReplaceForbidden])
    env = gym.make_vec(TOKENS, 2, vectorization_mode="sync", wrappers=[dialgym.ReplaceForbidden])
    assert env.reset(seed=0)[0].shape[0] == 2


@pytest.mark.parametrize(
    ("path", "base"),
    [
        (f"dialgym.{module}:{name}", base)
        for module, name, base in [
            ("views.token_env", "TokenEnv", gym.Env),
            ("views.utterance_env", "UtteranceEnv", gym.Env),
            ("views.act_env", "ActEnv", gym.Env),
            ("views.token_vector_env", "TokenVectorEnv", gym.vector.VectorEnv),
            ("views.utterance_vector_env", "UtteranceVectorEnv", gym.vector.VectorEnv),
            ("views.act_vector_env", "ActVectorEnv", gym.vector.VectorEnv),
            ("parallel.shards", "ShardedVectorEnv", gym.vector.VectorEnv),
        ]
    ],
)
def test_gymnasiums_class_is_a_direct_base(path, base):
    """skrl's `wrap_env` looks no further."""
    from dialgym.io.objects import load

    assert base in load(path).__bases__


@pytest.mark.parametrize("env_id", [TOKENS, ACTS, TEXTS])
def test_the_spec_says_how_long_a_dialogue_is_and_when_it_is_solved(env_id):
    env = gym.make(env_id)
    longest = env.spec.max_episode_steps
    assert "TimeLimit" not in str(env)
    again = gym.make(env.spec)
    assert "TimeLimit" in str(again)
    rng = np.random.default_rng(0)
    for seed in range(5):
        again.reset(seed=seed)
        env.reset(seed=seed)
        over, steps = False, 0
        while not over:
            steps += 1
            action = "zzzzz" if env_id == TEXTS else int(rng.integers(2, env.action_space.n))
            ours, theirs = again.step(action), env.step(action)
            assert ours[1:4] == theirs[1:4]
            over = ours[2] or ours[3]
        assert steps < longest


def test_thresholds_are_the_experts_mean_returns():
    assert gym.spec(TOKENS).reward_threshold == -1.05
    assert gym.make(TEXTS).spec.reward_threshold == -1.05
    stand_in = gym.make(ACTS)
    row = dialgym.registry.entry_of(ACTS).row
    expected = row.references(stand_in.unwrapped.task.stand_in)["expert"]
    assert stand_in.spec.reward_threshold == expected


def test_a_step_limit_is_in_the_spec():
    assert gym.make(TOKENS, max_episode_steps=7).spec.max_episode_steps == 7
    assert gym.make_vec(TOKENS, 2, max_episode_steps=7).spec.max_episode_steps == 7
    assert gym.make(TOKENS).spec.max_episode_steps == 37  # six guesses of six tokens, and one more
    assert gym.make(TEXTS).spec.max_episode_steps == 7


def test_time_can_be_made_visible():
    """`TimeAwareObservation` reads the limit from the spec."""
    env = gym.wrappers.TimeAwareObservation(gym.make(ACTS), flatten=True)
    assert env.reset(seed=0)[0][-1] == 0
    assert env.observation_space.high[-1] > 0


@pytest.mark.parametrize(
    "env_id", [f"dialgym/SlotFilling-{view}v0" for view in ("", "utterance-", "act-")]
)
def test_rows_that_are_left_alone_change_nothing(env_id):
    """Without them the others' dialogues are as before; a reset begins them again."""
    envs = [gym.make_vec(env_id, 4, autoreset_mode="Disabled").unwrapped for _ in "ab"]
    left, over = np.array([True, False, True, False]), []
    for env in envs:
        env.reset(seed=7)
        env.action_space.seed(3)
    before = [str(line) for line in envs[0].dialogues.transcript(0)]
    envs[0].deactivate(left)
    for _ in range(12):
        actions = [env.action_space.sample() for env in envs]
        results = [env.step(action) for env, action in zip(envs, actions)]
        ended = results[1][2] | results[1][3]
        for mine, other in zip(*(result[1:4] for result in results)):
            assert (mine[~left] == other[~left]).all()
            assert (np.asarray(mine[left]) == 0).all()
        if "utterance" not in env_id:
            assert (results[0][0][~left] == results[1][0][~left]).all()
        over.append(ended.any())
        if ended.any():
            for env, mask in zip(envs, (ended & ~left, ended)):
                if mask.any():
                    env.reset(seed=list(range(4)), options={"reset_mask": mask})
    assert [str(line) for line in envs[0].dialogues.transcript(0)] == before
    envs[0].reset(seed=7, options={"reset_mask": left})
    assert (envs[0].step(envs[0].action_space.sample())[4]["turn"] >= 0).all()
