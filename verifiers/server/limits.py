"""Checks of a request before it is read: its host, its token, its size; and counts of all requests."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from verifiers.server.lanes import Metrics
from verifiers.server.loopback import is_loopback
from verifiers.server.replies import Reply

_OPEN = ("/healthz",)  # routes without a token
_ROUTES = ("/v1/verify", "/get_reward", "/slime", "/healthz", "/metrics", "/docs", "/openapi.json")
_MIB = 1 << 20
_DISCARD_S = 5.0  # a refused body is read and discarded for this long, ...
_DISCARD_IDLE_S = 1.0  # ... while data arrives, ...
_DISCARD_BODIES = 4  # ... up to this many times the allowed size


class Refused(Exception):
    """A request that is answered before it is read to its end."""

    def __init__(self, code: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.code, self.detail, self.headers = code, detail, headers or {}


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits of requests."""

    token: str = ""  # "" = none is required
    hosts: Sequence[str] | None = None  # names allowed in the Host header besides loopback addresses; None = any
    body_mib: float = 64.0  # of one request
    bodies_mib: float = 256.0  # of all requests at a time


class Limited:
    """ASGI middleware; a request that it refuses is never parsed, and its body is never stored."""

    def __init__(self, app: ASGIApp, limits: RequestLimits, metrics: Metrics) -> None:
        self.app, self.limits, self.metrics = app, limits, metrics
        self._held = 0  # bytes of all bodies that are being read or scored

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(self, dict(scope["headers"]), receive, send)
        began = time.monotonic()
        try:
            self._check(scope["path"], exchange.headers)
            await self.app(scope, exchange.receive, exchange.send)
        except Refused as error:
            await Reply({"detail": error.detail}, error.code, error.headers)(scope, receive, exchange.send)
        finally:
            self._held -= exchange.size
            route = scope["path"] if scope["path"] in _ROUTES else "other"
            self.metrics.request(route, exchange.code, began)

    def _check(self, path: str, headers: dict[bytes, bytes]) -> None:
        """Checks host and token. Raises Refused."""
        host = headers.get(b"host", b"").decode("latin-1")
        if self.limits.hosts is not None and not _is_own(host, self.limits.hosts):
            raise Refused(421, f"the Host header is {host[:200]!r}; use a loopback address, or serve --allow-host NAME")
        token = self.limits.token
        given = headers.get(b"authorization", b"")
        if token and path not in _OPEN and not hmac.compare_digest(given, b"Bearer " + token.encode()):
            raise Refused(401, "a bearer token is required", {"WWW-Authenticate": "Bearer"})
        length = headers.get(b"content-length", b"0")
        if int(length) > self.max_bytes:
            raise self.too_large()

    @property
    def max_bytes(self) -> int:
        return int(self.limits.body_mib * _MIB)

    def too_large(self) -> Refused:
        return Refused(413, f"the body is larger than {self.limits.body_mib:g} MiB")

    def hold(self, size: int) -> None:
        """Counts received bytes of a body. Raises Refused if the total is too large."""
        self._held += size
        if self._held > self.limits.bodies_mib * _MIB:
            detail = f"the bodies of all requests are larger than {self.limits.bodies_mib:g} MiB; try again later"
            raise Refused(503, detail, {"Retry-After": "1"})


class _Exchange:
    """One request and its reply. A reply to a request that was not read to its end closes the connection, but only
    after the client could read it: closing at once would reset the connection while the client is still writing.
    """

    def __init__(self, limited: Limited, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        self.headers, self.code, self.size = headers, 500, 0
        self._limited, self._receive, self._send = limited, receive, send
        self._ended = b"transfer-encoding" not in headers and headers.get(b"content-length", b"0") == b"0"

    async def receive(self) -> Message:
        message = await self._receive()
        self._ended = self._ended or message["type"] != "http.request" or not message.get("more_body", False)
        size = len(message.get("body", b""))
        self.size += size
        self._limited.hold(size)
        if self.size > self._limited.max_bytes:
            raise self._limited.too_large()
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.code = message["status"]
            if not self._ended:
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await self._send(message)
        elif self._ended or message.get("more_body", False):
            await self._send(message)
        else:
            await self._send({**message, "more_body": True})
            await self._discard()
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _discard(self) -> None:
        ends, left = time.monotonic() + _DISCARD_S, _DISCARD_BODIES * self._limited.max_bytes + _MIB
        while not self._ended and left > 0 and time.monotonic() < ends:
            try:
                message = await asyncio.wait_for(self._receive(), _DISCARD_IDLE_S)
            except TimeoutError:
                return
            left -= len(message.get("body", b""))
            self._ended = message["type"] != "http.request" or not message.get("more_body", False)


def _is_own(host: str, names: Sequence[str]) -> bool:
    """True if the Host header names this machine's loopback address, or one of `names`."""
    name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
    return is_loopback(name) or name.lower() in names
