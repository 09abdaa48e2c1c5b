"""Runhook in Python: publishes job-run events, and receives webhooks.

Frameworks: `runhook.flask`, `runhook.fastapi`, `runhook.django`. Publishing: `runhook.queue` directly to the queue,
`runhook.rest` over HTTP.
"""

from runhook.errors import (
    ApiError,
    ApiUnavailableError,
    InvalidEventError,
    Problem,
    PublishError,
    QueueFullError,
    QueueUnavailableError,
    RefusedEventsError,
    UnavailableError,
)
from runhook.event_rules import PublishedEvent
from runhook.events import (
    RUN_STATUS_CODES,
    CompletedRunDetails,
    ErroredRunDetails,
    Event,
    EventType,
    JobRunEvent,
    OtherEvent,
    RunCompleted,
    RunDetails,
    RunErrored,
    RunStarted,
    seconds_timestamp,
    to_datetime,
)
from runhook.ids import create_event_id
from runhook.repeats import MemoryStore, RepeatState, RepeatStore, RepeatUnderway, without_repeats
from runhook.verify import DeliveryHeaders, Receiver, RefusedDelivery, verify

__all__ = [
    "RUN_STATUS_CODES",
    "ApiError",
    "ApiUnavailableError",
    "CompletedRunDetails",
    "DeliveryHeaders",
    "ErroredRunDetails",
    "Event",
    "EventType",
    "InvalidEventError",
    "JobRunEvent",
    "MemoryStore",
    "OtherEvent",
    "Problem",
    "PublishError",
    "PublishedEvent",
    "QueueFullError",
    "QueueUnavailableError",
    "Receiver",
    "RefusedDelivery",
    "RefusedEventsError",
    "RepeatState",
    "RepeatStore",
    "RepeatUnderway",
    "RunCompleted",
    "RunDetails",
    "RunErrored",
    "RunStarted",
    "UnavailableError",
    "create_event_id",
    "seconds_timestamp",
    "to_datetime",
    "verify",
    "without_repeats",
]
