"""Serves the page on this machine and keeps it up to date with the runs."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import os
import sys
import threading
import time
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from r1lite.errors import UserError
from r1lite.report.build import Options, Report
from r1lite.report.rollouts import packed
from r1lite.run.files import is_locked

_FRESH_S = 2.0  # a younger page is not built again
_NAMES = ("metrics.jsonl", "evaluations.jsonl", "summary.json", "manifest.json", "comparison.json", "config.yaml")


class Pages:
    """The newest report of some runs, rebuilt when their files change."""

    def __init__(self, run_paths: Sequence[Path], options: Options) -> None:
        self._places, self._options = run_paths, options
        self._lock, self._made_at, self._seen = threading.Lock(), 0.0, ""
        self._report: Report | None = None

    def now(self) -> Report:
        """Returns the current report; its head has a `tag` that changes with the content."""
        with self._lock:
            if self._report is None or time.monotonic() - self._made_at > _FRESH_S:
                seen = _state(self._places)
                if self._report is None or seen != self._seen:
                    self._report, self._seen = Report(self._places, self._options, live=True), seen
                    self._report.head["tag"] = f'"{hashlib.sha256(os.fsencode(seen)).hexdigest()[:16]}"'
                self._made_at = time.monotonic()
            return self._report


def make_server(run_paths: Sequence[Path], port: int, options: Options) -> http.server.ThreadingHTTPServer:
    """Returns the server. Raises UserError if a path holds no run, or the port is in use."""
    pages = Pages(run_paths, options)
    pages.now()

    class Handler(_Handler):
        source = pages

    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise UserError(f"--port {port}: {why}; choose another port, or 0 for any") from error
    server.daemon_threads = True
    return server


def serve(run_paths: Sequence[Path], port: int, options: Options) -> None:
    """Serves until Ctrl-C."""
    server = make_server(run_paths, port, options)
    print(f"watch     http://127.0.0.1:{server.server_address[1]}/ (stop with Ctrl-C)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("ended", file=sys.stderr)
    finally:
        server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    source: Pages
    timeout = 60.0  # s, for a connection on which nothing happens

    def handle(self) -> None:
        """Answers the requests of a connection, unless the browser closes it first."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        """Serves `/`, `/head` and `/chunk/NAME`."""
        # Against DNS rebinding: another site's host name could point to this server.
        host = (self.headers.get("Host") or "").partition(":")[0]  # without a port for port 80
        if host not in ("127.0.0.1", "localhost"):
            self._reply(403, b"ask for 127.0.0.1", "text/plain")
            return
        try:
            path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        except ValueError:  # no address
            path = ""
        try:
            report = self.source.now()
        except Exception as error:  # its folder was moved, or a file of it is damaged
            said = str(error) if isinstance(error, UserError | OSError) else f"{type(error).__name__}: {error}"
            self._reply(503, said.encode("utf-8", "backslashreplace"), "text/plain; charset=utf-8")
            return
        if path == "/":
            self._reply(200, report.html().encode(), "text/html; charset=utf-8")
        elif path == "/head":
            tag = report.head["tag"]
            if self.headers.get("If-None-Match") == tag:
                self._reply(304, b"", "text/plain")
            else:
                self._reply(200, packed(report.head).encode(), "text/plain", ETag=tag)
        elif path.startswith("/chunk/") and (chunk := report.chunks.get(path[len("/chunk/") :])) is not None:
            self._reply(200, chunk.data.encode(), "text/plain")
        else:
            self._reply(404, b"no such page", "text/plain")

    def _reply(self, code: int, body: bytes, kind: str, **more: str) -> None:
        self.send_response(code)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "X-Content-Type-Options": "nosniff"}
        for name, value in {**headers, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: Any) -> None:
        """Does nothing: the page sends a request every two seconds."""


def _state(run_paths: Sequence[Path]) -> str:
    """Changes when what is shown does."""
    found = []
    for place in run_paths:
        stages = place / "stages"
        for folder in (place, *(sorted(stages.iterdir()) if stages.is_dir() else ())):
            found.append(f"{folder} {is_locked(folder)}")  # a killed run leaves its files as they are
            for path in (*(folder / name for name in _NAMES), folder / "rollouts"):
                if path.exists():
                    about = path.stat()
                    found.append(f"{path} {about.st_size} {about.st_mtime_ns}")
    return "\n".join(found)
