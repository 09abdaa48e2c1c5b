"""Hooks of schemathesis: accept a failure only for a reason that is listed, and write each accepted one to a file."""

import json
import os
import re
from pathlib import Path

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData, ServerError
from schemathesis.openapi.checks import RejectedPositiveData

CONSTRAINTS = json.loads(Path(__file__).with_name("constraints.json").read_text())
ACCEPTED_FILE = Path(os.environ["ACCEPTED_FAILURES"])


@schemathesis.hook
def filter_failure(context, failure, case, response):
    reason = reason_to_accept(failure, case, response)
    if reason is None:
        return True
    operation = f"{case.method} {case.operation.path}"
    with ACCEPTED_FILE.open("a") as file:
        file.write(json.dumps({"operation": operation, "reason": reason}) + "\n")
    return False


def reason_to_accept(failure, case, response):
    if isinstance(failure, ServerError) and response.status_code == 503:
        return "a 503 that states its reason" if user_message(response) else None
    if isinstance(failure, RejectedPositiveData) and response.status_code == 400:
        reasons = [constraint_of(error) for error in status_of(response).get("errors", [])]
        # Every problem of the request must be one that the schema cannot express.
        return "; ".join(sorted(set(reasons))) if reasons and None not in reasons else None
    if isinstance(failure, AcceptedNegativeData):
        if re.search(r"in body - job_ids\b", failure.message):
            return "job_ids as digits or as a single id, as the description states"
        name = re.search(r"parameter `(\w+)` in query", failure.message)
        # A filter that is present and empty is none, because clients send all of their parameters.
        return "an empty filter is none" if name and case.query.get(name[1]) == "" else None
    return None


def constraint_of(error):
    for constraint in CONSTRAINTS:
        if re.fullmatch(constraint["field"], error["field"]) and re.search(constraint["message"], error["message"]):
            return constraint["why"]
    return None


def user_message(response):
    return status_of(response).get("user_message")


def status_of(response):
    try:
        return response.json()["status"]
    except (KeyError, TypeError, ValueError):
        return {}
