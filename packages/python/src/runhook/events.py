"""Events as dataclasses: the bodies of deliveries and the events of publishers (docs/contract.md#events)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from typing import Any, Literal, Union

EventType = Literal["job.run.started", "job.run.completed", "job.run.errored"]

RUN_STATUS_CODES: Mapping[str, int] = {"Running": 3, "Success": 10, "Errored": 20, "Canceled": 30}
"""Run statuses in events, with their codes."""


@dataclass(frozen=True)
class RunDetails:
    """Run fields of every event. Ids are digits in a string, times are ISO 8601 UTC with seconds and `Z`."""

    job_id: str
    job_name: str
    run_id: str
    environment_id: str
    environment_name: str
    engine_version: str
    project_name: str
    project_id: str
    run_status: str
    run_status_code: int
    run_status_message: str
    run_reason: str
    run_started_at: str


@dataclass(frozen=True)
class CompletedRunDetails(RunDetails):
    run_finished_at: str


@dataclass(frozen=True)
class ErroredRunDetails(RunDetails):
    run_errored_at: str


@dataclass(frozen=True)
class Event:
    """Fields of all events. A publisher may leave `event_id` and `timestamp` empty: they are generated."""

    account_id: int
    data: RunDetails
    event_id: str = ""
    timestamp: str = ""
    """RFC 3339 UTC with nine fractional digits, more than `datetime` supports: see `to_datetime`."""
    webhooks_id: str = ""
    """Id of the webhook; set in deliveries only."""
    webhook_name: str = ""
    event_type: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The complete parsed body, including unknown fields; set in deliveries only."""


@dataclass(frozen=True)
class RunStarted(Event):
    """A run has started."""

    event_type: Literal["job.run.started"] = "job.run.started"


@dataclass(frozen=True)
class RunCompleted(Event):
    """A run has ended, whether it succeeded or failed, and its artifacts are available."""

    data: CompletedRunDetails
    event_type: Literal["job.run.completed"] = "job.run.completed"


@dataclass(frozen=True)
class RunErrored(Event):
    """A run has just failed. `RunCompleted` follows for the same run, with another `event_id`."""

    data: ErroredRunDetails
    event_type: Literal["job.run.errored"] = "job.run.errored"


@dataclass(frozen=True)
class OtherEvent(Event):
    """An event type that this version of the package does not support: see `event_type` and `raw`."""


JobRunEvent = Union[RunStarted, RunCompleted, RunErrored, OtherEvent]
"""An event of a delivery; its class determines the timestamp in its `data`."""

_EVENT_CLASSES: Mapping[str, tuple[type[Event], type[RunDetails]]] = {
    "job.run.started": (RunStarted, RunDetails),
    "job.run.completed": (RunCompleted, CompletedRunDetails),
    "job.run.errored": (RunErrored, ErroredRunDetails),
}


def wire_name(name: str) -> str:
    """Converts `run_started_at` to `runStartedAt`, its name in JSON."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


DATA_FIELDS: Mapping[str, tuple[str, ...]] = {
    event_type: tuple(wire_name(one.name) for one in fields(details))
    for event_type, (_, details) in _EVENT_CLASSES.items()
}
"""The keys of `data` by event type, in the order of deliveries."""


def parse_event(body: Mapping[str, Any]) -> JobRunEvent:
    """Returns the event in a delivery's parsed body. Unknown fields are in `raw`; a missing text is empty.

    Raises `ValueError` if the body is not an event.
    """
    event_type, data = body.get("eventType"), body.get("data")
    if not isinstance(event_type, str) or not isinstance(data, Mapping):
        raise ValueError("the body is not an event")
    event_class, details = _EVENT_CLASSES.get(event_type, (OtherEvent, RunDetails))
    decoded = {one.name: _decode(data.get(wire_name(one.name)), one.type) for one in fields(details)}
    event: Any = event_class(
        account_id=_decode(body.get("accountId"), "int"),
        data=details(**decoded),
        event_id=_decode(body.get("eventId"), "str"),
        timestamp=_decode(body.get("timestamp"), "str"),
        webhooks_id=_decode(body.get("webhooksID"), "str"),
        webhook_name=_decode(body.get("webhookName"), "str"),
        event_type=event_type,
        raw=body,
    )
    return event  # type: ignore[no-any-return]


def _decode(value: object, kind: object) -> Any:
    """Converts a value of an unexpected type instead of rejecting the event, because the service may be newer."""
    if kind == "int":
        return value if isinstance(value, int) else 0
    return value if isinstance(value, str) else "" if value is None else str(value)


def to_published(event: Event) -> dict[str, Any]:
    """Returns the event with the keys of JSON, without the fields of deliveries."""
    data = {wire_name(one.name): getattr(event.data, one.name) for one in fields(event.data)}
    published: dict[str, Any] = {"eventType": event.event_type, "accountId": event.account_id, "data": data}
    if event.event_id:
        published["eventId"] = event.event_id
    if event.timestamp:
        published["timestamp"] = event.timestamp
    return published


_FRACTION = re.compile(r"\.(\d+)")


def to_datetime(text: str) -> datetime:
    """Converts a time of an event to an aware `datetime` in UTC, truncated to microseconds."""
    fraction = _FRACTION.search(text)
    seconds = datetime.strptime(_FRACTION.sub("", text).replace("Z", "+00:00"), "%Y-%m-%dT%H:%M:%S%z")
    micros = int(fraction.group(1)[:6].ljust(6, "0")) if fraction else 0
    return seconds.replace(microsecond=micros).astimezone(timezone.utc)


def seconds_timestamp(timestamp: datetime | None = None) -> str:
    """Formats a time for fields such as `run_started_at`; default: the current time.

    Raises `ValueError` for a time without a time zone.
    """
    timestamp = timestamp or datetime.now(timezone.utc)
    if timestamp.tzinfo is None:
        raise ValueError("a time of a run needs a time zone")
    return timestamp.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
