"""Shards of the queue (docs/scaling.md#shards-of-the-queue): finds an account's shard in the map stored with the queue."""

from __future__ import annotations

import json
import re
import time
import zlib
from typing import Any, NamedTuple

from runhook.errors import QueueUnavailableError

SLOTS = 1_024
SHARDS_MAX = 64
MAP_KEY = "{runhook}:shards"
"""Key of a Redis hash; if it does not exist, there is one shard, 0."""
_META_KEY = "{runhook}:job-run-events:meta"
"""Key of a hash whose field `shards` also indicates a map, for users who are not permitted to read the map."""
_POLL_INTERVAL_SECONDS = 1.0
_ACL_RULE = f"(+hget +hmget %R~{MAP_KEY})"

# Error messages of Redis for a command (without the code that redis-py removes) and for a command within a script.
_FORBIDDEN = re.compile(
    r"\bNOPERM\b|no permissions|The user executing the script can't|\bACL failure in script\b"
)


def is_forbidden(error: Exception) -> bool:
    """Whether Redis rejected a command because its user lacks the permission."""
    return _FORBIDDEN.search(str(error)) is not None


class ShardMap(NamedTuple):
    version: int
    """Incremented with each change; 0 if no map is stored."""
    slots: tuple[int, ...]
    """The shard of each slot."""

    def shard_of(self, account_id: int) -> int:
        return self.slots[account_slot(account_id)]


ONE_SHARD = ShardMap(0, (0,) * SLOTS)


def account_slot(account_id: int) -> int:
    return zlib.crc32(str(account_id).encode()) % SLOTS


def shard_prefix(shard: int) -> str:
    return "{runhook}" if shard == 0 else f"{{runhook:{shard}}}"


def parse_shard_map(version: str | None, slots: str | None) -> ShardMap:
    """Raises `ValueError` if the values are not a map: another program wrote them, and no job may be added by them."""
    if version is None and slots is None:
        return ONE_SHARD
    try:
        numbers = json.loads(slots or "")
        parsed = ShardMap(int(version or ""), tuple(numbers))
    except (ValueError, TypeError):
        parsed = ShardMap(0, ())
    are_shards = all(type(shard) is int and 0 <= shard < SHARDS_MAX for shard in parsed.slots)
    if parsed.version < 1 or len(parsed.slots) != SLOTS or not are_shards:
        raise ValueError(f"{MAP_KEY} does not contain a shard map")
    return parsed


class ShardMapCache:
    """Caches the map; its version is checked at most once a second, when events are published."""

    def __init__(self) -> None:
        self._cached = ONE_SHARD
        self._checked_at = float("-inf")

    async def current(self, client: Any) -> ShardMap:
        now = time.monotonic()
        if now - self._checked_at >= _POLL_INTERVAL_SECONDS:
            self._cached = await self._read(client)
            self._checked_at = now
        return self._cached

    async def _read(self, client: Any) -> ShardMap:
        try:
            version = await client.hget(MAP_KEY, "version")
            if int(version or 0) == self._cached.version:
                return self._cached
            return parse_shard_map(*await client.hmget(MAP_KEY, "version", "slots"))
        except Exception as error:
            if not is_forbidden(error):
                raise
            if await client.hget(_META_KEY, "shards") is None:
                return ONE_SHARD
            raise QueueUnavailableError(
                "The queue has several shards, and its user is not permitted to read the shard map: "
                f"give it the rule {_ACL_RULE} (docs/security.md)."
            ) from error
