"""The clock of the queue's server: ids go by it, because the clock of a host may be wrong."""

from __future__ import annotations

import time
import warnings
from collections.abc import Awaitable
from typing import Callable

_MEASURED_FOR_SECONDS = 60.0
# A larger drift between the host's clock and the monotonic one means that one of them was stepped or halted.
_STEP_SECONDS = 1.0

_HOST_CLOCK_WARNING = (
    "The publisher's user must not read the clock of the queue's server, so ids and times go by the clock of this host; "
    "if that is wrong, events are set aside instead of delivered. Give the user the ACL rule +time."
)


class ServerClock:
    """Read over a connection, and continued by the monotonic clock, so that a step of the host's clock changes nothing.

    read: asks the server for its time, in seconds since the epoch; None when the publisher's user may not ask.
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
        """Returns seconds since the epoch, by the clock of the host until the first measurement."""
        return self._local() if self._origin is None else self._origin + self._monotonic()

    async def measure_if_due(self) -> None:
        """Reads the server's clock, at most once a minute unless the host's was stepped or the host suspended."""
        elapsed = self._monotonic()
        stepped = abs(self._local() - elapsed - self._local_origin)
        if elapsed - self._measured_at <= _MEASURED_FOR_SECONDS and stepped < _STEP_SECONDS:
            return
        server_time = await self._read()
        self._measured_at = self._monotonic()
        self._local_origin = self._local() - self._measured_at
        if server_time is None and not self._has_warned:
            self._has_warned = True
            warnings.warn(_HOST_CLOCK_WARNING, RuntimeWarning, stacklevel=2)
        # The server is assumed to have read its clock in the middle of the round trip.
        self._origin = None if server_time is None else server_time - (elapsed + self._measured_at) / 2
