"""JSON over HTTP to a server: one request per connection, so that closing the connection cancels the request."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from typing import Any
from urllib.parse import urlsplit

from r1lite.rollout.process_limits import opening_socket, starting_thread

_SHOWN = 300  # characters of a server's answer in messages
_CONNECT_S = 10.0
_LARGEST = 1 << 24  # bytes of an answer, unless the caller expects more


class Unreachable(Exception):
    """No answer, or the connection broke: try later, or another server."""


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"status {status}: {text[:_SHOWN]}")
        self.status = status

    @property
    def later(self) -> bool:
        """True if the server is overloaded, starting or stopping; the request itself may be valid."""
        return self.status in (408, 425, 429, 503)


class Client:
    """Requests to one server. Each raises EngineError if this process may open no further connection or thread.

    Args:
        url: http://HOST:PORT, or https.
        token: sent with every request, as `Authorization: Bearer TOKEN`.

    Raises (when made): ValueError for another kind of address, or a token that an HTTP header does not allow.
    """

    def __init__(self, url: str, *, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"'{url}' is not an address like http://127.0.0.1:8100")
        _ = parts.port  # raises ValueError for an invalid port
        if token and not (token.isascii() and token.isprintable()):
            raise ValueError("a token has characters that an HTTP header does not allow")
        self.url = url.rstrip("/")
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        self._parts = parts
        self._open: set[socket.socket] = set()
        self._closed = False
        self._lock = threading.Lock()

    def get(self, path: str, *, timeout_s: float) -> Any:
        """The answer to a GET. Raises Unreachable or Refused."""
        return self._ask("GET", path, None, timeout_s)

    def post(self, path: str, body: Any = None, *, timeout_s: float, largest: int = _LARGEST) -> Any:
        """The answer to a POST, of at most `largest` bytes. Raises Unreachable or Refused."""
        return self._ask("POST", path, body, timeout_s, largest)

    def hang_up(self) -> None:
        """Cancels all open requests; the server then drops them."""
        with self._lock:
            sockets = list(self._open)
        for sock in sockets:
            _break_off(sock)

    def close(self) -> None:
        """Hangs up for good: later requests raise Unreachable at once."""
        self._closed = True
        self.hang_up()

    def _ask(self, method: str, path: str, body: Any, timeout_s: float, largest: int = _LARGEST) -> Any:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        data = None if body is None else json.dumps(body).encode()
        deadline = time.monotonic() + timeout_s
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=min(timeout_s, _CONNECT_S))
        try:
            if self._closed:
                raise Unreachable(f"{self.url}: the connection was closed here")
            with opening_socket(self.url):
                connection.connect()
        except (OSError, UnicodeError) as error:  # UnicodeError: an invalid host name
            connection.close()
            raise Unreachable(f"{self.url}: {error}") from error
        sock = connection.sock  # kept, because the connection drops it if the server closes after its answer
        sock.settimeout(timeout_s)
        with self._lock:
            self._open.add(sock)
        # A socket's own timeout restarts with every byte, so a slow trickle would never time out.
        alarm = threading.Timer(max(0.0, deadline - time.monotonic()), _break_off, [sock])
        alarm.daemon = True
        response = None
        try:
            with starting_thread():
                alarm.start()
            if self._closed:  # closed since the check above, so hang_up() did not see this socket
                _break_off(sock)
            connection.request(method, f"{self._parts.path.rstrip('/')}/{path}", data, self._headers)
            response = connection.getresponse()
            raw = response.read(largest + 1)
            text = raw.decode("utf-8", "replace")
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: a negative size of a chunk
            late = isinstance(error, TimeoutError) or time.monotonic() >= deadline
            why = f"no answer within {timeout_s:g} s" if late else str(error)
            raise Unreachable(f"{self.url}: {why or type(error).__name__}") from error
        finally:
            alarm.cancel()
            with self._lock:
                self._open.discard(sock)
            if response is not None:
                response.close()  # it keeps the socket open if the answer was not read to its end
            connection.close()
        if time.monotonic() >= deadline:  # the alarm cut the answer, which looks complete if it has no length
            raise Unreachable(f"{self.url}: no answer within {timeout_s:g} s")
        if len(raw) > largest:
            raise Unreachable(f"{self.url}: its answer is longer than {largest:,} bytes")
        if response.length:  # number of missing bytes, which read() does not report
            raise Unreachable(f"{self.url}: its answer broke off {response.length} bytes before the end")
        if not 200 <= response.status < 300:  # redirections are errors too
            raise Refused(response.status, text)
        if response.length is None and not response.chunked and not _is_json(text):
            raise Unreachable(f"{self.url}: its answer, of unknown length, broke off")
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError):
            return text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _break_off(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # Not sock.shutdown(): TLS's version removes the encryption while another thread reads.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
