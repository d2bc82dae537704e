"""The routes: /v1/verify, /get_reward (OpenRLHF), /healthz, /metrics."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hmac
import json
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, HTTPException
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from verifiers.adapters.openrlhf import response_of
from verifiers.adapters.shared import parts
from verifiers.core import Completion, Problem
from verifiers.formula import Formula
from verifiers.registry import VERIFIERS
from verifiers.reward import Reward, Score
from verifiers.server.lanes import Full, Job, Lanes, Metrics, as_json

_POLL_S = 0.002
_OPEN = ("/healthz",)  # routes without a token


@dataclass(frozen=True, slots=True)
class Settings:
    """What `serve` was told."""

    reward: str = "math"  # of /get_reward, and of requests that name none
    options: dict[str, dict[str, Any]] | None = None
    workers: int = 2
    token: str = ""  # "" = none is asked for
    max_queue_rows: int = 20_000
    max_rows: int = 4096  # of one request
    max_body_mib: float = 64.0
    row_timeout_s: float = 30.0
    request_timeout_s: float = 170.0
    memory_mib: int | None = 4096
    unscored: float | None = None  # for /get_reward, whose clients can't leave a row out


class Row(BaseModel):
    """One completion."""

    model_config = ConfigDict(extra="forbid")
    id: str | int = ""
    completion: str
    prompt: str = ""
    reference: str | int | float | None = None
    language: str | None = None
    tests: dict[str, Any] | None = None
    meta: dict[str, Any] = Field(default_factory=dict)
    token_ids: list[int] = Field(default_factory=list)


class VerifyRequest(BaseModel):
    """A batch; `reward` is a formula over the server's verifiers, `verifier` a single one."""

    model_config = ConfigDict(extra="forbid")
    reward: str | None = None
    verifier: str | None = None
    config: dict[str, dict[str, Any]] = Field(default_factory=dict)  # options of the verifiers by name
    rows: list[Row]


class RewardRequest(BaseModel):
    """OpenRLHF's call."""

    query: list[str]
    prompts: list[str]
    labels: list[Any] = Field(default_factory=list)


class Server:
    """The application and what it scores with."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.default = Reward(settings.reward, options=settings.options)
        self._allowed = {*VERIFIERS, *self.default.verifiers}
        self.metrics = Metrics()
        self.lanes: Lanes | None = None
        self.app = FastAPI(title="verifiers", lifespan=self._lifespan)
        self.app.add_middleware(_Limits, server=self)
        self.app.post("/v1/verify")(self.verify)
        self.app.post("/get_reward")(self.get_reward)
        self.app.get("/healthz")(self.healthz)
        self.app.get("/metrics", response_class=PlainTextResponse)(self.metrics_text)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        s = self.settings
        self.lanes = Lanes(
            count=s.workers, max_rows=s.max_queue_rows, timeout_s=s.row_timeout_s, memory_mib=s.memory_mib
        )
        try:
            yield
        finally:
            lanes, self.lanes = self.lanes, None
            await asyncio.to_thread(lanes.close)

    async def verify(self, request: VerifyRequest) -> dict[str, Any]:
        """Scores a batch; `verdicts` are in the order of the rows and carry their ids, so that a retry is safe."""
        reward = self._reward(request)
        pairs = [
            (
                Problem(
                    row.prompt,
                    None if row.reference is None else str(row.reference),
                    row.tests,
                    row.language,
                    str(row.id),
                    row.meta,
                ),
                Completion(row.completion, tuple(row.token_ids)),
            )
            for row in request.rows
        ]
        scores = await self._score(reward, pairs)
        verdicts = [{"id": row.id, **as_json(score)} for row, score in zip(request.rows, scores, strict=True)]
        return {"reward": reward.formula, "versions": reward.versions, "verdicts": verdicts}

    async def get_reward(self, request: RewardRequest) -> dict[str, Any]:
        """OpenRLHF's remote reward: queries are prompt + response, labels the golds."""
        labels = request.labels or [None] * len(request.query)
        if not len(request.query) == len(request.prompts) == len(labels):
            counts = f"{len(request.query)}, {len(request.prompts)} and {len(labels)}"
            raise HTTPException(422, f"query, prompts and labels must be of one length, got {counts}")
        try:
            texts = [response_of(query, prompt) for query, prompt in zip(request.query, request.prompts, strict=True)]
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        pairs = [
            (Problem(prompt, None if label is None else str(label), id=str(i)), Completion(text))
            for i, (prompt, label, text) in enumerate(zip(request.prompts, labels, texts, strict=True))
        ]
        scores = await self._score(self.default, pairs)
        missing = [score for score in scores if score.reward is None]
        if missing and self.settings.unscored is None:
            why = missing[0].error or "every verifier abstained"
            raise HTTPException(500, f"{len(missing)} of {len(scores)} rows could not be scored, the first: {why}")
        rewards = [self.settings.unscored if score.reward is None else score.reward for score in scores]
        low, high = self.default.range
        span = high - low or 1.0
        logs = {
            name: statistics.fmean(values)
            for name in self.default.verifiers
            if (values := [found[name] for score in scores if name in (found := parts(score))])
        }
        scaled = [min(1.0, max(0.0, ((value or 0.0) - low) / span)) for value in rewards]
        return {"rewards": rewards, "scores": scaled, "extra_logs": logs}

    async def healthz(self) -> JSONResponse:
        """200 while it can score."""
        ready = self.lanes is not None
        return JSONResponse({"status": "ok" if ready else "closing"}, 200 if ready else 503)

    async def metrics_text(self) -> str:
        """Prometheus' text."""
        waiting = self.lanes.waiting if self.lanes is not None else 0
        return self.metrics.text({"verifiers_queue_rows": waiting, "verifiers_workers": self.settings.workers})

    def _reward(self, request: VerifyRequest) -> Reward:
        formula = request.reward or request.verifier
        try:
            if formula is None:
                if request.config:
                    raise ValueError("config needs a reward or a verifier beside it")
                return self.default
            targets = {name: request.config.get(name, {}).get("use", name) for name in Formula(formula).names}
            for target in targets.values():
                if target not in self._allowed:  # a client must not have us import what it likes
                    raise ValueError(f"verifier '{target}' is not served; known: {', '.join(sorted(self._allowed))}")
            if formula == self.default.formula and not request.config:
                return self.default
            return _reward(formula, json.dumps(request.config, sort_keys=True))
        except ValueError as error:
            raise HTTPException(422, str(error)) from error

    async def _score(self, reward: Reward, pairs: Sequence[tuple[Problem, Completion]]) -> list[Score]:
        settings = self.settings
        if len(pairs) > settings.max_rows:
            raise HTTPException(413, f"{len(pairs)} rows; at most {settings.max_rows} in one request")
        lanes = self.lanes
        if lanes is None:
            raise HTTPException(503, "the server is closing")
        job = Job(reward, pairs)
        try:
            lanes.submit(job)
        except Full:
            raise HTTPException(429, "the queue is full", headers={"Retry-After": "1"}) from None
        ends = time.monotonic() + settings.request_timeout_s
        try:
            while not job.done.is_set():
                if time.monotonic() > ends:
                    raise HTTPException(504, f"not scored within {settings.request_timeout_s:g} s; send fewer rows")
                await asyncio.sleep(_POLL_S)
        finally:
            if not job.done.is_set():  # late, or the client has gone
                lanes.withdraw(job)
        scores = [score for score in job.scores if score is not None]
        self.metrics.scored(scores)
        return scores


@functools.lru_cache(maxsize=64)
def _reward(formula: str, options: str) -> Reward:
    return Reward(formula, options=json.loads(options))


class _TooLarge(Exception):
    pass


class _Limits:
    """Token, size of the body, and a count of every request, before anything is read or parsed."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self.app, self.server = app, server
        self._max_bytes = int(server.settings.max_body_mib * (1 << 20))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, code, size = time.monotonic(), 500, 0
        headers = dict(scope["headers"])

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._max_bytes:
                raise _TooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        try:
            length = headers.get(b"content-length", b"0")
            if not self._may_enter(scope["path"], headers):
                answer = JSONResponse({"detail": "a bearer token is needed"}, 401, {"WWW-Authenticate": "Bearer"})
                await answer(scope, receive, noted)
            elif length.isdigit() and int(length) > self._max_bytes:
                raise _TooLarge
            else:
                await self.app(scope, counted, noted)
        except _TooLarge:
            detail = f"the body is larger than {self.server.settings.max_body_mib:g} MiB"
            await JSONResponse({"detail": detail}, 413)(scope, receive, noted)
        finally:
            routes = ("/v1/verify", "/get_reward", "/healthz", "/metrics")
            self.server.metrics.request(scope["path"] if scope["path"] in routes else "other", code, began)

    def _may_enter(self, path: str, headers: dict[bytes, bytes]) -> bool:
        token = self.server.settings.token
        if not token or path in _OPEN:
            return True
        given = headers.get(b"authorization", b"")
        return hmac.compare_digest(given, b"Bearer " + token.encode())
