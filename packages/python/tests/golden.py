"""Loads the golden vectors of the repository, which all languages share; skips the tests if they are not available."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

_REPOSITORY_FOLDER = Path(__file__).resolve().parents[2] / "contract" / "golden"
FOLDER = Path(os.environ.get("RUNHOOK_GOLDEN", _REPOSITORY_FOLDER))


def vectors(name: str) -> dict[str, Any]:
    file = FOLDER / name
    if not file.exists():
        pytest.skip(f"there are no golden vectors at {file}", allow_module_level=True)
    return json.loads(file.read_text("utf-8"))  # type: ignore[no-any-return]
