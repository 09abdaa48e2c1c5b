"""Verifies Ed25519 signatures of deliveries; requires the extra `ed25519`."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Callable

_PUBLIC_KEY = re.compile("whpk_([0-9A-Za-z+/]{43}=)")
_SIGNATURE = re.compile("v1a,([0-9A-Za-z+/]{86}==)")
# A delivery has two at most. The limit bounds the work that a request of anyone causes.
_SIGNATURES_MAX = 8


def ed25519_verifier(public_keys: str | Sequence[str]) -> Callable[[bytes, str], bool]:
    """Returns a function of the signed content and of the header `webhook-signature`.

    Raises `TypeError` for anything that is not a public key, and `ImportError` without the package `cryptography`.
    """
    texts = (public_keys,) if isinstance(public_keys, str) else tuple(public_keys)
    matches = [isinstance(text, str) and _PUBLIC_KEY.fullmatch(text) for text in texts]
    encoded_keys = [match.group(1) for match in matches if match]
    if not texts or len(encoded_keys) < len(texts):
        raise TypeError("public_keys must be a public key of the webhook, whpk_ included, or several of them")
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
    except ImportError as error:
        message = 'public_keys requires the package cryptography: pip install "runhook[ed25519]"'
        raise ImportError(message) from error
    keys = [Ed25519PublicKey.from_public_bytes(base64.b64decode(encoded)) for encoded in encoded_keys]

    def is_signature(key: Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
        try:
            key.verify(signature, content)
        except InvalidSignature:
            return False
        return True

    def is_signed(content: bytes, header: str) -> bool:
        found = [match.group(1) for text in header.split(" ") if (match := _SIGNATURE.fullmatch(text))]
        signatures = [base64.b64decode(encoded) for encoded in found[:_SIGNATURES_MAX]]
        return any(is_signature(key, signature, content) for key in keys for signature in signatures)

    return is_signed
