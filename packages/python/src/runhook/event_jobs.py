"""Events as jobs of BullMQ (docs/contract.md#queue): batches of events, and the priority of events in a burst."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Sequence
from typing import Any, Callable

Job = dict[str, Any]
"""A job for `Queue.addBulk`: `name`, `data`, `opts`. The type is also used for events and for options of a job."""

BATCH = "job.run.batch"
_BATCH_EVENTS_MAX = 20
_BATCH_BYTES_MAX = 32_768
"""Limits of a job with several events, with the text in UTF-8; must equal those of the services' own producers."""
_BURST_EVENTS = 1_000
_EVENTS_PER_SECOND = 500
_ACCOUNTS_MAX = 10_000


def create_jobs(events: Sequence[Job], job_options: Callable[[int], Job]) -> list[Job]:
    """Combines events of the same priority into jobs, in their order; duplicate events are dropped."""
    jobs = []
    open_batches: dict[int, tuple[Job, list[Job]]] = {}
    seen = set()
    for event in events:
        if _job_id(event) in seen:
            continue
        seen.add(_job_id(event))
        options = job_options(event["accountId"])
        priority = options.get("priority", 0)
        _, batch = open_batches.setdefault(priority, (options, []))
        batch.append(event)
        text_bytes = sum(_text_bytes(one) for one in batch)
        if len(batch) >= _BATCH_EVENTS_MAX or text_bytes >= _BATCH_BYTES_MAX:
            jobs.append(_create_job(*open_batches.pop(priority)))
    return [*jobs, *(_create_job(*rest) for rest in open_batches.values())]


def _text_bytes(event: Job) -> int:
    steps = len(json.dumps(event["run_steps"])) if "run_steps" in event else 0
    return steps + sum(len(value.encode()) for value in event["data"].values() if isinstance(value, str))


def _job_id(event: Job) -> str:
    """Contains the account, because events of two accounts may have the same id."""
    return f"{event['eventId']}-{event['accountId']}"


def _create_job(options: Job, events: Sequence[Job]) -> Job:
    """Derives the job's id from its events, so that repeating a call whose response was lost has no effect."""
    if len(events) == 1:
        (event,) = events
        return {"name": event["eventType"], "data": event, "opts": {**options, "jobId": _job_id(event)}}
    ids = " ".join(_job_id(event) for event in events)
    digest = base64.urlsafe_b64encode(hashlib.sha256(ids.encode()).digest()).decode().rstrip("=")
    return {"name": BATCH, "data": {"events": list(events)}, "opts": {**options, "jobId": f"batch_{digest}"}}


class BurstLimiter:
    """A token bucket per account: events that exceed it get low priority, below events that do not."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._buckets: dict[int, tuple[float, float]] = {}

    def acquire(self, account_id: int) -> bool:
        now = self._now()
        tokens, at = self._buckets.pop(account_id, (float(_BURST_EVENTS), now))
        tokens = min(float(_BURST_EVENTS), tokens + (now - at) * _EVENTS_PER_SECOND)
        is_within = tokens >= 1
        # Reinserted at the end, so that the first entry is the least recently used.
        self._buckets[account_id] = (tokens - 1 if is_within else tokens, now)
        if len(self._buckets) > _ACCOUNTS_MAX:
            del self._buckets[next(iter(self._buckets))]
        return is_within
