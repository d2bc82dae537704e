"""Replies that can always be sent: valid UTF-8, valid JSON."""

from __future__ import annotations

import json
from typing import Any

from fastapi.responses import JSONResponse


class Reply(JSONResponse):
    """JSON in which a lone surrogate from a verifier is replaced by "?"."""

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")
