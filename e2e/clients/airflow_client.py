"""Airflow's provider: every call of `DbtCloudHook`, its operators, its sensor and its trigger."""

import asyncio
import importlib
import pathlib
import types

from airflow.providers.dbt.cloud.hooks.dbt import DbtCloudHook, DbtCloudJobRunException
from airflow.providers.dbt.cloud.operators.dbt import (
    DbtCloudGetJobRunArtifactOperator,
    DbtCloudListJobRunsOperator,
    DbtCloudListJobsOperator,
    DbtCloudRunJobOperator,
)
from airflow.providers.dbt.cloud.sensors.dbt import DbtCloudJobRunSensor
from airflow.sdk import DAG
from airflow.sdk.exceptions import TaskDeferred

from calls import Calls, Settings, contains, equal

settings = Settings()
hook_calls = Calls("Airflow `DbtCloudHook`", "apache-airflow-providers-dbt-cloud")
operator_calls = Calls("Airflow operators, sensor and trigger", "apache-airflow-providers-dbt-cloud")
hook = DbtCloudHook()
job, project, environment = settings.job["id"], settings.project["id"], settings.environment["id"]
dag = DAG("proof", schedule=None)
SUCCESS, ERROR, CANCELLED = 10, 20, 30


class TaskInstance:
    """The part of a task instance that the operators use."""

    def __init__(self, try_number=1):
        self.try_number = try_number
        self.values = {}

    def xcom_push(self, key, value):
        self.values[key] = value


def data(response):
    return response.json()["data"]


def all_data(responses):
    return [row for response in responses for row in data(response)]


def ids(responses):
    return [row["id"] for row in all_data(responses)]


def expect_failure(function, text):
    try:
        function()
    except DbtCloudJobRunException as error:
        contains(str(error), text)
        return
    raise AssertionError("the client saw no failure")


# The hook
hook_calls.call("list_accounts", lambda: equal(hook.list_accounts().status_code, 200))
hook_calls.call("test_connection", lambda: equal(hook.test_connection()[0], True))
hook_calls.call("get_account", lambda: equal(data(hook.get_account())["id"], settings.account_id))
hook_calls.call("list_projects", lambda: contains(ids(hook.list_projects()), project))
hook_calls.call(
    "list_projects(name_contains)",
    lambda: equal(ids(hook.list_projects(name_contains=settings.project["name"][1:])), [project]),
)
hook_calls.call("get_project", lambda: equal(data(hook.get_project(project))["name"], settings.project["name"]))
hook_calls.call("list_environments", lambda: contains(ids(hook.list_environments(project)), environment))
hook_calls.call(
    "list_environments(name_contains)",
    lambda: equal(ids(hook.list_environments(project, name_contains="no such environment")), []),
)
hook_calls.call(
    "get_environment",
    lambda: equal(data(hook.get_environment(project, environment))["name"], settings.environment["name"]),
)
hook_calls.call("list_jobs", lambda: contains(ids(hook.list_jobs()), job))
hook_calls.call(
    "list_jobs(order_by, project_id, environment_id, name_contains)",
    lambda: equal(
        ids(
            hook.list_jobs(
                order_by="-id",
                project_id=project,
                environment_id=environment,
                name_contains=settings.job["name"],
            )
        ),
        [job],
    ),
)
hook_calls.call("get_job", lambda: equal(data(hook.get_job(job))["name"], settings.job["name"]))
by_name = {
    "project_name": settings.project["name"],
    "environment_name": settings.environment["name"],
    "job_name": settings.job["name"],
}
hook_calls.call("get_job_by_name", lambda: equal(hook.get_job_by_name(**by_name)["id"], job))


def trigger(cause, **options):
    return data(hook.trigger_job_run(job, cause, **options))


run = hook_calls.call("trigger_job_run", lambda: trigger("success")["id"]) or 0
hook_calls.call("get_job_run_status", lambda: contains((1, 2, 3, 10), hook.get_job_run_status(run)))
hook_calls.call(
    "wait_for_job_run_status", lambda: equal(hook.wait_for_job_run_status(run, check_interval=1), True)
)
overrides = {
    "steps_override": ["dbt run --select a"],
    "schema_override": "proof",
    "additional_run_config": {"threads_override": 8, "git_branch": "main", "generate_docs_override": False},
}


def trigger_with_overrides():
    stored = hook.get_job_run(trigger("success", **overrides)["id"], include_related=["trigger"])
    for key, value in {**overrides, **overrides["additional_run_config"]}.items():
        if key != "additional_run_config":
            equal(data(stored)["trigger"][key], value)


hook_calls.call("trigger_job_run(steps_override, schema_override, additional_run_config)", trigger_with_overrides)
hook_calls.call("get_job_run", lambda: equal(data(hook.get_job_run(run))["status"], SUCCESS))


def related():
    found = data(hook.get_job_run(run, include_related=["job", "trigger", "environment", "repository", "run_steps"]))
    equal(found["job"]["id"], job)
    equal(found["trigger"]["cause"], "success")
    equal(found["environment"]["id"], environment)
    equal(found["repository"], None)
    contains([step["name"] for step in found["run_steps"]], "Invoke dbt with `dbt build`")


hook_calls.call("get_job_run(include_related)", related)
hook_calls.call("list_job_runs", lambda: contains(ids(hook.list_job_runs()), run))
hook_calls.call(
    "list_job_runs(include_related, job_definition_id, order_by)",
    lambda: equal(
        all_data(hook.list_job_runs(include_related=["job", "trigger"], job_definition_id=job, order_by="id"))[0]["job"][
            "id"
        ],
        job,
    ),
)
hook_calls.call(
    "get_job_runs(status__in, order_by, limit)",
    lambda: equal(
        [
            row["status"]
            for row in data(
                hook.get_job_runs(
                    payload={"job_definition_id": job, "status__in": str([10]), "order_by": "-created_at", "limit": 1}
                )
            )
        ],
        [SUCCESS],
    ),
)
hook_calls.call(
    "get_job_details", lambda: equal(asyncio.run(hook.get_job_details(run, include_related=["job", "run_steps"]))["data"]["job"]["id"], job)
)
hook_calls.call("get_job_status", lambda: equal(asyncio.run(hook.get_job_status(run)), SUCCESS))
hook_calls.call("list_job_run_artifacts", lambda: contains(data(hook.list_job_run_artifacts(run)), "run_results.json"))
hook_calls.call(
    "list_job_run_artifacts(step)", lambda: contains(data(hook.list_job_run_artifacts(run, step=4)), "manifest.json")
)
hook_calls.call(
    "get_job_run_artifact",
    lambda: equal(len(hook.get_job_run_artifact(run, "run_results.json").json()["results"]) > 0, True),
)
hook_calls.call(
    "get_job_run_artifact(step)",
    lambda: equal(hook.get_job_run_artifact(run, "run_results.json", step=4).json()["args"]["invocation_command"], "dbt build"),
)
hook_calls.call(
    "get_job_run_artifact(a path with folders)",
    lambda: contains(hook.get_job_run_artifact(run, "compiled/warehouse/models/a.sql").text, "select"),
)
hook_calls.call(
    "get_job_run_artifacts_concurrently(step)",
    lambda: equal(
        sorted(
            asyncio.run(
                hook.get_job_run_artifacts_concurrently(run, ["manifest.json", "run_results.json"], step=4)
            )
        ),
        ["manifest.json", "run_results.json"],
    ),
)
hook_calls.call(
    "wait_for_job_run_status(of a failure, with its failed steps)",
    lambda: expect_failure(
        lambda: hook.wait_for_job_run_status(trigger("error")["id"], check_interval=1), "terminal status ERROR"
    ),
)
hook_calls.call("log_job_run_failure_details", lambda: hook.log_job_run_failure_details(run))


def retry_from_failure():
    retried = trigger("ignored", retry_from_failure=True)
    equal(hook.wait_for_job_run_status(retried["id"], expected_statuses={SUCCESS, ERROR}, check_interval=1), True)
    equal(data(hook.get_job_run(retried["id"], include_related=["trigger"]))["trigger"]["cause"], "error")


hook_calls.call("trigger_job_run(retry_from_failure)", retry_from_failure)
hook_calls.call("retry_failed_job_run", lambda: equal(data(hook.retry_failed_job_run(job))["job_id"], job))


def cancel():
    cancelled = trigger("wait")["id"]
    hook.cancel_job_run(cancelled)
    equal(hook.wait_for_job_run_status(cancelled, expected_statuses=CANCELLED, check_interval=1), True)


hook_calls.call("cancel_job_run", cancel)


# Operators, sensor and trigger
def execute(operator, try_number=1):
    """Executes the task as a worker and a triggerer do, with its trigger passed as serialised text."""
    instance = TaskInstance(try_number)
    context = {"ti": instance, "dag": dag, "task_instance": instance}
    try:
        return operator.execute(context), instance
    except TaskDeferred as deferral:
        path, arguments = deferral.trigger.serialize()
        module, name = path.rsplit(".", 1)
        copy = getattr(importlib.import_module(module), name)(**arguments)
        event = asyncio.run(first_event(copy))
        resume = getattr(operator, deferral.method_name)
        return resume(context, event=event.payload), instance


async def first_event(trigger):
    async for event in trigger.run():
        return event


def run_operator(name, try_number=1, **options):
    arguments = {"job_id": job, "check_interval": 1, "trigger_reason": "success", **options}
    operator = DbtCloudRunJobOperator(task_id=name, dag=dag, **arguments)
    result, instance = execute(operator, try_number)
    equal(instance.values["job_run_id"], result)
    equal(instance.values["job_run_url"].startswith(settings.url), True)
    return result


operator_run = operator_calls.call("DbtCloudRunJobOperator", lambda: run_operator("run")) or 0
operator_calls.call("DbtCloudRunJobOperator(deferrable)", lambda: run_operator("deferred", deferrable=True))
operator_calls.call(
    "DbtCloudRunJobOperator(project_name, environment_name, job_name)",
    lambda: run_operator("by_name", job_id=None, **by_name),
)
operator_calls.call(
    "DbtCloudRunJobOperator(steps_override, schema_override, additional_run_config)",
    lambda: run_operator("overrides", **overrides),
)
operator_calls.call(
    "DbtCloudRunJobOperator(of a failure)",
    lambda: expect_failure(lambda: run_operator("failure", trigger_reason="error"), "terminal status ERROR"),
)
operator_calls.call(
    "DbtCloudRunJobOperator(of a failure, deferrable)",
    lambda: expect_failure(
        lambda: run_operator("deferred_failure", trigger_reason="error", deferrable=True), "failed"
    ),
)
operator_calls.call(
    "DbtCloudRunJobOperator(retry_from_failure)",
    lambda: expect_failure(
        lambda: run_operator("retry", try_number=2, retry_from_failure=True), "terminal status ERROR"
    ),
)


def reuse_and_kill():
    waiting = trigger("wait")["id"]
    operator = DbtCloudRunJobOperator(
        task_id="reuse", dag=dag, job_id=job, check_interval=1, reuse_existing_run=True, wait_for_termination=False
    )
    equal(execute(operator)[0], waiting)
    operator.on_kill()
    equal(hook.get_job_run_status(waiting), CANCELLED)


operator_calls.call("DbtCloudRunJobOperator(reuse_existing_run), on_kill", reuse_and_kill)


def sensor(name, sensed, **options):
    return execute(DbtCloudJobRunSensor(task_id=name, dag=dag, run_id=sensed, poke_interval=1, **options))[0]


operator_calls.call("DbtCloudJobRunSensor", lambda: sensor("sensor", trigger("success")["id"]))
operator_calls.call(
    "DbtCloudJobRunSensor(deferrable)",
    lambda: sensor("deferred_sensor", trigger("success")["id"], deferrable=True),
)
operator_calls.call(
    "DbtCloudJobRunSensor(of a failure)",
    lambda: expect_failure(lambda: sensor("failed_sensor", trigger("error")["id"]), "has failed"),
)


def get_artifact(path, **options):
    name = pathlib.Path(settings.folder) / "airflow" / path
    operator = DbtCloudGetJobRunArtifactOperator(
        task_id=f"artifact_{path.replace('/', '_')}", dag=dag, run_id=operator_run, path=path, output_file_name=str(name), **options
    )
    contains(pathlib.Path(execute(operator)[0]).read_text(), "dbt")


operator_calls.call("DbtCloudGetJobRunArtifactOperator", lambda: get_artifact("run_results.json"))
operator_calls.call("DbtCloudGetJobRunArtifactOperator(step)", lambda: get_artifact("manifest.json", step=4))
operator_calls.call(
    "DbtCloudListJobsOperator",
    lambda: contains(
        execute(DbtCloudListJobsOperator(task_id="jobs", dag=dag, order_by="-id", project_id=project))[0], job
    ),
)
operator_calls.call(
    "DbtCloudListJobRunsOperator(include_related, status_filter, latest_only)",
    lambda: equal(
        execute(
            DbtCloudListJobRunsOperator(
                task_id="runs",
                dag=dag,
                job_id=job,
                include_related=["job", "environment"],
                status_filter=[CANCELLED],
                latest_only=True,
            )
        )[0]["status_humanized"],
        "Cancelled",
    ),
)


def openlineage():
    """The operator derives lineage from the run, its project, its steps and the artifacts of each."""
    from datetime import datetime, timezone

    operator = DbtCloudRunJobOperator(
        task_id="lineage", dag=dag, job_id=job, check_interval=1, trigger_reason="success"
    )
    execute(operator)
    now = datetime.now(timezone.utc)
    instance = types.SimpleNamespace(
        dag_id="proof",
        task_id="lineage",
        run_id="manual",
        try_number=1,
        map_index=-1,
        logical_date=now,
        state="success",
        dag_run=types.SimpleNamespace(
            run_id="manual", logical_date=now, clear_number=0, run_after=now, conf={}, dag_id="proof"
        ),
    )
    instance.get_template_context = lambda: {"dag_run": instance.dag_run}
    operator.get_openlineage_facets_on_complete(instance)


operator_calls.not_served(
    "get_openlineage_facets_on_complete",
    "lineage needs the warehouse connection of the project, which belongs to the runner; the provider logs that and goes on",
    openlineage,
    expected=("'NoneType' object is not subscriptable",),
)
