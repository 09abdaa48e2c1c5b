"""For Flask: `pip install "runhook[flask]"`."""

from __future__ import annotations

from typing import Any, Callable

from flask import Response, current_app, request

from runhook.deduplication import EventInProgressError
from runhook.verify import InvalidDeliveryError, Receiver


def flask_handler(receiver: Receiver) -> Callable[[Callable[[Any], object]], Callable[[], Response]]:
    """Converts a function of an event to a view:

        @app.post("/webhooks")
        @flask_handler(Receiver(os.environ["HMAC_SECRET"]))
        def on_event(event: JobRunEvent) -> None: ...

    A genuine event gets a 204 response once the function has ended, any other request a 401, 400 or 413. If the
    function raises, Flask responds with 500: the attempt has failed, and the delivery is retried. An attempt without a
    response fails after 10 s by default.
    """

    def create_view(on_event: Callable[[Any], object]) -> Callable[[], Response]:
        def view() -> Response:
            try:
                event = receiver.verify(_read_body(receiver.bytes_max), request.headers)
            except InvalidDeliveryError as error:
                if receiver.on_rejected is not None:
                    receiver.on_rejected(error)
                return Response(error.code, error.status, mimetype="text/plain")
            try:
                current_app.ensure_sync(on_event)(event)
            except EventInProgressError as error:
                return Response(error.code, error.status, mimetype="text/plain")
            return Response(status=204)

        view.__name__ = getattr(on_event, "__name__", "webhook")
        return view

    return create_view


def _read_body(bytes_max: int) -> bytes:
    length = request.content_length
    if length is not None and length > bytes_max:
        raise InvalidDeliveryError("too_large")
    # A chunked request has no content length, so the read must be limited here.
    body: bytes = request.stream.read(bytes_max + 1) if length is None else request.get_data()
    if len(body) > bytes_max:
        raise InvalidDeliveryError("too_large")
    return body
