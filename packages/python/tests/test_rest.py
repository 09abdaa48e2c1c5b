from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler

import pytest
from http_servers import Response, run_server
from test_receiving import EVENT

from runhook import (
    ApiError,
    ApiUnavailableError,
    InvalidEventError,
    Problem,
    RejectedEventsError,
    UnavailableError,
)
from runhook import create_event_id as new_id
from runhook.rest import RestPublisher


def respond(status: int, body: object, headers: dict[str, str] | None = None) -> Response:
    return status, headers or {}, body if isinstance(body, bytes) else json.dumps(body).encode()


def test_many_events_are_sent_in_requests_of_at_most_500_events_and_two_megabytes() -> None:
    calls: list[tuple[str, str | None, list[str]]] = []

    def handle(request: BaseHTTPRequestHandler, body: bytes) -> Response:
        ids = [event["eventId"] for event in json.loads(body)["events"]]
        calls.append((request.path, request.headers["authorization"], ids))
        assert len(body) <= 2_097_152
        verdicts = [{"event_id": one, "verdict": "accepted"} for one in ids]
        if len(calls) == 2:
            verdicts[0] = {
                "event_id": ids[0],
                "verdict": "rejected",
                "errors": [{"field": "eventId", "message": "is old"}],
            }
        return respond(202, {"data": {"events": verdicts}})

    with run_server(handle) as url:
        publisher = RestPublisher(f"{url}/", "rhs_1", 1)
        events = [{**EVENT, "eventId": new_id()} for _ in range(501)]
        with pytest.raises(RejectedEventsError, match="event 500: eventId is old") as caught:
            publisher.publish_many(events)
        assert caught.value.rejected == {500: (Problem("eventId", "is old"),)}
        assert calls[0][:2] == ("/api/v2/accounts/1/events", "Token rhs_1")
        assert [one for call in calls for one in call[2]] == [event["eventId"] for event in events]

        long = {**EVENT["data"], "runReason": "\U0001f680" * 65_536, "runStatusMessage": "ä" * 65_536}
        ids = publisher.publish_many([{**EVENT, "eventId": new_id(), "data": long} for _ in range(3)])
        assert [len(call[2]) for call in calls] == [500, 1, 1, 1, 1]
        assert len(set(ids)) == 3
        assert publisher.publish_many([]) == []
        with pytest.raises(InvalidEventError, match="accountId must be 1, the account of the publisher"):
            publisher.publish({**EVENT, "accountId": 2})


def test_steps_are_reported_during_a_run_and_with_its_end() -> None:
    calls: list[tuple[str, object]] = []

    def handle(request: BaseHTTPRequestHandler, body: bytes) -> Response:
        calls.append((request.path, json.loads(body)))
        return respond(200, {"data": []})

    step = {"index": 1, "name": "Load", "status": 10, "logs": "Done"}
    with run_server(handle) as url:
        publisher = RestPublisher(url, "rhs_1", 1)
        assert publisher.report_steps(5, [step]) == []
        publisher.finish_run(5, "success", run_steps=[step])
        publisher.finish_run(5, "success")
    assert calls == [
        ("/api/v2/accounts/1/runs/5/steps/", {"run_steps": [step]}),
        ("/api/v2/accounts/1/runs/5/finish/", {"status": "success", "run_steps": [step]}),
        ("/api/v2/accounts/1/runs/5/finish/", {"status": "success"}),
    ]


def test_an_api_error_has_its_fields_and_a_temporary_one_its_retry_time() -> None:
    status = {"user_message": "Invalid request.", "errors": [{"field": "job_id", "message": "is required"}]}
    responses = {
        "/api/v2/accounts/1/runs/": respond(400, {"status": status}),
        "/api/v2/accounts/1/runs/1/finish/": respond(
            429, {"status": {"user_message": "Too many requests."}}, {"Retry-After": "7"}
        ),
        "/api/v2/accounts/1/runs/2/finish/": respond(502, b"<html>"),
        "/api/v2/accounts/1/runs/1/artifacts/": respond(302, b"", {"Location": "/elsewhere"}),
    }
    seen: list[str] = []

    def handle(request: BaseHTTPRequestHandler, _: bytes) -> Response:
        seen.append(request.path)
        return responses[request.path]

    with run_server(handle) as url:
        publisher = RestPublisher(url, "rhs_1", 1)
        with pytest.raises(ApiError, match=r"Invalid request\.; job_id: is required") as rejected:
            publisher.start_run(1, "1.9.2")
        assert (rejected.value.status, rejected.value.problems) == (400, (Problem("job_id", "is required"),))
        assert not isinstance(rejected.value, UnavailableError)
        with pytest.raises(ApiUnavailableError, match="Too many requests") as limited:
            publisher.finish_run(1, "success")
        assert limited.value.retry_after_seconds == 7
        with pytest.raises(UnavailableError, match="responded with 502") as proxy:
            publisher.finish_run(2, "errored")
        assert proxy.value.retry_after_seconds is None
        with pytest.raises(ApiError, match="responded with 302"):
            publisher.report_artifacts(1)
        assert "/elsewhere" not in seen
    with pytest.raises(ApiUnavailableError, match="cannot be reached") as away:
        publisher.publish(EVENT)
    assert away.value.status == 0
    with pytest.raises(ValueError, match="base_url"):
        RestPublisher("file:///etc/passwd", "rhs_1", 1)
