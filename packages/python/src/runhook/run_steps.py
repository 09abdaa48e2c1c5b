"""Steps of a run with their logs (docs/contract.md#run-steps)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runhook.errors import InvalidEventError, Problem
from runhook.event_rules import _is_integer, _nanosecond_timestamp, well_formed_text

RunStep = Mapping[str, Any]
"""`index`, `name`, `status` (number or word of a run's status), optionally `started_at`, `finished_at`, `logs`, `debug_logs`."""

_MESSAGE_BYTES_MAX = 256 * 1_024
_NOTICE_BYTES = 128
_NAME_CHARACTERS_MAX = 1_024
_TEXTS = ("logs", "debug_logs")
_TIMES = ("started_at", "finished_at")
_STEPS_MAX = 100
_INDEX_MAX = 1_000_000
_STATUSES = {
    *("1", "2", "3", "10", "20", "30"),
    *("queued", "starting", "running", "success", "errored", "error", "canceled", "cancelled"),
}


def command_step_name(command: Sequence[str]) -> str:
    """Returns the name of a step that executes a command: readers find those of dbt by this form."""
    program = re.sub(
        r"\.exe$", "", re.sub(r"^.*[\\/]", "", command[0] if command else ""), flags=re.IGNORECASE
    )
    if program != "dbt":
        return _shorten(" ".join(command), _NAME_CHARACTERS_MAX)
    return f"Invoke dbt with `{_shorten(' '.join(['dbt', *command[1:]]), _NAME_CHARACTERS_MAX - 32)}`"


def _shorten(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else f"{text[: characters_max - 1]}…"


def truncate_start(text: str, bytes_max: int) -> str:
    """Returns the text, or its end after a line that says what was left out, in at most `bytes_max` bytes of UTF-8."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= bytes_max:
        return text
    notice = f"[This log had {len(encoded)} bytes. Only its end is stored.]\n"
    return notice + encoded[len(encoded) - (bytes_max - len(notice)) :].decode("utf-8", "ignore")


def message_steps(steps: Sequence[RunStep]) -> list[dict[str, Any]]:
    """Returns steps for a message of the queue: if they are too large, each text keeps its end.

    Raises `InvalidEventError` for invalid steps, and for steps that are too large even without texts.
    """
    problems = list(_problems(steps))
    fitting = None if problems else limit_message_steps(steps)
    if fitting is None:
        raise InvalidEventError(0, problems or [Problem("run_steps", "run_steps is too large for a message")])
    return fitting


def _problems(steps: Sequence[RunStep]) -> Iterator[Problem]:
    if len(steps) > _STEPS_MAX:
        yield Problem("run_steps", f"run_steps must contain at most {_STEPS_MAX} steps")
        return
    indexes: list[object] = []
    for position, step in enumerate(steps):
        path = f"run_steps.{position}"
        if not isinstance(step, Mapping):
            yield Problem(path, f"{path} must be a mapping")
            continue
        if step.get("index") in indexes:
            yield Problem(path, f"{path} has the index of another step")
        indexes.append(step.get("index"))
        for name, problem in _field_problems(step):
            yield Problem(f"{path}.{name}", f"{path}.{name} {problem}")


def _field_problems(step: RunStep) -> Iterator[tuple[str, str]]:
    index, name, status = step.get("index"), step.get("name"), step.get("status")
    if type(index) is not int or not 0 <= index <= _INDEX_MAX:
        yield "index", f"must be an integer from 0 to {_INDEX_MAX}"
    if not isinstance(name, str) or not 0 < len(well_formed_text(name)) <= _NAME_CHARACTERS_MAX:
        yield "name", f"must be a string of 1 to {_NAME_CHARACTERS_MAX} characters"
    if not (isinstance(status, str) or _is_integer(status)) or str(status).lower() not in _STATUSES:
        yield "status", "must be the number or the word of a run's status, such as 10 or Success"
    for field in (*_TIMES, *_TEXTS):
        value = step.get(field)
        if value is not None and not isinstance(value, str):
            yield field, "must be a string"
        elif value is not None and field in _TIMES and _nanosecond_timestamp(value) is None:
            yield field, "must be a UTC time like 2026-01-31T23:59:59.123456Z"


def limit_message_steps(steps: Sequence[RunStep]) -> list[dict[str, Any]] | None:
    """Returns steps of which a message of the queue has the capacity: if they are too large, each text keeps its end.

    Returns None if they are too large even without texts.
    """
    complete = [{name: _repair(value) for name, value in step.items()} for step in steps]
    bytes_max = _MESSAGE_BYTES_MAX
    fitting = complete
    while bytes_max > _NOTICE_BYTES:
        if _size(fitting) <= _MESSAGE_BYTES_MAX:
            return fitting
        bytes_max //= 2
        fitting = [{name: _truncated(name, value, bytes_max) for name, value in step.items()} for step in complete]
    fitting = [{name: value for name, value in step.items() if name not in _TEXTS} for step in complete]
    return fitting if _size(fitting) <= _MESSAGE_BYTES_MAX else None


def _repair(value: Any) -> Any:
    return well_formed_text(value) if isinstance(value, str) else value


def _truncated(name: str, value: Any, bytes_max: int) -> Any:
    return truncate_start(value, bytes_max) if name in _TEXTS and isinstance(value, str) else value


def _size(steps: Sequence[RunStep]) -> int:
    # BullMQ stores a message as JSON without escaped characters beyond ASCII; escaped ones are never shorter.
    return len(json.dumps(steps, separators=(",", ":")))
