"""Adds jobs as a Redis user who may only add (docs/security.md#publishers-on-the-queue)."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Sequence
from typing import Any, Callable

from runhook.errors import QueueUnavailableError
from runhook.event_jobs import Job
from runhook.shards import is_forbidden

_FUNCTION = "runhook_publish_1"
_NOT_LOADED = re.compile("Function not found")
# Waits for the dispatchers, which load the function every two seconds, within the timeout of a call.
_LOAD_TRIES = 10
_LOAD_DELAY_SECONDS = 0.3


async def add_as_add_only_user(
    queue: Any, jobs: Sequence[Job], add_jobs: Callable[[Any, Sequence[Job]], Awaitable[None]]
) -> None:
    """Adds jobs in order. An existing job is skipped; a failed one remains, and the new one gets an extended id.

    add_jobs: adds jobs by the scripts of BullMQ.
    """
    try:
        await _add_by_function(queue, jobs)
    except Exception as error:
        if not is_forbidden(error):
            raise
        # The ACL rules of 0.1.0 permit scripts and not the function.
        await add_jobs(queue, await _jobs_to_add(queue, jobs))


async def _add_by_function(queue: Any, jobs: Sequence[Job]) -> None:
    """Calls the function that the dispatchers load, because a user who may run scripts can block the server."""
    key = queue.toKey("meta")
    arguments: list[Any] = []
    for job in jobs:
        opts = job["opts"]
        data = json.dumps(job["data"], separators=(",", ":"), allow_nan=False)
        arguments += [opts["jobId"], job["name"], data, opts.get("priority", 0), ""]
    for attempt in range(1, _LOAD_TRIES + 1):
        try:
            await queue.client.fcall(_FUNCTION, 1, key, *arguments)
            return
        except Exception as error:
            if not _NOT_LOADED.search(str(error)):
                raise
            if attempt == _LOAD_TRIES:
                raise QueueUnavailableError(
                    f"The queue is not ready: its server has no function {_FUNCTION}, "
                    "which the dispatchers load (docs/security.md)."
                ) from error
        await asyncio.sleep(_LOAD_DELAY_SECONDS)


async def find_failed(queue: Any, ids: Sequence[str]) -> set[str]:
    scores = await asyncio.gather(*(queue.client.zscore(queue.toKey("failed"), one) for one in ids))
    return {one for one, score in zip(ids, scores) if score is not None}


async def _jobs_to_add(queue: Any, jobs: Sequence[Job]) -> list[Job]:
    """Leaves out existing jobs, because BullMQ would read them, and extends the ids of failed ones."""
    ids = [job["opts"]["jobId"] for job in jobs]
    present = await asyncio.gather(*(queue.client.exists(queue.toKey(one)) for one in ids))
    failed = await find_failed(queue, ids)
    pending = []
    for job, job_id, is_present in zip(jobs, ids, present):
        if job_id in failed:
            retry_id = f"{job_id}_{time.time_ns() // 1_000_000}"
            pending.append({**job, "opts": {**job["opts"], "jobId": retry_id}})
        elif not is_present:
            pending.append(job)
    return pending
