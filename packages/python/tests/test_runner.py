from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from http_servers import Response, run_server

from runhook import ApiError
from runhook.runner import ClaimedRun, RunnerClient, RunResult

Call = tuple[str, dict[str, Any], "str | None"]


class Service:
    """Responds to the calls of a runner: one claim, and heartbeats whose run has a status."""

    def __init__(self, status: int = 3, rejected_path: str | None = None, *, is_lost: bool = False) -> None:
        self.status = status
        self.rejected_path = rejected_path
        self.rejection_headers = {"Lease-Lost": "true"} if is_lost else {}
        self.claims = [{"run": {"id": 5, "status": 2}, "execute_steps": ["a"], "attempt": 1, "lease_token": "t"}]
        self.calls: list[Call] = []
        self.client: RunnerClient | None = None

    def handle(self, request: BaseHTTPRequestHandler, body: bytes) -> Response:
        path = request.path.replace("/api/v2/accounts/1/runs/", "")
        fields = json.loads(body)
        data: Any = {"run": {"id": 5, "status": self.status}}
        if path == "claim/":
            data = self.claims.pop() if self.claims else None
            if data is None and self.client is not None:
                self.client.stop()
        elif path != "5/heartbeat/":
            self.calls.append((path, fields, request.headers["lease-token"]))
        if path == self.rejected_path:
            return 409, self.rejection_headers, b'{"status": {"user_message": "The lease of this run has ended."}}'
        return 200, {}, json.dumps({"data": data}).encode()


def run_client(service: Service, execute: Any) -> list[Exception]:
    errors: list[Exception] = []
    with run_server(service.handle) as url:
        service.client = RunnerClient(url, "rhs_1", 1, on_error=errors.append)
        service.client.run(execute)
    return errors


def succeed(run: ClaimedRun) -> RunResult:
    run.start("1.9.2")
    run.report_steps([{"index": 1, "name": "a", "status": 10}])
    return "success", None


def test_a_run_is_executed_and_reported_with_the_token_of_its_lease() -> None:
    service = Service()
    assert run_client(service, succeed) == []
    assert [(path, token) for path, _, token in service.calls] == [
        ("5/start/", "t"),
        ("5/steps/", "t"),
        ("5/finish/", "t"),
        ("5/artifacts/", "t"),
    ]
    assert service.calls[2][1] == {"status": "success", "status_message": None}


def test_a_run_whose_execution_raises_ends_as_errored_with_the_message() -> None:
    def fail(_: ClaimedRun) -> RunResult:
        raise ValueError("3 rows have no customer")

    service = Service()
    assert run_client(service, fail) == []
    assert [path for path, _, _ in service.calls] == ["5/start/", "5/finish/", "5/artifacts/"]
    assert service.calls[1][1] == {"status": "errored", "status_message": "3 rows have no customer"}


def test_a_cancelled_run_is_not_finished() -> None:
    def wait(run: ClaimedRun) -> RunResult:
        run.lost.wait(60)
        return "success", None

    service = Service(status=30)
    assert run_client(service, wait) == []
    assert service.calls == []


def test_a_lease_that_a_heartbeat_finds_lost_ends_the_run_and_is_reported() -> None:
    def wait(run: ClaimedRun) -> RunResult:
        run.lost.wait(60)
        return "success", None

    service = Service(rejected_path="5/heartbeat/", is_lost=True)
    (error,) = run_client(service, wait)
    assert isinstance(error, ApiError)
    assert service.calls == []


def test_a_report_of_a_runner_that_has_lost_its_lease_ends_its_run() -> None:
    service = Service(rejected_path="5/steps/", is_lost=True)
    (error,) = run_client(service, succeed)
    assert isinstance(error, ApiError)
    assert [path for path, _, _ in service.calls] == ["5/start/", "5/steps/"]


def test_a_conflict_that_is_no_loss_of_the_lease_ends_the_run_as_errored() -> None:
    service = Service(rejected_path="5/steps/")
    assert run_client(service, succeed) == []
    assert [path for path, _, _ in service.calls] == ["5/start/", "5/steps/", "5/finish/", "5/artifacts/"]
    assert service.calls[2][1]["status"] == "errored"


def test_a_rejected_result_ends_the_run_as_errored() -> None:
    service = Service(rejected_path="5/finish/")
    errors = run_client(service, succeed)
    assert len(errors) == 1
    finishes = [fields["status"] for path, fields, _ in service.calls if path == "5/finish/"]
    assert finishes == ["success", "errored"]


@pytest.mark.parametrize("path", ["", "../finish", "a/./b", "a//b"])
def test_a_file_whose_path_a_proxy_would_resolve_is_not_sent(path: str) -> None:
    def upload(run: ClaimedRun) -> RunResult:
        with pytest.raises(ValueError, match="segments"):
            run.upload_artifact(path, b"x")
        return "success", None

    service = Service()
    assert run_client(service, upload) == []
    assert [called for called, _, _ in service.calls] == ["5/start/", "5/finish/", "5/artifacts/"]
