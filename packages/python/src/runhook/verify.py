"""Verifies deliveries; signatures by secret with the standard library only (docs/contract.md#signing)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterable, Sequence
from typing import Callable, Literal, Protocol, Union

from runhook.ed25519 import ed25519_verifier
from runhook.events import JobRunEvent, parse_event

Scheme = Literal["standard-webhooks", "authorization"]
RejectionCode = Literal["no_signature", "wrong_signature", "too_old", "too_new", "invalid_event", "too_large"]

_REJECTIONS: dict[RejectionCode, tuple[int, str]] = {
    "no_signature": (401, "The request has no signature."),
    "wrong_signature": (401, "The signature does not match the body with any of the secrets or public keys."),
    "too_old": (401, "The request was signed too long ago."),
    "too_new": (401, "The request was signed in the future."),
    "invalid_event": (400, "The body is not an event."),
    "too_large": (413, "The body is too large."),
}


class InvalidDeliveryError(Exception):
    """The request is not a genuine delivery; `status` is the status to respond with."""

    def __init__(self, code: RejectionCode) -> None:
        self.code = code
        self.status, message = _REJECTIONS[code]
        super().__init__(message)


class DeliveryHeaders(Protocol):
    """Request headers in any capitalization: a `dict`, or those of Flask, Django, Starlette and `http.server`."""

    def items(self) -> Iterable[tuple[str, str]]: ...


Body = Union[bytes, bytearray, memoryview, str]


class Receiver:
    """Verifies the deliveries of a webhook."""

    def __init__(  # noqa: PLR0913
        self,
        secrets: str | Sequence[str] | None = None,
        *,
        public_keys: str | Sequence[str] | None = None,
        scheme: Scheme = "standard-webhooks",
        signature_header: str = "Authorization",
        tolerance_seconds: float = 300,
        bytes_max: int = 1_048_576,
        on_rejected: Callable[[InvalidDeliveryError], object] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """
        secrets: the webhook's `hmac_secret`, including `whsec_`. During a rotation: the old and the new one, in any
            order.
        public_keys: instead of secrets: the public keys of the webhook's `signature_key`, `whpk_…`. Only Ed25519
            signatures are then accepted, which only the service can make. Requires the extra `ed25519`.
        scheme: the signature that is verified. `standard-webhooks` is in the `webhook-` headers: it covers the time
            of the attempt, so that a recorded request cannot be replayed later, and there is one per secret during
            a rotation. `authorization` covers only the body.
        signature_header: for `authorization`: the webhook's `signature_header`.
        tolerance_seconds: for `standard-webhooks`: maximum difference between the attempt's time and the local clock.
        bytes_max: maximum size of a body in the handlers of frameworks; no delivery reaches 1 MiB.
        on_rejected: called by the handlers for each rejected request, which also gets an error response.
        now: returns seconds since the epoch.

        Raises `TypeError` without a secret, or for one without `whsec_`: at program start, not at the first request.
        """
        self.secrets: tuple[str, ...] = ()
        self._verify_ed25519: Callable[[bytes, str], bool] | None = None
        if public_keys is None:
            self.secrets = _checked_secrets(secrets)
        elif secrets is not None or scheme == "authorization":
            raise TypeError("public_keys replaces secrets, and verifies the scheme standard-webhooks only")
        else:
            self._verify_ed25519 = ed25519_verifier(public_keys)
        if scheme not in ("standard-webhooks", "authorization"):
            raise TypeError("scheme must be standard-webhooks or authorization")
        self.scheme = scheme
        self.signature_header = signature_header
        self.tolerance_seconds = tolerance_seconds
        self.bytes_max = bytes_max
        self.on_rejected = on_rejected
        self._now = now

    def verify(self, body: Body, headers: DeliveryHeaders) -> JobRunEvent:
        """Returns the event of a delivery if it is genuine; raises `InvalidDeliveryError` if it is not.

        body: exactly as received: JSON that was parsed and serialized again differs.
        """
        if not isinstance(body, (bytes, bytearray, memoryview, str)):
            raise TypeError("The body was parsed before its signature could be checked: verify its bytes.")
        signed = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else bytes(body)
        check = self._check_authorization if self.scheme == "authorization" else self._check_standard_webhooks
        rejection = check(signed, headers)
        if rejection is not None:
            raise InvalidDeliveryError(rejection)
        return _parse_body(signed)

    def _check_authorization(self, body: bytes, headers: DeliveryHeaders) -> RejectionCode | None:
        signature = _find_header(headers, self.signature_header)
        if signature is None:
            return "no_signature"
        expected = [hmac.new(secret.encode(), body, hashlib.sha256).hexdigest() for secret in self.secrets]
        return None if _any_equal([signature], expected) else "wrong_signature"

    def _check_standard_webhooks(self, body: bytes, headers: DeliveryHeaders) -> RejectionCode | None:
        event_id = _find_header(headers, "webhook-id")
        timestamp = _find_header(headers, "webhook-timestamp")
        signatures = _find_header(headers, "webhook-signature")
        if event_id is None or timestamp is None or signatures is None:
            return "no_signature"
        message = f"{event_id}.{timestamp}.".encode("utf-8", "surrogatepass") + body
        if not self._is_signed(message, signatures):
            return "wrong_signature"
        if not re.fullmatch(r"[0-9]{1,12}", timestamp):
            return "too_old"
        age_seconds = self._now() - int(timestamp)
        if age_seconds > self.tolerance_seconds:
            return "too_old"
        return "too_new" if age_seconds < -self.tolerance_seconds else None

    def _is_signed(self, message: bytes, signatures: str) -> bool:
        if self._verify_ed25519 is not None:
            return self._verify_ed25519(message, signatures)
        expected = []
        for secret in self.secrets:
            digest = hmac.new(_key(secret), message, hashlib.sha256).digest()
            expected.append("v1," + base64.b64encode(digest).decode())
        return _any_equal(signatures.split(" "), expected)


def verify(  # noqa: PLR0913
    body: Body,
    headers: DeliveryHeaders,
    *,
    secrets: str | Sequence[str] | None = None,
    public_keys: str | Sequence[str] | None = None,
    scheme: Scheme = "standard-webhooks",
    signature_header: str = "Authorization",
    tolerance_seconds: float = 300,
    now: Callable[[], float] = time.time,
) -> JobRunEvent:
    """Returns the event of a delivery if it is genuine: `Receiver(secrets, …).verify(body, headers)`."""
    receiver = Receiver(
        secrets,
        public_keys=public_keys,
        scheme=scheme,
        signature_header=signature_header,
        tolerance_seconds=tolerance_seconds,
        now=now,
    )
    return receiver.verify(body, headers)


def _checked_secrets(secrets: str | Sequence[str] | None) -> tuple[str, ...]:
    checked = (secrets,) if isinstance(secrets, str) else tuple(secrets or ())
    if not checked or not all(isinstance(secret, str) and re.match("whsec_.", secret) for secret in checked):
        raise TypeError("secrets must be the hmac_secret of the webhook, whsec_ included, or several of them")
    return checked


def _any_equal(signatures: Sequence[str], expected: Sequence[str]) -> bool:
    """Compares all pairs, each in constant time."""
    found = False
    for one in signatures:
        for other in expected:
            found |= hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode())
    return found


def _key(secret: str) -> bytes:
    """Decodes the base64 part of the secret; the padding may be missing, as libraries of the scheme allow."""
    text = secret[len("whsec_") :].translate({ord("-"): "+", ord("_"): "/"}).rstrip("=")
    return base64.b64decode(text + "=" * (-len(text) % 4))


def _find_header(headers: DeliveryHeaders, name: str) -> str | None:
    """Returns the value of a header; None if there is none, or more than one."""
    found = [value for key, value in headers.items() if key.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def _parse_body(body: bytes) -> JobRunEvent:
    try:
        parsed = json.loads(body)
        if isinstance(parsed, dict):
            return parse_event(parsed)
    except (ValueError, RecursionError):
        pass
    raise InvalidDeliveryError("invalid_event")
