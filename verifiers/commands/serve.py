"""`python -m verifiers serve`: serves rewards over HTTP, for a cluster."""

from __future__ import annotations

import argparse
import json
import resource
import shlex
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from verifiers.commands.shared import count, finite, make_reward, port, positive, read_options
from verifiers.cores import cores
from verifiers.formula import Formula

if TYPE_CHECKING:
    from verifiers.server.app import Settings

_BACKLOG = 64  # connections that may wait to be accepted; asyncio accepts as many at once
_MAX_CONNECTIONS = 512
_MIN_CONNECTIONS = 8
_OWN_DESCRIPTORS = 24  # the interpreter's, the listener's, the loop's
_DESCRIPTORS_PER_WORKER = 16  # pipes and pages of a lane's four processes


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=port, default=8770, help="port to listen on; 0 takes a free one (8770)")
    parser.add_argument(
        "--reward",
        default="math + 0.1*format",
        help='reward of /get_reward, /slime and requests that name none ("%(default)s")',
    )
    parser.add_argument(
        "--allow",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="verifiers that requests may use besides those of --reward",
    )
    parser.add_argument(
        "--options",
        default="{}",
        metavar="JSON",
        help="options of these verifiers, by name; requests can't change them",
    )
    parser.add_argument("--workers", type=count, default=None, help="number of processes; default: one per core")
    parser.add_argument("--token-file", type=Path, help="file with the bearer token; required off loopback")
    parser.add_argument(
        "--allow-host",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="names besides localhost that are accepted in the Host header of a request to a loopback address",
    )
    parser.add_argument("--max-connections", type=count, help="open connections (512, or what `ulimit -n` allows)")
    parser.add_argument(
        "--max-queue-rows", type=count, default=20_000, help="rows that may wait; more get 429 (20,000)"
    )
    parser.add_argument("--max-rows", type=count, default=4096, help="rows of one request (4,096)")
    parser.add_argument("--max-body-mib", type=positive, default=64.0, help="size of one request (64)")
    parser.add_argument("--max-bodies-mib", type=positive, default=256.0, help="size of all open requests (256)")
    parser.add_argument("--timeout", type=positive, default=30.0, metavar="S", help="deadline of one row (30)")
    parser.add_argument(
        "--request-timeout", type=positive, default=170.0, metavar="S", help="deadline of a request (170)"
    )
    parser.add_argument("--memory", type=count, default=4096, metavar="MIB", help="private memory of a process (4096)")
    parser.add_argument(
        "--unscored",
        type=finite,
        help="reward that /get_reward and /slime return for rows that can't be checked; default: an error",
    )
    parser.add_argument("--grace", type=count, default=30, metavar="S", help="for open requests at shutdown (30)")


def run(options: argparse.Namespace) -> int:
    """Serves until SIGINT or SIGTERM, then finishes open requests."""
    try:
        import uvicorn

        from verifiers.server.app import Server
        from verifiers.server.connections import ConnectionLimits, Connections
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette"):
            raise
        raise ValueError(f"serve needs {error.name}: pip install 'r1lite[serve]'") from error
    workers = options.workers or cores()
    connections = Connections(ConnectionLimits(count=_connections(options.max_connections, workers)))
    server = Server(_settings(options, workers))
    with _listener(options.host, options.port) as listener:
        host, number = listener.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{number}"
        print(f"listening on {url}  (routes: {url}/docs, {url}/openapi.json)", file=sys.stderr)
        print(f"verifiers: {', '.join(server.allowed)}", file=sys.stderr)
        print(f"try: {_example(url, options.token_file)}", file=sys.stderr, flush=True)
        config = uvicorn.Config(
            server.app,
            http=connections.protocol,  # type: ignore[arg-type]  # called in the same way as a class
            ws="none",
            backlog=_BACKLOG,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=options.grace,
        )
        uvicorn.Server(config).run(sockets=[listener])
    return 0


def _example(url: str, token_file: Path | None) -> str:
    """Returns a shell command that scores one completion with the default reward."""
    body = {
        "rows": [{"prompt": "2 + 2?", "completion": "<think>2 + 2 = 4</think><answer>4</answer>", "reference": "4"}]
    }
    place = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    token = f' -H "Authorization: Bearer $(cat {shlex.quote(str(token_file))})"' if token_file else ""
    return f"curl -s {place}/v1/verify -H 'Content-Type: application/json'{token} -d '{json.dumps(body)}'"


def _settings(options: argparse.Namespace, workers: int) -> Settings:
    from verifiers.server.app import Settings
    from verifiers.server.limits import RequestLimits
    from verifiers.server.loopback import is_loopback

    token = options.token_file.read_text(encoding="utf-8").strip() if options.token_file else ""
    if options.token_file and not token:
        raise ValueError(f"--token-file {options.token_file} is empty")
    if not token and not is_loopback(options.host):
        raise ValueError(f"--host {options.host} is reachable from other machines: give --token-file")
    given = read_options(options.options)
    make_reward(options.reward, {name: given[name] for name in Formula(options.reward).names if name in given})
    hosts = tuple(name.lower() for name in options.allow_host)
    return Settings(
        reward=options.reward,
        allow=tuple(options.allow),
        options=given,
        workers=workers,
        max_queue_rows=options.max_queue_rows,
        max_rows=options.max_rows,
        row_timeout_s=options.timeout,
        request_timeout_s=options.request_timeout,
        memory_mib=options.memory,
        unscored=options.unscored,
        limits=RequestLimits(
            token=token,
            hosts=hosts if is_loopback(options.host) else None,
            body_mib=options.max_body_mib,
            bodies_mib=max(options.max_bodies_mib, options.max_body_mib),
        ),
    )


def _connections(wanted: int | None, workers: int) -> int:
    """Returns the number of connections that may be open. Raises ValueError if the limit on open files is too low."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = sys.maxsize if soft == resource.RLIM_INFINITY else soft
    # Connections of two rounds of accepting can be open before those that make room for them are closed.
    most = files - _OWN_DESCRIPTORS - 2 * _BACKLOG - _DESCRIPTORS_PER_WORKER * workers
    if most < max(wanted or 0, _MIN_CONNECTIONS):
        raise ValueError(
            f"{wanted or _MIN_CONNECTIONS} connections and {workers} workers need more than {files} open files: raise "
            "`ulimit -n`, or give fewer --workers or --max-connections"
        )
    return wanted or min(most, _MAX_CONNECTIONS)


def _listener(host: str, number: int) -> socket.socket:
    """Returns a listening socket. Raises ValueError if the address can't be used."""
    listener = None
    try:
        found = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        # With the protocol named: asyncio sets TCP_NODELAY on no other, and each reply would wait for an ACK.
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except (OSError, UnicodeError) as error:
        if listener is not None:
            listener.close()
        raise ValueError(f"can't listen on --host {host} --port {number}: {error}") from error
    return listener
