"""dagster-dbt, second generation: `DbtCloudWorkspace`, its client, assets, and the polling sensor with its cursor."""

from datetime import datetime, timedelta, timezone

from dagster import Definitions, build_sensor_context, materialize
from dagster_dbt.cloud_v2 import (
    DbtCloudCredentials,
    DbtCloudWorkspace,
    build_dbt_cloud_polling_sensor,
    dbt_cloud_assets,
    load_dbt_cloud_asset_specs,
)

from calls import Calls, Settings, contains, equal

settings = Settings()
calls = Calls("dagster-dbt `cloud_v2`", "dagster-dbt")
project, environment, job = settings.project["id"], settings.environment["id"], settings.job["id"]
workspace = DbtCloudWorkspace(
    credentials=DbtCloudCredentials(
        account_id=settings.account_id, token=settings.token, access_url=f"{settings.url}/"
    ),
    project_id=project,
    environment_id=environment,
    request_max_retries=0,
    adhoc_job_pool_size=2,
)
client = workspace.get_client()
scope = {"project_id": project, "environment_id": environment}
SUCCESS, ERROR, CANCELLED = 10, 20, 30


def status(run):
    return client.poll_run(run["id"], poll_interval=0.5)["status"]


calls.call("verify_connection", client.verify_connection)
calls.call("get_account_details", lambda: equal(client.get_account_details()["id"], settings.account_id))
calls.call("get_project_details", lambda: equal(client.get_project_details(project)["id"], project))
calls.call("get_environment_details", lambda: equal(client.get_environment_details(environment)["id"], environment))
calls.call("list_jobs", lambda: contains([row["id"] for row in client.list_jobs(**scope)], job))
calls.call("get_job_details", lambda: equal(client.get_job_details(job)["id"], job))
created = calls.call("create_job", lambda: client.create_job(**scope, job_name="Created by Dagster")["id"])
calls.call(
    "trigger_job_run(steps_override)",
    lambda: equal(status(client.trigger_job_run(created, steps_override=["dbt run"])), SUCCESS),
)
calls.call("destroy_job", lambda: equal(client.destroy_job(created)["id"], created))
calls.call("destroy_job(of a deleted job)", lambda: equal(client.destroy_job(created), None))
run = calls.call("trigger_job_run, poll_run", lambda: client.trigger_job_run(job))
calls.call("poll_run", lambda: equal(status(run), SUCCESS))
run_id = run["id"] if run else 0
calls.call("get_run_details", lambda: equal(client.get_run_details(run_id)["status"], SUCCESS))
calls.call(
    "get_run_details(include_related)",
    lambda: equal(client.get_run_details(run_id, include_related=["job", "trigger", "run_steps"])["job"]["id"], job),
)
calls.call("get_run_logs", lambda: contains(client.get_run_logs(run_id), "=== Step: Invoke dbt with `dbt build` ==="))
calls.call("list_run_artifacts", lambda: contains(client.list_run_artifacts(run_id), "run_results.json"))
calls.call("get_run_artifact", lambda: contains(client.get_run_artifact(run_id, "catalog.json"), "nodes"))
calls.call("get_run_results_json", lambda: contains(client.get_run_results_json(run_id), "results"))
calls.call("get_run_manifest_json", lambda: contains(client.get_run_manifest_json(run_id), "nodes"))


def batch():
    now = datetime.now(timezone.utc)
    runs, total = client.get_runs_batch(
        **scope, finished_at_lower_bound=now - timedelta(minutes=10), finished_at_upper_bound=now
    )
    contains([row["id"] for row in runs], run_id)
    times = [row["finished_at"] for row in runs]
    equal((times, total >= len(runs)), (sorted(times), True))


calls.call("get_runs_batch", batch)


def active():
    waiting = client.trigger_job_run(job, steps_override=["dbt wait"])
    equal(client.get_active_job_ids(**scope, job_ids=[job]), {job})
    equal(client.cancel_run(waiting["id"])["status"], CANCELLED)
    equal(client.get_active_job_ids(**scope, job_ids=[job]), set())


calls.call("get_active_job_ids, cancel_run", active)
calls.call(
    "fetch_workspace_data: creates the ad-hoc jobs, runs `dbt parse`, reads its manifest",
    lambda: equal(len(workspace.fetch_workspace_data().adhoc_job_ids), 2),
)
calls.call(
    "load_dbt_cloud_asset_specs",
    lambda: equal(sorted(spec.key.path[-1] for spec in load_dbt_cloud_asset_specs(workspace)), ["a", "b"]),
)


def names(result):
    return sorted(event.asset_key.path[-1] for event in result.get_asset_materialization_events())


def assets():
    @dbt_cloud_assets(workspace=workspace)
    def warehouse(context, dbt_cloud: DbtCloudWorkspace):
        yield from dbt_cloud.cli(args=["build"], context=context).wait()

    equal(names(materialize([warehouse], resources={"dbt_cloud": workspace})), ["a", "b"])


calls.call("dbt_cloud_assets, cli, wait", assets)
calls.call(
    "cli(outside of an asset)",
    lambda: equal(len([event for event in workspace.cli(["build"]).wait() if hasattr(event, "asset_key")]), 2),
)


def failed_run():
    from dagster import Failure

    try:
        list(workspace.cli(["fail"]).wait())
    except Failure:
        return
    raise AssertionError("the client saw no failure")


calls.call("cli(of a failure)", failed_run)

def sensor_cursor():
    """Each run is seen by consecutive evaluations that continue from the cursor of the one before."""
    sensor = build_dbt_cloud_polling_sensor(workspace=workspace)
    repository = Definitions(assets=load_dbt_cloud_asset_specs(workspace), sensors=[sensor]).get_repository_def()

    def evaluate(cursor):
        with build_sensor_context(cursor=cursor, repository_def=repository) as context:
            result = sensor(context)
            return [event.asset_key.path[-1] for event in result.asset_events], context.cursor

    _, cursor = evaluate(None)
    for _ in range(2):
        equal(status(client.trigger_job_run(job)), SUCCESS)
        found = []
        # A cursor names a range or a place in one, so the end of a run is seen by the evaluation after next at the latest.
        for _ in range(5):
            materialized, cursor = evaluate(cursor)
            found += materialized
        equal(sorted(set(found)), ["a", "b"])


calls.call("build_dbt_cloud_polling_sensor, with its cursor", sensor_cursor)
