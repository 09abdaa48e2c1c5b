"""Runhook in Python: publishes job-run events, and receives webhooks.

Frameworks: `runhook.flask`, `runhook.fastapi`, `runhook.django`. Publishing: `runhook.queue` directly to the queue,
`runhook.rest` over HTTP.
"""

from runhook.deduplication import (
    DeduplicationState,
    DeduplicationStore,
    EventInProgressError,
    MemoryStore,
    deduplicate,
)
from runhook.errors import (
    ApiError,
    ApiUnavailableError,
    InvalidEventError,
    Problem,
    PublishError,
    QueueFullError,
    QueueUnavailableError,
    RejectedEventsError,
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
from runhook.run_steps import RunStep, command_step_name
from runhook.verify import DeliveryHeaders, InvalidDeliveryError, Receiver, verify

__all__ = [
    "RUN_STATUS_CODES",
    "ApiError",
    "ApiUnavailableError",
    "CompletedRunDetails",
    "DeduplicationState",
    "DeduplicationStore",
    "DeliveryHeaders",
    "ErroredRunDetails",
    "Event",
    "EventInProgressError",
    "EventType",
    "InvalidDeliveryError",
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
    "RejectedEventsError",
    "RunCompleted",
    "RunDetails",
    "RunErrored",
    "RunStarted",
    "RunStep",
    "UnavailableError",
    "command_step_name",
    "create_event_id",
    "deduplicate",
    "seconds_timestamp",
    "to_datetime",
    "verify",
]
