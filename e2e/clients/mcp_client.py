"""dbt-mcp: its MCP server with the tools of the administrative API, called over stdio."""

import asyncio
import json
import os
import pathlib
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from calls import Calls, Settings, contains, equal

settings = Settings()
calls = Calls("dbt-mcp (tools of the administrative API)", "dbt-mcp")
job, project, environment = settings.job["id"], settings.project["id"], settings.environment["id"]
server = StdioServerParameters(
    command=str(pathlib.Path(sys.executable).with_name("dbt-mcp")),
    env={
        **os.environ,
        "DBT_HOST": settings.host,
        "DBT_TOKEN": settings.token,
        "DBT_ACCOUNT_ID": str(settings.account_id),
        "DBT_PROD_ENV_ID": str(environment),
        "DBT_MCP_ENABLE_ADMIN_API": "true",
        "DO_NOT_TRACK": "1",
    },
)


async def main():
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        # With settings that it does not accept, the server waits for a login in a browser.
        await asyncio.wait_for(session.initialize(), 60)
        await use(session)


async def use(session):
    async def tool(name, **arguments):
        result = await session.call_tool(name, arguments)
        text = "".join(getattr(part, "text", "") for part in result.content)
        if result.isError:
            raise RuntimeError(text)
        value = result.structuredContent if result.structuredContent is not None else json.loads(text)
        return value.get("result", value) if isinstance(value, dict) else value

    async def call(name, function):
        outcome = None
        try:
            outcome = await function()
        except Exception as error:
            failure = error
            calls.call(name, lambda: raise_error(failure))
            return None
        calls.call(name, lambda: None)
        return outcome

    async def ended(run, status):
        for _ in range(120):
            details = await tool("get_job_run_details", run_id=run)
            if details["status"] == status:
                return details
            await asyncio.sleep(0.5)
        raise AssertionError(f"the run did not end with {status}: {details['status']}")

    async def has(name, value, **arguments):
        contains([row["id"] for row in await tool(name, **arguments)], value)

    await call("list_projects", lambda: has("list_projects", project))
    await call("list_jobs", lambda: has("list_jobs", job))
    await call("get_job_details", lambda: tool("get_job_details", job_id=job))

    async def trigger(cause, **options):
        return (await tool("trigger_job_run", job_id=job, cause=cause, **options))["id"]

    run = await call("trigger_job_run", lambda: trigger("success", git_branch="main", schema_override="proof"))
    await call("get_job_run_details", lambda: ended(run, 10))
    await call("list_jobs_runs", lambda: has("list_jobs_runs", run, job_id=job, status="success", order_by="-id"))

    async def artifacts():
        contains(await tool("list_job_run_artifacts", run_id=run), "run_results.json")

    await call("list_job_run_artifacts", artifacts)

    async def artifact(**options):
        result = await session.call_tool("get_job_run_artifacts", {"run_id": run, "artifact_path": "run_results.json", **options})
        equal(result.isError, False)
        contains(result.content[0].text, "model.warehouse.a")

    await call("get_job_run_artifacts", artifact)
    await call("get_job_run_artifacts(step)", lambda: artifact(step=4))
    failed = await call("trigger_job_run(of a failure)", lambda: trigger("error"))
    await call("get_job_run_details(of a failure)", lambda: ended(failed, 20))

    async def error():
        found = await tool("get_job_run_error", run_id=failed)
        contains(json.dumps(found), "model.warehouse.b")

    await call("get_job_run_error", error)

    async def retry():
        retried = (await tool("retry_job_run", run_id=failed))["id"]
        await ended(retried, 20)

    await call("retry_job_run", retry)

    async def cancel():
        waiting = await trigger("wait")
        equal((await tool("cancel_job_run", run_id=waiting))["status"], 30)

    await call("cancel_job_run", cancel)


def raise_error(error):
    raise error


asyncio.run(main())
