"""Drops repeated events, because delivery is at least once."""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections import OrderedDict
from typing import Any, Callable, Literal, Protocol, TypeVar, cast

from runhook.events import JobRunEvent

RepeatState = Literal["claimed", "working", "done"]
"""State of an event in the store: claimed by this call, being processed by another call, or processed."""

OnEvent = TypeVar("OnEvent", bound=Callable[[Any], object])


class RepeatUnderway(Exception):
    """The event was received again while it is being processed. The response is 503, so that it is retried if that fails."""

    code = "repeat_underway"
    status = 503


class RepeatStore(Protocol):
    """Stores which events were received.

    Several processes that receive for one webhook must share a store, for example in Redis: `claim` is
    `SET key working NX EX ttl`, and if that set nothing, `GET key`; `finish` is `SET key done EX ttl`; `release` is
    `DEL key`. With a coroutine function as handler, the methods may be coroutine functions.
    """

    def claim(self, event_id: str, ttl_seconds: float) -> Any:
        """Stores a new event and returns `claimed`; for a stored event, returns its `RepeatState`."""

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
        self._noted: OrderedDict[str, tuple[RepeatState, float]] = OrderedDict()

    def claim(self, event_id: str, ttl_seconds: float) -> RepeatState:
        with self._lock:
            state, until = self._noted.get(event_id, ("claimed", 0.0))
            if event_id in self._noted and until > self._now():
                return state
            self._note(event_id, "working", ttl_seconds)
            return "claimed"

    def finish(self, event_id: str, ttl_seconds: float) -> None:
        with self._lock:
            self._note(event_id, "done", ttl_seconds)

    def release(self, event_id: str) -> None:
        with self._lock:
            self._noted.pop(event_id, None)

    def _note(self, event_id: str, state: RepeatState, ttl_seconds: float) -> None:
        self._noted[event_id] = (state, self._now() + ttl_seconds)
        self._noted.move_to_end(event_id)
        while len(self._noted) > self._events_max:
            self._noted.popitem(last=False)


def without_repeats(
    on_event: OnEvent,
    *,
    ttl_seconds: float = 86_400,
    working_seconds: float = 300,
    store: RepeatStore | None = None,
) -> OnEvent:
    """Calls `on_event` once for each `event_id`, whichever webhook or attempt delivers it.

    A repeat of a processed event is dropped and counts as a success. If `on_event` raises, the error is raised and the
    event is released, so that its retry is processed. A manual redelivery within `ttl_seconds` is a repeat as well.

    ttl_seconds: time for which a processed event is stored; a day exceeds the time of all retries.
    working_seconds: time after which an event may be claimed again if its process has neither finished nor failed.
    store: replaces the memory of this process, which stores 100,000 events.
    """
    known = MemoryStore() if store is None else store

    def is_done(state: object, event: JobRunEvent) -> bool:
        if state == "working":
            raise RepeatUnderway(f"event {event.event_id} is being worked on")
        return state == "done"

    @functools.wraps(on_event)
    def once(event: JobRunEvent) -> None:
        if is_done(known.claim(event.event_id, working_seconds), event):
            return
        try:
            on_event(event)
        except BaseException:
            known.release(event.event_id)
            raise
        known.finish(event.event_id, ttl_seconds)

    @functools.wraps(on_event)
    async def once_async(event: JobRunEvent) -> None:
        if is_done(await _awaited(known.claim(event.event_id, working_seconds)), event):
            return
        try:
            await _awaited(on_event(event))
        except BaseException:
            await _awaited(known.release(event.event_id))
            raise
        await _awaited(known.finish(event.event_id, ttl_seconds))

    return cast(OnEvent, once_async if inspect.iscoroutinefunction(on_event) else once)


async def _awaited(value: object) -> object:
    return await value if inspect.isawaitable(value) else value
