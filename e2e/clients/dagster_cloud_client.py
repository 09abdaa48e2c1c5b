"""dagster-dbt, first generation: `DbtCloudResource`, its op, and assets of a job."""

from dagster import Failure, job as dagster_job
from dagster_dbt import dbt_cloud_resource, dbt_cloud_run_op
from dagster_dbt.cloud.resources import DbtCloudResource

from calls import Calls, Settings, contains, equal

settings = Settings()
calls = Calls("dagster-dbt `cloud`", "dagster-dbt")
client = DbtCloudResource(
    auth_token=settings.token,
    account_id=settings.account_id,
    dbt_cloud_host=f"{settings.url}/",
    request_max_retries=0,
)
job, project = settings.job["id"], settings.project["id"]
POLL = {"poll_interval": 0.5}


def expect_failure(function, text):
    try:
        function()
    except Failure as failure:
        contains(failure.description, text)
        return
    raise AssertionError("the client saw no failure")


calls.call("list_jobs", lambda: contains([row["id"] for row in client.list_jobs(project)], job))
calls.call("get_job", lambda: equal(client.get_job(job)["name"], settings.job["name"]))
calls.call(
    "update_job(triggers)",
    lambda: equal(client.update_job(job, triggers={"schedule": False})["triggers"]["schedule"], False),
)
run = calls.call("run_job", lambda: client.run_job(job, cause="success", schema_override="proof")["id"])
calls.call("poll_run", lambda: equal(client.poll_run(run, **POLL)["status_humanized"], "Success"))
calls.call("get_runs", lambda: contains([row["id"] for row in client.get_runs(job_id=job)], run))
calls.call(
    "get_runs(include_related, order_by, offset, limit)",
    lambda: equal(
        client.get_runs(include_related=["job", "trigger"], job_id=job, order_by="-id", offset=0, limit=1)[0]["job"]["id"],
        job,
    ),
)
calls.call("get_run", lambda: equal(client.get_run(run)["status"], 10))
calls.call(
    "get_run(include_related)",
    lambda: equal(
        client.get_run(run, include_related=["job", "trigger", "debug_logs"])["trigger"]["schema_override"], "proof"
    ),
)
calls.call("get_run_steps", lambda: equal(client.get_run_steps(run), ["dbt build"]))
calls.call("list_run_artifacts", lambda: contains(client.list_run_artifacts(run), "run_results.json"))
calls.call("list_run_artifacts(step)", lambda: contains(client.list_run_artifacts(run, step=4), "manifest.json"))
calls.call(
    "get_run_artifact", lambda: contains(client.get_run_artifact(run, "compiled/warehouse/models/a.sql"), "select")
)
calls.call("get_manifest(step)", lambda: contains(client.get_manifest(run, step=4), "nodes"))
calls.call("get_run_results", lambda: equal(len(client.get_run_results(run)["results"]) > 0, True))


def output():
    result = client.run_job_and_poll(job, cause="success", **POLL)
    equal((result.job_id, result.job_name), (job, settings.job["name"]))
    equal(result.created_at <= result.dequeued_at <= result.started_at <= result.finished_at, True)
    equal(result.updated_at >= result.created_at, True)
    equal(len(result.result["results"]) > 0, True)


calls.call("run_job_and_poll, DbtCloudOutput", output)
calls.call(
    "run_job_and_poll(of a failure)",
    lambda: expect_failure(lambda: client.run_job_and_poll(job, cause="error", **POLL), "failed. Status Message"),
)


def cancel():
    waiting = client.run_job(job, cause="wait")["id"]
    equal(client.cancel_run(waiting)["status_humanized"], "Cancelled")


calls.call("cancel_run", cancel)
calls.call(
    "poll_run(poll_timeout)",
    lambda: expect_failure(
        lambda: client.run_job_and_poll(job, cause="wait", poll_interval=0.5, poll_timeout=1), "timed out"
    ),
)


def op():
    resource = dbt_cloud_resource.configured(
        {
            "auth_token": settings.token,
            "account_id": settings.account_id,
            "dbt_cloud_host": f"{settings.url}/",
        }
    )
    run_op = dbt_cloud_run_op.configured({"job_id": job, "poll_interval": 0.5}, name="run_op")

    @dagster_job(resource_defs={"dbt_cloud": resource})
    def proof():
        run_op()

    result = proof.execute_in_process()
    keys = [event.asset_key.path[-1] for event in result.get_asset_materialization_events()]
    equal(keys, ["a", "b"])


calls.call("dbt_cloud_run_op, with materialisations", op)


def assets():
    from dagster import materialize
    from dagster_dbt import load_assets_from_dbt_cloud_job

    from dagster_dbt.cloud.resources import DbtCloudClientResource

    resource = DbtCloudClientResource(
        auth_token=settings.token, account_id=settings.account_id, dbt_cloud_host=f"{settings.url}/"
    )
    definition = load_assets_from_dbt_cloud_job(dbt_cloud=resource, job_id=job)
    definitions = definition.build_definitions(definition.compute_cacheable_data())
    result = materialize(definitions)
    equal(sorted(event.asset_key.path[-1] for event in result.get_asset_materialization_events()), ["a", "b"])


calls.call("load_assets_from_dbt_cloud_job, materialize", assets)
calls.call(
    "get_job_environment_variables", lambda: equal(client.get_job_environment_variables(project, job), {})
)
calls.not_served(
    "set_job_environment_variable",
    "the service has no environment variables: they belong to the runner",
    lambda: client.set_job_environment_variable(project, job, 1, "DBT_A", "b"),
    # The client retries every error and shows none.
    expected=("Max retries (0) exceeded",),
)
