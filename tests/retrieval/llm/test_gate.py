"""The gate to language models, against a server that fails as it is told."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.llm_servers.scripted import BODIES, FAULTS, ScriptedServer

from hopbench.retrieval.llm import LLM, Call, CallLedger, Endpoint, LLMError, Reply, Settings, ask, calling
from hopbench.retrieval.llm.faults import CONTENT

KEY = "sk-planted-4711"
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
# `call` for a process of its own, which need not import the tests.
CALL = f"def call(text): return Call('test', [dict(role='user', content=text)], {SCHEMA!r}, 100)\n"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer().running() as running:
        yield running


def opened(server: ScriptedServer, folder: Path, model: str = "m", **settings: Any) -> LLM:
    return LLM(
        Endpoint(model, server.url, KEY), folder / "cache", CallLedger(folder / "calls.db"), Settings(**settings)
    )


def call(text: str, **changes: Any) -> Call:
    return replace(Call("test", [{"role": "user", "content": text}], SCHEMA, 100), **changes)


def asked(
    server: ScriptedServer, folder: Path, calls: Sequence[Call], model: str = "m", **settings: Any
) -> list[Reply]:
    with opened(server, folder, model, **settings) as llm:
        replies = ask(llm, calls)
        llm.ledger.close()
    return replies


def kinds(replies: Sequence[Reply]) -> list[str | None]:
    return [reply.failure and reply.failure.partition(":")[0] for reply in replies]


@pytest.mark.parametrize(("count", "most"), [(150, 8), pytest.param(500, 15, marks=pytest.mark.soak)])
def test_a_fifth_of_the_attempts_fail_and_the_calls_do_not(count: int, most: int, tmp_path: Path) -> None:
    shares = dict.fromkeys(FAULTS, 0.2 / len(FAULTS))
    calls = [call(f"question {number}", sample=str(number)) for number in range(count)]
    with (
        ScriptedServer(faults=shares, seed=1, retry_after="0.01").running() as server,
        opened(server, tmp_path, timeout=0.4) as llm,
    ):
        replies = ask(llm, calls)
        totals = llm.ledger.totals()["test"]
        llm.ledger.close()
    failures = Counter(reply.failure for reply in replies if reply.failure)
    assert sum(server.served[fault] for fault in FAULTS) > 0.15 * len(server.requests)
    # A useless answer is asked for once more, so about (.2·3/7)² of the calls fail, each with its reason.
    assert failures.total() <= most
    assert {reason.partition(":")[0] for reason in failures} <= {"truncated", "wrong schema", "empty choice"}
    assert all(reply.value == {"answer": "text"} for reply in replies if reply.failure is None)
    assert (count, failures.total()) == (totals.calls, totals.failed)
    assert totals.attempts <= 1.35 * len(calls)
    assert server.served["429"] == totals.throttled


REASONS = {
    "429": "rate limited",
    "500": "server error",
    "hang": "timeout",
    "truncated": "truncated",
    "schema": "wrong schema",
    "empty": "empty choice",
    "disconnect": "disconnected",
    "401": "refused",
}


@pytest.mark.parametrize(("fault", "attempts"), [*zip(FAULTS, (3, 2, 2, 2, 2, 2, 2), strict=True), ("401", 1)])
def test_a_lasting_fault_is_a_reply_with_its_reason(
    server: ScriptedServer, tmp_path: Path, fault: str, attempts: int
) -> None:
    # Only what hangs needs a short timeout: another reply may take so long on a busy machine.
    settings = {"timeout": 0.2 if fault == "hang" else 10, "attempts": 2, "throttled": 3}
    bad, good = asked(server, tmp_path, [call(f"fault:{fault}")], **settings), None
    if fault != "401":
        good = asked(server, tmp_path, [call("fine")], **settings)
    assert [REASONS[fault]] == kinds(bad)
    assert attempts == server.served[fault]
    assert good is None or [None] == kinds(good)


@pytest.mark.soak
def test_ten_a_second_are_kept_to(tmp_path: Path) -> None:
    """In real time; tests/retrieval/llm/test_pacing.py has the same on a clock that jumps."""
    limited = ScriptedServer(per_second=10, retry_after="1", latency=0.02)
    seconds, refused = paced(limited, tmp_path, 300)
    assert seconds <= 39
    assert refused <= 0.1


def test_a_limit_is_met_waited_for_and_kept_to(tmp_path: Path) -> None:
    # A bucket of 10 and 10 a second: the limit is met soon, and each refusal is waited out as the server asks.
    limited = ScriptedServer(per_second=10, retry_after="0.5", latency=0.02)
    _, refused = paced(limited, tmp_path, 40)
    assert 0 < refused <= 0.3


def paced(limited: ScriptedServer, folder: Path, count: int) -> tuple[float, float]:
    """Seconds for so many calls, of which none may fail, and the share of requests that were refused."""
    with limited.running() as server, opened(server, folder) as llm:
        asked_first = ask(llm, [call("loads the client")])
        begun = time.monotonic()
        replies = ask(llm, [call(f"question {number}") for number in range(count)])
        seconds = time.monotonic() - begun
        llm.ledger.close()
    assert [None] * (count + 1) == kinds([*asked_first, *replies])
    return seconds, server.served["429"] / len(server.requests)


def test_the_cache_answers_the_same_call_only(server: ScriptedServer, tmp_path: Path) -> None:
    plain = call("same", version="1")
    other_schema = {**SCHEMA, "properties": {"answer": {"type": "string", "maxLength": 9}}}
    variants = [
        plain,
        replace(plain, version="2"),
        replace(plain, temperature=0.5),
        replace(plain, schema=other_schema),
        replace(plain, schema=None),
        replace(plain, max_tokens=99),
        replace(plain, repeat=1),
        replace(plain, messages=[{"role": "user", "content": "Same"}]),
    ]
    for number, variant in enumerate(variants, 1):
        assert [False, True] == [asked(server, tmp_path, [variant])[0].from_cache for _ in range(2)]
        assert number == len(server.requests)
    assert not asked(server, tmp_path, [plain], model="another")[0].from_cache
    with ScriptedServer().running() as elsewhere:
        assert not asked(elsewhere, tmp_path, [plain])[0].from_cache
    # Who asks decides nothing: another purpose or sample has the same answer.
    assert asked(server, tmp_path, [replace(plain, sample="s2")])[0].from_cache


def test_the_same_request_twice_in_a_sample_is_two_calls(server: ScriptedServer, tmp_path: Path) -> None:
    twice = [call("same", sample="s"), call("same", sample="s")]
    asked(server, tmp_path, twice)
    assert 2 == len(server.requests)
    assert [True, True] == [reply.from_cache for reply in asked(server, tmp_path, twice)]


def test_a_killed_process_repeats_no_finished_call(tmp_path: Path) -> None:
    with ScriptedServer(latency=0.05).running() as server:
        script = (
            "import sys; from pathlib import Path\n"
            "from hopbench.retrieval.llm import *\n"
            f"{CALL}"
            "folder = Path(sys.argv[1])\n"
            "with LLM(Endpoint('m', sys.argv[2]), folder / 'cache', CallLedger(folder / 'calls.db')) as llm:\n"
            "    ask(llm, [call(str(number)) for number in range(120)])\n"
        )
        process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path), server.url], cwd=os.getcwd())
        while server.served["ok"] < 40:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = len(server.requests)
        replies = asked(server, tmp_path, [call(str(number)) for number in range(120)])
        kept = sum(reply.from_cache for reply in replies)
        assert [None] * 120 == kinds(replies)
        # What was in flight when it died (at most as many as may be at once) is all that is asked again.
        assert before - 64 <= kept <= before
        assert 120 - kept == len(server.requests) - before


@pytest.mark.soak  # a killed process, and threads, share the cache here
def test_two_processes_with_one_cache_pay_each_call_once(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from hopbench.retrieval.llm import *\n"
        f"{CALL}"
        "folder = Path(sys.argv[1])\n"
        "calls = [call(str(number)) for number in range(100)]\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "with LLM(Endpoint('m', sys.argv[2]), folder / 'cache', CallLedger(folder / 'calls.db')) as llm:\n"
        "    print([reply.failure or reply.text for reply in ask(llm, calls)])\n"
    )
    with ScriptedServer(polite_word, latency=0.03).running() as server:
        command = [sys.executable, "-c", script, str(tmp_path), server.url]
        both = [subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True) for _ in range(2)]
        for process in both:
            assert process.stdout is not None
            assert "ready\n" == process.stdout.readline()
        for process in both:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        told = [process.communicate(timeout=300) for process in both]
    assert [0, 0] == [process.returncode for process in both], told
    assert told[0][0] == told[1][0]  # the same 100 replies, whoever paid
    assert {1} == set(Counter(body["messages"][0]["content"] for body in server.requests).values())
    assert 100 == len(server.requests)
    assert [] == list((tmp_path / "cache").glob("*.flight"))


def polite_word(body: dict[str, Any]) -> str:
    return f'{{"answer": "{body["messages"][0]["content"]}"}}'


def test_no_key_gets_anywhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with ScriptedServer().running() as server, opened(server, tmp_path, attempts=1) as llm:
        replies = ask(llm, [call("fine"), call("fault:500"), call("fault:401")])  # both repeat the key in their error
        ledger = llm.ledger
        told = [*kinds(replies), *(reply.failure for reply in replies), repr(llm.endpoint), str(ledger.totals())]
        assert KEY not in "".join(map(str, told))
        assert "***" in str(replies[1].failure)
        assert not [file for file in tmp_path.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()]
        ledger.close()
    assert KEY not in caplog.text


def test_the_breaker_spares_a_dead_endpoint(tmp_path: Path) -> None:
    with ScriptedServer().running() as server:
        pass
    replies = asked(server, tmp_path, [call(str(number)) for number in range(120)], breaker_failures=5)
    assert {"disconnected", "breaker open"} == set(kinds(replies))
    assert 1 == kinds(replies).count("disconnected")  # the first goes alone, and nothing is tried again
    assert all("Connection" in str(reply.failure) or "Connect call failed" in str(reply.failure) for reply in replies)


def test_a_refused_key_is_told_once(server: ScriptedServer, tmp_path: Path) -> None:
    replies = asked(server, tmp_path, [call("fault:401"), *(call(str(n)) for n in range(50))], concurrency=1)
    assert ["refused", *["breaker open"] * 50] == kinds(replies)
    assert 1 == len(server.requests)


def test_the_budget_stops_before_it_is_exceeded_and_not_long_before(server: ScriptedServer, tmp_path: Path) -> None:
    # gpt-4o: 100 tokens out may cost 100·10/1e6 = $.001, the prompt under $.0001; a call costs (2·2.5 + 2·10)/1e6.
    ledger = CallLedger(tmp_path / "calls.db", budget=0.0025)
    with LLM(Endpoint("gpt-4o", server.url), None, ledger) as llm:
        replies = ask(llm, [call(f"question {number}") for number in range(100)])
    spent, totals = ledger.spent, ledger.totals()["test"]
    ledger.close()
    assert {None, "budget reached"} == set(kinds(replies))
    assert ledger.reached
    assert 0.0025 - 0.0011 < spent <= 0.0025
    assert totals.usd == pytest.approx(kinds(replies).count(None) * (2 * 2.5 + 2 * 10) / 1e6)
    stopped = next(reply.failure for reply in replies if reply.failure)
    assert stopped.endswith("the same command goes on, and may spend its --budget again")


def test_calls_in_flight_that_set_much_aside_make_others_wait_instead_of_stopping(tmp_path: Path) -> None:
    # Each call may cost $.001 and costs $.00002: under $.0025 two are in flight at once, and all 40 fit.
    ledger = CallLedger(budget=0.0025)
    with ScriptedServer(latency=0.01).running() as server, LLM(Endpoint("gpt-4o", server.url), None, ledger) as llm:
        replies = ask(llm, [call(f"question {number}") for number in range(40)])
        spent = ledger.spent
        ledger.close()
    assert [None] * 40 == kinds(replies)
    assert 2 == server.most_at_once
    assert 40 * (2 * 2.5 + 2 * 10) / 1e6 == pytest.approx(spent)


def test_a_call_that_no_budget_of_this_size_holds_names_the_size(server: ScriptedServer) -> None:
    ledger = CallLedger(budget=0.0005)
    with LLM(Endpoint("gpt-4o", server.url), None, ledger) as llm:
        (reply,) = ask(llm, [call("question")])
        ledger.close()
    assert "$0.0000 spent, the next call may cost $0.0011" in str(reply.failure)
    assert "the same command goes on with a --budget of over $0.0011" in str(reply.failure)


def test_a_prompt_without_spaces_is_not_underestimated(server: ScriptedServer) -> None:
    # 18 tokens of o200k_base in 17 characters; 9,000 tokens cost $.0225 of the model that counts by it.
    ledger = CallLedger(budget=0.02)
    with LLM(Endpoint("gpt-4o", server.url), None, ledger) as llm:
        (reply,) = ask(llm, [call("诺港的造船厂共建造了两百多艘渡轮。" * 500)])
        ledger.close()
    assert ["budget reached"] == kinds([reply])
    assert not server.requests


def test_instructor_goes_through_the_gate_and_does_not_multiply_retries(server: ScriptedServer, tmp_path: Path) -> None:
    import instructor
    from instructor.core.exceptions import InstructorRetryException
    from pydantic import BaseModel

    class Said(BaseModel):
        answer: str

    async def said(llm: LLM, text: str) -> Said:
        client = instructor.from_openai(llm.openai_client(), mode=instructor.Mode.JSON_SCHEMA)
        talk = [{"role": "user", "content": text}]
        return await client.chat.completions.create(model="ignored", messages=talk, response_model=Said)

    with opened(server, tmp_path, attempts=3) as llm:
        with calling(purpose="judge", sample="s1", version="v") as scope:
            assert "text" == asyncio.run(said(llm, "fine")).answer
        assert (1, "m") == (scope.calls, server.requests[0]["model"])
        with pytest.raises(InstructorRetryException) as caught:
            asyncio.run(said(llm, "fault:500"))
        assert isinstance(caught.value.__cause__, LLMError)
        assert {"judge", "other"} == set(llm.ledger.totals())
        llm.ledger.close()
    assert {"ok": 1, "500": 3} == server.served


@pytest.mark.parametrize("body", BODIES)
def test_a_200_that_is_no_completion_is_a_failure_with_its_reason(tmp_path: Path, body: str) -> None:
    with ScriptedServer().running() as server:
        (reply,) = asked(server, tmp_path, [call(f"fault:{body}")], attempts=1)
    assert reply.failure is not None
    assert reply.failure.partition(":")[0] in {*CONTENT, "server error", "bad request"}
    assert len(reply.failure) < 400


def test_an_endpoint_that_serves_pages_is_named_and_not_asked_for_ever(tmp_path: Path) -> None:
    with ScriptedServer().running() as server:
        settings = {"attempts": 1, "breaker_failures": 3, "concurrency": 1, "max_concurrency": 1}
        replies = asked(server, tmp_path, [call(f"fault:html {i}") for i in range(20)], **settings)
    assert 3 == len(server.requests)
    assert "no completion but '<!doctype html>" in str(replies[0].failure)
    assert "does it end with /v1?" in str(replies[0].failure)


def test_a_wait_of_a_day_ends_the_calls_instead_of_holding_them(tmp_path: Path) -> None:
    with ScriptedServer(retry_after="86400").running() as server:
        replies = asked(server, tmp_path, [call("fault:429"), *(call(f"q{i}") for i in range(9))], concurrency=1)
    first = str(replies[0].failure)
    assert "asks to wait 86,400 s, at most 300 s are waited" in first
    assert 1 == len(server.requests)
    assert {"rate limited", "breaker open"} == set(kinds(replies))


def test_a_wait_within_the_limit_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        ScriptedServer(retry_after="6").running() as server,
        opened(server, tmp_path, throttled=1) as llm,
    ):
        (reply,) = ask(llm, [call("fault:429")])
        llm.ledger.close()
    assert reply.failure is not None
    assert 1 == capsys.readouterr().err.count("asks to wait 6 s (Retry-After): waiting")
