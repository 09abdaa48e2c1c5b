"""Tests publishing and receiving with running services, which `RUNHOOK_SERVICES` describes (e2e/python.test.ts)."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.request import Request, urlopen

import pytest
from http_servers import Response, run_server

from runhook import (
    ErroredRunDetails,
    InvalidDeliveryError,
    InvalidEventError,
    JobRunEvent,
    QueueFullError,
    QueueUnavailableError,
    Receiver,
    RunDetails,
    RunErrored,
    RunStarted,
    create_event_id,
    seconds_timestamp,
)
from runhook.queue import AsyncEventPublisher, EventPublisher
from runhook.rest import RestPublisher
from runhook.shards import MAP_KEY, SLOTS

services_json = os.environ.get("RUNHOOK_SERVICES")
if services_json is None:
    pytest.skip("RUNHOOK_SERVICES is not set", allow_module_level=True)
SERVICES = json.loads(services_json)
JOB = SERVICES["job"]
# Time limit for results that never arrive, far longer than a busy machine needs.
TIMEOUT_SECONDS = 60
KEY = "{runhook}:job-run-events"
onto_the_queue = pytest.mark.skipif(
    sys.version_info < (3, 10), reason="publishing onto the queue needs Python 3.10"
)


@pytest.fixture(autouse=True)
def longer_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises the timeouts, so that no call fails because the machine is busy."""
    monkeypatch.setattr("runhook.queue._CALL_TIMEOUT_SECONDS", TIMEOUT_SECONDS)
    monkeypatch.setattr("runhook.queue_url._CONNECT_SECONDS", TIMEOUT_SECONDS)


def run(run_id: int, **more: Any) -> RunDetails:
    details: dict[str, Any] = {
        "job_id": str(JOB["id"]),
        "job_name": JOB["name"],
        "run_id": str(run_id),
        "environment_id": str(JOB["environment_id"]),
        "environment_name": JOB["environment_name"],
        "engine_version": "1.9.2",
        "project_name": JOB["project_name"],
        "project_id": str(JOB["project_id"]),
        "run_status": "Running",
        "run_status_code": 3,
        "run_status_message": "None",
        "run_reason": "Started by Zoë 🚀",
        "run_started_at": seconds_timestamp(),
        **more,
    }
    return ErroredRunDetails(**details) if "run_errored_at" in more else RunDetails(**details)


def started(run_id: int) -> RunStarted:
    return RunStarted(account_id=SERVICES["accountId"], data=run(run_id), event_id=create_event_id())


def job_id(event: RunStarted) -> str:
    return f"{event.event_id}-{event.account_id}"


def call(method: str, path: str, body: object = None) -> Any:
    request = Request(
        f"{SERVICES['url']}/api/v3/accounts/{SERVICES['accountId']}/webhooks/{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Token {SERVICES['token']}", "Content-Type": "application/json"},
        method=method,
    )
    with urlopen(request) as response:
        return json.load(response)["data"]


@contextmanager
def subscription(scheme: Any = "standard-webhooks") -> Iterator[queue.Queue[JobRunEvent]]:
    """Yields the verified events of a new webhook, in the order of arrival."""
    arrived: queue.Queue[JobRunEvent] = queue.Queue()
    receivers: list[Receiver] = []

    def handle(request: BaseHTTPRequestHandler, body: bytes) -> Response:
        try:
            arrived.put(receivers[0].verify(body, request.headers))
        except InvalidDeliveryError as error:
            return error.status, {}, error.code.encode()
        return 204, {}, b""

    with run_server(handle) as url:
        types = ["job.run.started", "job.run.completed", "job.run.errored"]
        webhook = call("POST", "subscriptions", {"name": "Python", "event_types": types, "client_url": url})
        receivers.append(Receiver(["whsec_b3RoZXI=", webhook["hmac_secret"]], scheme=scheme))
        yield arrived
        log = call("GET", f"subscription/{webhook['id']}/deliveries?limit=100")
        assert {status for one in log for status in [one["status"]]} <= {"delivered", "pending"}
        call("DELETE", f"subscription/{webhook['id']}")


def wait_for(arrived: queue.Queue[JobRunEvent], event_ids: Iterable[str]) -> None:
    """Waits until each event has arrived, and no other. Duplicates are allowed, because a busy worker may lose its lock."""
    missing, expected = set(event_ids), set(event_ids)
    while missing:
        event_id = arrived.get(timeout=TIMEOUT_SECONDS).event_id
        assert event_id in expected
        missing.discard(event_id)


@onto_the_queue
def test_events_published_to_the_queue_are_delivered_once_and_verify() -> None:
    with subscription() as arrived, EventPublisher(SERVICES["queueUrl"]) as publisher:
        one = RunErrored(
            account_id=SERVICES["accountId"],
            data=run(1, run_status="Errored", run_status_code=20, run_errored_at=seconds_timestamp()),  # type: ignore[arg-type]
        )
        event_id = publisher.publish(one)
        event = arrived.get(timeout=TIMEOUT_SECONDS)
        assert isinstance(event, RunErrored)
        assert (event.event_id, event.data, event.webhook_name) == (event_id, one.data, "Python")

        many = [started(number) for number in range(100, 150)]
        assert publisher.publish_many(many) == [each.event_id for each in many]
        publisher.publish_many(many)
        publisher.publish(many[0])
        last = publisher.publish(started(2))
        wait_for(arrived, [*(each.event_id for each in many), last])


@onto_the_queue
def test_no_event_of_a_call_is_published_if_one_is_invalid() -> None:
    with subscription() as arrived, EventPublisher(SERVICES["queueUrl"]) as publisher:
        incomplete = {"eventType": "job.run.completed", "accountId": SERVICES["accountId"], "data": {}}
        with pytest.raises(InvalidEventError, match=r"event 1 is invalid: .*data\.runFinishedAt is required"):
            publisher.publish_many([started(3), incomplete])
        only = publisher.publish(started(4))
        wait_for(arrived, [only])


@onto_the_queue
def test_an_async_publisher_publishes_from_many_tasks_concurrently() -> None:
    async def publish() -> list[str]:
        async with AsyncEventPublisher(SERVICES["queueUrl"]) as publisher:
            return await asyncio.gather(*(publisher.publish(started(number)) for number in range(200, 220)))

    with subscription("authorization") as arrived:
        wait_for(arrived, asyncio.run(publish()))


@onto_the_queue
def test_a_publisher_follows_the_shard_of_its_account(monkeypatch: pytest.MonkeyPatch) -> None:
    from redis import Redis  # noqa: PLC0415

    monkeypatch.setattr("runhook.shards._POLL_INTERVAL_SECONDS", 0)
    redis: Any = Redis.from_url(SERVICES["queueUrl"], decode_responses=True)

    def divide(version: int, shard: int, draining: list[int]) -> None:
        slots = json.dumps([shard] * SLOTS)
        redis.hset(MAP_KEY, mapping={"version": version, "slots": slots, "draining": json.dumps(draining)})

    with subscription() as arrived, EventPublisher(SERVICES["queueUrl"]) as publisher:
        wait_for(arrived, [publisher.publish(started(20))])
        divide(1, 1, [0])
        assert redis.exists("{runhook:1}:job-run-events:id") == 0
        many = publisher.publish_many([started(number) for number in range(21, 24)])
        assert redis.exists("{runhook:1}:job-run-events:id") == 1
        wait_for(arrived, many)
        redis.hset(MAP_KEY, "slots", "[]")
        redis.hset(MAP_KEY, "version", 2)
        with pytest.raises(QueueUnavailableError) as caught:
            publisher.publish(started(24))
        assert "does not contain a shard map" in str(caught.value.__cause__)
        divide(3, 0, [1])
        wait_for(arrived, [publisher.publish(started(25))])


@onto_the_queue
def test_an_event_whose_job_has_failed_is_delivered_when_it_is_republished() -> None:
    from redis import Redis  # noqa: PLC0415

    event = started(5)
    redis = Redis.from_url(SERVICES["queueUrl"], decode_responses=True)
    with subscription() as arrived, EventPublisher(SERVICES["queueUrl"]) as publisher:
        publisher.publish(started(6))
        arrived.get(timeout=TIMEOUT_SECONDS)
        # A failed job with the event's id.
        redis.hset(
            f"{KEY}:{job_id(event)}",
            mapping={"name": "x", "data": "{}", "timestamp": "1"},
        )
        redis.zadd(f"{KEY}:failed", {job_id(event): 1})
        publisher.publish(event)
        wait_for(arrived, [event.event_id])


@onto_the_queue
def test_a_full_queue_and_an_unavailable_queue_raise_different_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from redis import Redis  # noqa: PLC0415

    redis: Any = Redis.from_url(SERVICES["queueUrl"], decode_responses=True)
    with subscription() as arrived, EventPublisher(SERVICES["queueUrl"]) as publisher:
        wait_for(arrived, [publisher.publish(started(7))])
        monkeypatch.setattr("runhook.queue._MEMORY_CHECK_SECONDS", float("inf"))
        redis.config_set("maxmemory", 1)
        try:
            # The publisher has checked the memory before, so it learns of the full queue from the server's error.
            with pytest.raises(QueueFullError, match="The queue is full"):
                publisher.publish(started(8))
            with (
                EventPublisher(SERVICES["queueUrl"]) as other,
                pytest.raises(QueueFullError, match=r"uses \d+ % of"),
            ):
                other.publish(started(8))
        finally:
            redis.config_set("maxmemory", 0)
    with EventPublisher("redis://127.0.0.1:1") as away, pytest.raises(QueueUnavailableError) as caught:
        away.publish(started(9))
    assert not isinstance(caught.value, QueueFullError)


@onto_the_queue
def test_a_redis_user_who_may_only_add_events_suffices() -> None:
    from redis import Redis  # noqa: PLC0415

    redis: Any = Redis.from_url(SERVICES["queueUrl"], decode_responses=True)
    if int(redis.info("server")["redis_version"].split(".")[0]) < 7:
        pytest.skip("the Redis is older than 7")
    redis.execute_command(*shlex.split(SERVICES["guest"].replace("\\\n", " ")))
    guest_url = SERVICES["queueUrl"].replace("://", "://runhook_publisher:a%20password%20of%20its%20own@")
    event = started(10)
    with subscription() as arrived, EventPublisher(guest_url) as guest:
        redis.hset(f"{KEY}:{job_id(event)}", mapping={"name": "x", "data": "{}", "timestamp": "1"})
        redis.zadd(f"{KEY}:failed", {job_id(event): 1})
        many = [started(number) for number in range(300, 303)]
        guest.publish(event)
        guest.publish_many(many)
        guest.publish_many(many)
        guest.publish(many[0])
        last = guest.publish(started(11))
        wait_for(arrived, [event.event_id, *(each.event_id for each in many), last])


@onto_the_queue
def test_invalid_text_is_repaired_in_events_of_the_queue_and_of_rest() -> None:
    cut, repaired = "cut \ud83d \0 \ufffe \ude80", "cut \ufffd \ufffd \ufffd \ufffd"
    run_details = run(12, run_reason=cut, job_name=cut)
    event = RunStarted(account_id=SERVICES["accountId"], data=run_details, event_id=create_event_id())
    rest = RestPublisher(SERVICES["url"], SERVICES["token"], SERVICES["accountId"])
    with subscription() as arrived, EventPublisher(SERVICES["queueUrl"]) as publisher:
        publisher.publish(event)
        first = arrived.get(timeout=TIMEOUT_SECONDS)
        rest.start_run(JOB["id"], cut, run_id=950, reason=cut)
        second = arrived.get(timeout=TIMEOUT_SECONDS)
    assert (first.data.run_reason, first.data.job_name) == (repaired, repaired)
    assert (second.data.run_reason, second.data.engine_version) == (repaired, repaired)


def test_rest_accepts_the_same_events_and_reports_of_runs() -> None:
    publisher = RestPublisher(SERVICES["url"], SERVICES["token"], SERVICES["accountId"])
    with subscription() as arrived:
        made = publisher.start_run(JOB["id"], "1.9.2", run_id=900, reason="Python")
        assert (made["id"], made["status"], made["status_humanized"]) == (900, 3, "Running")
        publisher.finish_run(900, "errored", status_message="Model orders failed")
        publisher.report_artifacts(900)
        services_json: set[str] = set()
        while len(services_json) < 3:
            services_json.add(arrived.get(timeout=TIMEOUT_SECONDS).event_type)
        many = [started(number) for number in range(901, 904)]
        ids = publisher.publish_many(many)
        assert publisher.publish_many(many) == ids
        wait_for(arrived, ids)
