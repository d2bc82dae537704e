"""Middleware for vLLM's server that requires the token for every call.

vLLM's own `--api-key` protects only paths below /v1, /v2 and /inference: /pause, /collective_rpc and /update_weights
stay open, although they can replace the weights.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Awaitable, Callable
from typing import Any

from r1lite.rollout.server import TOKEN

GUARD = "r1lite.rollout.vllm_token.TokenGuard"  # the value for `--middleware`

_Receive = Callable[[], Awaitable[Any]]
_Send = Callable[[dict[str, Any]], Awaitable[None]]
_App = Callable[[dict[str, Any], _Receive, _Send], Awaitable[None]]
_POLICY_VIOLATION = 1008  # close code of a websocket


class TokenGuard:
    """ASGI middleware that answers 401 to requests without `Authorization: Bearer` and R1LITE_ENGINE_TOKEN's token."""

    def __init__(self, app: _App) -> None:
        self._app = app
        self._wanted = f"Bearer {os.environ[TOKEN]}".encode()

    async def __call__(self, scope: dict[str, Any], receive: _Receive, send: _Send) -> None:
        if scope["type"] == "lifespan" or self._allows(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        else:
            headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"the token is missing or wrong"})

    def _allows(self, scope: dict[str, Any]) -> bool:
        credentials = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
        return len(credentials) == 1 and hmac.compare_digest(credentials[0], self._wanted)
