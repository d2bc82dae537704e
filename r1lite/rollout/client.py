"""JSON over HTTP to a server: one request a connection, so that closing it takes the request back."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from typing import Any
from urllib.parse import urlsplit

_SHOWN = 300  # characters of what a server said
_CONNECT_S = 10.0
_LARGEST = 1 << 28  # bytes of an answer


class Unreachable(Exception):
    """Nobody answers, or the connection broke: try later, or elsewhere."""


class Refused(Exception):
    """The server answered, with an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"status {status}: {text[:_SHOWN]}")
        self.status = status

    @property
    def later(self) -> bool:
        """True where it has too much to do, or is starting or stopping: the request itself may be right."""
        return self.status in (408, 425, 429, 503)


class Client:
    """Requests to one server.

    Args:
        url: http://HOST:PORT, or https.
        token: for every request, as `Authorization: Bearer TOKEN`.

    Raises (when made): ValueError for another kind of address, and for a token that fits no header.
    """

    def __init__(self, url: str, *, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"'{url}' is not an address like http://127.0.0.1:8100")
        _ = parts.port  # a ValueError where it is none
        if token and not (token.isascii() and token.isprintable()):
            raise ValueError("a token has characters that no header takes")
        self.url = url.rstrip("/")
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        self._parts = parts
        self._open: set[socket.socket] = set()
        self._closed = False
        self._lock = threading.Lock()

    def get(self, path: str, *, timeout_s: float) -> Any:
        """The answer to a GET. Raises Unreachable or Refused."""
        return self._ask("GET", path, None, timeout_s)

    def post(self, path: str, body: Any = None, *, timeout_s: float) -> Any:
        """The answer to a POST. Raises Unreachable or Refused."""
        return self._ask("POST", path, body, timeout_s)

    def hang_up(self) -> None:
        """Breaks off what is under way; the server then drops those requests."""
        with self._lock:
            sockets = list(self._open)
        for sock in sockets:
            _break_off(sock)

    def close(self) -> None:
        """Hangs up for good: later requests are Unreachable at once."""
        self._closed = True
        self.hang_up()

    def _ask(self, method: str, path: str, body: Any, timeout_s: float) -> Any:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        data = None if body is None else json.dumps(body).encode()
        deadline = time.monotonic() + timeout_s
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=min(timeout_s, _CONNECT_S))
        try:
            if self._closed:
                raise Unreachable(f"{self.url}: the connection was closed here")
            connection.connect()
        except (OSError, UnicodeError) as error:  # the latter: a name that can't be one of a host
            connection.close()
            raise Unreachable(f"{self.url}: {error}") from error
        sock = connection.sock  # the connection forgets it where the answer says that nothing comes after it
        sock.settimeout(timeout_s)
        with self._lock:
            self._open.add(sock)
        # A socket's own timeout begins anew with every byte, so an answer in drops would never end.
        alarm = threading.Timer(max(0.0, deadline - time.monotonic()), _break_off, [sock])
        alarm.daemon = True
        alarm.start()
        if self._closed:  # since it was asked above: hang_up() did not see this socket
            _break_off(sock)
        response = None
        try:
            connection.request(method, f"{self._parts.path.rstrip('/')}/{path}", data, self._headers)
            response = connection.getresponse()
            text = response.read(_LARGEST).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            late = isinstance(error, TimeoutError) or time.monotonic() >= deadline
            why = f"no answer within {timeout_s:g} s" if late else str(error)
            raise Unreachable(f"{self.url}: {why or type(error).__name__}") from error
        finally:
            alarm.cancel()
            with self._lock:
                self._open.discard(sock)
            if response is not None:
                response.close()  # it keeps the socket open where the answer was not read to its end
            connection.close()
        if time.monotonic() >= deadline:  # broken off, which looks like the end of an answer without a length
            raise Unreachable(f"{self.url}: no answer within {timeout_s:g} s")
        if response.length:  # what is missing: read() says nothing of it
            raise Unreachable(f"{self.url}: its answer broke off {response.length} bytes before the end")
        if not 200 <= response.status < 300:  # a redirection is no answer either
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
        # Not sock.shutdown(): that of TLS takes the encryption away from under the thread that reads.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
