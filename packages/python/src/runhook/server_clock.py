"""The clock of the queue's server, which is used for ids because the clock of a host may be wrong."""

from __future__ import annotations

import time
import warnings
from collections.abc import Awaitable
from typing import Callable

_MEASUREMENT_TTL_SECONDS = 60.0
# A larger difference between the host's clock and the monotonic one means that one of them was stepped or halted.
_STEP_SECONDS = 1.0

_HOST_CLOCK_WARNING = (
    "The publisher's user is not permitted to read the clock of the queue's server, so ids and times go by the clock of this host; "
    "if that is wrong, events are set aside instead of delivered. Give the user the ACL rule +time."
)


class ServerClock:
    """Reads the server's time and continues it with the monotonic clock, so that a step of the host's clock has no effect.

    read: returns the server's time in seconds since the epoch; None if the publisher's user is not permitted to read it.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[float | None]],
        *,
        local: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._local = local
        self._monotonic = monotonic
        self._origin: float | None = None
        self._local_origin = 0.0
        self._measured_at = float("-inf")
        self._has_warned = False

    def now(self) -> float:
        """Returns seconds since the epoch; until the first measurement by the clock of the host."""
        return self._local() if self._origin is None else self._origin + self._monotonic()

    async def measure_if_due(self) -> None:
        """Reads the server's clock, at most once a minute unless the host's was stepped or the host suspended."""
        elapsed = self._monotonic()
        stepped = abs(self._local() - elapsed - self._local_origin)
        if elapsed - self._measured_at <= _MEASUREMENT_TTL_SECONDS and stepped < _STEP_SECONDS:
            return
        server_time = await self._read()
        self._measured_at = self._monotonic()
        self._local_origin = self._local() - self._measured_at
        if server_time is None and not self._has_warned:
            self._has_warned = True
            warnings.warn(_HOST_CLOCK_WARNING, RuntimeWarning, stacklevel=2)
        # The server is assumed to have read its clock in the middle of the round trip.
        self._origin = None if server_time is None else server_time - (elapsed + self._measured_at) / 2
