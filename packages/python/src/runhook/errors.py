"""What publishing may raise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing wrong with an event: `field` is its path in JSON (`data.runStartedAt`), `message` a sentence that names it."""

    field: str
    message: str


class PublishError(Exception):
    """What all of these are."""

    code = "publish_error"


class InvalidEventError(PublishError):
    """An event that does not fit the queue contract. Nothing of the call was published."""

    code = "invalid_event"

    def __init__(self, index: int, problems: Sequence[Problem]) -> None:
        super().__init__(f"event {index} is invalid: " + "; ".join(one.message for one in problems))
        self.index = index
        self.problems = tuple(problems)


class RefusedEventsError(PublishError):
    """Events that the service refuses though they fit the contract, by their index; the others of the call are on record."""

    code = "refused_events"

    def __init__(self, refused: Mapping[int, Sequence[Problem]]) -> None:
        told = (
            f"event {index}: {one.field} {one.message}" for index, all_ in refused.items() for one in all_
        )
        super().__init__("; ".join(told))
        self.refused = dict(refused)


class UnavailableError(PublishError):
    """Not taken now. Keep the events, and publish them again with the same ids: an id is delivered once."""

    code = "unavailable"
    retry_after_seconds: float | None = None
    """How long to wait, where that is known."""


class QueueUnavailableError(UnavailableError):
    """The queue did not take the call; nothing was added that you may rely on. `__cause__` holds the driver's error."""

    code = "queue_unavailable"


class QueueFullError(QueueUnavailableError):
    """The queue has no room for more; what it has goes on. Keep what you wanted to add, and wait before you try again."""


class ApiError(PublishError):
    """What the API answered instead of what was asked for (docs/contract.md#errors).

    status: the HTTP status; 0 when no answer came.
    problems: of a 400, what is wrong with which field; else empty.
    """

    code = "api_error"

    def __init__(
        self,
        status: int,
        message: str,
        problems: Sequence[Problem] = (),
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__("; ".join([message, *(f"{one.field}: {one.message}" for one in problems)]))
        self.status = status
        self.user_message = message
        self.problems = tuple(problems)
        self.retry_after_seconds = retry_after_seconds


class ApiUnavailableError(ApiError, UnavailableError):
    """A 429, a 503, another 5xx, or no answer. The same call may be made again; `retry_after_seconds` says when."""

    code = "api_unavailable"
