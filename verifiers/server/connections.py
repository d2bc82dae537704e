"""Connections that can't be held open idly: deadlines for head, body and reply, and a limit on their number.

uvicorn only closes idle connections; its `limit_concurrency` counts stalled ones and then refuses everybody. Here a
connection that waits for its client is closed to make room for a new one.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_SWEEP_S = 0.5
_YOUNG_S = 0.2  # a connection is not evicted before its first bytes can have arrived
_STALLED_S = 2.0  # a body that has not grown for so long may be evicted
_WHY = b'{"detail":"too many connections are open"}'
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
    b"Retry-After: 1\r\nConnection: close\r\n\r\n%s" % (len(_WHY), _WHY)
)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of connections."""

    count: int = 512  # open at a time
    head_s: float = 5.0  # for the whole head of a request, from its first byte or from the connection's start
    body_s: float = 10.0  # for a body, ...
    rate: float = 64 * 1024  # ... plus a second for this many bytes received
    reply_s: float = 10.0  # for the client to read its reply, plus a second for this many bytes of it
    idle_s: float = 5.0  # between two requests


class Connections:
    """The open connections of one server."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.open: set[BoundedProtocol] = set()
        self._timer: asyncio.TimerHandle | None = None

    def protocol(self, *args: Any, **kwargs: Any) -> BoundedProtocol:
        """Returns a new connection's protocol; pass this method to uvicorn as `http`."""
        return BoundedProtocol(self, *args, **kwargs)

    def admit(self, new: BoundedProtocol) -> bool:
        """Admits a connection, if necessary by closing one that waits for its client; False if all are being served."""
        if len(self.open) >= self.limits.count:
            now = time.monotonic()
            waiting = [(*rank, c) for c in self.open if (rank := c.eviction_rank(now)) is not None]
            if not waiting:
                return False
            self.drop(min(waiting, key=lambda entry: entry[:2])[2])
        self.open.add(new)
        if self._timer is None:
            self._timer = new.loop.call_later(_SWEEP_S, self._sweep, new.loop)
        return True

    def drop(self, connection: BoundedProtocol) -> None:
        """Closes a connection at once, and discards unsent data."""
        self.open.discard(connection)
        connection.transport.abort()

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = time.monotonic()
        for connection in list(self.open):
            if connection.is_late(now):
                self.drop(connection)
        self._timer = loop.call_later(_SWEEP_S, self._sweep, loop) if self.open else None


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol with deadlines."""

    def __init__(self, connections: Connections, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._all = connections
        self._refused = False
        self._served = False  # it has received a reply
        self._since = self._heard = time.monotonic()  # start of the current phase; time of the last byte
        self._partial = False  # part of a head has arrived
        self._body_bytes = 0
        self._unread_since: float | None = None  # the client has not taken all of its reply
        self._unread_bytes = 0  # at most

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        if not self._all.admit(self):
            self._refused = True
            transport.write(_REFUSAL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.open.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        now = self._heard = time.monotonic()
        if self.conn.their_state is h11.IDLE:
            if not self._partial:
                self._partial, self._since = True, now
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE:  # the head is complete
                self._partial, self._since, self._body_bytes = False, now, 0
        else:
            self._body_bytes += len(data)
            super().data_received(data)

    def on_response_complete(self) -> None:
        self._served, self._partial = True, False
        self._since = self._heard = time.monotonic()
        super().on_response_complete()

    def is_late(self, now: float) -> bool:
        """True if the client exceeded its time. Checked every half second."""
        limits = self._all.limits
        if self._unread_for(now) > limits.reply_s + self._unread_bytes / limits.rate:
            return True
        if self.transport.is_closing():
            return False
        match self.conn.their_state:
            case h11.IDLE:
                return now - self._since > (limits.idle_s if self._served and not self._partial else limits.head_s)
            case h11.SEND_BODY:
                return now - self._since > limits.body_s + self._body_bytes / limits.rate
        return False  # the request is complete and being processed

    def eviction_rank(self, now: float) -> tuple[int, float] | None:
        """Returns the eviction order, lower first; None if the connection must stay."""
        if self.transport.is_closing():
            return (0, self._since)
        match self.conn.their_state:
            case h11.IDLE if now - self._since > _YOUNG_S:
                return (1, self._since) if not self._served else (2, self._since)
            case h11.SEND_BODY if self.cycle.response_started:  # refused; the rest of its body is discarded
                return (0, self._since)
            case h11.SEND_BODY if now - self._heard > _STALLED_S:
                return (3, self._since)
        return None

    def _unread_for(self, now: float) -> float:
        """Returns the seconds for which the client has not read its whole reply."""
        size = self.transport.get_write_buffer_size()
        if size == 0:
            self._unread_since, self._unread_bytes = None, 0
            return 0.0
        if self._unread_since is None:
            self._unread_since = now
        self._unread_bytes = max(self._unread_bytes, size)
        return now - self._unread_since
