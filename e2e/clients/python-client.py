"""Uses a client that openapi-python-client generated from the OpenAPI document, with only its address and an API key."""

import json
import sys
from datetime import datetime, timedelta, timezone

from runhook_client import AuthenticatedClient
from runhook_client.api.jobs_and_runs import cancel_run, list_jobs, list_runs, publish_events, trigger_run
from runhook_client.api.webhooks import create_subscription
from runhook_client.models import (
    EventsToPublish,
    ListRunsStatus,
    RunErroredData,
    RunErroredEvent,
    SubscriptionFields,
    SubscriptionFieldsEventTypesItem,
    TriggerOptionsType0,
)

url, token, account, job, event_id = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, prefix="Token", raise_on_unexpected_status=True)
now = datetime.now(timezone.utc)

jobs = list_jobs.sync(int(account), client=client, ids=job)
created = create_subscription.sync(
    int(account),
    client=client,
    body=SubscriptionFields(
        name="Runs to the pager",
        event_types=[SubscriptionFieldsEventTypesItem.JOB_RUN_ERRORED],
        client_url="https://receiver.example.com/hooks",
        job_ids=[int(job)],
    ),
)
data = RunErroredData(
    job_id=job,
    job_name="Nightly build",
    run_id="78",
    environment_id="1",
    environment_name="Production",
    engine_version="1.9.0",
    project_id="1",
    project_name="Warehouse",
    run_status="Errored",
    run_status_code=20,
    run_status_message="None",
    run_reason="None",
    run_started_at=now.replace(microsecond=0),
    run_errored_at=now.replace(microsecond=0),
)
event = RunErroredEvent(
    event_id=event_id, event_type="job.run.errored", account_id=int(account), timestamp=now, data=data
)
published = publish_events.sync(int(account), client=client, body=EventsToPublish(events=[event]))
runs = list_runs.sync(
    int(account),
    client=client,
    job_definition_id=int(job),
    since=(now - timedelta(hours=1)).isoformat(),
    status=ListRunsStatus.ERRORED,
)
triggered = trigger_run.sync(int(account), int(job), client=client, body=TriggerOptionsType0(cause="By hand"))
cancelled = cancel_run.sync(int(account), triggered.data.id, client=client)
print(
    json.dumps(
        {
            "jobs": [one.name for one in jobs.data],
            "webhook": created.data.name,
            "verdicts": [one.verdict for one in published.data.events],
            "runs": min(1, runs.extra.pagination.total_count),
            "statuses": [triggered.data.status, cancelled.data.status],
        }
    )
)
