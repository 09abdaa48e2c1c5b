"""Validates events by the rules of the queue contract, as the services do (docs/contract.md#queue)."""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Union

from runhook.errors import InvalidEventError, Problem
from runhook.events import DATA_FIELDS, Event, to_published
from runhook.ids import create_event_id, event_id_time

PublishedEvent = Union[Event, Mapping[str, Any]]
"""An event as a dataclass or with the keys of JSON: `eventType`, `accountId`, `data`, optionally `eventId`, `timestamp`."""

_NAME_CHARACTERS_MAX = 1_024
_MESSAGE_CHARACTERS_MAX = 65_536
_SAFE_INTEGER_MAX = 2**53 - 1
_DAY_SECONDS = 86_400

_RFC3339_UTC = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)", re.ASCII)
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_NONCHARACTERS = "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
)
_INVALID = re.compile(f"[\0\ud800-\udfff\ufdd0-\ufdef{_NONCHARACTERS}]")

_SECONDS_UTC = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z", re.ASCII)


def check_events(
    published: Sequence[PublishedEvent], retention_days: float, now: float | None = None
) -> list[dict[str, Any]]:
    """Returns complete events for the queue and the API, without unknown fields and with nine digits in `timestamp`.

    now: seconds since the epoch, for generated ids and timestamps and for the age of ids; default: the host's clock.

    Raises `InvalidEventError` for the first invalid event, with all of its problems.
    """
    now = time.time() if now is None else now
    events = []
    for index, one in enumerate(published):
        event = to_published(one) if isinstance(one, Event) else one
        problems = list(_problems(event, now, retention_days))
        if problems:
            raise InvalidEventError(index, problems)
        events.append(_complete(event, now))
    return events


def well_formed_text(text: str) -> str:
    """Replaces each character that I-JSON (RFC 7493) or PostgreSQL excludes by U+FFFD (docs/contract.md#text)."""
    return _INVALID.sub("\ufffd", _SURROGATE_PAIR.sub(_join_surrogates, text))


def _join_surrogates(pair: re.Match[str]) -> str:
    """Joins the halves of surrogate pairs, which are one character in every other language."""
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _complete(event: Mapping[str, Any], now: float) -> dict[str, Any]:
    return {
        "eventId": event.get("eventId") or create_event_id(now),
        "eventType": event["eventType"],
        "accountId": event["accountId"],
        "timestamp": _nanosecond_timestamp(event.get("timestamp") or _timestamp(now)),
        "data": {name: _repair(event["data"][name]) for name in DATA_FIELDS[event["eventType"]]},
    }


def _repair(value: Any) -> Any:
    return well_formed_text(value) if isinstance(value, str) else value


def _timestamp(now: float) -> str:
    return datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _problems(event: object, now: float, retention_days: float) -> Iterator[Problem]:
    if not isinstance(event, Mapping):
        yield Problem("event", "event must be an Event or a mapping")
        return
    event_type = event.get("eventType")
    yield from _problem("eventId", _event_id_problem(event.get("eventId"), now, retention_days))
    if not isinstance(event_type, str) or event_type not in DATA_FIELDS:
        types = ", ".join(DATA_FIELDS)
        yield from _problem("eventType", "is required" if event_type is None else f"must be one of [{types}]")
    yield from _problem("accountId", _account_problem(event.get("accountId")))
    timestamp = event.get("timestamp")
    if timestamp is not None and (not isinstance(timestamp, str) or _nanosecond_timestamp(timestamp) is None):
        yield Problem("timestamp", "timestamp must be an RFC 3339 UTC time")
    data = event.get("data")
    if not isinstance(data, Mapping):
        yield from _problem("data", "is required" if data is None else "must be a mapping")
    elif isinstance(event_type, str):
        for name in DATA_FIELDS.get(event_type, ()):
            yield from _problem(f"data.{name}", _data_problem(name, data.get(name, _MISSING)))


def _problem(field: str, problem: str | None) -> Iterator[Problem]:
    if problem is not None:
        yield Problem(field, f"{field} {problem}")


def _event_id_problem(event_id: object, now: float, retention_days: float) -> str | None:
    if event_id is None:
        return None
    created_at = event_id_time(event_id)
    if created_at is None:
        return "must be wev_ and a KSUID (27 base62 characters)"
    if created_at < now - retention_days * _DAY_SECONDS:
        return f"is older than the {retention_days} days of the log"
    return "carries a time more than a day ahead" if created_at > now + _DAY_SECONDS else None


def _account_problem(account_id: Any) -> str | None:
    if account_id is None:
        return "is required"
    if _is_integer(account_id) and 0 < account_id <= _SAFE_INTEGER_MAX:
        return None
    return "must be a positive integer"


_MISSING = object()
_MESSAGES = {"runStatusMessage", "runReason"}


def _data_problem(name: str, value: Any) -> str | None:  # noqa: PLR0911
    if value is _MISSING:
        return "is required"
    if name == "runStatusCode":
        return None if _is_integer(value) and abs(value) <= _SAFE_INTEGER_MAX else "must be an integer"
    if not isinstance(value, str):
        return "must be a string"
    if name.endswith("Id"):
        return None if _is_id(value) else "must be an id: digits in a string"
    if name.endswith("At"):
        return None if _is_seconds_timestamp(value) else "must be a UTC time like 2026-01-31T23:59:59Z"
    characters_max = _MESSAGE_CHARACTERS_MAX if name in _MESSAGES else _NAME_CHARACTERS_MAX
    if len(_SURROGATE_PAIR.sub(_join_surrogates, value)) <= characters_max:
        return None
    return f"length must be less than or equal to {characters_max} characters long"


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_id(text: str) -> bool:
    return re.fullmatch(r"[1-9][0-9]{0,15}", text) is not None and int(text) <= _SAFE_INTEGER_MAX


def _nanosecond_timestamp(text: str) -> str | None:
    match = _RFC3339_UTC.fullmatch(text)
    if match is None or not _is_valid_time(match[1]):
        return None
    return f"{match[1]}.{(match[2] or '').ljust(9, '0')}Z"


def _is_seconds_timestamp(text: str) -> bool:
    match = _SECONDS_UTC.fullmatch(text)
    return match is not None and _is_valid_time(match[1])


def _is_valid_time(text: str) -> bool:
    """Whether the time exists: rejects 30 February, second 60 and year 0."""
    year, month, day, hour, minute, second = (int(part) for part in re.split("[-T:]", text))
    if year < 1 or not 1 <= month <= 12 or not 1 <= day <= calendar.monthrange(year, month)[1]:
        return False
    return hour < 24 and minute < 60 and second < 60
