"""JSON over HTTP to a vLLM server: one request a connection, so that closing it takes the request back."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

_SHOWN = 300  # characters of what a server said


class Unreachable(Exception):
    """Nobody answers, or the connection broke: try later, or elsewhere."""


class Refused(Exception):
    """The server answered, with an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"status {status}: {text[:_SHOWN]}")
        self.status = status


class Client:
    """Requests to one server.

    Args:
        url: http://HOST:PORT, or https.

    Raises (when made): ValueError for another kind of address.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"'{url}' is not an address like http://127.0.0.1:8100")
        self.url = url.rstrip("/")
        self._parts = parts
        self._open: set[http.client.HTTPConnection] = set()
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
            connections = list(self._open)
        for connection in connections:
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _ask(self, method: str, path: str, body: Any, timeout_s: float) -> Any:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=timeout_s)
        data = None if body is None else json.dumps(body).encode()
        with self._lock:
            self._open.add(connection)
        try:
            connection.request(
                method, f"{self._parts.path.rstrip('/')}/{path}", data, {"Content-Type": "application/json"}
            )
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            why = f"no answer within {timeout_s:g} s" if isinstance(error, TimeoutError) else str(error)
            raise Unreachable(f"{self.url}: {why or type(error).__name__}") from error
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()
        if response.status >= 400:
            raise Refused(response.status, text)
        try:
            return json.loads(text) if text else None
        except ValueError:
            return text
