"""The embedded engine's API in virtual time: bytes in, bytes out, each at its exact time."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.support.raw_http import RawClient, Reply, request
from tests.support.steps import plain
from tests.support.virtual_loop import MemoryConnector, run_virtual
from tokenwatt_site.method.overrides import Meter
from tokenwatt_site.method.shape import Shape
from tokenwatt_site.method.step_model import Reading, StepModel
from tokenwatt_site.simulator.app import App
from tokenwatt_site.simulator.engine import Engine

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
USAGE = {"include_usage": True}
Scene = Callable[["Stage"], Awaitable[Any]]


class Stage:
    """An engine in this process and a client of it."""

    def __init__(self, shape: Shape, meter: Meter, api_key: str) -> None:
        self.model = StepModel(shape)
        self.engine = Engine(self.model, asyncio.get_running_loop())
        self._connector = MemoryConnector(App(self.engine, meter, api_key).connection)

    async def client(self) -> RawClient:
        client = RawClient()
        await self._connector.connect(lambda: client)
        return client

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        return await (await self.client()).ask(method, path, body, **headers)


def on_stage(
    scene: Scene, shape: Shape | None = None, meter: Meter | None = None, api_key: str = ""
) -> Any:
    """Play a scene in virtual time; return what it returns."""

    async def play() -> Any:
        return await scene(Stage(shape or plain(), meter or Meter(), api_key))

    return run_virtual(play())


def prompt(n: int) -> list[int]:
    return list(range(n))


def ask_once(path: str, body: Any, shape: Shape | None = None) -> Reply:
    return on_stage(lambda stage: stage.ask("POST", path, body), shape)


def test_a_stream_has_one_write_a_token_at_the_end_of_its_step() -> None:
    body = {"prompt": prompt(300), "max_tokens": 4, "stream": True}

    async def scene(stage: Stage) -> tuple[Reply, float]:
        began_s = asyncio.get_running_loop().time()
        return await stage.ask("POST", COMPLETIONS, body), began_s

    reply, began_s = on_stage(scene)
    twin = StepModel(plain())
    twin.submit(0, 0.0, 300, 4)
    ends = [step.ends_s[0] for step in iter(twin.step, None) if step is not None]
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.head_s == began_s  # the head doesn't wait for a token
    assert [t_s - began_s for t_s, _ in reply.reads] == pytest.approx(ends)
    *chunks, done = reply.events()
    assert done == "[DONE]"
    assert [chunk["choices"][0]["text"] for chunk in chunks] == [" t1", " t2", " t3", " t4"]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * 3 + ["length"]
    assert {chunk["object"] for chunk in chunks} == {"text_completion"}
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_usage_comes_in_a_chunk_without_choices_before_the_end() -> None:
    body = {"prompt": "four words of prompt", "max_tokens": 2, "stream": True}
    reply = ask_once(COMPLETIONS, body | {"stream_options": USAGE})
    *_, usage, done = reply.events()
    assert usage["choices"] == []
    assert usage["usage"] == {"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6}
    assert done == "[DONE]"
    assert len(reply.reads) == 2  # it leaves with the last token
    without = ask_once(COMPLETIONS, body)
    assert all("usage" not in chunk for chunk in without.events()[:-1])


def test_continuous_usage_counts_up() -> None:
    options = USAGE | {"continuous_usage_stats": True}
    body = {"prompt": prompt(5), "max_tokens": 3, "stream": True, "stream_options": options}
    counts = [
        chunk["usage"]["completion_tokens"] for chunk in ask_once(COMPLETIONS, body).events()[:-1]
    ]
    assert counts == [1, 2, 3, 3]


def test_chat_says_its_role_at_once_and_counts_its_template() -> None:
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "say  three\nwords"},
    ]
    body = {"messages": messages, "max_completion_tokens": 2, "stream": True}
    reply = ask_once(CHAT, body | {"stream_options": USAGE})
    role, first, last, usage, _ = reply.events()
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert reply.reads[0][0] == reply.head_s < reply.reads[1][0]
    assert [c["choices"][0]["delta"] for c in (first, last)] == [
        {"content": " t1"},
        {"content": " t2"},
    ]
    assert last["choices"][0]["finish_reason"] == "length"
    assert usage["usage"]["prompt_tokens"] == 5 + 8
    assert role["object"] == "chat.completion.chunk"


@pytest.mark.parametrize(
    "path,body,content",
    [
        (COMPLETIONS, {"prompt": prompt(9)}, lambda choice: choice["text"]),
        (
            CHAT,
            {"messages": [{"role": "user", "content": "x"}]},
            lambda choice: choice["message"]["content"],
        ),
    ],
)
def test_without_a_stream_the_answer_comes_whole(
    path: str, body: dict[str, Any], content: Callable[[Any], str]
) -> None:
    reply = ask_once(path, body | {"max_tokens": 3, "ignore_eos": True, "temperature": 0})
    assert reply.headers["content-type"] == "application/json"
    (choice,) = reply.json()["choices"]
    assert content(choice) == " t1 t2 t3"
    assert choice["finish_reason"] == "length"
    assert reply.json()["usage"]["completion_tokens"] == 3


def test_sixteen_tokens_unless_asked_otherwise() -> None:
    reply = ask_once(COMPLETIONS, {"prompt": "x"})
    assert reply.json()["usage"]["completion_tokens"] == 16


def test_streams_of_a_batch_gain_their_tokens_together() -> None:
    body = {"prompt": prompt(100), "max_tokens": 5, "stream": True}

    async def scene(stage: Stage) -> list[Reply]:
        clients = [await stage.client() for _ in range(3)]
        return list(await asyncio.gather(*(c.ask("POST", COMPLETIONS, body) for c in clients)))

    replies = on_stage(scene)
    times = [[t_s for t_s, _ in reply.reads] for reply in replies]
    assert times[1] == times[2]
    # the first one was alone in its first step
    assert times[0][1:] == times[1][:-1]


def test_a_prompt_that_arrives_during_a_step_waits_for_its_end() -> None:
    body = {"prompt": prompt(100), "max_tokens": 1, "stream": True}

    async def scene(stage: Stage) -> tuple[float, ...]:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        one, two = [await stage.client() for _ in range(2)]
        first = asyncio.create_task(one.ask("POST", COMPLETIONS, body))
        await asyncio.sleep(0.005)
        second = asyncio.create_task(two.ask("POST", COMPLETIONS, body))
        replies = (await first, await second)
        return tuple(reply.reads[0][0] - began_s for reply in replies)

    step_s = 1e-3 + 10e-3 + 1e-3 + 5e-6
    assert on_stage(scene) == pytest.approx((step_s, 2 * step_s))


def test_connections_are_kept_and_requests_may_be_piped() -> None:
    body = {"prompt": "a b", "max_tokens": 2}

    async def scene(stage: Stage) -> list[Reply]:
        client = await stage.client()
        await client.ask("GET", "/health")
        client.write(request("POST", COMPLETIONS, body) + request("GET", "/v1/models"))
        client.write(request("POST", COMPLETIONS, body | {"stream": True}))
        await client.answered(4)
        return client.replies

    health, whole, models, stream = on_stage(scene)
    assert {r.headers["connection"] for r in (health, whole, models, stream)} == {"keep-alive"}
    assert whole.json()["usage"]["completion_tokens"] == 2
    assert models.json()["data"][0]["id"] == "simulated"
    assert len(stream.events()) == 3


def test_a_connection_is_closed_when_the_client_asks_for_it() -> None:
    async def scene(stage: Stage) -> tuple[Reply, bool]:
        client = await stage.client()
        reply = await client.ask("GET", "/health", connection="close")
        await asyncio.sleep(0)
        return reply, client.closed

    reply, closed = on_stage(scene)
    assert (reply.status, reply.headers["connection"], closed) == (200, "close", True)


@pytest.mark.parametrize("more", [{"stream": True}, {}])
def test_hanging_up_cancels(more: dict[str, Any]) -> None:
    """The one that decodes and the one in the queue; the third goes on alone."""
    body = {"prompt": prompt(100), "max_tokens": 500} | more

    async def scene(stage: Stage) -> tuple[Any, ...]:
        clients = [await stage.client() for _ in range(3)]
        for client in clients:
            client.write(request("POST", COMPLETIONS, body))
        await asyncio.sleep(1.0)
        before = (stage.model.running, stage.model.waiting)
        clients[0].close()
        clients[2].close()
        await clients[1].answered(1)
        return before, (stage.model.running, stage.model.waiting), stage.model.totals

    before, after, totals = on_stage(scene, plain(max_sequences=2))
    assert before == (2, 1)
    assert after == (0, 0)
    assert (totals.cancelled, totals.finished) == (2, 1)


def test_hanging_up_after_the_last_step_has_begun_cancels_nothing() -> None:
    async def scene(stage: Stage) -> tuple[int, int]:
        client = await stage.client()
        client.write(request("POST", COMPLETIONS, {"prompt": prompt(100), "max_tokens": 1}))
        await asyncio.sleep(0.005)
        client.close()
        await asyncio.sleep(1.0)
        return stage.model.totals.finished, stage.model.totals.cancelled

    assert on_stage(scene) == (1, 0)


def test_nonsense_in_the_middle_of_a_stream_ends_the_connection_and_the_request() -> None:
    body = {"prompt": prompt(100), "max_tokens": 500, "stream": True}

    async def scene(stage: Stage) -> tuple[bool, int, int]:
        client = await stage.client()
        client.write(request("POST", COMPLETIONS, body))
        await asyncio.sleep(1.0)
        client.write(b"NOT HTTP AT ALL\r\n\r\n")
        await asyncio.sleep(1.0)
        return client.closed, len(client.replies), stage.model.totals.cancelled

    assert on_stage(scene) == (True, 0, 1)


def test_a_process_that_falls_behind_says_so_and_catches_up() -> None:
    """Half a second of a blocked loop delays the tokens of then, and no later one."""
    body = {"prompt": prompt(100), "max_tokens": 200, "stream": True}

    async def scene(stage: Stage) -> tuple[Reply, float, float]:
        loop: Any = asyncio.get_running_loop()

        def block() -> None:
            loop._times.now_s += 0.5

        loop.call_later(1.0, block)
        began_s = loop.time()
        reply = await stage.ask("POST", COMPLETIONS, body)
        return reply, began_s, stage.engine.behind_s

    reply, began_s, behind_s = on_stage(scene)
    twin = StepModel(plain())
    twin.submit(0, 0.0, 100, 200)
    ends = [step.ends_s[0] for step in iter(twin.step, None) if step is not None]
    late = [t_s - began_s - end_s for (t_s, _), end_s in zip(reply.reads, ends, strict=True)]
    assert behind_s == pytest.approx(max(late))
    assert 0.48 < behind_s <= 0.5
    assert sum(1 for delay in late if delay > 1e-9) < 60
    assert late[-1] == pytest.approx(0, abs=1e-9)


REFUSED = [
    (COMPLETIONS, {"prompt": "x", "model": "gpt"}, 404, "model", "'gpt' does not exist"),
    (COMPLETIONS, {}, 400, "prompt", "text or a list"),
    (COMPLETIONS, {"prompt": ""}, 400, "prompt", "empty"),
    (COMPLETIONS, {"prompt": []}, 400, "prompt", "empty"),
    (COMPLETIONS, {"prompt": [1, "2"]}, 400, "prompt", "ids from 0 to 31999"),
    (COMPLETIONS, {"prompt": [32000]}, 400, "prompt", "ids from 0 to 31999"),
    (COMPLETIONS, {"prompt": [-1]}, 400, "prompt", "ids from 0 to 31999"),
    (COMPLETIONS, {"prompt": ["a", "b"]}, 400, "prompt", "ids from 0 to 31999"),
    (COMPLETIONS, {"prompt": [True]}, 400, "prompt", "ids from 0 to 31999"),
    (COMPLETIONS, {"prompt": "x", "max_tokens": 0}, 400, "max_tokens", "at least 1"),
    (COMPLETIONS, {"prompt": "x", "max_tokens": "8"}, 400, "max_tokens", "whole number"),
    (COMPLETIONS, {"prompt": "x", "max_tokens": 1.5}, 400, "max_tokens", "whole number"),
    (COMPLETIONS, {"prompt": "x", "n": 2}, 400, "n", "one answer"),
    (COMPLETIONS, {"prompt": "x", "stream_options": [1]}, 400, "stream_options", "object"),
    (COMPLETIONS, {"prompt": "x", "max_tokens": 40_000}, 400, "prompt", "context length is 32768"),
    (COMPLETIONS, b"{", 400, None, "not valid JSON"),
    (COMPLETIONS, b"[" * 100_000, 400, None, "not valid JSON"),
    (COMPLETIONS, b"\xff\xfe", 400, None, "not valid JSON"),
    (COMPLETIONS, [1], 400, None, "JSON object"),
    (CHAT, {"messages": []}, 400, "messages", "at least one"),
    (CHAT, {"messages": ["x"]}, 400, "messages", "text as its content"),
    (CHAT, {"messages": [{"role": "user", "content": None}]}, 400, "messages", "text as its"),
    ("/v1/nope", {}, 404, None, "no /v1/nope"),
]


@pytest.mark.parametrize("path,body,status,param,message", REFUSED)
def test_a_bad_request_gets_an_error_of_the_api(
    path: str, body: Any, status: int, param: str | None, message: str
) -> None:
    reply = ask_once(path, body)
    error = reply.json()["error"]
    assert (reply.status, error["code"], error["param"]) == (status, status, param)
    assert message in error["message"]
    assert error["type"] == ("NotFoundError" if status == 404 else "BadRequestError")
    assert reply.headers["connection"] == "keep-alive"


@pytest.mark.parametrize("method,path", [("POST", "/health"), ("GET", COMPLETIONS)])
def test_the_wrong_method_is_refused(method: str, path: str) -> None:
    reply = on_stage(lambda stage: stage.ask(method, path))
    assert reply.status == 405


@pytest.mark.parametrize(
    "given,status",
    [("", 401), ("Bearer wrong", 401), ("Bearer sesame", 200), ("bearer sesame", 401)],
)
def test_a_key_is_asked_for_where_one_is_set(given: str, status: int) -> None:
    async def scene(stage: Stage) -> tuple[int, int]:
        key = {"authorization": given} if given else {}
        models = await stage.ask("GET", "/v1/models", **key)
        return models.status, (await stage.ask("GET", "/power")).status

    assert on_stage(scene, api_key="sesame") == (status, 200)


@pytest.mark.parametrize(
    "raw,status",
    [(b"NOT HTTP AT ALL\r\n\r\n", 400), (b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400)],
)
def test_what_is_no_http_is_hung_up_on(raw: bytes, status: int) -> None:
    async def scene(stage: Stage) -> tuple[int, bool]:
        client = await stage.client()
        client.write(raw)
        await client.answered(1)
        await asyncio.sleep(0)
        return client.replies[0].status, client.closed

    assert on_stage(scene) == (status, True)


def test_a_request_without_end_is_hung_up_on() -> None:
    async def scene(stage: Stage) -> tuple[int, bool]:
        client = await stage.client()
        client.write(b"POST /v1/completions HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n")
        for _ in range(17):
            client.write(b" " * 1024 * 1024)
        await client.answered(1)
        await asyncio.sleep(0)
        return client.replies[0].status, client.closed

    assert on_stage(scene) == (413, True)


def test_models_tell_context_and_vocabulary() -> None:
    reply = on_stage(lambda stage: stage.ask("GET", "/v1/models?limit=5"))
    (model,) = reply.json()["data"]
    assert (model["id"], model["max_model_len"], model["vocab_size"]) == ("simulated", 32768, 32000)


def test_counters_are_those_of_the_tokens_sent() -> None:
    async def scene(stage: Stage) -> str:
        for n in (3, 4):
            await stage.ask("POST", COMPLETIONS, {"prompt": prompt(100), "max_tokens": n})
        hanging = await stage.client()
        hanging.write(request("POST", COMPLETIONS, {"prompt": prompt(400), "max_tokens": 9}))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return (await stage.ask("GET", "/metrics")).body.decode()

    text = on_stage(scene)
    rows = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert rows['vllm:request_success_total{finished_reason="length"}'] == "2"
    assert rows["vllm:num_requests_running"] == "1"
    assert rows["vllm:num_requests_waiting"] == "0"
    assert float(rows["vllm:generation_tokens_total"]) >= 7
    assert float(rows["simulator:bytes_read_total"]) > 7 * 10e9
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(rows)


def test_the_meter_shows_the_model_s_energy_on_each_device() -> None:
    async def scene(stage: Stage) -> tuple[Any, Any, Reading]:
        idle = (await stage.ask("GET", "/power")).json()
        client = await stage.client()
        client.write(request("POST", COMPLETIONS, {"prompt": prompt(900), "max_tokens": 100}))
        await asyncio.sleep(0.5)
        busy = (await stage.ask("GET", "/power")).json()
        return idle, busy, stage.model.reading(stage.engine.now_s)

    idle, busy, now = on_stage(scene, plain(gpus=2, limit_w=250.0))
    assert [device["uuid"] for device in busy["devices"]] == ["SIM-0", "SIM-1"]
    assert idle["devices"][0]["power_w"] == 100
    for device in busy["devices"]:
        assert device["energy_j"] == pytest.approx(now.energy_j)
        assert 100 < device["power_w"] <= 250 * (1 + 1e-9)
        assert device["throttle_ns"]["sw_power_cap"] == round(1e9 * now.throttled_s) > 0
        assert (device["limit_w"], device["name"]) == (250, "Test accelerator")
    assert busy["devices"][0]["throttled"] == ["sw_power_cap"]
    assert busy["behind_s"] == pytest.approx(0, abs=1e-9)


def test_polled_power_is_the_counter_s_slope() -> None:
    """Ten readings a second, each the mean of the 0.1 s before it: none of the energy is missed."""
    body = {"prompt": prompt(900), "max_tokens": 150, "stream": True}

    async def scene(stage: Stage) -> list[Any]:
        client = await stage.client()
        readings: list[Any] = []
        for k in range(30):
            if k % 7 == 0:
                client.write(request("POST", COMPLETIONS, body))
            await asyncio.sleep(0.1)
            readings.append((await stage.ask("GET", "/power")).json())
        return readings

    readings = on_stage(scene)
    for before, after in pairwise(readings):
        first, second = before["devices"][0], after["devices"][0]
        slope_w = (second["energy_j"] - first["energy_j"]) / (after["t_s"] - before["t_s"])
        assert second["power_w"] == pytest.approx(slope_w)
    assert max(reading["devices"][0]["power_w"] for reading in readings) > 300


def test_a_wrong_meter_is_wrong_by_its_gain_and_may_have_no_counter() -> None:
    async def scene(stage: Stage) -> Any:
        await asyncio.sleep(3.0)
        return (await stage.ask("GET", "/power")).json()["devices"][0]

    device = on_stage(scene, meter=Meter(meter_gain=1.1))
    assert device["power_w"] == pytest.approx(110)
    assert device["energy_j"] == pytest.approx(330)
    assert on_stage(scene, meter=Meter(meter_counter=False))["energy_j"] is None
