"""Ids of events: `wev_` and a KSUID, whose time decides in which day of the log the event is."""

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
    """An id for an event, for whoever must know it before it is published: to publish it again after a fault, say.

    `now` is in seconds since the epoch; the clock of the host when omitted. `publish` refuses an id that is
    more than a day ahead of the queue's server, or older than the retention.
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
    """Seconds since the epoch at which the id was made; None when it is no id of an event."""
    if not isinstance(value, str) or not value.startswith(_PREFIX) or len(value) != len(_PREFIX) + _LENGTH:
        return None
    number = 0
    for character in value[len(_PREFIX) :]:
        digit = _DIGITS.get(character)
        if digit is None:
            return None
        number = number * 62 + digit
    return None if number >> _BITS else (number >> _PAYLOAD_BITS) + _EPOCH_SECONDS
