"""For Django: `pip install "runhook[django]"`."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from runhook.deduplication import EventInProgressError
from runhook.events import JobRunEvent
from runhook.verify import InvalidDeliveryError, Receiver


def django_handler(receiver: Receiver) -> Callable[[Callable[[Any], object]], Callable[..., Any]]:
    """Converts a function or coroutine function of an event to a view:

        @django_handler(Receiver(os.environ["HMAC_SECRET"]))
        def on_event(event: JobRunEvent) -> None: ...

        urlpatterns = [path("webhooks", on_event)]

    A genuine event gets a 204 response once the function has ended, any other POST a 401, 400 or 413. If the
    function raises, the response is a 500: the attempt has failed, and the delivery is retried. An attempt without a
    response fails after 10 s by default.
    """

    def create_view(on_event: Callable[[Any], object]) -> Callable[..., Any]:
        def view(request: HttpRequest) -> HttpResponse:
            event = _event(receiver, request)
            if isinstance(event, HttpResponse):
                return event
            try:
                on_event(event)
            except EventInProgressError as error:
                return _text_response(error.code, error.status)
            return HttpResponse(status=204)

        async def view_async(request: HttpRequest) -> HttpResponse:
            event = _event(receiver, request)
            if isinstance(event, HttpResponse):
                return event
            try:
                await on_event(event)  # type: ignore[misc]
            except EventInProgressError as error:
                return _text_response(error.code, error.status)
            return HttpResponse(status=204)

        selected = view_async if inspect.iscoroutinefunction(on_event) else view
        selected.__name__ = getattr(on_event, "__name__", "webhook")
        # A signed request needs no CSRF token. The decorator of older versions would hide a coroutine function.
        exempt: Any = selected
        exempt.csrf_exempt = True
        return exempt  # type: ignore[no-any-return]

    return create_view


def _event(receiver: Receiver, request: HttpRequest) -> JobRunEvent | HttpResponse:
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    try:
        if int(request.META.get("CONTENT_LENGTH") or 0) > receiver.bytes_max:
            raise InvalidDeliveryError("too_large")
        return receiver.verify(request.body, request.headers)
    except InvalidDeliveryError as error:
        if receiver.on_rejected is not None:
            receiver.on_rejected(error)
        return _text_response(error.code, error.status)


def _text_response(text: str, status: int) -> HttpResponse:
    return HttpResponse(text, status=status, content_type="text/plain")
