from __future__ import annotations

import asyncio

import pytest
from test_receiving import EVENT

from runhook.errors import InvalidEventError
from runhook.event_rules import check_events
from runhook.ids import create_event_id, event_id_time
from runhook.server_clock import ServerClock

DAY = 86_400.0
EVENT_WITHOUT_ID = {name: value for name, value in EVENT.items() if name != "eventId"}


class World:
    """Simulates a server whose clock is at 1,700,000,000 s when the monotonic one is at 0, and a host that is ahead of it."""

    def __init__(self, ahead: float) -> None:
        self.ahead = ahead
        self.elapsed = 0.0
        self.reads = 0
        self.clock = ServerClock(
            self.read, local=lambda: self.server() + self.ahead, monotonic=lambda: self.elapsed
        )

    def server(self) -> float:
        return 1_700_000_000 + self.elapsed

    async def read(self) -> float:
        self.reads += 1
        self.elapsed += 0.1
        server_time = self.server()
        self.elapsed += 0.1
        return server_time


@pytest.mark.parametrize("ahead", [2 * DAY, -40 * DAY])
def test_a_generated_id_has_the_time_of_the_queue_and_not_of_the_host(ahead: float) -> None:
    world = World(ahead)
    asyncio.run(world.clock.measure_if_due())
    (event,) = check_events([EVENT_WITHOUT_ID], 30, world.clock.now())
    created_at = event_id_time(event["eventId"])
    assert created_at is not None
    assert abs(created_at - world.server()) < 2


@pytest.mark.parametrize(
    ("ahead", "message"), [(2 * DAY, "more than a day ahead"), (-40 * DAY, "older than")]
)
def test_an_id_of_the_caller_is_rejected_if_it_is_out_of_range(ahead: float, message: str) -> None:
    world = World(ahead)
    asyncio.run(world.clock.measure_if_due())
    event_id = create_event_id(world.server() + ahead)
    with pytest.raises(InvalidEventError, match=message):
        check_events([{**EVENT, "eventId": event_id}], 30, world.clock.now())


def test_the_clock_is_reread_after_a_minute_and_after_a_step_of_the_host_clock() -> None:
    world = World(0)
    asyncio.run(world.clock.measure_if_due())
    asyncio.run(world.clock.measure_if_due())
    assert world.reads == 1
    world.elapsed += 61
    asyncio.run(world.clock.measure_if_due())
    assert world.reads == 2
    world.ahead = DAY
    asyncio.run(world.clock.measure_if_due())
    assert world.reads == 3
    assert abs(world.clock.now() - world.server()) < 0.001


def test_a_user_without_permission_to_read_the_clock_is_warned_once_and_the_host_clock_is_used() -> None:
    async def read() -> None:
        return None

    elapsed = 0.0
    clock = ServerClock(read, local=lambda: 1_700_000_000 + elapsed, monotonic=lambda: elapsed)
    with pytest.warns(RuntimeWarning, match=r"rule \+time") as warned:
        asyncio.run(clock.measure_if_due())
        elapsed = 61
        asyncio.run(clock.measure_if_due())
    assert len(warned) == 1
    assert clock.now() == 1_700_000_061
