"""Ids of events: `wev_` and a KSUID, whose time determines the event's day in the log."""

from __future__ import annotations

import os
import time

_PREFIX = "wev_"
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = {character: value for value, character in enumerate(_ALPHABET)}
_LENGTH = 27
_BITS = 160
_PAYLOAD_BITS = 128
_EPOCH_SECONDS = 1_400_000_000


def create_event_id(now: float | None = None) -> str:
    """Returns an id that the caller needs before the event is published, e.g. to publish it again after an error.

    `now` is in seconds since the epoch; default: the clock of the host. `publish` rejects an id that is more than a
    day ahead of the queue's server, or older than the retention.
    """
    seconds = int(time.time() if now is None else now) - _EPOCH_SECONDS
    if not 0 <= seconds < 1 << (_BITS - _PAYLOAD_BITS):
        raise ValueError(f"no id has the time {now}")
    number = seconds << _PAYLOAD_BITS | int.from_bytes(os.urandom(16), "big")
    digits = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return _PREFIX + "".join(reversed(digits))


def event_id_time(value: object) -> int | None:
    """Returns the creation time of the id in seconds since the epoch; None if it is not an event id."""
    if not isinstance(value, str) or not value.startswith(_PREFIX) or len(value) != len(_PREFIX) + _LENGTH:
        return None
    number = 0
    for character in value[len(_PREFIX) :]:
        digit = _DIGITS.get(character)
        if digit is None:
            return None
        number = number * 62 + digit
    return None if number >> _BITS else (number >> _PAYLOAD_BITS) + _EPOCH_SECONDS
