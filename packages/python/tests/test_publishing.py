from __future__ import annotations

import sys

import pytest
from test_receiving import EVENT

from runhook.event_jobs import BurstLimiter, create_jobs
from runhook.queue import EventPublisher
from runhook.queue_url import parse_queue_url


def test_every_form_of_a_queue_url_is_parsed() -> None:
    one = parse_queue_url("rediss://runner:p%40ss@[::1]:7000/3?caFile=/etc/ca.pem")
    assert (one.kind, one.nodes, one.is_tls, one.database) == ("single", (("::1", 7000),), True, 3)
    assert (one.username, one.password, one.parameters["caFile"]) == ("runner", "p@ss", "/etc/ca.pem")
    cluster = parse_queue_url("redis+cluster://:secret@a,b:7001")
    assert (cluster.kind, cluster.nodes) == ("cluster", (("a", 6379), ("b", 7001)))
    assert (cluster.username, cluster.password) == (None, "secret")
    sentinel = parse_queue_url("redis+sentinel://a,b:1/main/2")
    assert (sentinel.nodes, sentinel.master_name, sentinel.database) == (
        (("a", 26379), ("b", 1)),
        "main",
        2,
    )


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgres://h/secret", "publish over REST"),
        ("http://h", "must start with"),
        ("redis://a,b", "names one server"),
        ("redis://h:99999", "host or host:port"),
        ("redis://h/secret", "number of a database"),
        ("redis+cluster://h/1", "only database 0"),
        ("redis+sentinel://h", "names the master"),
        ("redis://h?secret=1", "unknown parameter"),
    ],
)
def test_an_invalid_queue_url_is_rejected_without_repeating_it(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        EventPublisher(url)
    assert "secret" not in str(caught.value)


def test_a_missing_bullmq_is_reported_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "bullmq", None)
    with (
        EventPublisher("redis://127.0.0.1:1") as publisher,
        pytest.raises(ImportError, match=r'"runhook\[publish\]"; runhook\.rest needs neither'),
    ):
        publisher.publish(EVENT)


def test_a_burst_of_one_account_exceeds_its_bucket_which_refills_over_time() -> None:
    clock = [0.0]
    limiter = BurstLimiter(now=lambda: clock[0])
    assert [limiter.acquire(1) for _ in range(1_001)].count(True) == 1_000
    assert limiter.acquire(2)
    clock[0] = 0.01
    assert [limiter.acquire(1) for _ in range(6)].count(True) == 5


def test_events_share_jobs_up_to_a_length_and_equal_events_have_equal_job_ids() -> None:
    def event(number: int, text: str = "") -> dict[str, object]:
        return {
            "eventId": f"wev_{number}",
            "eventType": "job.run.started",
            "accountId": 1,
            "data": {"t": text},
        }

    many = [event(number) for number in range(41)]
    jobs = create_jobs([*many, many[0]], lambda _: {"removeOnComplete": True})
    assert [len(job["data"].get("events", [1])) for job in jobs] == [20, 20, 1]
    assert jobs[0]["name"] == "job.run.batch"
    # Equals hash('sha256', ids, 'base64url') of Node.js.
    assert jobs[0]["opts"]["jobId"] == "batch_QUXUxlnj4Yeb1FHemx6v2a-Arx9oGFlnCgIkjcVs-fM"
    assert jobs[2]["opts"] == {"removeOnComplete": True, "jobId": "wev_40-1"}
    long = create_jobs([event(1, "x" * 32_768), event(2), event(3)], lambda _: {})
    assert [len(job["data"].get("events", [1])) for job in long] == [1, 2]
