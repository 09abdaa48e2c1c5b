from __future__ import annotations

import json

import pytest

from runhook import command_step_name
from runhook.run_steps import limit_message_steps, truncate_start


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
