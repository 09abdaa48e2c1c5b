from __future__ import annotations

import json

import pytest

from runhook import InvalidEventError, command_step_name
from runhook.run_steps import limit_message_steps, message_steps, truncate_start


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["dbt", "build", "--select", "a b"], "Invoke dbt with `dbt build --select a b`"),
        (["/opt/venv/bin/dbt", "run"], "Invoke dbt with `dbt run`"),
        (["python", "load.py"], "python load.py"),
        ([], ""),
    ],
)
def test_a_step_is_named_after_its_command(command: list[str], name: str) -> None:
    assert command_step_name(command) == name


def test_a_long_command_is_shortened_to_the_limit() -> None:
    assert len(command_step_name(["dbt", "x" * 5_000])) <= 1_024
    assert len(command_step_name(["y" * 5_000])) == 1_024


def test_a_long_text_is_truncated_at_its_start_without_half_a_character() -> None:
    assert truncate_start("äöü", 6) == "äöü"
    truncated = truncate_start("start" + "€" * 1_000 + "end", 500)
    assert truncated.startswith("[This log had 3008 bytes. Only its end is stored.]\n€")
    assert truncated.endswith("€end")
    assert 490 < len(truncated.encode()) <= 500


def test_steps_are_shortened_to_the_capacity_of_a_message() -> None:
    step = {"index": 1, "name": "Load", "status": 10, "logs": "x" * 900_000, "debug_logs": "short"}
    assert limit_message_steps([{**step, "logs": "x"}]) == [{**step, "logs": "x"}]
    fitting = limit_message_steps([step, {**step, "index": 2}])
    assert fitting is not None
    assert len(json.dumps(fitting)) <= 262_144 + 20
    assert fitting[0]["debug_logs"] == "short"
    assert fitting[0]["logs"].startswith("[This log had 900000 bytes.")
    assert limit_message_steps([{**step, "name": "n" * 3_000, "index": index} for index in range(100)]) is None


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"status": "Fine"}, ["status"]),
        ({"status": 11, "index": -1}, ["index", "status"]),
        ({"index": True, "name": ""}, ["index", "name"]),
        ({"started_at": "2026-01-31", "finished_at": 1}, ["started_at", "finished_at"]),
        ({"logs": b"Done"}, ["logs"]),
    ],
)
def test_a_step_that_the_service_would_leave_out_is_rejected(
    change: dict[str, object], fields: list[str]
) -> None:
    step = {"index": 1, "name": "Load", "status": 10, "started_at": "2026-01-31T23:59:59.123Z", "logs": None}
    assert message_steps([step, {**step, "index": 2, "status": "Cancelled"}])[1]["status"] == "Cancelled"
    with pytest.raises(InvalidEventError) as caught:
        message_steps([{**step, **change}])
    assert [problem.field for problem in caught.value.problems] == [f"run_steps.0.{name}" for name in fields]


def test_steps_with_the_same_index_too_many_or_too_large_ones_are_rejected() -> None:
    step = {"index": 1, "name": "Load", "status": 10}
    with pytest.raises(InvalidEventError, match=r"run_steps\.1 has the index of another step"):
        message_steps([step, step])
    with pytest.raises(InvalidEventError, match="at most 100 steps"):
        message_steps([{**step, "index": index} for index in range(101)])
    long_names = [{**step, "name": "€" * 1_024, "index": index} for index in range(100)]
    with pytest.raises(InvalidEventError, match="too large for a message"):
        message_steps(long_names)
