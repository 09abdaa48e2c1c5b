"""Errors of publishing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """A problem of an event: `field` is its path in JSON (`data.runStartedAt`), `message` a sentence that names it."""

    field: str
    message: str


class PublishError(Exception):
    """Base class of the errors of publishing."""

    code = "publish_error"


class InvalidEventError(PublishError):
    """An event violates the queue contract. No event of the call was published."""

    code = "invalid_event"

    def __init__(self, index: int, problems: Sequence[Problem]) -> None:
        super().__init__(f"event {index} is invalid: " + "; ".join(one.message for one in problems))
        self.index = index
        self.problems = tuple(problems)


class RejectedEventsError(PublishError):
    """Valid events that the service rejected, by their index; the other events of the call are recorded."""

    code = "rejected_events"

    def __init__(self, rejected: Mapping[int, Sequence[Problem]]) -> None:
        messages = (
            f"event {index}: {one.field} {one.message}"
            for index, problems in rejected.items()
            for one in problems
        )
        super().__init__("; ".join(messages))
        self.rejected = dict(rejected)


class UnavailableError(PublishError):
    """The events were not accepted at this time. Publish them again later with the same ids: an id is delivered once."""

    code = "unavailable"
    retry_after_seconds: float | None = None
    """Time to wait, if known."""


class QueueUnavailableError(UnavailableError):
    """The call to the queue failed or timed out: publish the events again. `__cause__` is the driver's error."""

    code = "queue_unavailable"


class QueueFullError(QueueUnavailableError):
    """The queue is full; jobs in it are still processed. Retain the events, and wait before you publish them again."""


class ApiError(PublishError):
    """The error response of the API (docs/contract.md#errors), or the absence of a response.

    status: the HTTP status; 0 if there was no response.
    problems: the invalid fields of a 400 response; otherwise empty.
    lease_lost: whether the run has ended, or another runner has claimed it: its execution must end.
    """

    code = "api_error"

    def __init__(
        self,
        status: int,
        message: str,
        problems: Sequence[Problem] = (),
        retry_after_seconds: float | None = None,
        *,
        lease_lost: bool = False,
    ) -> None:
        super().__init__("; ".join([message, *(f"{one.field}: {one.message}" for one in problems)]))
        self.status = status
        self.user_message = message
        self.problems = tuple(problems)
        self.lease_lost = lease_lost
        self.retry_after_seconds = retry_after_seconds


class ApiUnavailableError(ApiError, UnavailableError):
    """A 429, a 5xx, or no response. The call may be repeated, after `retry_after_seconds` if set."""

    code = "api_unavailable"
