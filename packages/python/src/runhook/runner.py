"""Executes triggered runs over REST, with the standard library only (docs/contract.md#triggered-runs)."""

from __future__ import annotations

import json
import ssl
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

from runhook.errors import ApiError, ApiUnavailableError
from runhook.rest import RestPublisher, RunOutcome, _quoted_path
from runhook.run_steps import RunStep

_CLAIM_WAIT_SECONDS = 25
_HEARTBEAT_SECONDS = 20
"""Three heartbeats fit into a lease of a minute. Each ends at once when the run is cancelled."""
_ERROR_WAIT_SECONDS = 1
_TRIES_MAX = 10
_ENDED_MIN = 10
"""Lowest number of a status of a run that has ended."""
_CANCELLED = 30
_STARTING = 2
_UNKNOWN_ENGINE = "unknown"
"""Version of the engine of a run whose execution failed before it was known."""

RunResult = tuple[RunOutcome, Optional[str]]
"""Result of a run, and a message about it."""


class _RunnerApi(RestPublisher):
    def call(
        self,
        path: str,
        fields: Mapping[str, Any] | bytes,
        *,
        lease_token: str | None = None,
        key: str | None = None,
        tries_max: int = _TRIES_MAX,
    ) -> Any:
        """Posts fields as JSON, or puts bytes. Repeats the call while the service is unavailable."""
        optional = {"Lease-Token": lease_token, "Idempotency-Key": key}
        headers = {name: value for name, value in optional.items() if value is not None}
        is_file = isinstance(fields, bytes)
        body = fields if isinstance(fields, bytes) else json.dumps(dict(fields)).encode()
        if is_file:
            headers["Content-Type"] = "application/octet-stream"
        for attempt in range(1, tries_max + 1):
            try:
                return self._call("PUT" if is_file else "POST", path, body, headers)
            except ApiUnavailableError:
                if attempt == tries_max:
                    raise
                time.sleep(min(0.2 * 2**attempt, 5))
        return None


class ClaimedRun:
    """A run that this runner has claimed.

    run: the run, as the API shows it; its `trigger` has the options, null where unset.
    execute_steps: the commands of the trigger or the job; may be empty.
    attempt: number of claims of the run: more than 1 if another runner has lost it.
    lost: set when the run was cancelled, or another runner has got it: the execution must end.
    """

    def __init__(self, api: _RunnerApi, claim: dict[str, Any]) -> None:
        self.run: dict[str, Any] = claim["run"]
        self.id: int = self.run["id"]
        self.execute_steps: list[str] = claim["execute_steps"]
        self.attempt: int = claim["attempt"]
        self.lost = threading.Event()
        self._api = api
        self._loss: ApiError | None = None
        self._lease_token: str = claim["lease_token"]
        self._is_started: bool = self.run["status"] > _STARTING

    def start(self, engine_version: str, started_at: str | None = None) -> None:
        """Must precede the other reports; sends `job.run.started` unless another runner has started the run."""
        self._report("start/", {"engine_version": engine_version, "started_at": started_at})
        self._is_started = True

    def report_steps(self, steps: Sequence[RunStep]) -> None:
        """Stores steps while the run is in progress; one with the same index is replaced."""
        self._report("steps/", {"run_steps": [dict(step) for step in steps]})

    def upload_artifact(self, path: str, content: bytes) -> None:
        """Stores a file of the run, so that it is there when the end of the run is known."""
        self._report(f"artifacts/{_quoted_path(path)}", content)

    def finish(self, status: RunOutcome, message: str | None) -> None:
        """Ends the run as errored if the service rejects the result: otherwise it would be executed again and again."""
        # A run that has not started cannot end, and would be executed again and again.
        if not self._is_started:
            self.start(_UNKNOWN_ENGINE)
        rejection: ApiError | None = None
        try:
            self._report("finish/", {"status": status, "status_message": message})
        except ApiError as error:
            if isinstance(error, ApiUnavailableError) or error.lease_lost:
                raise
            self._report("finish/", {"status": "errored", "status_message": error.user_message})
            rejection = error
        if status != "cancelled":
            self._report("artifacts/", {})
        if rejection is not None:
            raise rejection

    def _report(self, path: str, fields: Mapping[str, Any] | bytes, tries_max: int = _TRIES_MAX) -> Any:
        call = f"/runs/{self.id}/{path}"
        return self._api.call(call, fields, lease_token=self._lease_token, tries_max=tries_max)

    def _send_heartbeats(self, ended: threading.Event) -> None:
        while not ended.is_set() and not self.lost.is_set():
            try:
                fields = {"wait": _HEARTBEAT_SECONDS}
                status: int = self._report("heartbeat/", fields, tries_max=1)["run"]["status"]
            except ApiUnavailableError:
                ended.wait(_ERROR_WAIT_SECONDS)
            except ApiError as error:
                self._loss = error
                self.lost.set()
            else:
                if status == _CANCELLED:
                    self.lost.set()
                elif status >= _ENDED_MIN:
                    return


class RunnerClient:
    """Claims triggered runs of an account, keeps their leases, and reports how each ended.

    base_url: address of the services: `https://runhook.example.com`.
    token: a service token with the permission set `job_runner`, or an API key.
    job_ids: takes only runs of these jobs, up to 100.
    name: name of the runner, for people.
    on_error: called for errors after which the runner continues.
    context: for a certificate that is not publicly trusted.
    """

    def __init__(  # noqa: PLR0913
        self,
        base_url: str,
        token: str,
        account_id: int,
        *,
        job_ids: Sequence[int] | None = None,
        name: str | None = None,
        on_error: Callable[[Exception], None] = lambda _: None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        # Longer than the service lets a call wait.
        self._api = _RunnerApi(base_url, token, account_id, timeout_seconds=45, context=context)
        self._claim = {
            "wait": _CLAIM_WAIT_SECONDS,
            "job_ids": None if job_ids is None else list(job_ids),
            "runner": name,
        }
        self._on_error = on_error
        self._stopping = threading.Event()

    def run(self, execute: Callable[[ClaimedRun], RunResult]) -> None:
        """Executes one run after another until `stop` is called. If `execute` raises, the run ends as errored."""
        while not self._stopping.is_set():
            try:
                claim = self._api.call("/runs/claim/", self._claim, key=str(uuid.uuid4()), tries_max=3)
                if claim is not None:
                    self._execute(ClaimedRun(self._api, claim), execute)
            except Exception as error:
                self._on_error(error)
                self._stopping.wait(_ERROR_WAIT_SECONDS)

    def stop(self) -> None:
        """Takes no further runs: `run` returns when the one in progress has ended, or after the wait for one."""
        self._stopping.set()

    def _execute(self, run: ClaimedRun, execute: Callable[[ClaimedRun], RunResult]) -> None:
        ended = threading.Event()
        heartbeats = threading.Thread(target=run._send_heartbeats, args=(ended,), daemon=True)
        heartbeats.start()
        try:
            status, message = execute(run)
        except ApiError as error:
            if error.lease_lost:
                raise
            status, message = "errored", str(error)
        except Exception as error:
            status, message = "errored", str(error)
        finally:
            ended.set()
        # A cancel is no error of the runner; the loss of its lease may be one.
        if run._loss is not None:
            raise run._loss
        if not run.lost.is_set():
            run.finish(status, message)
