"""Load test of `python -m verifiers serve`: clients that send batches one after the other.

python benchmarks/serve_load.py [--clients 4] [--rows 256] [--seconds 10] [--workers 2]
"""

from __future__ import annotations

import argparse
import http.client
import json
import resource
import socket
import statistics
import subprocess
import sys
import threading
import time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "verifiers", "serve", "--port", str(port), "--workers", str(options.workers)]
    rows = [
        {"id": i, "completion": f"<think>We add them up.</think><answer>{i}</answer>", "reference": str(i)}
        for i in range(options.rows)
    ]
    body = json.dumps({"reward": "math + 0.1*format", "rows": rows}).encode()
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    waits: list[float] = []
    codes: list[int] = []

    def client(ends: float) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while time.monotonic() < ends:
            began = time.monotonic()
            connection.request("POST", "/v1/verify", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            waits.append(time.monotonic() - began)
            codes.append(response.status)

    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        client(time.monotonic() + 0.5)  # warms up the workers
        waits.clear()
        codes.clear()
        began = time.monotonic()
        threads = [threading.Thread(target=client, args=(began + options.seconds,)) for _ in range(options.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        spent = time.monotonic() - began
    finally:
        server.terminate()
        server.wait()
    ordered = sorted(waits)
    good = sum(code == 200 for code in codes)
    rate = good * options.rows / spent
    print(f"{good} of {len(codes)} requests of {options.rows} rows answered; {rate:,.0f} rows per s")
    late = ordered[int(0.99 * (len(ordered) - 1))]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"server and workers: {1000 * (used.ru_utime + used.ru_stime) / (good * options.rows):.3f} CPU ms per row")
    print(f"median {statistics.median(ordered) * 1000:.0f} ms, 99 % within {late * 1000:.0f} ms")


if __name__ == "__main__":
    main()
