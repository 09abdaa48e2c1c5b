"""For FastAPI, and Starlette alike: `pip install "runhook[fastapi]"`."""

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
    """Makes an endpoint of a function, or a coroutine function, that takes an event:

        @app.post("/webhooks")
        @fastapi_handler(Receiver(os.environ["HMAC_SECRET"]))
        async def on_event(event: JobRunEvent) -> None: ...

    A genuine event is answered 204 once the function has ended, anything else 401, 400 or 413. What the function raises
    is answered 500: the attempt failed, and the delivery is tried again. So it does after ten seconds. A function that is
    no coroutine function runs in a thread.
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
