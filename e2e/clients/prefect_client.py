"""prefect-dbt: the administrative client, the job block with targeted retries, and the executor of nodes."""

import asyncio
import types

from prefect_dbt.cloud import DbtCloudCredentials, DbtCloudJob
from prefect_dbt.cloud._executor import DbtCloudExecutor
from prefect_dbt.cloud.exceptions import DbtCloudJobRunFailed
from prefect_dbt.cloud.models import TriggerJobRunOptions
from prefect_dbt.cloud.utils import extract_user_message

from calls import Calls, Settings, contains, equal

settings = Settings()
calls = Calls("prefect-dbt `cloud`", "prefect-dbt")
job, project, environment = settings.job["id"], settings.project["id"], settings.environment["id"]
credentials = DbtCloudCredentials(api_key=settings.token, account_id=settings.account_id, domain=settings.host)


def api(method, *arguments, **options):
    async def send():
        async with credentials.get_administrative_client() as client:
            return await getattr(client, method)(*arguments, **options)

    return asyncio.run(send())


def data(*arguments, **options):
    return api(*arguments, **options).json()["data"]


def block(cause):
    return DbtCloudJob(
        dbt_cloud_credentials=credentials,
        job_id=job,
        timeout_seconds=60,
        interval_seconds=1,
        trigger_job_run_options=TriggerJobRunOptions(cause=cause),
    )


calls.call("get_job", lambda: equal(data("get_job", job)["id"], job))
calls.call("get_job(order_by)", lambda: equal(data("get_job", job, order_by="id")["id"], job))
created = calls.call(
    "create_job",
    lambda: data("create_job", project, environment, "Created by Prefect", execute_steps=["dbt run"], generate_docs=False)["id"],
)
calls.call("delete_job", lambda: equal(api("delete_job", created).status_code, 200))
calls.call("trigger_job_run", lambda: contains(data("trigger_job_run", job), "id"))
run = calls.call("DbtCloudJob.trigger", lambda: block("success").trigger())
calls.call("DbtCloudJobRun.wait_for_completion", lambda: run.wait_for_completion())
calls.call("DbtCloudJobRun.get_status_code", lambda: equal(run.get_status_code(), 10))
calls.call(
    "DbtCloudJobRun.fetch_result", lambda: contains(run.fetch_result()["artifact_paths"], "run_results.json")
)
calls.call(
    "DbtCloudJobRun.get_run_artifacts",
    lambda: equal(len(run.get_run_artifacts("run_results.json")["results"]) > 0, True),
)
calls.call(
    "DbtCloudJobRun.get_run_artifacts(step)",
    lambda: contains(run.get_run_artifacts("manifest.json", step=4), "nodes"),
)
calls.call(
    "get_run(include_related)",
    lambda: equal(
        data("get_run", run.run_id, include_related=["trigger", "job", "debug_logs", "run_steps"])["trigger"]["cause"],
        "success",
    ),
)
calls.call("list_run_artifacts(step)", lambda: contains(data("list_run_artifacts", run.run_id, step=4), "manifest.json"))
calls.call(
    "get_run_artifact(no JSON)",
    lambda: contains(api("get_run_artifact", run.run_id, "compiled/warehouse/models/a.sql").text, "select"),
)
calls.call("get_job_artifact", lambda: contains(api("get_job_artifact", job, "manifest.json").json(), "nodes"))


def failure():
    failed = block("error").trigger()
    failed.wait_for_completion()
    try:
        failed.fetch_result()
    except DbtCloudJobRunFailed:
        return failed
    raise AssertionError("the client saw no failure")


failed_run = calls.call("DbtCloudJobRun.fetch_result(of a failure)", failure)


def retry():
    """The block triggers a run of those nodes that failed: it reads the steps, and the artifacts of each failed step."""
    retried = failed_run.retry_failed_steps()
    steps = data("get_run", retried.run_id, include_related=["trigger"])["trigger"]["steps_override"]
    equal([" ".join(step.split()) for step in steps], ["dbt build -s b"])


calls.call("DbtCloudJobRun.retry_failed_steps", retry)


def error_message():
    from httpx import HTTPStatusError

    try:
        api("get_run_artifact", run.run_id, "no-such-file.json")
    except HTTPStatusError as error:
        equal(error.response.status_code, 404)
        equal(isinstance(extract_user_message(error), str), True)
        return
    raise AssertionError("the client saw no error")


calls.call("get_run_artifact(of a missing file), its message", error_message)
executor = DbtCloudExecutor(
    credentials=credentials,
    project_id=project,
    environment_id=environment,
    timeout_seconds=60,
    poll_frequency_seconds=1,
)
calls.call("DbtCloudExecutor.generate_manifest", lambda: contains(executor.generate_manifest(), "nodes"))
calls.call(
    "DbtCloudExecutor.fetch_manifest_from_job", lambda: contains(executor.fetch_manifest_from_job(job), "nodes")
)
node = types.SimpleNamespace(name="a", unique_id="model.warehouse.a", dbt_selector="a")


def execute(function):
    result = function()
    equal((result.success, result.error), (True, None))
    contains(result.artifacts, "model.warehouse.a")


calls.call("DbtCloudExecutor.execute_node", lambda: execute(lambda: executor.execute_node(node, "run")))
calls.call("DbtCloudExecutor.execute_wave", lambda: execute(lambda: executor.execute_wave([node])))


def flow():
    from prefect_dbt.cloud.jobs import run_dbt_cloud_job

    result = asyncio.run(run_dbt_cloud_job(dbt_cloud_job=block("success"), targeted_retries=0))
    equal(result["status"], 10)


calls.call("run_dbt_cloud_job (a flow)", flow)
