"""For FastAPI and Starlette: `pip install "runhook[fastapi]"`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from runhook.deduplication import EventInProgressError
from runhook.verify import InvalidDeliveryError, Receiver


def fastapi_handler(
    receiver: Receiver,
) -> Callable[[Callable[[Any], object]], Callable[[Request], Awaitable[Response]]]:
    """Converts a function or coroutine function of an event to an endpoint:

        @app.post("/webhooks")
        @fastapi_handler(Receiver(os.environ["HMAC_SECRET"]))
        async def on_event(event: JobRunEvent) -> None: ...

    A genuine event gets a 204 response once the function has ended, any other request a 401, 400 or 413. If the
    function raises, the response is a 500: the attempt has failed, and the delivery is retried. An attempt without a
    response fails after 10 s by default. A function that is not a coroutine function runs in a thread.
    """

    def create_endpoint(on_event: Callable[[Any], object]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                event = receiver.verify(await _read_body(request, receiver.bytes_max), request.headers)
            except InvalidDeliveryError as error:
                if receiver.on_rejected is not None:
                    receiver.on_rejected(error)
                return PlainTextResponse(error.code, error.status)
            try:
                if inspect.iscoroutinefunction(on_event):
                    await on_event(event)
                else:
                    await run_in_threadpool(on_event, event)
            except EventInProgressError as error:
                return PlainTextResponse(error.code, error.status)
            return Response(status_code=204)

        endpoint.__name__ = getattr(on_event, "__name__", "webhook")
        return endpoint

    return create_endpoint


async def _read_body(request: Request, bytes_max: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > bytes_max:
            raise InvalidDeliveryError("too_large")
    return bytes(body)
