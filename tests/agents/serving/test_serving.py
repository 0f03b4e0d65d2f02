"""Rollouts that a server samples: equal log-probabilities, stale weights, a server that is lost."""

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")
import agents
import dialgym
from agents import GRPO, SequencePPO
from agents.models.observations import Observed
from agents.models.pretrained import pretrained
from agents.serving.apis import APIS, Request
from agents.serving.sampler import ServedSampler, Utterance
from agents.serving.server import Client, LostServer, RolloutServer, ServerError
from tests.support.by_day import by_day
from tests.support.inference_server import InferenceServer, inference_server

ID, ENVS = "dialgym/TwentyQuestions-8-v0", 4
POLICY = {"n_layer": 1, "n_head": 2, "n_embd": 16, "mask": False, "init_std": 0.3}


@pytest.fixture
def served():
    with inference_server() as server:
        yield server


def made(kind, served, tmp_path, n_envs=ENVS, changes=(), **settings):
    """A learner whose rollouts are the server's."""
    server = {"url": served.url, "folder": str(tmp_path / "weights"), "backoff": 0.01}
    env = dialgym.sb3_vec_env(ID, n_envs, tokenizer="word", seed=0)
    more = {"n_steps": 12, "batch_size": 64, "seed": 0, "device": "cpu", "policy_kwargs": POLICY}
    more |= {"group_size": 2} if kind is GRPO else {}
    return kind("GPTPolicy", env, server={**server, **dict(changes)}, **{**more, **settings})


def rollout(model, callback=None):
    """The sequences of a rollout that is not learned from; with a callback dialogues go on."""
    if callback is None:
        _, callback = model._setup_learn(10_000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)
    return model.rollout.sequences


@pytest.mark.parametrize("api", list(APIS))
@pytest.mark.parametrize("kind", [SequencePPO, GRPO])
def test_log_probabilities_are_those_of_the_trainer(kind, api, served, tmp_path):
    model = made(kind, served, tmp_path, changes={"api": api})
    sequences = rollout(model)
    sampled = sequences.column(model.rollout_buffer.steps("log_probs"))
    torch.testing.assert_close(sampled, model.rollout.log_probs, atol=1e-5, rtol=0)
    torch.testing.assert_close(sequences.columns["importance"], torch.ones(len(sampled)))
    assert sampled.std() > 0.1  # the model has preferences
    assert served.loaded == ["update-0"]
    said = model.rollout_buffer.steps("actions")
    assert np.unique(said).size > 3


@pytest.mark.parametrize("api", list(APIS))
def test_a_models_own_settings_of_sampling_are_not_used(api, served, tmp_path):
    """Else tokens are drawn of fewer than their log-probabilities are told of."""
    model = made(GRPO, served, tmp_path, changes={"api": api})
    rollout(model)
    prompt = model.served.known.prompt.tolist()
    drawn = [model.served.client.sample(Request(prompt, 1, 1, n)).tokens[0] for n in range(12)]
    assert len({*drawn}) > 2


def test_a_server_that_samples_by_other_weights_than_it_was_sent_is_told_of(served, tmp_path):
    """As by a head that was not loaded, or in a coarse precision."""
    model = made(GRPO, served, tmp_path)
    rollout(model)
    with torch.no_grad():
        for weight in served.model.parameters():
            weight.mul_(1.2)
    with pytest.warns(UserWarning, match=r"from the policy's, and 0.05 .* \(--dtype\)"):
        rollout(model)


@pytest.mark.parametrize(("api", "loads"), [("vllm", 3), ("sglang", 1)])
def test_weights_count_as_sent_when_the_cache_of_former_ones_is_empty(
    api, loads, served, tmp_path, recwarn
):
    """A request that was given up may still hold it; SGLang is told to abort such."""
    served.held = 2
    model = made(GRPO, served, tmp_path, changes={"api": api})
    rollout(model)
    assert served.loaded == ["update-0"] * loads
    assert any("reset_prefix_cache: {'success': False" in str(w.message) for w in recwarn) == (
        loads > 1
    )


def test_values_are_those_of_the_policy(served, tmp_path):
    model = made(SequencePPO, served, tmp_path)
    with torch.no_grad():
        model.policy.value_head.linear.weight.fill_(0.3)
    sequences = rollout(model)
    tokens = sequences.tokens[:1, : sequences.lengths[0]]
    expected = model.policy.predict_values(tokens)  # at the sequence's last decision
    last = sequences.sizes[0] - 1
    torch.testing.assert_close(model.rollout.values[last], expected[0, 0], atol=1e-5, rtol=0)
    assert model.rollout.values.std() > 0


def test_stale_weights_are_weighed_and_the_weight_is_truncated(served, tmp_path):
    model = made(GRPO, served, tmp_path, changes={"weight_sync_steps": 2, "importance_cap": 1.2})
    rollout(model)
    model.train()
    with torch.no_grad():  # an update that the server does not hear of
        for weight in model.policy.backbone.parameters():
            weight.mul_(1.1)
    sequences = rollout(model)
    sampled = sequences.column(model.rollout_buffer.steps("log_probs"))
    ratio = (model.rollout.log_probs - sampled).exp()
    torch.testing.assert_close(sequences.columns["importance"], ratio.clamp(max=1.2))
    assert (ratio > 1.2).any()
    assert (ratio < 1).any()
    batch = next(model.batches(np.arange(len(sequences.sizes))))
    rows = torch.cat(
        [part.rows for part in sequences.parts(np.arange(len(sequences.sizes)), 10**6)]
    )
    plain = model._minibatch_advantages(rows)[rows]
    torch.testing.assert_close(batch.advantages, (plain * ratio[rows].clamp(max=1.2)))


def test_weights_are_sent_in_step_and_only_the_last_stay(served, tmp_path):
    model = made(GRPO, served, tmp_path, changes={"weight_sync_steps": 2})
    for _ in range(5):
        rollout(model)
        model.train()
    assert served.loaded == ["update-0", "update-2", "update-4"]
    assert [path.name for path in (tmp_path / "weights").iterdir()] == ["update-4"]
    assert model.logger.name_to_value["server/staleness_max"] == 0


def test_what_is_sampled_during_an_update_is_said_unless_it_is_too_old(served, tmp_path):
    """PPO's dialogues go on, and their next utterances are asked for before the update."""
    for most, reused in ((1, True), (0, False)):
        model = made(SequencePPO, served, tmp_path / str(most), changes={"max_staleness": most})
        _, callback = model._setup_learn(10_000)
        rollout(model, callback)
        model.served.waiting.clear()
        model.served.ahead(Observed.of(model._last_obs), model.rng)
        assert len(model.served.asked) == (ENVS if reused else 0)
        model.train()
        rollout(model, callback)
        assert max(model.served.staleness) == most
        model.served.pool.shutdown()


def test_an_utterance_is_said_only_where_it_follows():
    found = Utterance(np.array([3, 9]), np.array([7, 1]), np.zeros(2), 0)
    assert found.follows(np.array([3, 9]))
    assert not found.follows(np.array([3, 8]))
    assert not found.follows(np.array([3, 9, 7]))
    found.said = 1
    assert found.follows(np.array([3, 9, 7]))
    assert not found.follows(np.array([3, 9, 6]))
    found.said = 2
    assert not found.follows(np.array([3, 9, 7, 1]))


def test_as_many_requests_are_under_way_as_are_allowed(served, tmp_path):
    served.slow = [0.02] * 8
    model = made(GRPO, served, tmp_path, n_envs=8, changes={"max_inflight_tasks": 3})
    rollout(model)
    assert 1 <= served.most <= 3


def test_a_server_that_was_killed_is_sent_the_weights_again(served, tmp_path):
    model = made(GRPO, served, tmp_path, changes={"retries": 8})
    rollout(model)
    model.train()
    served.killed_after = served.sampled + ENVS + 1  # in the middle of a rollout
    waited = []

    def restart(seconds):
        waited.append(seconds)
        served.kill()
        served.start()  # without weights

    model.served.client.sleep = restart
    sequences = rollout(model)
    assert waited
    assert served.loaded == ["update-0", "update-1", "update-1"]
    sampled = sequences.column(model.rollout_buffer.steps("log_probs"))
    torch.testing.assert_close(sampled, model.rollout.log_probs, atol=1e-5, rtol=0)


class Restarted(InferenceServer):
    """A server that comes back with the weights of its command line.

    Attributes:
        first: the folder of these; None at first for none.
        knows: ``scores``, of prompts, or ``names``, of its weights.
    """

    first, knows, holds = None, "scores", "default"

    def start(self):
        super().start()
        self.holds = "default"
        if self.first is not None:
            self.model = pretrained("AutoModelForCausalLM", self.first).eval()

    def answer(self, path, body):
        if self.knows == "scores" and ("echo" in body or "logprob_start_len" in body):
            return 200, self.scored(body.get("prompt") or body["input_ids"], body)
        status, found = super().answer(path, body)
        self.holds = body.get("weight_version", self.holds)
        if self.knows == "names" and "meta_info" in found:
            found["meta_info"]["weight_version"] = self.holds
        return status, found

    @torch.no_grad()
    def scored(self, ids, body):
        logits = self.model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
        found = [None, *(float(logits[at, token]) for at, token in enumerate(ids[1:]))]
        if "prompt" in body:
            assert body["max_tokens"] == 1
            return {"choices": [{"logprobs": {"token_logprobs": [*found, -1.0]}}]}
        pairs = [[number, token, None] for number, token in zip(found, ids, strict=True)]
        return {"meta_info": {"input_token_logprobs": pairs[body["logprob_start_len"] :]}}


@pytest.mark.parametrize(
    ("api", "knows"),
    by_day([("vllm", "scores"), ("sglang", "scores"), ("sglang", "names")], ("sglang", "names")),
)
def test_a_server_that_was_restarted_during_an_update_is_found(api, knows, tmp_path):
    served = Restarted()
    served.knows = knows
    served.start()
    try:
        changes = {"api": api, "weight_sync_steps": 4}
        model = made(GRPO, served, tmp_path, changes=changes)
        served.first = model.save_pretrained(tmp_path / "first")
        with torch.no_grad():
            for weight in model.policy.backbone.parameters():
                weight.mul_(1.5)
        for _ in range(2):  # the second time the server is believed
            rollout(model)
            model.served.updated()
        assert served.loaded == ["update-0"]
        served.kill()
        served.start()
        with pytest.warns(UserWarning, match="restarted with other weights|by the weights 'def"):
            sequences = rollout(model)
    finally:
        served.kill()
    assert served.loaded == ["update-0", "update-2"]
    sampled = sequences.column(model.rollout_buffer.steps("log_probs"))
    torch.testing.assert_close(sampled, model.rollout.log_probs, atol=1e-5, rtol=0)


def test_a_server_that_was_restarted_and_is_not_back_is_waited_for(served, tmp_path):
    model = made(GRPO, served, tmp_path, changes={"weight_sync_steps": 2})
    rollout(model)
    model.served.updated()
    served.kill()
    model.served.client.sleep = lambda seconds: served.start()
    with pytest.warns(UserWarning, match="restarted with other weights"):
        rollout(model)
    assert served.loaded == ["update-0", "update-1"]


def test_a_server_that_is_slow_is_asked_again(served, tmp_path):
    model = made(GRPO, served, tmp_path, changes={"timeout": 1.0})
    rollout(model)
    served.slow = [3.0]
    sequences = rollout(model)
    sampled = sequences.column(model.rollout_buffer.steps("log_probs"))
    torch.testing.assert_close(sampled, model.rollout.log_probs, atol=1e-5, rtol=0)
    assert len(served.loaded) > 1  # it might have been restarted


def test_a_server_that_stays_away_is_one_error(served, tmp_path):
    model = made(GRPO, served, tmp_path, changes={"retries": 1})
    served.kill()
    with pytest.raises(ServerError, match=r"no answer in 2 attempts .*Start the server"):
        rollout(model)


@pytest.mark.parametrize(
    ("answer", "message"),
    [({"choices": []}, r"expected sampled ids .* Is it one of api='vllm'\?"), ({}, "sampled ids")],
)
def test_another_answer_is_one_error(answer, message, served, monkeypatch):
    monkeypatch.setattr(served, "answer", lambda path, body: (200, answer))
    client = Client(RolloutServer(served.url, "weights"))
    with pytest.raises(ServerError, match=message):
        client.sample(Request([1], 4, 2, 0))


def test_a_refusal_is_not_tried_again(served, monkeypatch):
    monkeypatch.setattr(served, "answer", lambda path, body: (400, {"error": "no such model"}))
    client = Client(RolloutServer(served.url, "weights"))
    with pytest.raises(ServerError, match=r"refuses, status 400: .*no such model"):
        client.sample(Request([1], 4, 2, 0))
    monkeypatch.setattr(served, "answer", lambda path, body: (404, {"detail": "Not Found"}))
    with pytest.raises(ServerError, match=r"collective_rpc refuses.*VLLM_SERVER_DEV_MODE=1"):
        client.load("weights")
    monkeypatch.setattr(served, "answer", lambda path, body: (503, {}))
    with pytest.raises(LostServer, match="status 503"):
        client.sample(Request([1], 4, 2, 0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"api": "tgi"}, "api"),
        ({"weight_sync_steps": 3, "max_staleness": 1}, r"every 3 updates are 2 old .* allows 1"),
        ({"importance_cap": 0.0}, "importance_cap above 0"),
        ({"max_inflight_tasks": 0}, "max_inflight_tasks of server must be a whole number from 1"),
        *(
            ({"url": url}, r"server: expected url as http://HOST:PORT; got")
            for url in (
                *("127.0.0.1:8000", "localhost:8000", "", None, "http://[::1", "http://h:abc"),
                *(
                    "http://h:99999",
                    "http://h ost:1",
                    "http://h\n:1",
                    "http://a..b",
                    "http://h?a=b",
                ),
            )
        ),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        RolloutServer(**{"url": "http://127.0.0.1:1", "folder": "weights", **settings})


def test_a_password_in_the_address_is_refused_and_not_shown():
    with pytest.raises(ValueError, match="api_key_env") as found:
        RolloutServer("http://me:secret@h:abc", "weights")
    assert "secret" not in str(found.value)
    for url in ("http://127.0.0.1:8000", "https://gpu.example", "http://[::1]:8000/"):
        assert RolloutServer(url, "weights").url == url


def test_what_a_server_cannot_do_is_said_at_once(served, tmp_path):
    with pytest.raises(ValueError, match=r"without masks; give policy_kwargs"):
        made(GRPO, served, tmp_path, policy_kwargs={**POLICY, "mask": True})


def test_the_server_stays_a_setting_of_a_saved_learner(served, tmp_path):
    model = made(GRPO, served, tmp_path, changes={"max_staleness": 3}).learn(60)
    model.save(tmp_path / "model")
    again = agents.load(tmp_path / "model", device="cpu")
    assert again.server == model.server
    assert isinstance(again.served, ServedSampler)


@pytest.mark.slow
def test_a_policy_learns_by_what_a_server_samples(served, tmp_path):
    """Any words at first, of which hardly any is a question; then questions that find things."""
    settings = {"n_steps": 64, "batch_size": 512, "ent_coef": 0.01, "learning_rate": 0.01}
    wider = {"n_layer": 1, "n_head": 2, "n_embd": 32, "mask": False}
    model = made(GRPO, served, tmp_path, n_envs=16, group_size=8, policy_kwargs=wider, **settings)
    before = dialgym.evaluate(model, ID, 100, [0], {"tokenizer": "word"}).mean_return
    model.learn(20_000)
    after = dialgym.evaluate(model, ID, 100, [0], {"tokenizer": "word"}).mean_return
    assert after > before + 0.3
