"""dbtc: the calls of jobs, runs, artifacts, projects, webhooks, and those that the service does not have."""

from dbtc import dbtCloudClient

from calls import Calls, Settings, contains, equal

settings = Settings()
calls = Calls("dbtc", "dbtc")
client = dbtCloudClient(service_token=settings.token, host=settings.host).cloud
account, job = settings.account_id, settings.job["id"]
project, environment = settings.project["id"], settings.environment["id"]
POLL = {"poll_interval": 1}


def data(response):
    equal(response["status"]["is_success"], True)
    return response["data"]


def ids(response):
    return [row["id"] for row in data(response)]


def ended(run, status):
    equal(data(run)["status"], status)
    return data(run)["id"]


calls.call("list_accounts", lambda: contains([row["id"] for row in client.list_accounts()["data"]], account))
calls.call("get_account", lambda: equal(data(client.get_account(account))["id"], account))
calls.call(
    "get_account_by_name",
    lambda: equal(client.get_account_by_name(client.get_account(account)["data"]["name"])["data"]["id"], account),
)
calls.call("list_projects", lambda: contains([row["id"] for row in client.list_projects(account)["data"]], project))
calls.call(
    "list_projects(project_id, state, limit, offset)",
    lambda: equal(
        [row["id"] for row in client.list_projects(account, project_id=[project], state=1, limit=10, offset=0)["data"]],
        [project],
    ),
)
calls.call("get_project", lambda: equal(client.get_project(account, project)["data"]["id"], project))
calls.call(
    "get_project_by_name",
    lambda: equal(client.get_project_by_name(settings.project["name"], account_id=account)["data"]["id"], project),
)
calls.call(
    "get_project_by_name(without an account)",
    lambda: equal(client.get_project_by_name(settings.project["name"])["data"]["id"], project),
)
calls.call(
    "list_environments",
    lambda: contains([row["id"] for row in client.list_environments(account, project)["data"]], environment),
)
calls.call(
    "list_environments(name, type, state, limit, offset, order_by)",
    lambda: equal(
        [
            row["id"]
            for row in client.list_environments(
                account,
                project,
                name=settings.environment["name"],
                type="deployment",
                state=1,
                limit=5,
                offset=0,
                order_by="-id",
            )["data"]
        ],
        [environment],
    ),
)
calls.call(
    "list_environments(dbt_version)",
    lambda: equal(client.list_environments(account, project, dbt_version=["0.0.1"])["data"], []),
)
calls.call(
    "get_environment",
    lambda: equal(client.get_environment(account, project, environment)["data"]["id"], environment),
)
calls.call(
    "list_environments_by_account",
    lambda: contains([row["id"] for row in client.list_environments_by_account(account)["data"]], environment),
)
calls.call("list_jobs", lambda: contains(ids(client.list_jobs(account)), job))
calls.call(
    "list_jobs(environment_id, project_id, state, limit, offset, order_by)",
    lambda: contains(
        ids(
            client.list_jobs(
                account,
                environment_id=environment,
                project_id=[project],
                state=1,
                limit=100,
                offset=0,
                order_by="-id",
            )
        ),
        job,
    ),
)
calls.call("get_job", lambda: equal(data(client.get_job(account, job))["id"], job))
calls.call(
    "get_job(order_by, include_related)",
    lambda: equal(
        data(client.get_job(account, job, order_by="id", include_related=["project", "environment"]))["project"]["id"],
        project,
    ),
)
created = calls.call(
    "create_job",
    lambda: data(
        client.create_job(
            account,
            {
                "account_id": account,
                "project_id": project,
                "environment_id": environment,
                "name": "Created by dbtc",
                "execute_steps": ["dbt run"],
                "triggers": {"github_webhook": False, "schedule": False, "git_provider_webhook": False},
                "settings": {"threads": 4, "target_name": "default"},
                "state": 1,
                "generate_docs": False,
                "schedule": {"cron": "0 * * * *", "date": {"type": "every_day"}, "time": {"type": "every_hour"}},
            },
        )
    )["id"],
)
calls.call(
    "update_job",
    lambda: equal(data(client.update_job(account, created, {"name": "Renamed by dbtc"}))["name"], "Renamed by dbtc"),
)
calls.call(
    "update_job(the response of get_job)",
    lambda: equal(
        data(client.update_job(account, created, client.get_job(account, created)["data"]))["execute_steps"], ["dbt run"]
    ),
)
run = calls.call(
    "trigger_job", lambda: ended(client.trigger_job(account, job, {"cause": "success"}, **POLL), 10)
)
calls.call(
    "trigger_job(every option)",
    lambda: ended(
        client.trigger_job(
            account,
            job,
            {
                "cause": "success",
                "git_sha": "3fca1f2",
                "git_branch": "main",
                "schema_override": "proof",
                "dbt_version_override": "1.9.0",
                "threads_override": 8,
                "target_name_override": "proof",
                "generate_docs_override": True,
                "timeout_seconds_override": 60,
                "steps_override": ["dbt run"],
                "github_pull_request_id": 7,
            },
            **POLL,
        ),
        10,
    ),
)
calls.call(
    "trigger_job(retries)",
    lambda: ended(client.trigger_job(account, job, {"cause": "error"}, retries=1, **POLL), 20),
)
calls.call(
    "trigger_job_from_failure", lambda: ended(client.trigger_job_from_failure(account, job, **POLL), 20)
)


def cancel():
    waiting = client.trigger_job(account, job, {"cause": "wait"}, should_poll=False)["data"]["id"]
    equal(data(client.cancel_run(account, waiting))["status"], 30)


calls.call("cancel_run", cancel)
calls.call("list_runs", lambda: contains(ids(client.list_runs(account, limit=100)), run))
calls.call(
    "list_runs(every filter)",
    lambda: equal(
        ids(
            client.list_runs(
                account,
                include_related=["trigger", "job", "environment", "repository"],
                job_definition_id=job,
                environment_id=environment,
                project_id=[project],
                status=["error", "cancelled"],
                order_by="-id",
                offset=0,
                limit=1,
            )
        )
        != [],
        True,
    ),
)
calls.call("list_runs(deferring_run_id)", lambda: equal(ids(client.list_runs(account, deferring_run_id=run)), []))
calls.call("get_run", lambda: equal(data(client.get_run(account, run))["status"], 10))
calls.call(
    "get_run(include_related)",
    lambda: contains(
        [step["name"] for step in data(client.get_run(account, run, include_related=["run_steps", "debug_logs"]))["run_steps"]],
        "Invoke dbt with `dbt build`",
    ),
)
calls.call(
    "get_most_recent_run",
    lambda: equal(client.get_most_recent_run(account, job_definition_id=job, status="success")["data"]["status"], 10),
)
calls.call(
    "list_run_artifacts", lambda: contains(data(client.list_run_artifacts(account, run)), "run_results.json")
)
calls.call(
    "list_run_artifacts(step)",
    lambda: contains(data(client.list_run_artifacts(account, run, step=4)), "manifest.json"),
)
calls.call(
    "get_run_artifact",
    lambda: equal(len(client.get_run_artifact(account, run, "run_results.json")["results"]) > 0, True),
)
calls.call(
    "get_run_artifact(step)",
    lambda: equal(
        client.get_run_artifact(account, run, "run_results.json", step=4)["args"]["invocation_command"], "dbt build"
    ),
)
calls.call(
    "get_run_artifact(no JSON)",
    lambda: contains(client.get_run_artifact(account, run, "compiled/warehouse/models/a.sql"), "select"),
)
calls.call(
    "get_most_recent_run_artifact",
    lambda: contains(client.get_most_recent_run_artifact(account, "manifest.json", job_definition_id=job), "nodes"),
)
calls.call(
    "trigger_autoscaling_ci_job",
    lambda: ended(
        client.trigger_autoscaling_ci_job(
            account, job, {"cause": "success", "github_pull_request_id": 8}, should_poll=True, **POLL
        ),
        10,
    ),
)


def autoscaling_cancels():
    payload = {"cause": "wait", "github_pull_request_id": 9}
    first = client.trigger_job(account, job, payload, should_poll=False)["data"]["id"]
    second = client.trigger_autoscaling_ci_job(account, job, {**payload, "cause": "success"}, should_poll=True, **POLL)
    equal(data(client.get_run(account, first))["status"], 30)
    ended(second, 10)


calls.call("trigger_autoscaling_ci_job(another run of its pull request)", autoscaling_cancels)
calls.call("delete_job", lambda: equal(data(client.delete_job(account, created))["id"], created))
calls.call(
    "list_audit_logs(logged_at_start, logged_at_end, limit, offset)",
    lambda: equal(
        client.list_audit_logs(
            account, logged_at_start="2026-01-01", logged_at_end="2100-01-01", limit=5, offset=0
        )["status"]["code"],
        200,
    ),
)
webhook = calls.call(
    "create_webhook",
    lambda: client.create_webhook(
        account,
        {
            "active": True,
            "client_url": "https://receiver.example.com/hook",
            "event_types": ["job.run.completed"],
            "name": "From dbtc",
        },
    )["data"]["id"],
)
calls.call("list_webhooks", lambda: contains([row["id"] for row in client.list_webhooks(account)["data"]], webhook))
calls.call("get_webhook", lambda: equal(client.get_webhook(account, webhook)["data"]["name"], "From dbtc"))
calls.call(
    "update_webhook",
    lambda: equal(
        client.update_webhook(
            account,
            webhook,
            {
                "active": False,
                "client_url": "https://receiver.example.com/hook",
                "event_types": ["job.run.completed"],
                "name": "Renamed",
            },
        )["data"]["name"],
        "Renamed",
    ),
)
calls.call("test_webhook", lambda: contains(client.test_webhook(account, webhook)["data"], "verification_error"))
calls.call("delete_webhook", lambda: equal(client.delete_webhook(account, webhook)["status"]["code"], 200))
calls.call(
    "list_environment_variables(resource_type=job)",
    lambda: equal(
        client.list_environment_variables(account, project, resource_type="job", job_id=job)["data"], {}
    ),
)

NO_USERS = "accounts, users and tokens are administered in the console and on the command line"
NO_WAREHOUSE = "the service has no warehouse connections, repositories or variables: they belong to the runner"
BY_JOBS = "projects and environments come from the jobs that name them"
NO_TIMING = "the service records no timing of models beyond `run_results.json`"

for reason, unserved_calls in {
    NO_USERS: {
        "list_users": (account,),
        "list_invited_users": (account,),
        "get_user": (account, 1),
        "list_groups": (account,),
        "create_group": (account, {"name": "Other"}),
        "list_service_tokens": (account,),
        "create_service_token": (account, {"name": "Other"}),
        "list_license_maps": (account,),
        "get_account_licenses": (account,),
        "list_notifications": (account,),
        "list_private_link_endpoints": (account,),
        "list_feature_flags": (account,),
    },
    NO_WAREHOUSE: {
        "list_connections": (account, project),
        "create_connection": (account, project, {"name": "Other"}),
        "test_connection": (account, {}),
        "list_credentials": (account, project),
        "create_credentials": (account, project, {"type": "postgres"}),
        "list_repositories": (account, project),
        "create_repository": (account, project, {"remote_url": "git://example.com/a.git"}),
        "list_environment_variables": (account, project),
        "create_env_vars": (account, project, {"env_var": {}}),
        "get_extended_attributes": (account, project, 1),
        "get_adapter": (account, project, 1),
        "create_sl_config": (account, project, {}),
    },
    BY_JOBS: {
        "create_project": (account, {"name": "Other"}),
        "update_project": (account, project, {"name": "Other"}),
        "delete_project": (account, project),
        "create_environment": (account, project, {"name": "Other"}),
        "update_environment": (account, project, environment, {"name": "Other"}),
        "delete_environment": (account, environment),
    },
    NO_TIMING: {"get_run_timing_details": (account, project, run)},
}.items():
    for name, arguments in unserved_calls.items():
        calls.not_served(name, reason, lambda: getattr(client, name)(*arguments))
