"""dbt-cloud-cli: the program `dbt-cloud`, as a user types it."""

import json
import os
import pathlib
import subprocess
import sys

from calls import Calls, Settings, contains, equal

settings = Settings()
calls = Calls("dbt-cloud-cli", "dbt-cloud-cli")
program = pathlib.Path(sys.executable).with_name("dbt-cloud")
job, project, environment = str(settings.job["id"]), str(settings.project["id"]), str(settings.environment["id"])
environment_variables = {
    **os.environ,
    "DBT_CLOUD_HOST": settings.host,
    "DBT_CLOUD_API_TOKEN": settings.token,
    "DBT_CLOUD_ACCOUNT_ID": str(settings.account_id),
    "DBT_CLOUD_PROJECT_ID": project,
    "DBT_CLOUD_ENVIRONMENT_ID": environment,
    "DBT_CLOUD_JOB_ID": job,
}


def run(*arguments, text_input=None):
    done = subprocess.run(
        [program, *arguments], env=environment_variables, input=text_input, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stdout[-400:]} {done.stderr[-400:]}")
    return done.stdout


def data(*arguments, **options):
    return json.loads(run(*arguments, **options))["data"]


def ids(*arguments):
    return [str(row["id"]) for row in data(*arguments)]


calls.call("account list", lambda: contains(ids("account", "list"), str(settings.account_id)))
calls.call("account get", lambda: equal(data("account", "get")["id"], settings.account_id))
calls.call("project list", lambda: contains(ids("project", "list", "--limit", "100", "--offset", "0"), project))
calls.call("project get", lambda: equal(str(data("project", "get")["id"]), project))
calls.call(
    "environment list", lambda: contains(ids("environment", "list", "--state", "1", "--limit", "10"), environment)
)
calls.call("environment get", lambda: equal(str(data("environment", "get")["id"]), environment))
calls.call("job list", lambda: contains(ids("job", "list", "--order-by", "-id", "--project-id", project), job))
calls.call("job get", lambda: equal(str(data("job", "get")["id"]), job))
calls.call(
    "job get --include-related",
    lambda: equal(
        str(data("job", "get", "--include-related", "environment,most_recent_run")["environment"]["id"]), environment
    ),
)
created = calls.call(
    "job create",
    lambda: str(
        data("job", "create", "--name", "Created by dbt-cloud", "--execute-steps", '["dbt run"]', "--job-type", "other")["id"]
    ),
)
exported = calls.call("job export", lambda: run("job", "export", "--job-id", job))
imported = calls.call("job import", lambda: str(data("job", "import", text_input=exported or "{}")["id"]))
calls.call("job delete", lambda: equal(str(data("job", "delete", "--job-id", str(created))["id"]), created))
calls.call(
    "job delete-all",
    lambda: run(
        "job", "delete-all", "--yes", "--limit", "100", "--keep-jobs",
        str([int(row) for row in ids("job", "list", "--limit", "100") if row != imported]),
    ),
)  # fmt: skip
started = calls.call(
    "job run --wait", lambda: str(data("job", "run", "--cause", "success", "--wait")["id"])
) or "0"
calls.call(
    "job run, every option",
    lambda: equal(
        data(
            "job", "run", "--cause", "success", "--git-sha", "3fca1f2", "--git-branch", "main",
            "--schema-override", "proof", "--dbt-version-override", "1.9.0", "--threads-override", "8",
            "--target-name-override", "proof", "--generate-docs-override", "true",
            "--timeout-seconds-override", "60", "--steps-override", '["dbt run"]',
            "--github-pull-request-id", "7",
        )["trigger"]["threads_override"],
        8,
    ),
)  # fmt: skip


def failed():
    try:
        run("job", "run", "--cause", "error", "--wait")
    except RuntimeError as error:
        contains(str(error), "Job run failed with ERROR status")
        return
    raise AssertionError("the client saw no failure")


calls.call("job run --wait, of a failure", failed)
calls.call("run list", lambda: contains(ids("run", "list", "--job-id", job, "--order-by", "-id"), started))
calls.call(
    "run list --status",
    lambda: equal({row["status"] for row in data("run", "list", "--status", "Succeeded", "--limit", "5")}, {10}),
)
calls.call("run list --paginate", lambda: contains(ids("run", "list", "--paginate"), started))
calls.call("run get", lambda: equal(data("run", "get", "--run-id", started)["status"], 10))
calls.call(
    "run get --include-related",
    lambda: equal(
        str(
            data(
                "run", "get", "--run-id", started, "--include-related", "job", "--include-related", "run_steps",
                "--include-related", "debug_logs",
            )["job"]["id"]
        ),
        job,
    ),
)  # fmt: skip
calls.call(
    "run list-artifacts", lambda: contains(data("run", "list-artifacts", "--run-id", started), "manifest.json")
)
calls.call(
    "run get-artifact",
    lambda: contains(run("run", "get-artifact", "--run-id", started, "--path", "run_results.json"), "results"),
)
calls.call(
    "run get-artifact --step",
    lambda: contains(
        run("run", "get-artifact", "--run-id", started, "--path", "manifest.json", "--step", "4"), "nodes"
    ),
)


def cancel():
    waiting = str(data("job", "run", "--cause", "wait")["id"])
    equal(data("run", "cancel", "--run-id", waiting)["status"], 30)


calls.call("run cancel", cancel)
calls.call("run cancel-all", lambda: run("run", "cancel-all", "--yes", "--status", "Running"))
calls.call("audit-log get", lambda: data("audit-log", "get", "--logged-at-start", "2026-01-01", "--limit", "5"))
BY_JOBS = "projects and environments come from the jobs that name them"
NO_WAREHOUSE = "the service has no warehouse connections: they belong to the runner"
calls.not_served("project create", BY_JOBS, lambda: data("project", "create", "--name", "Other", "--type", "0"))
calls.not_served("project update", BY_JOBS, lambda: data("project", "update", "--project-id", project, "--name", "Other", "--type", "0"))
calls.not_served("project delete", BY_JOBS, lambda: data("project", "delete", "--project-id", project))
calls.not_served(
    "environment create", BY_JOBS, lambda: data("environment", "create", "--name", "Other", "--type", "deployment")
)
calls.not_served("environment delete", BY_JOBS, lambda: data("environment", "delete", "--environment-id", environment))
calls.not_served("connection list", NO_WAREHOUSE, lambda: data("connection", "list"))
