"""For FastAPI and Starlette: `pip install "runhook[fastapi]"`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from runhook.repeats import RepeatUnderway
from runhook.verify import Receiver, RefusedDelivery


def fastapi_handler(
    receiver: Receiver,
) -> Callable[[Callable[[Any], object]], Callable[[Request], Awaitable[Response]]]:
    """Converts a function or coroutine function of an event to an endpoint:

        @app.post("/webhooks")
        @fastapi_handler(Receiver(os.environ["HMAC_SECRET"]))
        async def on_event(event: JobRunEvent) -> None: ...

    A genuine event gets a 204 response once the function has ended, any other request a 401, 400 or 413. If the
    function raises, the response is a 500: the attempt has failed, and the delivery is retried. An attempt without a
    response fails after ten seconds. A function that is not a coroutine function runs in a thread.
    """

    def endpoint_of(on_event: Callable[[Any], object]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                event = receiver.verify(await _body(request, receiver.bytes_max), request.headers)
            except RefusedDelivery as refused:
                if receiver.on_refused is not None:
                    receiver.on_refused(refused)
                return PlainTextResponse(refused.code, refused.status)
            try:
                if inspect.iscoroutinefunction(on_event):
                    await on_event(event)
                else:
                    await run_in_threadpool(on_event, event)
            except RepeatUnderway as repeat:
                return PlainTextResponse(repeat.code, repeat.status)
            return Response(status_code=204)

        endpoint.__name__ = getattr(on_event, "__name__", "webhook")
        return endpoint

    return endpoint_of


async def _body(request: Request, bytes_max: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > bytes_max:
            raise RefusedDelivery("too_large")
    return bytes(body)
