"""Records the calls of an unmodified client, for the proof `clients`. Each program prints one JSON line per call."""

import importlib.metadata
import json
import sys
import time
import traceback


class Settings:
    """Argument of the program, as the test passes it: addresses, credentials and ids of the service under test."""

    def __init__(self):
        values = json.loads(sys.argv[1])
        self.url = values["url"]
        self.host = values["url"].removeprefix("https://")
        self.token = values["token"]
        self.account_id = values["accountId"]
        self.project = values["project"]
        self.environment = values["environment"]
        self.job = values["job"]
        self.folder = values["folder"]


class Calls:
    """
    Runs calls and prints the outcome of each: `pass`, `fail` with the error, or `not served` with the reason.

    A program ends with the exit code 0 whatever the outcomes are; the test judges them.
    """

    def __init__(self, client, distribution):
        self.client = client
        self.version = importlib.metadata.version(distribution)

    def call(self, name, function):
        """Returns the function's result, or None if it raised."""
        started = time.monotonic()
        try:
            result = function()
            self._print(name, "pass", "", started)
            return result
        except BaseException as error:  # Clients raise SystemExit, and exceptions of other bases.
            if isinstance(error, KeyboardInterrupt):
                raise
            traceback.print_exc()
            self._print(name, "fail", f"{type(error).__name__}: {error}"[:600], started)
            return None

    def not_served(self, name, reason, function, expected=("is not served",)):
        """The function must end with an error that has one of the expected texts, such as that of a route that is not served."""
        started = time.monotonic()
        try:
            text = json.dumps(function(), default=str)
        except BaseException as error:
            text = _texts(error)
        if any(part in text for part in expected):
            self._print(name, "not served", reason, started)
        else:
            self._print(name, "fail", f"unexpected: {text[:600]}", started)

    def _print(self, name, outcome, detail, started):
        line = {
            "client": self.client,
            "version": self.version,
            "call": name,
            "outcome": outcome,
            "detail": detail,
            "seconds": round(time.monotonic() - started, 2),
        }
        print("\n" + json.dumps(line), flush=True)


def _texts(error):
    """Returns the error's text with the responses of its causes, since few clients show the body."""
    texts = []
    while error is not None:
        texts.append(str(error))
        response = getattr(error, "response", None)
        if response is not None:
            texts.append(getattr(response, "text", ""))
        error = error.__cause__ or error.__context__
    return " ".join(texts)


def equal(actual, expected):
    if actual != expected:
        raise AssertionError(f"{actual!r} is not {expected!r}")


def contains(values, value):
    if value not in values:
        raise AssertionError(f"{value!r} is not in {str(values)[:300]}")
