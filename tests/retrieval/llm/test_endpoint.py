"""Endpoints, prices and what the ledger adds up."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.places import ROOT

from hopbench.retrieval.llm import CallLedger, Endpoint, Price, price_of
from hopbench.retrieval.llm.endpoint import wire_schema
from hopbench.retrieval.llm.faults import retry_after
from hopbench.retrieval.llm.ledger import CallRecord
from hopbench.retrieval.support.errors import InputError


def test_a_model_may_carry_its_address() -> None:
    environment = {"OPENAI_BASE_URL": "http://localhost:1/v1/", "OPENAI_API_KEY": "k"}
    assert Endpoint("m", "http://localhost:1/v1", "k") == Endpoint.parse("m", environment=environment)
    assert Endpoint("m", "http://other/v1", "k") == Endpoint.parse("m@http://other/v1/", environment=environment)
    assert "@cf/meta/llama-3.1-8b" == Endpoint.parse("@cf/meta/llama-3.1-8b", "llm", environment).model
    assert Endpoint("@cf/llama@2", "http://localhost:1/v1", "k") == Endpoint.parse("@cf/llama@2", "llm", environment)


def test_the_judge_has_a_key_of_its_own_or_the_same() -> None:
    keys = {"OPENAI_API_KEY": "k", "JUDGE_API_KEY": "j"}
    assert "j" == Endpoint.parse("m", "judge", keys).api_key
    assert "k" == Endpoint.parse("m", "judge", {"OPENAI_API_KEY": "k"}).api_key


@pytest.mark.parametrize(
    ("text", "environment", "named"),
    [
        ("", {}, "MODEL@URL"),
        ("gpt-4o", {}, "OPENAI_API_KEY"),
        ("m@http://user:secret@host/v1", {}, "OPENAI_API_KEY"),
        ("m@http://host/v1?key=secret", {}, "carries credentials"),
        ("m@localhost:11434/v1", {"OPENAI_API_KEY": "k"}, "with http:// or https://"),
        ("m@host/v1", {"OPENAI_API_KEY": "k"}, "with http:// or https://"),
        ("m@user:secret@host", {"OPENAI_API_KEY": "k"}, "with http:// or https://"),
        ("@http://localhost:1/v1", {"OPENAI_API_KEY": "k"}, "MODEL@URL"),
        ("m", {"OPENAI_BASE_URL": "localhost:8000"}, "OPENAI_BASE_URL"),
    ],
)
def test_what_cannot_be_used_is_refused_without_repeating_secrets(
    text: str, environment: dict[str, str], named: str
) -> None:
    with pytest.raises(InputError, match=named) as refused:
        Endpoint.parse(text, environment=environment)
    assert "secret" not in str(refused.value)


def test_prices_are_known_by_snapshot_too_or_not_at_all() -> None:
    price = price_of("gpt-4o-2024-08-06")
    assert price is not None
    assert price == price_of("gpt-4o")
    assert 0.00325 == pytest.approx(price.of(1000, 200, 100))  # (800·2.5 + 200·1.25 + 100·10)/1e6
    assert price_of("my-model") is None


def test_a_user_s_own_prices_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("my-model: {input: 1, output: 2}\ngpt-4o: {input: 3, cached: 0.5, output: 4}\n")
    monkeypatch.setenv("HOPBENCH_PRICES", str(file))
    assert (Price(1, 1, 2), Price(3, 0.5, 4)) == (price_of("my-model"), price_of("gpt-4o-2024-08-06"))
    assert Price(0.15, 0.075, 0.6) == price_of("gpt-4o-mini")  # the table's
    monkeypatch.setenv("HOPBENCH_PRICES", "")
    assert Price(5, 5, 15) == price_of("gpt-4o-2024-05-13")  # a snapshot with a price of its own
    assert price_of("my-model") is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("- a", "models with their prices are wanted"),
        ("m: 3", r"m: 3 is no price; wanted is MODEL: \{input"),
        ("m: {input: 1}", "is no price"),
        ("m: {input: -1, output: 2}", r"m\.input: -1 is no price"),
        ("m: {input: a, output: 2}", r"m\.input: 'a' is no price"),
        ("m: [", "cannot be read as YAML"),
    ],
)
def test_a_price_file_that_cannot_be_used_is_refused(
    content: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prices.yaml").write_text(content)
    monkeypatch.setenv("HOPBENCH_PRICES", str(tmp_path / "prices.yaml"))
    with pytest.raises(InputError, match=said):
        price_of("m")


def test_a_sum_with_an_unknown_price_is_unknown() -> None:
    ledger = CallLedger()
    ledger.record(CallRecord("a", "", "u", "gpt-4o", tokens_in=10, usd=0.5, attempts=1))
    ledger.record(CallRecord("a", "", "u", "gpt-4o", usd=0.0, outcome="cached"))
    ledger.record(CallRecord("b", "", "u", "m", tokens_in=3, attempts=2, outcome="timeout"))
    totals = ledger.totals()
    ledger.close()
    assert (2, 1, 0, 0.5) == (totals["a"].calls, totals["a"].cached, totals["a"].failed, totals["a"].usd)
    assert (1, 1, 2, None) == (totals["b"].calls, totals["b"].failed, totals["b"].attempts, totals["b"].usd)


def test_retry_after_is_read_in_all_its_forms() -> None:
    assert 1.5 == retry_after({"retry-after-ms": "1500", "retry-after": "9"})
    assert 9.0 == retry_after({"retry-after": "9"})
    assert 0.0 == retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"})
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


def test_openai_is_not_asked_for_what_it_refuses() -> None:
    schema = {"type": "object", "properties": {"maxLength": {"type": "string", "maxLength": 3}}}
    closed = {"additionalProperties": False}
    openai = {"type": "object", "properties": {"maxLength": {"type": "string"}}, **closed}
    assert openai == wire_schema(schema, "https://api.openai.com/v1")
    assert {**schema, **closed} == wire_schema(schema, "http://localhost/v1")


def test_nothing_relies_on_the_likeliest_tokens_of_an_endpoint() -> None:
    """At temperature 1, xllamacpp 2026.10 leaves the chosen token out of `top_logprobs`, or puts it second."""
    code = [file for folder in ("retrieval", "eval", "flows") for file in (ROOT / folder).rglob("*.py")]

    assert [] == [file.name for file in code if "logprob" in file.read_text(encoding="utf-8")]
    assert len(code) > 300
