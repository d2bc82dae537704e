"""A client for `python -m verifiers serve` in PrimeIntellect's environments (prime-rl); needs no other package.

Their package has the import name `verifiers` too, so the two can't share an environment. Copy this one file beside your
task set, start the server in an environment of its own, and call it from the task:

    class Sums(vf.Task[SumsData]):
        @vf.reward(weight=1.0)
        async def verified(self, trace: vf.Trace) -> float:
            return await verified(trace.last_reply, self.data.answer, prompt=str(self.data.prompt))

A completion that can't be scored raises: the trace is then an error, which prime-rl leaves out of training. (The older
`vf.Rubric` turns every exception of a reward function into 0: don't use this client there.)
"""

from __future__ import annotations

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

URL = "http://127.0.0.1:8770"
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # ignores proxies of the environment


class UnscoredError(RuntimeError):
    """The completion could not be checked; this says nothing about the completion."""


async def verified(
    completion: str,
    reference: Any,
    *,
    prompt: str = "",
    reward: str | None = None,
    tests: Mapping[str, Any] | None = None,
    url: str = URL,
    token: str = "",
    timeout_s: float = 180.0,
) -> float:
    """Returns the reward of one completion.

    Args:
        completion: the model's text, including its thinking if the reward reads it.
        reference: the gold: text or a number.
        reward: a formula over the verifiers that the server allows; None: the server's default.
        tests: for the verifier `code`.
        url, token: of the server.

    Raises: UnscoredError, with the reason.
    """
    row: dict[str, Any] = {"id": "", "completion": completion, "reference": reference, "prompt": prompt}
    if tests is not None:
        row["tests"] = dict(tests)
    body = {"rows": [row], **({} if reward is None else {"reward": reward})}
    return await asyncio.to_thread(_asked, f"{url.rstrip('/')}/v1/verify", body, token, timeout_s)


def _asked(url: str, body: Mapping[str, Any], token: str, timeout_s: float) -> float:
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with _OPENER.open(request, timeout=timeout_s) as reply:
            (verdict,) = json.load(reply)["verdicts"]
            reward, why = verdict["reward"], verdict["error"]
    except urllib.error.HTTPError as error:
        raise UnscoredError(f"{url}: {error.code} {error.read()[:500].decode(errors='replace')}") from error
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        raise UnscoredError(f"{url}: {type(error).__name__}: {error}") from error
    if reward is None:
        raise UnscoredError(why or "every verifier abstained")
    return float(reward)
