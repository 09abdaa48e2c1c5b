"""Publishes events and reports runs over REST, with the standard library only (docs/contract.md#runs-and-jobs)."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from importlib import metadata
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from runhook.errors import ApiError, ApiUnavailableError, InvalidEventError, Problem, RejectedEventsError
from runhook.event_rules import PublishedEvent, check_events
from runhook.run_steps import RunStep

_EVENTS_MAX = 500
_BODY_BYTES_MAX = 2_000_000
"""Limit of the body of a call with events."""
_UPLOAD_TIMEOUT_SECONDS = 1_200
"""The service ends an upload that is slower than 64 KiB/s: the largest takes 17 minutes."""

RunOutcome = Literal["success", "errored", "cancelled"]


class RestPublisher:
    """Publishes like `EventPublisher` for callers that cannot reach the queue, and reports runs, which cause events.

    base_url: address of the services: `https://runhook.example.com`.
    token: a service token with the permission set `job_runner`, or an API key.
    account_id: account of the events and runs.
    retention_days: `LOG_RETENTION_DAYS` of the service; older ids are rejected.
    context: for a certificate that is not publicly trusted.

    Calls raise `InvalidEventError`, `ApiError`, and its subclass `ApiUnavailableError` if a later call may succeed.
    """

    def __init__(  # noqa: PLR0913
        self,
        base_url: str,
        token: str,
        account_id: int,
        *,
        retention_days: float = 30,
        timeout_seconds: float = 30,
        context: ssl.SSLContext | None = None,
    ) -> None:
        if urlsplit(base_url).scheme not in ("http", "https"):
            raise ValueError("base_url must begin with https:// or http://")
        self._base = f"{base_url.rstrip('/')}/api/v2/accounts/{account_id}"
        self._account_id = account_id
        self._retention_days = retention_days
        self._timeout_seconds = timeout_seconds
        self._opener = build_opener(_NoRedirects, HTTPSHandler(context=context))
        self._headers = {
            "Authorization": f"Token {token}",
            "Content-Type": "application/json",
            "User-Agent": f"runhook-python/{metadata.version('runhook')}",
        }

    def publish(self, event: PublishedEvent) -> str:
        """Returns the `eventId` once the event is recorded. Publishing the same id again causes no second delivery."""
        return self.publish_many([event])[0]

    def publish_many(self, events: Sequence[PublishedEvent]) -> list[str]:
        """Publishes many events, up to 500 per request; all are validated before the first is sent.

        Raises `RejectedEventsError` if the service rejects some of them; the others are recorded.
        """
        checked = check_events(events, self._retention_days)
        for index, event in enumerate(checked):
            if event["accountId"] != self._account_id:
                message = f"accountId must be {self._account_id}, the account of the publisher"
                raise InvalidEventError(index, [Problem("accountId", message)])
        rejected: dict[int, tuple[Problem, ...]] = {}
        for start, texts in _split_into_calls(checked):
            response = self._post("/events", f'{{"events":[{",".join(texts)}]}}'.encode())
            for index, verdict in enumerate(response["events"], start):
                if verdict["verdict"] == "rejected":
                    rejected[index] = _parse_problems(verdict)
        if rejected:
            raise RejectedEventsError(rejected)
        return [event["eventId"] for event in checked]

    def start_run(
        self,
        job_id: int,
        engine_version: str,
        *,
        run_id: int | None = None,
        reason: str | None = None,
        started_at: str | None = None,
    ) -> dict[str, Any]:
        """Reports that a run has started, and returns the run. `run_id` is the runner's number; default: a generated one.

        With `run_id` the call may be repeated: an existing run is returned unchanged.
        """
        optional_fields = {"run_id": run_id, "reason": reason, "started_at": started_at}
        return self._report("/runs/", {"job_id": job_id, "engine_version": engine_version, **optional_fields})

    def finish_run(
        self,
        run_id: int,
        status: RunOutcome,
        *,
        status_message: str | None = None,
        finished_at: str | None = None,
        run_steps: Sequence[RunStep] | None = None,
    ) -> dict[str, Any]:
        """Reports how a run has ended; `errored` sends `job.run.errored` immediately. May be repeated.

        run_steps: steps of the run, committed with its end; a step with the same index is replaced.
        """
        optional_fields = {
            "status": status,
            "status_message": status_message,
            "finished_at": finished_at,
            "run_steps": run_steps if run_steps is None else [dict(step) for step in run_steps],
        }
        return self._report(f"/runs/{run_id}/finish/", optional_fields)

    def upload_artifact(
        self, run_id: int, path: str, content: bytes, *, step: int | None = None
    ) -> dict[str, Any]:
        """Uploads a file of a run: up to 64 MiB, and 5 MiB if PostgreSQL stores it. May be repeated: it replaces the file.

        path: relative to the run, such as `run_results.json`. step: number of the step that wrote it.
        Returns `path`, `step`, `bytes` and `sha256`. Upload before `finish_run`: clients read the files once it is reported.
        """
        query = "" if step is None else f"?step={step}"
        url = f"/runs/{run_id}/artifacts/{_quoted_path(path)}{query}"
        response: dict[str, Any] = self._call("PUT", url, content, {"Content-Type": "application/octet-stream"})
        return response

    def report_steps(self, run_id: int, run_steps: Sequence[RunStep]) -> list[dict[str, Any]]:
        """Stores steps of a run in progress, and returns all of its steps without logs. May be repeated."""
        body = {"run_steps": [dict(step) for step in run_steps]}
        response: list[dict[str, Any]] = self._post(f"/runs/{run_id}/steps/", json.dumps(body).encode())
        return response

    def report_artifacts(self, run_id: int) -> dict[str, Any]:
        """Reports that the artifacts of a run are available, which sends `job.run.completed`. May be repeated."""
        return self._report(f"/runs/{run_id}/artifacts/", {})

    def _report(self, path: str, fields: dict[str, Any]) -> dict[str, Any]:
        body = {name: value for name, value in fields.items() if value is not None}
        response: dict[str, Any] = self._post(path, json.dumps(body).encode())
        return response

    def _post(self, path: str, body: bytes) -> Any:
        return self._call("POST", path, body, {})

    def _call(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Any:
        request = Request(  # noqa: S310
            self._base + path, data=body, headers={**self._headers, **headers}, method=method
        )
        timeout_seconds = _UPLOAD_TIMEOUT_SECONDS if method == "PUT" else self._timeout_seconds
        try:
            with self._opener.open(request, timeout=timeout_seconds) as response:
                return json.load(response)["data"]
        except HTTPError as error:
            with error:
                raise _api_error(error) from None
        except (OSError, HTTPException) as error:
            raise ApiUnavailableError(
                0, "The server cannot be reached, or did not respond in time."
            ) from error


def _quoted_path(path: str) -> str:
    """Quotes the path of an artifact. Raises `ValueError` for segments that proxies resolve, which leads to another endpoint."""
    if any(segment in ("", ".", "..") for segment in path.split("/")):
        raise ValueError('the path of an artifact must have no empty segments, "." and ".."')
    return quote(path)


class _NoRedirects(HTTPRedirectHandler):
    """Does not follow redirects: the token must not be sent elsewhere, and a POST would become a GET."""

    def redirect_request(self, *_: object) -> None:
        return None


def _split_into_calls(events: Sequence[dict[str, Any]]) -> Iterator[tuple[int, list[str]]]:
    """Yields the events of each request as JSON, with the index of the first."""
    start, texts, size = 0, list[str](), 0
    for index, event in enumerate(events):
        text = json.dumps(event, separators=(",", ":"))
        if texts and (len(texts) == _EVENTS_MAX or size + len(text) > _BODY_BYTES_MAX):
            yield start, texts
            start, texts, size = index, [], 0
        texts.append(text)
        size += len(text) + 1
    if texts:
        yield start, texts


def _api_error(error: HTTPError) -> ApiError:
    """Reads the service's error; a response of a proxy or login page has no envelope."""
    status: Any = {}
    try:
        status = json.loads(error.read())["status"]
        message = str(status["user_message"])
    except (ValueError, KeyError, TypeError, OSError, HTTPException):
        message = f"The server responded with {error.code}."
    kind = ApiUnavailableError if error.code == 429 or error.code >= 500 else ApiError
    retry_after = str(error.headers.get("Retry-After", ""))
    seconds = float(retry_after) if retry_after.isdecimal() else None
    lease_lost = "Lease-Lost" in error.headers
    return kind(error.code, message, _parse_problems(status), seconds, lease_lost=lease_lost)


def _parse_problems(status: Any) -> tuple[Problem, ...]:
    errors = status.get("errors") if isinstance(status, dict) else None
    return tuple(Problem(str(one["field"]), str(one["message"])) for one in errors or ())
