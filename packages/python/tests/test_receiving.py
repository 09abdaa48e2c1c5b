from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from dataclasses import FrozenInstanceError
from datetime import datetime, timezone
from http.client import HTTPMessage
from typing import Any

import pytest

from runhook import (
    CompletedRunDetails,
    EventInProgressError,
    InvalidDeliveryError,
    InvalidEventError,
    MemoryStore,
    OtherEvent,
    Receiver,
    RunCompleted,
    RunStarted,
    create_event_id,
    deduplicate,
    seconds_timestamp,
    to_datetime,
    verify,
)
from runhook.event_rules import check_events
from runhook.events import DATA_FIELDS, parse_event
from runhook.ids import event_id_time

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
DATA = dict.fromkeys(DATA_FIELDS["job.run.completed"], "1") | {
    "runStatusCode": 10,
    "runStartedAt": "2026-01-31T19:28:07Z",
    "runFinishedAt": "2026-01-31T19:31:20Z",
}
EVENT: dict[str, Any] = {
    "accountId": 1,
    "webhooksID": "wsu_1",
    "eventId": create_event_id(),
    "timestamp": "2026-01-31T19:31:20.742812345Z",
    "eventType": "job.run.completed",
    "webhookName": "Pager",
    "data": DATA,
}
BODY = json.dumps(EVENT).encode()


def authorization(body: bytes = BODY, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def test_an_event_is_a_frozen_dataclass_of_its_type_with_unknown_fields_in_raw() -> None:
    body = json.dumps({**EVENT, "colour": "red"}).encode()
    event = verify(
        body, {"AUTHORIZATION": authorization(body)}, secrets=["whsec_new=", SECRET], scheme="authorization"
    )
    assert isinstance(event, RunCompleted)
    assert event.data == CompletedRunDetails(*DATA.values())  # type: ignore[arg-type]
    assert (event.account_id, event.webhooks_id, event.webhook_name) == (1, "wsu_1", "Pager")
    assert event.raw["colour"] == "red"
    assert to_datetime(event.timestamp) == datetime(2026, 1, 31, 19, 31, 20, 742812, timezone.utc)
    with pytest.raises(FrozenInstanceError):
        event.event_id = "wev_2"  # type: ignore[misc]
    assert hash(event)


def test_an_event_of_a_newer_service_is_read_without_its_unknown_parts() -> None:
    other = parse_event(
        {"eventType": "job.run.paused", "accountId": 1, "data": {"runId": 7, "jobName": None}}
    )
    assert isinstance(other, OtherEvent)
    assert (other.event_type, other.data.run_id, other.data.job_name) == ("job.run.paused", "7", "")


@pytest.mark.parametrize("secrets", ["", [], ["not a secret"], [SECRET, ""], None])
def test_invalid_secrets_are_rejected_when_the_program_starts(secrets: Any) -> None:
    with pytest.raises(TypeError, match="whsec_ included"):
        Receiver(secrets)


@pytest.mark.parametrize("public_keys", ["", [], ["whpk_"], [SECRET], [None]])
def test_invalid_public_keys_are_rejected_when_the_program_starts(public_keys: Any) -> None:
    with pytest.raises(TypeError, match="whpk_ included"):
        Receiver(public_keys=public_keys)


@pytest.mark.parametrize("others", [{"secrets": SECRET}, {"scheme": "authorization"}])
def test_public_keys_are_rejected_with_options_for_secrets(others: Any) -> None:
    key = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
    with pytest.raises(TypeError, match="replaces secrets"):
        Receiver(public_keys=key, **others)


def test_a_parsed_body_is_a_type_error_and_a_duplicate_signature_header_is_rejected() -> None:
    receiver = Receiver(SECRET, scheme="authorization", signature_header="X-Signature")
    with pytest.raises(TypeError, match="parsed"):
        receiver.verify(EVENT, {})  # type: ignore[arg-type]
    headers = HTTPMessage()
    headers["x-signature"] = authorization()
    assert receiver.verify(BODY, headers)
    headers["X-Signature"] = authorization()
    with pytest.raises(InvalidDeliveryError, match="no signature"):
        receiver.verify(BODY, headers)


def test_an_event_is_processed_once_and_reprocessed_after_a_failure() -> None:
    seen = []
    clock = [0.0]

    def on_event(event: Any) -> None:
        seen.append(event.event_id)
        if len(seen) == 1:
            raise OSError("a fault")

    handle = deduplicate(on_event, store=MemoryStore(2, now=lambda: clock[0]), ttl_seconds=60)
    event = parse_event(EVENT)
    with pytest.raises(OSError, match="a fault"):
        handle(event)
    handle(event)
    handle(event)
    assert len(seen) == 2
    clock[0] = 61.0
    handle(event)
    assert len(seen) == 3
    for other in ("wev_1", "wev_2"):
        handle(parse_event({**EVENT, "eventId": other}))
    handle(event)
    assert len(seen) == 6


def test_a_repeat_is_rejected_while_a_coroutine_function_processes_the_event() -> None:
    async def scenario() -> list[str]:
        may_finish = asyncio.Event()
        seen: list[str] = []

        async def on_event(event: Any) -> None:
            seen.append(event.event_id)
            await may_finish.wait()

        handle: Any = deduplicate(on_event)
        event = parse_event(EVENT)
        first = asyncio.ensure_future(handle(event))
        await asyncio.sleep(0)
        with pytest.raises(EventInProgressError):
            await handle(event)
        may_finish.set()
        await first
        await handle(event)
        return seen

    assert asyncio.run(scenario()) == [EVENT["eventId"]]


def test_all_problems_of_an_event_are_reported_with_the_path_of_each_field() -> None:
    assert check_events([RunCompleted(account_id=1, data=CompletedRunDetails(*DATA.values()))], 30)  # type: ignore[arg-type]
    bad = {
        **EVENT,
        "eventId": create_event_id(1_600_000_000),
        "accountId": True,
        "data": {**DATA, "jobName": "x" * 1_025, "runReason": "\U0001f680" * 65_537, "runId": "²"},
    }
    with pytest.raises(InvalidEventError) as caught:
        check_events([EVENT, bad], 30)
    assert caught.value.index == 1
    assert [problem.field for problem in caught.value.problems] == [
        "eventId",
        "accountId",
        "data.jobName",
        "data.runId",
        "data.runReason",
    ]
    with pytest.raises(InvalidEventError, match="data is required"):
        check_events([{"eventType": "job.run.started", "accountId": 1}], 30)
    with pytest.raises(InvalidEventError, match="event must be an Event or a mapping"):
        check_events([7], 30)  # type: ignore[list-item]


def test_generated_ids_and_times_have_the_format_of_the_services() -> None:
    assert event_id_time(create_event_id(1_700_000_000.9)) == 1_700_000_000
    assert event_id_time("wev_" + "z" * 27) is None
    assert event_id_time("wsu_2Zk0fGq5mH4s8JrXc1VbNwTyUeA") is None
    assert len({create_event_id() for _ in range(1_000)}) == 1_000
    (event,) = check_events([RunStarted(account_id=1, data=parse_event(EVENT).data)], 30)
    assert to_datetime(event["timestamp"]).tzinfo is timezone.utc
    assert seconds_timestamp(datetime(2026, 1, 31, 19, 28, 7, 999, timezone.utc)) == "2026-01-31T19:28:07Z"
    with pytest.raises(ValueError, match="time zone"):
        seconds_timestamp(datetime(2026, 1, 31))
