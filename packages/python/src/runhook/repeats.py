"""Delivery is at least once: what drops the events that were there before."""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections import OrderedDict
from typing import Any, Callable, Literal, Protocol, TypeVar, cast

from runhook.events import JobRunEvent

RepeatState = Literal["claimed", "working", "done"]
"""What a store says of an event: nobody had it, somebody is at it, or it is done."""

OnEvent = TypeVar("OnEvent", bound=Callable[[Any], object])


class RepeatUnderway(Exception):
    """An event that comes while it is being worked on. Answered 503, so that it comes again and nothing is lost if that fails."""

    code = "repeat_underway"
    status = 503


class RepeatStore(Protocol):
    """Where it is remembered which events came already.

    Several processes that receive for one webhook share one, in Redis for example: `claim` is
    `SET key working NX EX ttl`, and if that set nothing, `GET key`; `finish` is `SET key done EX ttl`; `release` is
    `DEL key`. Around a coroutine function, each may be a coroutine function itself.
    """

    def claim(self, event_id: str, ttl_seconds: float) -> Any:
        """Notes an event that is not known, and says so; of one that is known, what was noted: a `RepeatState`."""

    def finish(self, event_id: str, ttl_seconds: float) -> Any:
        """Notes that it is done."""

    def release(self, event_id: str) -> Any:
        """Forgets it."""


class MemoryStore:
    """The events of this process, for all of its threads. Beyond `events_max` the one that was noted longest ago is forgotten."""

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
    """Calls `on_event` once for each `event_id`, whichever webhook or attempt brings it.

    A repeat of what is done is dropped, which is answered as a success. What `on_event` raises is raised, and the
    event forgotten, so that its retry is worked on. A redelivery by hand is a repeat too, within `ttl_seconds`.

    ttl_seconds: how long an event is remembered once it is done; a day is more than all retries take.
    working_seconds: how long it is somebody's who neither finishes nor fails, as a process that died.
    store: instead of the memory of this process, which remembers 100,000 events.
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
