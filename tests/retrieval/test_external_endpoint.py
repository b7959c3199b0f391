"""An endpoint asked over a real connection: sound ones, and whatever else may listen at an address."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
from tests.support import retriever_servers as servers
from tests.support.retriever_servers import Served, serving

from hopbench.retrieval.external_endpoint import GREETING, REPLY_LIMIT, Endpoint
from hopbench.retrieval.support.errors import InputError, ParameterError
from hopbench.retrieval.types import Counters, Question

QUESTIONS = [Question(f"q{number}", f"question {number}") for number in range(7)]
SOUND = servers.ranking(lambda questions, k: [[f"p{text[-1]}", "p9"][:k] for text in questions])


@pytest.fixture
def ask() -> Iterator[Callable[..., tuple[list[Any], Served]]]:
    """Serves a behaviour and asks it the seven questions."""
    with ExitStack() as stack:

        def asked(behave: servers.Behaviour, **parameters: Any) -> tuple[list[Any], Served]:
            served = stack.enter_context(serving(behave))
            endpoint = Endpoint(url=served.url, **{"timeout": 5.0, **parameters})
            stack.callback(endpoint.close)
            return list(endpoint.answers(QUESTIONS, Counters())), served

        yield asked


def reasons(answers: Sequence[Any]) -> set[str]:
    return {answer.failure for answer in answers}


def test_questions_go_in_batches_with_k_and_rankings_come_back_in_their_order(ask: Any) -> None:
    answers, served = ask(SOUND, batch=3, k=50)

    assert [(f"p{number}", "p9") for number in range(7)] == [tuple(answer.passages) for answer in answers]
    assert {None} == reasons(answers)
    assert [1, 3, 3, 1] == [len(body["questions"]) for body in served.asked]
    assert {"questions": [GREETING], "k": 50} == served.asked[0]
    assert {"questions": ["question 0", "question 1", "question 2"], "k": 50} == served.asked[1]


def test_a_fork_asks_after_its_parent_did(ask: Any) -> None:
    def asked_again() -> None:
        (answer,) = Endpoint(url=served.url, timeout=5.0).answers(QUESTIONS[:1], Counters())
        os._exit(0 if list(answer.passages) == ["p0", "p9"] else 1)

    _, served = ask(SOUND)
    fork = multiprocessing.get_context("fork").Process(target=asked_again, daemon=True)
    fork.start()
    fork.join(30)
    fork.kill()
    assert 0 == fork.exitcode


def test_requests_are_counted_for_the_report(ask: Any) -> None:
    with serving(SOUND) as served:
        endpoint, spent = Endpoint(url=served.url, batch=3), Counters()
        endpoint.answers(QUESTIONS, spent)
        endpoint.close()
    assert 3 == spent.observed["requests"]


@pytest.mark.parametrize(
    ("behave", "expected"),
    [
        (servers.saying(b"<!DOCTYPE html><html>", Content_Type="text/html"), "the reply is not JSON but 'text/html'"),
        (servers.saying(b"", Content_Type="application/json"), "the reply is empty"),
        (servers.saying(b"[" * 200_000), "the reply is not JSON; it begins '[[["),
        (servers.saying(b'{"results": ' + b"9" * 9000 + b"}"), "the reply is not JSON; it begins"),
        (servers.saying(b"[1, 2]"), "the reply is a list, not an object with the field 'results'"),
        (servers.saying(b'{"hits": []}'), "the reply has no field 'results' (fields present: 'hits')"),
        (servers.saying(b'{"results": 5}'), "'results' is the number 5, not a list"),
        (servers.saying(b'{"results": [[], []]}'), "the reply has 2 results for 1 question"),
        (servers.saying(b'{"results": [[]], "version": ["x"]}'), "'version' is a list, not a printable text"),
        (servers.saying(b"oh no", 500, Content_Type="text/plain"), "HTTP 500: 'oh no'"),
        (servers.saying(b"", 302, Location="http://127.0.0.1:1/"), "HTTP 302: redirects are not followed"),
        (servers.zipped, "the reply is compressed ('gzip'), which was not asked for"),
        (servers.endless, f"the reply is over {REPLY_LIMIT:,} bytes, which is the limit"),
    ],
)
def test_a_reply_that_is_none_fails_every_question_with_its_reason(ask: Any, behave: Any, expected: str) -> None:
    answers, _ = ask(behave)

    assert 7 == len(answers)
    assert all(answer.failure.startswith(expected) for answer in answers), reasons(answers)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("p1", "the ranking is the text 'p1', not a list of passage ids"),
        ({"p1": 2.0}, "the ranking is an object, not a list of passage ids"),
        (None, "the ranking is null, not a list of passage ids"),
        (["p1", {"id": "p2"}], "a passage id is an object, not a text"),
        (["p1", True], "a passage id is true, not a text"),
        (["p1", 2.5], "a passage id is the number 2.5, not a text"),
        (["p1", "p2", "p3"], "more than the 2 passages that were asked for are returned"),
    ],
)
def test_a_bad_ranking_fails_its_own_question_only(ask: Any, result: Any, expected: str) -> None:
    behave = servers.ranking(lambda texts, k: [result if text.endswith("3") else ["p1"] for text in texts])
    answers, served = ask(behave, k=2)

    assert [None, None, None, expected, None, None, None] == [answer.failure for answer in answers]
    assert 2 == len(served.asked)  # the greeting and the batch: nothing is asked again


def test_whole_numbers_are_ids_as_in_a_corpus(ask: Any) -> None:
    answers, _ = ask(servers.ranking(lambda texts, k: [[7, "p1"]] * len(texts)))

    assert ["7", "p1"] == list(answers[0].passages)


def test_a_question_that_breaks_its_batch_is_found_by_asking_each_alone(ask: Any) -> None:
    def behave(handler: Any, asked: dict[str, Any]) -> None:
        code = 500 if "question 3" in asked["questions"] else 200
        servers.reply(handler, json.dumps({"results": [["p1"]] * len(asked["questions"])}).encode(), code)

    answers, _ = ask(behave)

    assert [3] == [number for number, answer in enumerate(answers) if answer.failure]


@pytest.mark.parametrize("behave", [servers.hanging, servers.dripping])
def test_an_endpoint_that_never_ends_is_given_up_after_three_requests(ask: Any, behave: Any) -> None:
    begun = time.monotonic()
    answers, served = ask(behave, timeout=0.3)

    assert 3 == len(served.asked)
    assert time.monotonic() - begun < 3
    assert "no whole reply within 0.3 s" == answers[0].failure
    given_up = "not asked: 3 requests in a row got no reply, the last: no whole reply within 0.3 s"
    assert {given_up} == reasons(answers[1:])


def test_a_connection_that_breaks_is_tried_three_times(ask: Any) -> None:
    answers, served = ask(servers.closing)

    assert 9 == len(served.asked)  # three requests, then it is given up
    assert answers[0].failure.startswith("the connection broke after 0.")
    assert answers[6].failure.startswith("not asked: 3 requests in a row got no reply, the last: the connection broke")


def test_a_busy_endpoint_is_asked_again(ask: Any) -> None:
    seen: list[int] = []

    def behave(handler: Any, asked: dict[str, Any]) -> None:
        seen.append(1)
        if len(seen) % 2:
            servers.reply(handler, b"later", 503)
        else:
            SOUND(handler, asked)

    answers, _ = ask(behave)

    assert {None} == reasons(answers)


def test_a_port_where_nobody_listens(ask: Any) -> None:
    with serving(SOUND) as served:
        pass
    endpoint = Endpoint(url=served.url)
    answers = endpoint.answers(QUESTIONS, Counters())
    endpoint.close()

    assert "" == endpoint.version
    assert answers[0].failure.startswith("no connection (")


def test_a_stated_version_is_part_of_the_identity_and_stands_for_every_process() -> None:
    with serving(servers.ranking(lambda texts, k: [[]] * len(texts), version="7")) as served:
        endpoint = Endpoint(url=served.url)
        expected = {"url": served.url, "version": "7", "k": 100, "batch": 32, "timeout": 30.0}
        assert expected == endpoint.identity() == endpoint.spec()
        endpoint.close()


def test_without_a_version_no_other_process_takes_its_trial_for_its_own() -> None:
    with serving(SOUND) as served:
        endpoint = Endpoint(url=served.url)
        assert {"process"} == set(endpoint.identity()) - set(endpoint.spec())
        endpoint.close()


def test_an_endpoint_that_changes_in_the_middle_fails_what_it_answers_then(ask: Any) -> None:
    def behave(handler: Any, asked: dict[str, Any]) -> None:
        version = "2" if "question 5" in asked["questions"] else "1"
        servers.ranking(lambda texts, k: [["p1"]] * len(texts), version=version)(handler, asked)

    answers, _ = ask(behave, batch=1)

    assert [None] * 5 + ["the version is '2', and was '1' before", None] == [answer.failure for answer in answers]


def test_a_key_is_sent_and_appears_in_no_reason_even_if_the_server_repeats_it(ask: Any) -> None:
    headers = {"Authorization": "Bearer s3cret-key", "X-Team": "t-12345"}
    answers, served = ask(servers.echoing, headers=headers)

    assert "Bearer s3cret-key" == served.headers[0]["authorization"]
    assert "t-12345" == served.headers[0]["x-team"]
    assert {"HTTP 401: 'bad key [redacted]'"} == reasons(answers)


def test_a_key_is_in_no_spec_and_no_repr() -> None:
    with serving(SOUND) as served:
        endpoint = Endpoint(url=served.url, headers={"Authorization": "Bearer s3cret-key"})
        endpoint.answers(QUESTIONS, Counters())
        told = f"{endpoint!r} {endpoint.spec()} {endpoint.identity()} {endpoint.parameters()}"
        endpoint.close()
    assert "s3cret" not in told


def test_a_redirect_gets_no_key() -> None:
    with serving(SOUND) as other, serving(servers.saying(b"", 307, Location=other.url)) as served:
        endpoint = Endpoint(url=served.url, headers={"Authorization": "Bearer s3cret-key"})
        answers = endpoint.answers(QUESTIONS[:1], Counters())
        endpoint.close()
    assert answers[0].failure is not None
    assert [] == other.asked


def test_a_proxy_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch, ask: Any) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    answers, _ = ask(SOUND)

    assert {None} == reasons(answers)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ftp://host/x", "not a URL of http or https with a host"),
        ("http://", "not a URL of http or https with a host"),
        ("http://host:99999/", "not a URL of http or https with a host"),
        ("http://host/a b", "not a URL of http or https with a host"),
        ("http://user:pa55@host/", "the URL holds a user or password"),
        ("http://host/?api_key=pa55", "the URL holds the parameter 'api_key'"),
        ("http://host/#part", "the URL ends in #part"),
    ],
)
def test_urls_that_are_none_or_hold_a_secret_are_refused_without_showing_it(url: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        Endpoint(url=url)

    assert expected in str(caught.value)
    assert "pa55" not in str(caught.value)


@pytest.mark.parametrize(("field", "value"), [("k", 0), ("k", 101), ("batch", 0), ("timeout", 0.0), ("timeout", True)])
def test_parameters_have_bounds(field: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=rf"endpoint\.{field} = {value!r} is not allowed: it takes "):
        Endpoint(url="http://127.0.0.1/", **{field: value})
