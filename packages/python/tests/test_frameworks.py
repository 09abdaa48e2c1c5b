"""Tests that all frameworks respond to the same requests in the same way."""

from __future__ import annotations

import asyncio
from typing import Any, Callable

import pytest
from test_receiving import BODY, SECRET, authorization

from runhook import EventInProgressError, InvalidDeliveryError, JobRunEvent, Receiver

Post = Callable[[bytes, dict[str, str]], tuple[int, str]]

rejected_codes: list[str] = []
RECEIVER = Receiver(
    SECRET,
    scheme="authorization",
    bytes_max=1_000,
    on_rejected=lambda error: rejected_codes.append(error.code),
)


def on_event(event: JobRunEvent) -> None:
    if event.webhook_name == "Again":
        raise EventInProgressError
    assert event.webhook_name == "Pager"


async def on_event_async(event: JobRunEvent) -> None:
    await asyncio.sleep(0)
    on_event(event)


def flask_post() -> Post:
    flask = pytest.importorskip("flask")
    from runhook.flask import flask_handler  # noqa: PLC0415

    app = flask.Flask("test")
    app.post("/hook")(flask_handler(RECEIVER)(on_event))

    def post(body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        response = app.test_client().post("/hook", data=body, headers=headers)
        return response.status_code, response.text

    return post


def fastapi_post(function: Callable[[JobRunEvent], object]) -> Post:
    fastapi = pytest.importorskip("fastapi")
    from runhook.fastapi import fastapi_handler  # noqa: PLC0415

    app = fastapi.FastAPI()
    app.post("/hook")(fastapi_handler(RECEIVER)(function))

    async def call(body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/hook",
            "raw_path": b"/hook",
            "query_string": b"",
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return sent[0]["status"], b"".join(one.get("body", b"") for one in sent).decode()

    return lambda body, headers: asyncio.run(call(body, headers))


def django_post(function: Callable[[JobRunEvent], object]) -> Post:
    pytest.importorskip("django")
    import django  # noqa: PLC0415
    from django.conf import settings  # noqa: PLC0415
    from django.test import RequestFactory  # noqa: PLC0415

    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["*"])
        django.setup()
    from runhook.django import django_handler  # noqa: PLC0415

    view: Any = django_handler(RECEIVER)(function)
    assert getattr(view, "csrf_exempt", False)

    def post(body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        named = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
        request = RequestFactory().generic("POST", "/hook", body, "application/json", **named)
        response = view(request)
        response = asyncio.run(response) if asyncio.iscoroutine(response) else response
        return response.status_code, response.content.decode()

    assert view(RequestFactory().get("/hook")).status_code == 405 if function is on_event else True
    return post


FRAMEWORKS: dict[str, Callable[[], Post]] = {
    "Flask": flask_post,
    "FastAPI": lambda: fastapi_post(on_event),
    "FastAPI, async": lambda: fastapi_post(on_event_async),
    "Django": lambda: django_post(on_event),
    "Django, async": lambda: django_post(on_event_async),
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_genuine_event_gets_204_and_any_other_request_an_error_with_its_code(framework: str) -> None:
    post = FRAMEWORKS[framework]()
    rejected_codes.clear()
    assert post(BODY, {"Authorization": authorization()}) == (204, "")
    assert post(BODY + b" ", {"Authorization": authorization()}) == (401, "wrong_signature")
    assert post(BODY, {}) == (401, "no_signature")
    assert post(b"[]", {"Authorization": authorization(b"[]")}) == (400, "invalid_event")
    long = BODY + b" " * 1_000
    assert post(long, {"Authorization": authorization(long)}) == (413, "too_large")
    assert rejected_codes == ["wrong_signature", "no_signature", "invalid_event", "too_large"]
    repeat = BODY.replace(b"Pager", b"Again")
    assert post(repeat, {"Authorization": authorization(repeat)}) == (503, "event_in_progress")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_error_of_the_function_is_left_to_the_framework(framework: str) -> None:
    post = FRAMEWORKS[framework]()
    other = BODY.replace(b"Pager", b"Other")
    try:
        status, _ = post(other, {"Authorization": authorization(other)})
    except AssertionError:
        return
    assert status == 500


def test_an_invalid_delivery_has_the_status_to_respond_with() -> None:
    assert (InvalidDeliveryError("no_signature").status, InvalidDeliveryError("too_large").status) == (
        401,
        413,
    )
