"""Events as dataclasses: what a delivery's body says, and what a publisher may send (docs/contract.md#events)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from typing import Any, Literal, Union

EventType = Literal["job.run.started", "job.run.completed", "job.run.errored"]

RUN_STATUS_CODES: Mapping[str, int] = {"Running": 3, "Success": 10, "Errored": 20, "Canceled": 30}
"""Run statuses as events name them, with their codes."""


@dataclass(frozen=True)
class RunDetails:
    """What every event tells of its run. Ids are digits in a string, times ISO 8601 UTC with seconds and `Z`."""

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
    """What all events have. Of a publisher `event_id` and `timestamp` may be empty: they are made then."""

    account_id: int
    data: RunDetails
    event_id: str = ""
    timestamp: str = ""
    """RFC 3339 UTC with nine fractional digits, which `datetime` cannot hold: see `to_datetime`."""
    webhooks_id: str = ""
    """Of a delivery: the webhook's id."""
    webhook_name: str = ""
    event_type: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Of a delivery: its whole body as JSON has it, with what this version of the package does not know."""


@dataclass(frozen=True)
class RunStarted(Event):
    """A run has started."""

    event_type: Literal["job.run.started"] = "job.run.started"


@dataclass(frozen=True)
class RunCompleted(Event):
    """A run has finished, failed or succeeded, and its artifacts are available."""

    data: CompletedRunDetails
    event_type: Literal["job.run.completed"] = "job.run.completed"


@dataclass(frozen=True)
class RunErrored(Event):
    """A run has failed, this moment. `RunCompleted` follows for the same run, with an `event_id` of its own."""

    data: ErroredRunDetails
    event_type: Literal["job.run.errored"] = "job.run.errored"


@dataclass(frozen=True)
class OtherEvent(Event):
    """A type of event that this version of the package does not know: `event_type` and `raw` tell."""


JobRunEvent = Union[RunStarted, RunCompleted, RunErrored, OtherEvent]
"""An event of a delivery; `isinstance` says which, and so which time its `data` carries."""

_SHAPES: Mapping[str, tuple[type[Event], type[RunDetails]]] = {
    "job.run.started": (RunStarted, RunDetails),
    "job.run.completed": (RunCompleted, CompletedRunDetails),
    "job.run.errored": (RunErrored, ErroredRunDetails),
}


def wire_name(name: str) -> str:
    """`run_started_at` is `runStartedAt` in JSON."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


DATA_FIELDS: Mapping[str, tuple[str, ...]] = {
    event_type: tuple(wire_name(one.name) for one in fields(details))
    for event_type, (_, details) in _SHAPES.items()
}
"""The keys of `data` by type of event, in the order in which deliveries have them."""


def event_of(body: Mapping[str, Any]) -> JobRunEvent:
    """The event of a delivery's parsed body. Fields that are not known are in `raw`; a text that is missing is empty.

    Raises `ValueError` for what is no event.
    """
    event_type, data = body.get("eventType"), body.get("data")
    if not isinstance(event_type, str) or not isinstance(data, Mapping):
        raise ValueError("the body is no event")
    shape, details = _SHAPES.get(event_type, (OtherEvent, RunDetails))
    told = {one.name: _told(data.get(wire_name(one.name)), one.type) for one in fields(details)}
    event: Any = shape(
        account_id=_told(body.get("accountId"), "int"),
        data=details(**told),
        event_id=_told(body.get("eventId"), "str"),
        timestamp=_told(body.get("timestamp"), "str"),
        webhooks_id=_told(body.get("webhooksID"), "str"),
        webhook_name=_told(body.get("webhookName"), "str"),
        event_type=event_type,
        raw=body,
    )
    return event  # type: ignore[no-any-return]


def _told(value: object, kind: object) -> Any:
    """Whoever signed it may be newer than this: a value of another kind is no reason to refuse the event."""
    if kind == "int":
        return value if isinstance(value, int) else 0
    return value if isinstance(value, str) else "" if value is None else str(value)


def published_form(event: Event) -> dict[str, Any]:
    """The event as it is published: JSON names, without what only deliveries have."""
    data = {wire_name(one.name): getattr(event.data, one.name) for one in fields(event.data)}
    form: dict[str, Any] = {"eventType": event.event_type, "accountId": event.account_id, "data": data}
    if event.event_id:
        form["eventId"] = event.event_id
    if event.timestamp:
        form["timestamp"] = event.timestamp
    return form


_FRACTION = re.compile(r"\.(\d+)")


def to_datetime(text: str) -> datetime:
    """A time of an event as an aware `datetime`, in UTC; what is finer than a microsecond is cut off."""
    fraction = _FRACTION.search(text)
    whole = datetime.strptime(_FRACTION.sub("", text).replace("Z", "+00:00"), "%Y-%m-%dT%H:%M:%S%z")
    micros = int(fraction.group(1)[:6].ljust(6, "0")) if fraction else 0
    return whole.replace(microsecond=micros).astimezone(timezone.utc)


def seconds_timestamp(moment: datetime | None = None) -> str:
    """A time as `run_started_at` and its siblings have it; now when omitted.

    Raises `ValueError` for one without a time zone.
    """
    moment = moment or datetime.now(timezone.utc)
    if moment.tzinfo is None:
        raise ValueError("a time of a run needs a time zone")
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
