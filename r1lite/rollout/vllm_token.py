"""Middleware for vLLM's server: every call needs the token, those that take weights most of all.

vLLM's own `--api-key` asks for one below /v1, /v2 and /inference alone: /pause, /collective_rpc and /update_weights
stay open.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Awaitable, Callable
from typing import Any

from r1lite.rollout.http_server import TOKEN

GUARD = "r1lite.rollout.vllm_token.TokenGuard"  # as `--middleware` names it

_Receive = Callable[[], Awaitable[Any]]
_Send = Callable[[dict[str, Any]], Awaitable[None]]
_App = Callable[[dict[str, Any], _Receive, _Send], Awaitable[None]]
_POLICY_VIOLATION = 1008  # code of a websocket's end


class TokenGuard:
    """ASGI middleware that answers 401 to what lacks `Authorization: Bearer` with the token of R1LITE_ENGINE_TOKEN."""

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
            await send({"type": "http.response.body", "body": b"a token is missing, or is another one"})

    def _allows(self, scope: dict[str, Any]) -> bool:
        given = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._wanted)
