"""Drops repeated events, because delivery is at least once."""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections import OrderedDict
from typing import Any, Callable, Literal, Protocol, TypeVar, cast

from runhook.events import JobRunEvent

DeduplicationState = Literal["claimed", "in_progress", "done"]
"""State of an event in the store: claimed by this call, being processed by another call, or processed."""

OnEvent = TypeVar("OnEvent", bound=Callable[[Any], object])


class EventInProgressError(Exception):
    """The event was received again while it is being processed. The response is 503, so that the delivery is retried."""

    code = "event_in_progress"
    status = 503


class DeduplicationStore(Protocol):
    """Stores which events were received.

    Several processes that receive for one webhook must share a store, for example in Redis: `claim` is
    `SET key in_progress NX EX ttl`, and if that set nothing, `GET key`; `finish` is `SET key done EX ttl`; `release` is
    `DEL key`. With a coroutine function as handler, the methods may be coroutine functions.
    """

    def claim(self, event_id: str, ttl_seconds: float) -> Any:
        """Stores a new event and returns `claimed`; for a stored event, returns its `DeduplicationState`."""

    def finish(self, event_id: str, ttl_seconds: float) -> Any:
        """Stores that the event was processed."""

    def release(self, event_id: str) -> Any:
        """Removes the event."""


class MemoryStore:
    """Stores the events of this process, for all of its threads. Removes the least recent one beyond `events_max`."""

    def __init__(self, events_max: int = 100_000, now: Callable[[], float] = time.monotonic) -> None:
        self._events_max = events_max
        self._now = now
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[DeduplicationState, float]] = OrderedDict()

    def claim(self, event_id: str, ttl_seconds: float) -> DeduplicationState:
        with self._lock:
            state, expires_at = self._entries.get(event_id, ("claimed", 0.0))
            if event_id in self._entries and expires_at > self._now():
                return state
            self._set_entry(event_id, "in_progress", ttl_seconds)
            return "claimed"

    def finish(self, event_id: str, ttl_seconds: float) -> None:
        with self._lock:
            self._set_entry(event_id, "done", ttl_seconds)

    def release(self, event_id: str) -> None:
        with self._lock:
            self._entries.pop(event_id, None)

    def _set_entry(self, event_id: str, state: DeduplicationState, ttl_seconds: float) -> None:
        self._entries[event_id] = (state, self._now() + ttl_seconds)
        self._entries.move_to_end(event_id)
        while len(self._entries) > self._events_max:
            self._entries.popitem(last=False)


def deduplicate(
    on_event: OnEvent,
    *,
    ttl_seconds: float = 86_400,
    claim_seconds: float = 300,
    store: DeduplicationStore | None = None,
) -> OnEvent:
    """Calls `on_event` once for each `event_id`, whichever webhook or attempt delivers it.

    A repeat of a processed event is dropped and counts as a success. If `on_event` raises, the error is raised and the
    event is released, so that its retry is processed. A manual redelivery within `ttl_seconds` is a repeat as well.

    ttl_seconds: time for which a processed event is stored; a day is more than all retries take by default.
    claim_seconds: time after which an event may be claimed again if its process has neither finished nor failed.
    store: replaces the memory of this process, which stores 100,000 events.
    """
    events = MemoryStore() if store is None else store

    def is_done(state: object, event: JobRunEvent) -> bool:
        if state == "in_progress":
            raise EventInProgressError(f"event {event.event_id} is already being processed")
        return state == "done"

    @functools.wraps(on_event)
    def handle(event: JobRunEvent) -> None:
        if is_done(events.claim(event.event_id, claim_seconds), event):
            return
        try:
            on_event(event)
        except BaseException:
            events.release(event.event_id)
            raise
        events.finish(event.event_id, ttl_seconds)

    @functools.wraps(on_event)
    async def handle_async(event: JobRunEvent) -> None:
        if is_done(await _await_if_needed(events.claim(event.event_id, claim_seconds)), event):
            return
        try:
            await _await_if_needed(on_event(event))
        except BaseException:
            await _await_if_needed(events.release(event.event_id))
            raise
        await _await_if_needed(events.finish(event.event_id, ttl_seconds))

    return cast(OnEvent, handle_async if inspect.iscoroutinefunction(on_event) else handle)


async def _await_if_needed(value: object) -> object:
    return await value if inspect.isawaitable(value) else value
