"""Executes the triggered runs of an account with the commands that a file lists for each job; see README.md."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from runhook import ApiError, command_step_name
from runhook.runner import ClaimedRun, RunnerClient, RunResult

MESSAGE_CHARACTERS_MAX = 2_000
LOG_CHARACTERS_MAX = 500_000
POLL_SECONDS = 0.2


def main() -> None:
    url, token = os.environ.get("RUNHOOK_URL"), os.environ.get("RUNHOOK_TOKEN")
    if len(sys.argv) != 2 or not url or not token:
        sys.exit("usage: RUNHOOK_URL=… RUNHOOK_TOKEN=… runner.py <jobs file>")
    jobs = json.loads(Path(sys.argv[1]).read_text())
    client = RunnerClient(
        url,
        token,
        jobs["accountId"],
        job_ids=[int(job_id) for job_id in jobs["jobs"]],
        name="example-job-runner-python",
        on_error=lambda error: print(error, file=sys.stderr, flush=True),
    )
    # The first signal lets the run in progress end; a second one ends the process, and another runner gets the run.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: (signal.signal(received, signal.SIG_DFL), client.stop()))
    client.run(lambda run: execute(jobs, run))


def execute(jobs: dict[str, Any], run: ClaimedRun) -> RunResult:
    """Executes the commands of a run one after another, until one fails, and uploads its artifacts."""
    job = jobs["jobs"][str(run.run["job_id"])]
    started_at = datetime.now(timezone.utc)
    run.start(jobs.get("engineVersion", sys.version.split()[0]), now())
    commands = commands_of(jobs, job, run.execute_steps)
    failure = execute_steps(run, commands)
    # Before the end of the run is reported: a client that sees it may ask for the files at once, and only once.
    if not run.lost.is_set() and "artifacts" in job:
        rejections = upload_artifacts(run, Path(job["artifacts"]), started_at)
        if rejections:
            report_rejections(run, len(commands) + 1, rejections)
    return ("success", None) if failure is None else ("errored", failure)


def commands_of(jobs: dict[str, Any], job: dict[str, Any], triggered: Sequence[str]) -> list[list[str]]:
    """Returns the steps of the trigger if it has any, otherwise those of the file. No shell reads them."""
    if not triggered:
        return [shlex.split(step) if isinstance(step, str) else step for step in job["steps"]]
    commands = [shlex.split(step) for step in triggered]
    for command in commands:
        if command[0] not in jobs.get("programs", []):
            raise ValueError(f'This runner may not execute "{command[0]}" for a trigger.')
    return commands


def execute_steps(run: ClaimedRun, commands: list[list[str]]) -> str | None:
    """Returns the message of the command that failed; None if all succeeded."""
    for index, command in enumerate(commands, 1):
        step = {"index": index, "name": command_step_name(command), "status": "Running", "started_at": now()}
        run.report_steps([step])
        failure, logs = run_command(run, command)
        if run.lost.is_set():
            return None
        status = "Success" if failure is None else "Error"
        steps: list[dict[str, Any]] = [{**step, "status": status, "finished_at": now(), "logs": logs}]
        if failure is not None:
            for later, skipped in enumerate(commands[index:], index + 1):
                steps.append({"index": later, "name": command_step_name(skipped), "status": "Cancelled"})
        run.report_steps(steps)
        if failure is not None:
            return failure
    return None


def run_command(run: ClaimedRun, command: list[str]) -> tuple[str | None, str]:
    """Returns the end of stderr if the command failed, and the end of its output. Ends the command of a lost run."""
    try:
        child = subprocess.Popen(
            command, env=environment_of(run), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
        )
    except OSError as error:
        return f"{command[0]} could not be started: {error.strerror}", ""
    while True:
        try:
            stdout, stderr = child.communicate(timeout=POLL_SECONDS)
            break
        except subprocess.TimeoutExpired:
            if run.lost.is_set():
                child.terminate()
    failure = None
    if child.returncode != 0:
        failure = stderr.strip()[-MESSAGE_CHARACTERS_MAX:] or f"exit code {child.returncode}"
    return failure, (stdout + stderr)[-LOG_CHARACTERS_MAX:]


def environment_of(run: ClaimedRun) -> dict[str, str]:
    """dbt writes each variable with this prefix to the metadata of its artifacts, where readers look for the run."""
    metadata = {
        "DBT_CLOUD_RUN_ID": run.id,
        "DBT_CLOUD_JOB_ID": run.run["job_id"],
        "DBT_CLOUD_PROJECT_ID": run.run["project_id"],
        "DBT_CLOUD_RUN_REASON": run.run["trigger"].get("cause") or "",
    }
    # Commands must not see the credential of the runner.
    own = {name: value for name, value in os.environ.items() if name != "RUNHOOK_TOKEN"}
    return {**own, **{f"DBT_ENV_CUSTOM_ENV_{name}": str(value) for name, value in metadata.items()}}


def upload_artifacts(run: ClaimedRun, folder: Path, since: datetime) -> list[str]:
    """Uploads the files that the run has written, by their paths below the folder; returns a line for each rejected one."""
    rejections = list[str]()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.stat().st_mtime >= since.timestamp():
            path = file.relative_to(folder).as_posix()
            try:
                run.upload_artifact(path, file.read_bytes())
            except ApiError as error:
                if not is_rejection(error):
                    raise
                rejections.append(f"{path}: {error.user_message}")
    return rejections


def is_rejection(error: ApiError) -> bool:
    """An invalid path, a file that is too large, or a used quota: the run has its result nevertheless."""
    # 0: urllib may not read the response if the connection of a file that is too large is closed while it sends.
    return error.status in (0, 400, 409, 413) and not error.lease_lost


def report_rejections(run: ClaimedRun, index: int, rejections: Sequence[str]) -> None:
    """Reports the files that were not stored as a separate step, unless the quota of steps is used as well."""
    logs = "\n".join(["These files were not stored:", *rejections, ""])
    print(logs, end="", file=sys.stderr, flush=True)
    step: dict[str, Any] = {"index": index, "name": "Upload artifacts", "status": "Error", "logs": logs}
    try:
        run.report_steps([{**step, "started_at": now(), "finished_at": now()}])
    except ApiError as error:
        if not is_rejection(error):
            raise


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


if __name__ == "__main__":
    main()
