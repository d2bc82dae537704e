"""`python -m verifiers serve`: rewards over HTTP, for a cluster."""

from __future__ import annotations

import argparse
import ipaddress
import os
from pathlib import Path

from verifiers.commands.shared import make_reward, read_options


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8770)
    parser.add_argument("--reward", default="math + 0.1*format", help="formula of /get_reward, and by default")
    parser.add_argument("--options", default="{}", metavar="JSON", help="options of its verifiers, by name")
    parser.add_argument("--workers", type=int, default=None, help="processes; by default one per core")
    parser.add_argument("--token-file", type=Path, help="file with the bearer token; needed off loopback")
    parser.add_argument("--max-queue-rows", type=int, default=20_000, help="rows that may wait; more get 429 (20,000)")
    parser.add_argument("--max-rows", type=int, default=4096, help="rows of one request (4,096)")
    parser.add_argument("--max-body-mib", type=float, default=64.0, help="size of one request (64)")
    parser.add_argument("--timeout", type=float, default=30.0, metavar="S", help="deadline of one row (30)")
    parser.add_argument("--request-timeout", type=float, default=170.0, metavar="S", help="deadline of a request (170)")
    parser.add_argument("--memory", type=int, default=4096, metavar="MIB", help="private memory of a process (4096)")
    parser.add_argument(
        "--unscored", type=float, help="reward that /get_reward gives rows that can't be checked; without it: error 500"
    )
    parser.add_argument("--grace", type=int, default=30, metavar="S", help="for open requests, at the end (30)")


def run(options: argparse.Namespace) -> int:
    """Serves until SIGINT or SIGTERM, then finishes the open requests."""
    try:
        import uvicorn

        from verifiers.server.app import Server, Settings
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette"):
            raise
        raise ValueError(f"serve needs {error.name}: pip install 'r1lite[serve]'") from error
    token = options.token_file.read_text(encoding="utf-8").strip() if options.token_file else ""
    if options.token_file and not token:
        raise ValueError(f"--token-file {options.token_file} is empty")
    if not token and not is_loopback(options.host):
        raise ValueError(f"--host {options.host} can be reached from outside: give --token-file")
    reward = make_reward(options.reward, read_options(options.options))
    settings = Settings(
        reward=options.reward,
        options=reward.options,
        workers=options.workers or len(os.sched_getaffinity(0)),
        token=token,
        max_queue_rows=options.max_queue_rows,
        max_rows=options.max_rows,
        max_body_mib=options.max_body_mib,
        row_timeout_s=options.timeout,
        request_timeout_s=options.request_timeout,
        memory_mib=options.memory,
        unscored=options.unscored,
    )
    app = Server(settings).app
    uvicorn.run(
        app,
        host=options.host,
        port=options.port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=options.grace,
    )
    return 0


def is_loopback(host: str) -> bool:
    """True if only this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
