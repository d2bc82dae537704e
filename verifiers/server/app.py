"""The routes: /v1/verify, /get_reward (OpenRLHF), /slime, /healthz, /metrics."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import statistics
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import PlainTextResponse, Response
from pydantic import BaseModel
from starlette.requests import ClientDisconnect

from verifiers.adapters.shared import of_all, say_once, why
from verifiers.formula import Formula
from verifiers.reward import Reward, Score
from verifiers.server import requests
from verifiers.server.lanes import Full, Job, Lanes, Metrics, as_json
from verifiers.server.limits import Limited, Refused, RequestLimits
from verifiers.server.replies import Reply
from verifiers.server.requests import BadRequest, Item

T = TypeVar("T")

_SMALL = 1 << 18  # bytes of a body that is read at once
_ABOUT = "Rewards for completions. verifiers/README.md, section 'Over HTTP', has examples, limits and errors."


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of `serve`. Clients choose among these verifiers; they can name no other, and set no option."""

    reward: str = "math"  # for /get_reward, and for requests that name none
    allow: Sequence[str] = ()  # verifiers that a request may name besides those of `reward`
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of all these verifiers, by name
    workers: int = 2
    max_queue_rows: int = 20_000
    max_rows: int = 4096  # of one request
    row_timeout_s: float = 30.0
    request_timeout_s: float = 170.0
    memory_mib: int | None = 4096
    unscored: float | None = None  # for /get_reward, whose clients can't leave a row out
    limits: RequestLimits = field(default_factory=RequestLimits)


class Server:
    """The application and its scorers. Raises ValueError if the verifiers can't be set up."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        used = Formula(settings.reward).names
        self.allowed = sorted({*used, *settings.allow})
        unknown = [name for name in settings.options if name not in self.allowed]
        if unknown:
            raise ValueError(f"options for '{unknown[0]}', which is not served; served: {', '.join(self.allowed)}")
        Reward(" + ".join(self.allowed), options=settings.options)  # checks that all of them can be set up
        self._reward_of = functools.lru_cache(maxsize=64)(self._made)
        self.default = self._reward_of(settings.reward)
        self.metrics = Metrics()
        self.lanes: Lanes | None = None
        self.app = FastAPI(title="verifiers", lifespan=self._lifespan, redoc_url=None, description=_ABOUT)
        self.app.add_middleware(Limited, limits=settings.limits, metrics=self.metrics)
        self.app.add_exception_handler(BadRequest, _bad_request)
        self.app.add_exception_handler(ClientDisconnect, _gone)
        # `requests` reads the bodies, within its limits; their schemas are added here for the /docs page.
        self.app.post("/v1/verify", openapi_extra=_body_of(requests.VerifyRequest, rows=requests.Row))(self.verify)
        self.app.post("/get_reward", openapi_extra=_body_of(requests.RewardRequest))(self.get_reward)
        self.app.post("/slime", openapi_extra=_body_of(requests.SlimeRequest))(self.slime)
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

    async def verify(self, request: Request) -> Response:
        """Scores a batch; `verdicts` are in the order of the rows and carry their ids, so a retry is safe."""
        reward, ids, items = await _read(request, self._rows)
        scores = await self._score(reward, items)
        verdicts = [{"id": name, **as_json(score)} for name, score in zip(ids, scores, strict=True)]
        return Reply({"reward": reward.formula, "versions": reward.versions, "verdicts": verdicts})

    async def get_reward(self, request: Request) -> Response:
        """OpenRLHF's remote reward: queries are prompt + response, labels the golds."""
        items = await _read(request, self._queries)
        scores = await self._score(self.default, items)
        rewards = self._rewards(scores, "/get_reward")
        low, high = self.default.range
        span = high - low or 1.0
        found = [of_all(self.default, score) for score in scores]
        logs = {name: statistics.fmean(one[name] for one in found) for name in found[0]} if found else {}
        scaled = [min(1.0, max(0.0, (value - low) / span)) for value in rewards]
        return Reply({"rewards": rewards, "scores": scaled, "extra_logs": logs})

    async def slime(self, request: Request) -> Response:
        """slime's remote reward of one sample: `reward`, each verifier's score, `unscored`."""
        scores = await self._score(self.default, [await _read(request, self._sample)])
        (reward,) = self._rewards(scores, "/slime")
        return Reply({**of_all(self.default, scores[0]), "reward": reward})

    def _rows(self, body: Any) -> tuple[Reward, list[str | int | None], list[Item | BadRequest]]:
        """Returns the reward, the ids and the items of a body of /v1/verify. Raises BadRequest, Refused."""
        asked = requests.verify_request(body)
        self._count(asked.rows)
        reward = self._chosen(asked)
        limits = requests.lowered(self._code_limits(reward), asked.config)
        items: list[Item | BadRequest] = []
        for index, row in enumerate(asked.rows):
            try:
                items.append(requests.row_item(index, row, reads_gold=reward.reads_gold, limits=limits))
            except BadRequest as error:
                items.append(error)
        _refuse_if_all_bad(items)
        return reward, list(map(requests.id_of, asked.rows)), items

    def _queries(self, body: Any) -> list[Item | BadRequest]:
        """Returns the items of a body of /get_reward. Raises BadRequest, Refused."""
        asked = requests.reward_request(body)
        self._count(asked.query)
        items = requests.reward_items(asked, self.default, self._code_limits(self.default))
        if self.settings.unscored is None:
            for item in items:
                if isinstance(item, BadRequest):
                    raise item
        return items

    def _sample(self, body: Any) -> Item | BadRequest:
        """Returns the item of a body of /slime. Raises BadRequest."""
        sample = requests.slime_request(body)
        try:
            return requests.slime_item(sample, self.default, self._code_limits(self.default))
        except BadRequest as error:
            if self.settings.unscored is None:
                raise
            return error

    def _rewards(self, scores: Sequence[Score], route: str) -> list[float]:
        """Returns the rewards, for clients that can't omit a row. Raises HTTPException unless `unscored` is set."""
        stand_in = self.settings.unscored
        missing = [score for score in scores if score.reward is None]
        if missing and stand_in is None:
            # A gold that can't be used is the client's error; any other error is ours.
            code = 422 if all(score.error.startswith("GoldError") for score in missing) else 500
            reason = f"{len(missing)} of {len(scores)} rows could not be scored, the first: {why(missing[0])}"
            say_once(f"{route} refuses rows, and the trainer will fail or continue without; see --unscored: %s", reason)
            raise HTTPException(code, reason)
        return [score.reward if score.reward is not None else float(stand_in or 0.0) for score in scores]

    async def healthz(self) -> Response:
        """Returns 200 while the server can score."""
        ready = self.lanes is not None
        return Reply({"status": "ok" if ready else "closing"}, 200 if ready else 503)

    async def metrics_text(self) -> str:
        """Returns the metrics in Prometheus' text format."""
        waiting = self.lanes.waiting if self.lanes is not None else 0
        return self.metrics.text({"verifiers_queue_rows": waiting, "verifiers_workers": self.settings.workers})

    def _chosen(self, request: requests.VerifyRequest) -> Reward:
        """Returns the reward that a request names. Raises BadRequest."""
        if request.reward is not None and request.verifier is not None:
            raise BadRequest("give either reward or verifier, not both: a verifier's name is also a reward")
        named = request.reward if request.reward is not None else request.verifier
        if named is None:
            reward = self.default
        else:
            try:
                names = Formula(named).names
                other = [name for name in names if name not in self.allowed]
                if other:
                    raise BadRequest(f"verifier '{other[0]}' is not served; served: {', '.join(self.allowed)}")
                reward = self._reward_of(named)
            except ValueError as error:
                raise BadRequest(str(error)) from error
        strange = [name for name in request.config if name not in reward.verifiers]
        if strange:
            raise BadRequest(f"config.{strange[0][:80]}: the reward '{reward.formula}' has no such verifier")
        return reward

    def _made(self, formula: str) -> Reward:
        names = Formula(formula).names
        return Reward(formula, options={name: o for name, o in self.settings.options.items() if name in names})

    def _code_limits(self, reward: Reward) -> dict[str, float]:
        """Returns the limits that a request may lower: the strictest among the reward's verifiers that run programs."""
        found = [limits for verify in reward.verifiers.values() if (limits := getattr(verify, "limits", None))]
        return {name: min(getattr(limits, name) for limits in found) for name in requests.LOWERABLE} if found else {}

    def _count(self, rows: Sequence[Any]) -> None:
        if len(rows) > self.settings.max_rows:
            raise Refused(413, f"{len(rows)} rows; at most {self.settings.max_rows} in one request")

    async def _score(self, reward: Reward, items: Sequence[Item | BadRequest]) -> list[Score]:
        """Returns a score for each item, in order; an item that can't be used is unscored, with the reason."""
        pairs = [item for item in items if not isinstance(item, BadRequest)]
        scored = iter(await self._judged(reward, pairs))
        scores = [
            Score(None, {}, str(item), reward.versions) if isinstance(item, BadRequest) else next(scored)
            for item in items
        ]
        self.metrics.scored(scores)
        return scores

    async def _judged(self, reward: Reward, pairs: Sequence[Item]) -> list[Score]:
        settings, lanes = self.settings, self.lanes
        if lanes is None:
            raise HTTPException(503, "the server is closing")
        done, loop = asyncio.Event(), asyncio.get_running_loop()
        job = Job(reward, pairs, lambda: loop.call_soon_threadsafe(done.set))
        try:
            lanes.submit(job)
        except Full:
            raise HTTPException(429, "the queue is full", headers={"Retry-After": "1"}) from None
        try:
            await asyncio.wait_for(done.wait(), settings.request_timeout_s)
        except TimeoutError:
            late = f"not scored within {settings.request_timeout_s:g} s; send fewer rows"
            raise HTTPException(504, late) from None
        finally:
            if not done.is_set():  # late, or the client has gone
                lanes.withdraw(job)
        return [score for score in job.scores if score is not None]


def _body_of(asked: type[BaseModel], **items: type[BaseModel]) -> dict[str, Any]:
    """Returns the OpenAPI entry of a route's body; `items` are the models of the items of its lists."""
    schema = asked.model_json_schema()
    for name, model in items.items():
        schema["properties"][name]["items"] = model.model_json_schema()
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


async def _read(request: Request, make: Callable[[Any], T]) -> T:
    """Parses the body as JSON, and returns what `make` makes of it.

    Other content types are refused: with them any web page could send requests unasked.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, f"Content-Type must be application/json, got {kind[:80]!r}")
    body = await request.body()
    if len(body) <= _SMALL:
        return make(requests.read_json(body))
    # 64 MiB can hold 20 million values. Checking them takes most of a minute, in which the server must answer others.
    return await asyncio.to_thread(lambda: make(requests.read_json(body)))


async def _bad_request(_: Request, error: Exception) -> Response:
    return Reply({"detail": str(error)}, 422)


async def _gone(_: Request, __: Exception) -> Response:
    """Handles a client that hangs up during its request: nothing is logged, and nobody reads this reply."""
    return Reply({"detail": "the request ended before its body did"}, 400)


def _refuse_if_all_bad(items: Sequence[Item | BadRequest]) -> None:
    """Raises BadRequest for a batch in which no item can be used: that is an error of the client."""
    if items and all(isinstance(item, BadRequest) for item in items):
        raise next(item for item in items if isinstance(item, BadRequest))
