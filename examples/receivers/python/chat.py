#!/usr/bin/env python3
"""A receiver that posts the result of each completed run to a chat: it reads the run with its steps, and `run_results.json`.

    HMAC_SECRET=whsec_... API_URL=https://runhook.example.com API_KEY=... CHAT_URL=https://hooks.slack.com/services/... \\
        PORT=3005 python3 examples/receivers/python/chat.py

It needs only Python's standard library (3.8 or newer), a subscription to job.run.completed whose client_url is
http://127.0.0.1:3005/webhooks, an API key that may read runs, and an incoming webhook of a chat, which accepts
{"text": "..."}, as those of Slack and many others.
"""

import hashlib
import hmac
import json
import os
import signal
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATH = "/webhooks"
BODY_BYTES_MAX = 1_000_000
# The three requests take nine seconds at most, because an attempt without a response fails after ten.
TIMEOUT_SECONDS = 3
LOG_LINES = 10
# Events that were posted; a receiver with several processes would store them.
POSTED = set()


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if self.path != PATH or not length.isdigit() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True
            return self.respond(404 if self.path != PATH else 413)
        body = self.rfile.read(int(length))
        expected = hmac.new(os.environ["HMAC_SECRET"].encode(), body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected.encode(), self.headers.get("Authorization", "").encode()):
            return self.respond(401)
        event = json.loads(body)
        if event["eventType"] != "job.run.completed" or event["eventId"] in POSTED:
            return self.respond(204)
        try:
            post_result(event["accountId"], event["data"])
        except OSError as error:
            # The delivery is attempted again, so a failure of the API or the chat loses no message.
            print(f"{event['eventId']}: {error}", file=sys.stderr)
            return self.respond(503)
        POSTED.add(event["eventId"])
        self.respond(204)

    def respond(self, status: int):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Suppresses the default log of each request."""


def post_result(account_id, data):
    run_url = f"{os.environ['API_URL']}/api/v2/accounts/{account_id}/runs/{data['runId']}"
    run = get_json(f"{run_url}/?include_related=run_steps")["data"]
    try:
        results = get_json(f"{run_url}/artifacts/run_results.json")["results"]
    except urllib.error.HTTPError as error:
        # A run without dbt commands has no such file.
        if error.code != 404:
            raise
        results = []
    lines = [
        f"<{run['href']}|{run['status_humanized']}: run {run['id']} of {data['jobName']}>"
        f" in {data['environmentName']}, {run['duration_humanized']}"
    ]
    for step in run["run_steps"]:
        is_success = step["status_humanized"] == "Success"
        mark = "✅" if is_success else "❌"
        lines.append(f"{mark} {step['name']} ({step['status_humanized']}, {step['duration_humanized']})")
        if not is_success and step["logs"]:
            lines += step["logs"].rstrip().split("\n")[-LOG_LINES:]
    lines += [
        f"• {result['unique_id']}: {result['status']}: {result['message']}"
        for result in results
        if result["status"] in ("error", "fail")
    ]
    message = json.dumps({"text": "\n".join(lines)}).encode()
    request = urllib.request.Request(
        os.environ["CHAT_URL"], data=message, headers={"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS).close()


def get_json(url):
    request = urllib.request.Request(url, headers={"Authorization": f"Token {os.environ['API_KEY']}"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        return json.load(response)


def stop(*_):
    raise SystemExit(0)


if __name__ == "__main__":
    for name in ("HMAC_SECRET", "API_URL", "API_KEY", "CHAT_URL"):
        os.environ[name]
    host = os.environ.get("HOST", "127.0.0.1")
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    with ThreadingHTTPServer((host, int(os.environ.get("PORT", "3005"))), Receiver) as server:
        server.daemon_threads = True
        print(json.dumps({"listening": f"http://{host}:{server.server_address[1]}{PATH}"}), flush=True)
        server.serve_forever()
