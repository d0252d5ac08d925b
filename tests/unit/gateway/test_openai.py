"""The official `openai` package, unmodified, at a gateway."""

import asyncio
import json
import math
import re
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.request import Request, urlopen

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from giaann_p2p.errors import NobodyComputes
from giaann_p2p.gateway.limits import Limits
from giaann_p2p.gateway.rules import Access
from giaann_p2p.net.errors import Unreachable
from tests.unit.gateway import raw
from tests.unit.gateway.serving import WITHIN, Served, Stub, served


@pytest.fixture
def words() -> Iterator[Served]:
    with served(limits=Limits(drain_seconds=1.0, silence_seconds=0.3)) as found:
        yield found


@pytest.fixture
def subwords() -> Iterator[Served]:
    with served(partial(Stub, "subwords")) as found:
        yield found


def client_of(found: Served, key: str = "none") -> OpenAI:
    return OpenAI(base_url=f"{found.url}/v1", api_key=key, max_retries=0, timeout=WITHIN)


def test_models_are_listed_and_found(words: Served) -> None:
    with client_of(words) as client:
        assert [model.id for model in client.models.list()] == ["bees"]
        assert client.models.retrieve("bees").owned_by == "giaann"
        with pytest.raises(openai.NotFoundError) as error:
            client.models.retrieve("gpt-4")
    assert error.value.code == "model_not_found"


def test_a_completion_has_text_usage_and_a_reason_for_its_end(words: Served) -> None:
    with client_of(words) as client:
        found = client.completions.create(model="bees", prompt="Bees count, and say:", max_tokens=9)
        cut = client.completions.create(model="bees", prompt="Bees", max_tokens=2)
    assert [(one.text, one.finish_reason) for one in found.choices] == [(" 1 2 3", "stop")]
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (6, 3)
    assert found.usage.total_tokens == 9
    assert (cut.choices[0].text, cut.choices[0].finish_reason) == (" 1 2", "length")
    assert found.id.startswith("cmpl-")
    assert found.object == "text_completion"


def test_many_prompts_with_many_answers_each_are_in_their_order(subwords: Served) -> None:
    with client_of(subwords) as client:
        found = client.completions.create(
            model="bees", prompt=["a b", "c"], n=2, echo=True, temperature=0.5, seed=7, max_tokens=1
        )
    assert [one.text for one in found.choices] == ["a b 1", "a b 1", "c 1", "c 1"]
    assert [one.index for one in found.choices] == [0, 1, 2, 3]
    seeds = [manner.sampling.seed for manner in subwords.backend.manners]
    assert sorted(seeds) == [7, 7, 8, 8]


def test_a_stream_brings_what_one_reply_does(words: Served) -> None:
    with client_of(words) as client:
        stream = client.completions.create(
            model="bees", prompt="Bees", stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
    assert "".join(one.choices[0].text for one in chunks if one.choices) == " 1 2 3"
    assert [one.choices[0].finish_reason for one in chunks if one.choices] == [*[None] * 3, "stop"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 3


def test_tokens_that_come_together_are_sent_together(words: Served) -> None:
    words.backend.length, words.backend.together = 6, 3
    chat = [{"role": "user", "content": "Bees"}]
    for path, given in (
        ("/v1/completions", {"model": "bees", "prompt": "Bees", "stream": True}),
        ("/v1/chat/completions", {"model": "bees", "messages": chat, "stream": True}),
        ("/api/prompt", {"prompt": "Bees"}),
    ):
        _, data = raw.asked(words.port, "POST", path, json.dumps(given).encode())
        sent = data.partition(b"\r\n\r\n")[2].split(b"\r\n")[1::2]
        told = [len(re.findall(rb'" \d"', one)) for one in sent]
        assert [count for count in told if count] == [3, 3], path


def test_a_stream_of_several_answers_brings_each_whole(subwords: Served) -> None:
    with client_of(subwords) as client:
        stream = client.completions.create(
            model="bees", prompt=["a", "b"], n=2, stream=True, echo=True, temperature=1
        )
        texts = ["", "", "", ""]
        for chunk in stream:
            texts[chunk.choices[0].index] += chunk.choices[0].text
    assert texts == ["a 1 2 3", "a 1 2 3", "b 1 2 3", "b 1 2 3"]


def test_a_stream_ends_with_the_word_done(words: Served) -> None:
    body = json.dumps({"model": "bees", "prompt": "Bees", "stream": True}).encode()
    with urlopen(Request(f"{words.url}/v1/completions", body), timeout=WITHIN) as reply:  # noqa: S310
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert reply.read().endswith(b"data: [DONE]\n\n")


def parts_of(client: OpenAI, chat: bool, stream: bool, **options: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
    """Return the texts of an answer as they come, each with its reason for an end."""
    if chat:
        messages = [{"role": "user", "content": "Bees"}]
        found = client.chat.completions.create(
            model="bees", messages=messages, stream=stream, **options
        )
        choices = [one.choices[0] for one in (found if stream else [found])]
        texts = [(one.delta if stream else one.message).content or "" for one in choices]
    else:
        found = client.completions.create(model="bees", prompt="Bees", stream=stream, **options)
        choices = [one.choices[0] for one in (found if stream else [found])]
        texts = [one.text for one in choices]
    return list(zip(texts, [one.finish_reason for one in choices], strict=True))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (" 1", ""),
        ("1", " "),
        (" 1 2", ""),
        (["2 3", "9"], " 1 "),
        (["9", "3"], " 1 2 "),
        ("3 4", " 1 2 3"),
    ],
)
def test_an_answer_ends_before_a_stop(
    words: Served, chat: bool, stream: bool, stop: object, text: str
) -> None:
    with client_of(words) as client:
        found = parts_of(client, chat, stream, stop=stop)
        words.run(words.backend.over.wait())
    assert "".join(part for part, _ in found) == text
    assert [finish for _, finish in found] == [None] * (len(found) - 1) + ["stop"]


def test_logprobs_are_those_of_the_tokens(subwords: Served) -> None:
    with client_of(subwords) as client:
        found = client.completions.create(
            model="bees", prompt="Bees", logprobs=2, echo=True, max_tokens=2
        )
        chat = client.chat.completions.create(
            model="bees",
            messages=[{"role": "user", "content": "Bees"}],
            logprobs=True,
            top_logprobs=2,
        )
    told = found.choices[0].logprobs
    assert told is not None
    half = round(math.log(0.5), 6)
    assert told.tokens == ["Bees", " 1", " 2"]
    assert told.token_logprobs == [None, half, half]
    assert told.text_offset == [0, 4, 6]
    quarter = round(math.log(0.25), 6)
    assert told.top_logprobs == [None, *({n: half, " bees": quarter} for n in (" 1", " 2"))]
    said = chat.choices[0].logprobs
    assert said is not None
    assert said.content is not None
    assert [one.logprob for one in said.content] == [half] * 3
    best = [(one.token, one.logprob) for one in said.content[0].top_logprobs]
    assert best == [(" 1", half), (" bees", quarter)]


def test_streamed_logprobs_are_where_their_tokens_are(subwords: Served) -> None:
    with client_of(subwords) as client:
        stream = client.completions.create(
            model="bees", prompt="Bees", logprobs=0, echo=True, stop="1 9", stream=True
        )
        told = [one.choices[0].logprobs for one in stream]
    assert [at for one in told if one and one.text_offset for at in one.text_offset] == [0, 4, 6, 8]


def test_a_chat_goes_on_from_the_last_message_of_the_user(words: Served) -> None:
    messages: list[openai.types.chat.ChatCompletionMessageParam] = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": [{"type": "text", "text": "Bees zorp"}]},
    ]
    with client_of(words) as client:
        raw = client.chat.completions.with_raw_response.create(model="bees", messages=messages)
        parts = list(
            client.chat.completions.create(model="bees", messages=messages[3:], stream=True)
        )
    found = raw.parse()
    assert found.choices[0].message.content == " 1 2 3"
    assert found.choices[0].finish_reason == "stop"
    ignored = raw.headers["x-giaann-ignored"]
    assert ignored == "system message, all but the last user message"
    assert found.usage is not None
    assert found.usage.prompt_tokens == 2
    assert parts[0].choices[0].delta.role == "assistant"
    assert "".join(one.choices[0].delta.content or "" for one in parts) == " 1 2 3"
    assert parts[-1].choices[0].finish_reason == "stop"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"temperature": 0.7}, "temperature"),
        ({"top_p": 0.5}, "top_p"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"max_tokens": 1 << 20}, "max_tokens"),
        ({"n": 0}, "n"),
        ({"n": 100}, "n"),
        ({"stop": [5]}, "stop[0]"),
        ({"logprobs": 2}, "logprobs"),
        ({"prompt": [1, 2]}, "prompt[0]"),
        ({"prompt": "nothing"}, "prompt"),
        ({"prompt": "  "}, "prompt"),
    ],
)
def test_a_wrong_field_is_named(words: Served, given: dict[str, object], field: str) -> None:
    with client_of(words) as client, pytest.raises(openai.BadRequestError) as error:
        client.completions.create(**({"model": "bees", "prompt": "Bees"} | given))  # type: ignore[call-overload]
    assert error.value.param == field
    assert error.value.type == "invalid_request_error"
    assert "Expected" not in str(error.value)
    assert words.backend.now == 0


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"max_tokens": 1 << 20}, "max_tokens"),
        ({"max_completion_tokens": 99_999}, "max_completion_tokens"),
        ({"max_completion_tokens": 99_999, "max_tokens": 5}, "max_completion_tokens"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"top_logprobs": 2, "logprobs": False}, "top_logprobs"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages"),
        ({"messages": [{"role": "user", "content": "nothing"}]}, "messages"),
        ({"messages": [{"role": "system", "content": "Be kind."}]}, "messages"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_wrong_field_of_a_chat_is_named(
    subwords: Served, given: dict[str, object], field: str, stream: bool
) -> None:
    usual = {"model": "bees", "messages": [{"role": "user", "content": "Bees"}], "stream": stream}
    with client_of(subwords) as client, pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(**(usual | given))  # type: ignore[call-overload]
    assert error.value.param == field
    if field != "messages":
        assert f"{field}: " in str(error.value)
    assert subwords.backend.now == 0


def test_candidates_of_a_model_that_has_none_are_refused_by_name(words: Served) -> None:
    with (
        client_of(words) as client,
        pytest.raises(openai.BadRequestError, match="a model of words"),
    ):
        client.chat.completions.create(
            model="bees", messages=[{"role": "user", "content": "Bees"}], top_logprobs=2
        )


def test_unknown_fields_are_ignored_and_greedy_ones_taken(words: Served) -> None:
    with client_of(words) as client:
        found = client.completions.create(
            model="bees",
            prompt="Bees",
            temperature=0,
            top_p=1,
            seed=-5,
            user="me",
            best_of=1,
            presence_penalty=1.0,
            extra_body={"whatever": [1]},
        )
    assert found.choices[0].text == " 1 2 3"


@pytest.mark.parametrize("body", [b"", b"[1", b"{}", b"[]", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_request_is_a_bad_request(words: Served, body: bytes) -> None:
    with client_of(words) as client, pytest.raises(openai.BadRequestError) as error:
        client.post("/completions", content=body, cast_to=object)
    assert not re.search("Expected|Object|malformed|Input|codec", str(error.value))


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        (Unreachable("no compute peer could go on"), openai.InternalServerError, 503),
        (NobodyComputes("there is none"), openai.InternalServerError, 503),
        (RuntimeError("secret"), openai.InternalServerError, 500),
    ],
)
def test_failures_have_their_status(
    words: Served, fault: Exception, kind: type[openai.APIStatusError], code: int
) -> None:
    words.backend.fault, words.backend.fault_at = fault, 0
    with client_of(words) as client, pytest.raises(kind) as error:
        client.completions.create(model="bees", prompt="Bees")
    assert error.value.status_code == code
    assert ("retry-after" in error.value.response.headers) == (code == 503)
    assert "secret" not in str(error.value)
    with client_of(words) as client, pytest.raises(kind):  # before the first chunk, too
        client.completions.create(model="bees", prompt="Bees", stream=True)


def test_a_failure_in_mid_stream_is_told_in_the_stream(words: Served) -> None:
    words.backend.fault, words.backend.fault_at = Unreachable("they are gone"), 2
    with client_of(words) as client:
        stream = client.completions.create(model="bees", prompt="Bees", stream=True)
        texts = []
        with pytest.raises(openai.APIError, match="they are gone"):
            texts += [chunk.choices[0].text for chunk in stream]
    assert words.backend.now == 0


def test_a_prompt_that_says_nothing_for_long_fails(words: Served) -> None:
    words.backend.held_at = 0
    with client_of(words) as client, pytest.raises(openai.InternalServerError) as error:
        client.completions.create(model="bees", prompt="Bees")
    assert error.value.status_code == 503
    assert error.value.code == "swarm_unavailable"
    assert words.backend.now == 0


@pytest.fixture
def patient() -> Iterator[Served]:
    with served() as found:
        yield found


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_times_out_ends_its_prompt(patient: Served, stream: bool) -> None:
    patient.backend.held_at = 0
    with client_of(patient) as client, pytest.raises(openai.APITimeoutError):
        client.completions.create(model="bees", prompt="Bees", stream=stream, timeout=0.3)
    patient.run(patient.backend.over.wait())
    assert patient.backend.now == 0


def test_a_stream_that_is_left_ends_its_prompt(patient: Served) -> None:
    patient.backend.held_at = 2
    with client_of(patient) as client:
        stream = client.completions.create(model="bees", prompt="Bees", stream=True)
        first = next(iter(stream))
        assert first.choices[0].text == " 1"
        patient.run(patient.backend.holding.wait())
        assert patient.backend.now == 1
        stream.close()
    patient.run(patient.backend.over.wait())
    assert patient.backend.now == 0


def test_fifty_at_once_are_all_answered_at_the_same_time(patient: Served) -> None:
    patient.backend.held_at = 1

    async def ask(client: AsyncOpenAI, number: int) -> str:
        if number % 2:
            found = await client.completions.create(model="bees", prompt=f"Bees {number}")
            return found.choices[0].text
        stream = await client.completions.create(model="bees", prompt="Bees", stream=True)
        return "".join([chunk.choices[0].text async for chunk in stream])

    async def all_of_them() -> list[str]:
        async with AsyncOpenAI(
            base_url=f"{patient.url}/v1", api_key="none", max_retries=0, timeout=WITHIN
        ) as client:
            works = [asyncio.ensure_future(ask(client, number)) for number in range(50)]
            await asyncio.to_thread(patient.run, patient.backend.full.wait())
            patient.loop.call_soon_threadsafe(patient.backend.go.set)
            return await asyncio.gather(*works)

    assert asyncio.run(all_of_them()) == [" 1 2 3"] * 50
    assert patient.backend.most == 50


def test_with_its_key_a_client_is_let_in_and_without_it_an_error_of_its_own_is_raised() -> None:
    with served(access=Access(key=b"the-right-key")) as found:
        for key in ("none", "the-right-ke", "THE-RIGHT-KEY"):
            with client_of(found, key) as client:
                for ask in (client.models.list, lambda of=client: said(of)):
                    with pytest.raises(openai.AuthenticationError) as error:
                        ask()
                    assert error.value.status_code == 401
                    assert error.value.code == "invalid_api_key"
        assert found.backend.manners == []
        with client_of(found, "the-right-key") as client:
            assert [model.id for model in client.models.list()] == ["bees"]
            assert said(client) == " 1 2 3"


def test_a_client_that_sends_no_key_is_asked_for_one() -> None:
    nothing = {"Authorization": openai.Omit()}
    with served(access=Access(key=b"the-right-key")) as found, client_of(found) as client:
        with pytest.raises(openai.AuthenticationError, match="give this gateway's key") as error:
            client.models.list(extra_headers=nothing)
        assert "authorization" not in error.value.request.headers


def said(client: OpenAI) -> str:
    return client.completions.create(model="bees", prompt="Bees").choices[0].text


def test_too_many_at_once_are_told_to_come_again() -> None:
    with served(limits=Limits(prompts=2, drain_seconds=1.0)) as found, client_of(found) as client:
        with pytest.raises(openai.RateLimitError) as error:
            client.completions.create(model="bees", prompt=["a", "b", "c"])
        assert error.value.code == "rate_limit_exceeded"
        assert "retry-after" in error.value.response.headers
        assert (
            client.completions.create(model="bees", prompt=["a", "b"]).choices[1].text == " 1 2 3"
        )
