"""What real endpoints reply and refuse, through the real client: an answer, or a failure with its reason."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.retrieval.llm.test_gate import asked, call, kinds, opened
from tests.support.llm_servers.dialects import REFUSALS, REPLIES, THINKING
from tests.support.llm_servers.scripted import ScriptedServer

from hopbench.retrieval.llm import LLM, CallLedger, Endpoint, ask
from hopbench.retrieval.llm.faults import masked
from hopbench.retrieval.llm.replies import find_value, split_thinking


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer().running() as running:
        yield running


@pytest.mark.parametrize("mode", [*REPLIES, "nousage", "nullfr"])
def test_every_reply_is_read_and_read_again_from_the_cache(server: ScriptedServer, tmp_path: Path, mode: str) -> None:
    fresh, kept = (asked(server, tmp_path, [call("hello")], mode)[0] for _ in range(2))
    assert ({"answer": "text"}, None, False) == (fresh.value, fresh.failure, fresh.from_cache)
    assert (fresh.value, fresh.text, None, True) == (kept.value, kept.text, kept.failure, kept.from_cache)
    assert (fresh.tokens_in, fresh.tokens_out) == (kept.tokens_in, kept.tokens_out)
    assert fresh.tokens_in > 0
    assert "want" not in fresh.text
    assert "think" not in fresh.text
    assert (mode in THINKING) == (fresh.tokens_thinking > 0)
    with closing(sqlite3.connect(tmp_path / "calls.db")) as ledger:
        rows = ledger.execute("SELECT tokens_in > 0, tokens_thinking FROM calls WHERE outcome = 'ok'").fetchall()
    assert [(1, fresh.tokens_thinking)] == rows
    assert 1 == len(server.requests)


@pytest.mark.parametrize("mode", ["think", "thinkend", "thinking", "harmony", "harmony-bare", "openrouter", "mistral"])
def test_a_text_is_read_without_the_thinking(server: ScriptedServer, tmp_path: Path, mode: str) -> None:
    (reply,) = asked(server, tmp_path, [call("hello", schema=None)], mode)
    assert "HELLO" == reply.text


SENT = {  # mode: (parameters of the request that was accepted, requests that were refused before)
    "openai/gpt-5-mini": ({"max_completion_tokens", "response_format"}, 2),
    "my-deployment": ({"max_completion_tokens", "response_format"}, 2),
    "no-schema": ({"max_tokens", "temperature", "response_format"}, 1),
    "no-schema-words": ({"max_tokens", "temperature", "response_format"}, 1),
    "no-schema-500": ({"max_tokens", "temperature", "response_format"}, 1),
    "no-schema-unnamed": ({"max_tokens", "temperature", "response_format"}, 1),
    "no-format": ({"max_tokens", "temperature"}, 2),
    "no-limit": ({"temperature", "response_format"}, 2),
    "no-temperature": ({"max_tokens", "response_format"}, 1),
    "upstream": ({"max_tokens", "response_format"}, 1),
}


@pytest.mark.parametrize("mode", SENT)
def test_what_is_refused_is_replaced_once_and_reported_in_one_line(
    server: ScriptedServer, tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parameters, refused = SENT[mode]
    replies = asked(server, tmp_path, [call(f"question {number}") for number in range(12)], mode)
    assert [{"answer": "text"}] * 12 == [reply.value for reply in replies]
    assert refused + 12 == len(server.requests)  # the first call finds out, for all
    assert all(parameters | {"model", "messages"} == set(body) for body in server.requests[refused:])
    lines = [line for line in capsys.readouterr().err.splitlines() if "refuses or ignores" in line]
    assert 1 == len(lines)
    assert lines[0].startswith(f"hopbench: {mode}@{server.url} refuses or ignores ")
    asked(server, tmp_path, [call("another")], mode)  # another gate of this process
    assert refused + 13 == len(server.requests)
    # What was answered is kept under what was wanted, not under what was sent.
    assert all(reply.from_cache for reply in asked(server, tmp_path, [call("question 1"), call("question 2")], mode))


def test_a_model_without_a_system_role_gets_its_text_from_the_user(server: ScriptedServer, tmp_path: Path) -> None:
    talk = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
    (reply,) = asked(server, tmp_path, [call("", messages=talk)], "no-system")
    assert {"answer": "text"} == reply.value
    assert [{"role": "user", "content": "Be brief.\n\nhello"}] == server.requests[-1]["messages"]
    assert 2 == len(server.requests)


def test_an_old_server_gets_the_limit_by_its_old_name(server: ScriptedServer, tmp_path: Path) -> None:
    import asyncio

    with opened(server, tmp_path, "old-limit") as llm:
        asyncio.run(llm.create(messages=[{"role": "user", "content": "hello"}], max_completion_tokens=50))
        llm.ledger.close()
    assert 50 == server.requests[-1]["max_tokens"]
    assert "max_completion_tokens" not in server.requests[-1]


def test_effort_and_budget_are_sent_and_part_of_the_key(server: ScriptedServer, tmp_path: Path) -> None:
    plain = Endpoint("m", server.url)
    for endpoint in (
        plain,
        replace(plain, reasoning_effort="low"),
        replace(plain, completion_tokens=5000),
        replace(plain, model="no-effort", reasoning_effort="low"),
    ):
        for cached in (False, True):
            with LLM(endpoint, tmp_path / "cache", CallLedger()) as llm:
                (reply,) = ask(llm, [call("hello")])
                llm.ledger.close()
            assert (None, cached) == (reply.failure, reply.from_cache)
    sent = [(body["max_tokens"], body.get("reasoning_effort")) for body in server.requests]
    assert [(100, None), (100, "low"), (5000, None), (100, "low"), (100, None)] == sent


@pytest.mark.parametrize("fault", ["error200", "errortext", "errorlist", "errorobject", "errordetail", "errorchoice"])
def test_an_error_in_a_200_is_a_server_fault_with_its_reason(
    server: ScriptedServer, tmp_path: Path, fault: str
) -> None:
    (reply,) = asked(server, tmp_path, [call(f"fault:{fault}")], attempts=2)
    assert ["server error"] == kinds([reply])
    assert "Upstream provider overloaded" in str(reply.failure)
    assert 2 == len(server.requests)


@pytest.mark.parametrize("fault", ["cutthinking", "cutreasoning"])
@pytest.mark.parametrize("schema", [True, False])
def test_thinking_that_meets_the_limit_names_the_flag(
    server: ScriptedServer, tmp_path: Path, fault: str, schema: bool
) -> None:
    changes: dict[str, Any] = {} if schema else {"schema": None}
    (reply,) = asked(server, tmp_path, [call(f"fault:{fault}", **changes)])
    assert str(reply.failure).startswith("truncated: the reply ends within its thinking (")
    assert "at the limit of 100 completion tokens: set a higher limit with --completion-tokens" in str(reply.failure)
    assert 1 == len(server.requests)  # it would do so again


@pytest.mark.parametrize(("fault", "reason"), [("refusal", "I cannot help"), ("filter", "content filter")])
def test_a_refusal_by_the_model_is_a_bad_request(
    server: ScriptedServer, tmp_path: Path, fault: str, reason: str
) -> None:
    (reply,) = asked(server, tmp_path, [call(f"fault:{fault}")])
    assert ["bad request"] == kinds([reply])
    assert reason in str(reply.failure)


def test_an_endpoint_that_ignores_the_schema_is_shown_it(tmp_path: Path) -> None:
    from tests.support.llm_servers.scripted import polite

    def ignoring(body: dict[str, Any]) -> str:
        return polite({**body, "response_format": None})

    with ScriptedServer(ignoring).running() as server:
        replies = asked(server, tmp_path, [call(f"question {number}") for number in range(5)])
        before = len(server.requests)
        assert before <= 10  # those in flight at first are asked twice
        asked(server, tmp_path, [call("another")])
    assert before + 1 == len(server.requests)
    assert [{"answer": "text"}] * 5 == [reply.value for reply in replies]


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ('{"answer": "the mark </think> ends it"}', "", '{"answer": "the mark </think> ends it"}'),
        ("<think>a</think> b <think>c</think> d", "a\nc", "b  d"),
        ("<think>it never ends", "it never ends", ""),
        ("no mark", "", "no mark"),
        ("", "", ""),
    ],
)
def test_thinking_is_split_by_its_marks(text: str, thinking: str, answer: str) -> None:
    assert (thinking, answer) == split_thinking(text)


FORM = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/b"}}},
    "required": ["a"],
    "additionalProperties": False,
    "$defs": {"b": {"type": "object", "properties": {"c": {"type": "string"}}, "additionalProperties": False}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [{"c": "x, }", "d": 1},], }', {"a": [{"c": "x, }"}]}),
        ('{"a": []} or rather {"a": [{"c": "y"}]} {"b": 1}', {"a": [{"c": "y"}]}),
        ('{"a": [{"c": "line\nend"}]}', {"a": [{"c": "line\nend"}]}),
        ("[" * 100_000, None),
        ("{" * 10_000, None),
        ("", None),
    ],
)
def test_json_of_the_form_is_found(text: str, value: Any) -> None:
    found, problem = find_value(text, FORM)
    assert (value, value is None) == (found, problem is not None)


@pytest.mark.parametrize(
    ("key", "message", "shown"),
    [
        ("a", "a bad key a", "a bad key a"),
        ("sk-1234", "Authorization: Bearer sk-1234", "Authorization: ***"),
        ("sk-12345", "no luck with sk-12345", "no luck with ***"),
        ("", "no key", "no key"),
    ],
)
def test_a_key_is_masked_where_it_is_one(key: str, message: str, shown: str) -> None:
    assert shown == masked(message, key)


def test_a_prompt_that_is_too_long_changes_nothing_for_others(tmp_path: Path) -> None:
    """A 400 that names max_tokens for its size is about the value."""
    assert REFUSALS  # the server's own refusals are by model
    from hopbench.retrieval.llm.adaptation import Adaptation
    from hopbench.retrieval.llm.faults import LLMError

    request = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 9, "temperature": 0.0}
    for message in (
        "'max_tokens' is too large: 9000. This model supports at most 4096 completion tokens",
        "This model's maximum context length is 4096 tokens; reduce the messages or max_tokens",
    ):
        fault = LLMError("bad request", message, status=400, named=["max_tokens"])
        assert Adaptation().after(fault, request) is None
    unsupported = LLMError("bad request", "Unsupported parameter: 'max_tokens'", status=400)
    changed = Adaptation().after(unsupported, request)
    assert changed is not None
    assert {"max_tokens": "max_completion_tokens"} == changed.instead


def test_a_limit_that_is_too_large_names_the_flag(server: ScriptedServer, tmp_path: Path) -> None:
    (reply,) = asked(server, tmp_path, [call("hello")], "small")
    assert str(reply.failure).startswith("bad request: status 400: max_tokens is too large: 100.")
    assert str(reply.failure).endswith("; --completion-tokens sets that limit")
    assert 1 == len(server.requests)


def test_an_error_of_any_depth_is_a_failure(server: ScriptedServer, tmp_path: Path) -> None:
    (reply,) = asked(server, tmp_path, [call("hello")], "deep")
    assert ["bad request"] == kinds([reply])
