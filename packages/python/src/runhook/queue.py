"""Publishes directly to Runhook's queue in Redis: `pip install "runhook[publish]"`, Python 3.10 or newer."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from collections.abc import Awaitable, Coroutine, Sequence
from importlib import metadata
from types import TracebackType
from typing import Any, TypeVar

from runhook.add_only_user import add_as_add_only_user, find_failed
from runhook.errors import QueueFullError, QueueUnavailableError
from runhook.event_jobs import BATCH, BurstLimiter, Job, create_jobs
from runhook.event_rules import PublishedEvent, check_events
from runhook.queue_url import open_client, parse_queue_url
from runhook.run_steps import RunStep, message_steps
from runhook.server_clock import ServerClock
from runhook.shards import ShardMapCache, is_forbidden, shard_prefix

_QUEUE = "job-run-events"
_BULK_SIZE = 500
_HIGH_WATER = 0.85
_MEMORY_CHECK_SECONDS = 1.0
_CALL_TIMEOUT_SECONDS = 5.0
_EVENT_STREAM_MAX = 100

# Error message of Redis for a command, without the code that redis-py removes.
_FULL = re.compile(r"command not allowed when used memory")

T = TypeVar("T")


class AsyncEventPublisher:
    """For programs with an event loop, from which all calls must be made. See `EventPublisher`."""

    def __init__(self, queue_url: str, *, retention_days: float = 30) -> None:
        self._target = parse_queue_url(queue_url)
        self._retention_days = retention_days
        self._burst = BurstLimiter()
        self._client: Any = None
        self._maps = ShardMapCache()
        self._clock = ServerClock(self._server_time)
        self._queues: dict[int, Any] = {}
        self._has_settings: set[int] = set()
        self._is_add_only_user = False
        self._checked_at = float("-inf")
        self._used_share = 0.0

    async def publish(self, event: PublishedEvent, *, run_steps: Sequence[RunStep] = ()) -> str:
        return (await self._publish_all([event], run_steps))[0]

    async def publish_many(self, events: Sequence[PublishedEvent]) -> list[str]:
        return await self._publish_all(events, ())

    async def _publish_all(self, events: Sequence[PublishedEvent], run_steps: Sequence[RunStep]) -> list[str]:
        unavailable = None
        try:
            await self._within_call_timeout(self._clock.measure_if_due())
        except QueueUnavailableError as error:
            unavailable = error
        checked = check_events(events, self._retention_days, self._clock.now())
        if run_steps:
            fitting = message_steps(run_steps)
            checked = [{**event, "run_steps": fitting} for event in checked]
        if unavailable is not None:
            raise unavailable
        for start in range(0, len(checked), _BULK_SIZE):
            await self._within_call_timeout(self._add(checked[start : start + _BULK_SIZE]))
        return [event["eventId"] for event in checked]

    async def close(self) -> None:
        client, self._client = self._client, None
        self._queues = {}
        if client is not None:
            await client.aclose()

    async def __aenter__(self) -> AsyncEventPublisher:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _server_time(self) -> float | None:
        """Returns the time of the queue's server; None if the user may only add events."""
        _queue_class()
        try:
            server_time = await self._open_client().time()
        except Exception as error:
            if is_forbidden(error):
                return None
            raise
        # A cluster's client returns the time of each node.
        seconds, micros = next(iter(server_time.values())) if isinstance(server_time, dict) else server_time
        return float(seconds) + float(micros) / 1_000_000

    def _job_options(self, account_id: int) -> Job:
        # BullMQ processes jobs without a priority before those with one.
        priority = {} if self._burst.acquire(account_id) else {"priority": 1}
        return {"removeOnComplete": True, "timestamp": round(self._clock.now() * 1_000), **priority}

    def _open_queue(self, shard: int) -> Any:
        """Returns the queue of a shard; all shards share one client."""
        if shard not in self._queues:
            queue_class = _queue_class()
            self._queues[shard] = queue_class(
                _QUEUE, {"prefix": shard_prefix(shard), "connection": self._open_client()}
            )
        return self._queues[shard]

    def _open_client(self) -> Any:
        if self._client is None:
            self._client = open_client(self._target)
        return self._client

    async def _add(self, events: Sequence[Job]) -> None:
        """Adds each event to the shard of its account, in order within a shard."""
        _queue_class()
        shards = await self._maps.current(self._open_client())
        by_shard: dict[int, list[Job]] = {}
        for event in events:
            by_shard.setdefault(shards.shard_of(event["accountId"]), []).append(event)
        pending = [
            self._add_to_shard(shard, create_jobs(shard_events, self._job_options))
            for shard, shard_events in by_shard.items()
        ]
        # Waits for all calls before it raises the first error.
        for result in await asyncio.gather(*pending, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def _add_to_shard(self, shard: int, jobs: list[Job]) -> None:
        queue = self._open_queue(shard)
        await self._require_capacity(queue)
        if self._is_add_only_user:
            await add_as_add_only_user(queue, jobs, _add_jobs)
            return
        single = [job for job in jobs if job["name"] != BATCH]
        try:
            if shard not in self._has_settings:
                # Sets the services' limit of the event stream; BullMQ's default retains ten thousand entries, which are not read.
                await queue.client.hsetnx(queue.toKey("meta"), "opts.maxLenEvents", _EVENT_STREAM_MAX)
            self._has_settings.add(shard)
            await _add_jobs(queue, jobs)
            if single and await queue.client.zcard(queue.toKey("failed")):
                await _replace_failed(queue, single)
        except Exception as error:
            if not is_forbidden(error):
                raise
            self._is_add_only_user = True
            await add_as_add_only_user(queue, jobs, _add_jobs)

    async def _require_capacity(self, queue: Any) -> None:
        now = time.monotonic()
        if now - self._checked_at >= _MEMORY_CHECK_SECONDS:
            self._checked_at = now
            self._used_share = _used_share(await queue.client.info("memory"))
        if self._used_share > _HIGH_WATER:
            raise QueueFullError(
                f"The queue is full: its server uses {int(self._used_share * 100)} % of its memory."
            )

    async def _within_call_timeout(self, call: Awaitable[T]) -> T:
        try:
            return await asyncio.wait_for(call, _CALL_TIMEOUT_SECONDS)
        except (QueueUnavailableError, ImportError):
            raise
        except asyncio.TimeoutError as error:
            raise QueueUnavailableError(
                f"The queue did not respond within {_CALL_TIMEOUT_SECONDS:g} s."
            ) from error
        except Exception as error:
            if _FULL.search(str(error)):
                raise QueueFullError("The queue is full.") from error
            raise QueueUnavailableError("The call to the queue failed.") from error


class EventPublisher:
    """Publishes to `job-run-events` (docs/contract.md#queue), as `@runhook/publisher` does.

        with EventPublisher(os.environ["QUEUE_URL"]) as publisher:
            publisher.publish(RunStarted(account_id=1, data=RunDetails(…)))

    It may be called from any thread; its connection is in a separate thread, and a forked process opens a new one.

    queue_url: `QUEUE_URL` of the services: any form of Redis.
    retention_days: `LOG_RETENTION_DAYS` of the service; older ids are rejected.

    Generated ids and timestamps, and the age of ids, are based on the clock of the queue's server.

    Calls raise `InvalidEventError`; `QueueUnavailableError` if the queue did not accept the call, which may be repeated
    with the same ids; and its subclass `QueueFullError` if the queue is full, after which the caller should wait.
    """

    def __init__(self, queue_url: str, *, retention_days: float = 30) -> None:
        parse_queue_url(queue_url)
        self._queue_url = queue_url
        self._retention_days = retention_days
        self._lock = threading.Lock()
        self._running: tuple[int, asyncio.AbstractEventLoop, threading.Thread, AsyncEventPublisher] | None = (
            None
        )

    def publish(self, event: PublishedEvent, *, run_steps: Sequence[RunStep] = ()) -> str:
        """Returns the `eventId` once the event is queued. Publishing the same id again causes no second delivery.

        run_steps: steps of the run, which are stored before the event is delivered; of long logs only the end.
        """
        loop, publisher = self._start()
        return _wait_for(loop, publisher.publish(event, run_steps=run_steps))

    def publish_many(self, events: Sequence[PublishedEvent]) -> list[str]:
        """Publishes many events in one call; all are validated before the first is sent."""
        loop, publisher = self._start()
        return _wait_for(loop, publisher.publish_many(events))

    def close(self) -> None:
        with self._lock:
            running, self._running = self._running, None
        if running is None or running[0] != os.getpid():
            return
        _, loop, thread, publisher = running
        _wait_for(loop, publisher.close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def __enter__(self) -> EventPublisher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> tuple[asyncio.AbstractEventLoop, AsyncEventPublisher]:
        with self._lock:
            if self._running is None or self._running[0] != os.getpid():
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=loop.run_forever, name="runhook-publisher", daemon=True)
                thread.start()
                self._running = (os.getpid(), loop, thread, _wait_for(loop, self._open_publisher()))
            return self._running[1], self._running[3]

    async def _open_publisher(self) -> AsyncEventPublisher:
        return AsyncEventPublisher(self._queue_url, retention_days=self._retention_days)


def _wait_for(loop: asyncio.AbstractEventLoop, call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(call, loop).result()


def _queue_class() -> Any:
    try:
        from bullmq import Queue  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(
            'publishing onto the queue needs Python 3.10 or newer and pip install "runhook[publish]"; '
            "runhook.rest needs neither"
        ) from error
    version = metadata.version("bullmq")
    if int(version.split(".")[0]) < 3:
        raise ImportError(f"bullmq {version} writes what the services do not read: 3 is needed")
    return Queue


async def _add_jobs(queue: Any, jobs: Sequence[Job]) -> None:
    """Adds jobs in order; a job whose id is in the queue already has no effect."""
    # redis-py does not support scripts in the pipelines of a cluster.
    if len(jobs) > 1 and not hasattr(queue.client, "nodes_manager"):
        await queue.addBulk(list(jobs))
        return
    for job in jobs:
        await queue.add(job["name"], job["data"], job["opts"])


async def _replace_failed(queue: Any, jobs: Sequence[Job]) -> None:
    """Adds jobs again whose id belongs to a failed job, because BullMQ ignored the new ones; removes the failed jobs."""
    failed = await find_failed(queue, [job["opts"]["jobId"] for job in jobs])
    if failed:
        await asyncio.gather(*(queue.remove(one) for one in failed))
        await _add_jobs(queue, [job for job in jobs if job["opts"]["jobId"] in failed])


def _used_share(memory: Any) -> float:
    """Returns the used share of the server's memory, from 0 to 1; the maximum over the nodes of a cluster."""
    if "used_memory" not in memory:
        return max((_used_share(node) for node in memory.values()), default=0.0)
    limit = int(memory.get("maxmemory", 0))
    return int(memory["used_memory"]) / limit if limit else 0.0
