from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest
from golden import vectors

from runhook import InvalidDeliveryError, InvalidEventError, Receiver
from runhook.event_rules import check_events, well_formed_text
from runhook.events import DATA_FIELDS
from runhook.shards import MAP_KEY, SLOTS, account_slot, parse_shard_map, shard_prefix
from runhook.verify import Scheme

DELIVERIES = vectors("deliveries.json")
KEY_DELIVERIES = vectors("ed25519.json")
EVENTS = vectors("events.json")
SHARDS = vectors("shards.json")
TEXTS = vectors("texts.json")
NAMES: dict[Scheme, str] = {"authorization": "authorization", "standard-webhooks": "standardWebhooks"}


@pytest.mark.parametrize("scheme", NAMES)
@pytest.mark.parametrize("delivery", DELIVERIES["deliveries"], ids=lambda one: one["name"])
def test_a_receiver_judges_each_delivery_as_receivers_in_other_languages_do(
    delivery: dict[str, Any], scheme: Scheme
) -> None:
    receiver = Receiver(
        delivery["secrets"],
        scheme=scheme,
        tolerance_seconds=DELIVERIES["toleranceSeconds"],
        now=lambda: delivery["nowMs"] / 1000,
    )

    def rejection_code(body: str | bytes) -> str | None:
        try:
            receiver.verify(body, delivery["headers"])
        except InvalidDeliveryError as error:
            return error.code
        return None

    body = base64.b64decode(delivery["bodyBase64"])
    rejection = rejection_code(body)
    assert rejection_code(delivery["body"]) == rejection
    is_genuine = rejection in (None, "invalid_event")
    assert is_genuine == delivery["genuine"][NAMES[scheme]]


@pytest.mark.parametrize("delivery", KEY_DELIVERIES["deliveries"], ids=lambda one: one["name"])
def test_a_receiver_with_public_keys_judges_each_delivery_as_receivers_in_other_languages_do(
    delivery: dict[str, Any],
) -> None:
    pytest.importorskip("cryptography")
    receiver = Receiver(
        public_keys=delivery["publicKeys"],
        tolerance_seconds=KEY_DELIVERIES["toleranceSeconds"],
        now=lambda: delivery["nowMs"] / 1000,
    )
    for body in (base64.b64decode(delivery["bodyBase64"]), delivery["body"]):
        code = None
        try:
            receiver.verify(body, delivery["headers"])
        except InvalidDeliveryError as error:
            code = error.code
        assert (code in (None, "invalid_event")) == delivery["genuine"]


@pytest.mark.parametrize("vector", EVENTS["events"], ids=lambda one: one["name"])
def test_an_event_is_published_with_its_golden_body_or_rejected_for_its_field(
    vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: EVENTS["nowMs"] / 1000)
    if "problem" in vector:
        with pytest.raises(InvalidEventError) as caught:
            check_events([vector["published"]], 3_650)
        assert [problem.field for problem in caught.value.problems] == [vector["problem"]]
        assert vector["problem"] in str(caught.value)
        return
    (event,) = check_events([vector["published"]], 3_650)
    webhook = EVENTS["subscription"]
    delivered = {
        "accountId": event["accountId"],
        "webhooksID": webhook["id"],
        "eventId": event["eventId"],
        "timestamp": event["timestamp"],
        "eventType": event["eventType"],
        "webhookName": webhook["name"],
        "data": event["data"],
    }
    assert _compact(delivered) == vector["body"]
    assert tuple(event["data"]) == DATA_FIELDS[event["eventType"]]


@pytest.mark.parametrize("vector", TEXTS["texts"], ids=lambda one: one["name"])
def test_a_text_is_repaired_as_by_the_services(vector: dict[str, Any]) -> None:
    text = bytes.fromhex(vector["utf16"]).decode("utf-16-be", "surrogatepass")
    assert well_formed_text(text) == vector["repaired"]
    assert (well_formed_text(text) == text) == vector["valid"]


def test_the_halves_of_a_surrogate_pair_are_joined_to_one_character() -> None:
    assert well_formed_text("\ud83d\ude80 \ud83d") == "\U0001f680 \ufffd"


def test_an_account_has_the_same_shard_as_in_other_languages() -> None:
    assert (SHARDS["key"], SHARDS["slots"]) == (MAP_KEY, SLOTS)
    shard_map = parse_shard_map(SHARDS["map"]["version"], SHARDS["map"]["slots"])
    for account in SHARDS["accounts"]:
        assert account_slot(account["accountId"]) == account["slot"]
        assert shard_prefix(shard_map.shard_of(account["accountId"])) == account["prefix"]


@pytest.mark.parametrize("slots", SHARDS["rejected"])
def test_an_invalid_map_of_shards_is_rejected(slots: str) -> None:
    with pytest.raises(ValueError, match="does not contain a shard map"):
        parse_shard_map("1", slots)


def _compact(value: object) -> str:
    """Serializes like JSON.stringify, which escapes unpaired surrogates and no other characters beyond ASCII."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "".join(f"\\u{ord(one):04x}" if 0xD800 <= ord(one) <= 0xDFFF else one for one in text)
