"""lighteval and inspect_ai, by the calls that they make.

The real packages where they are installed (lighteval 0.13.0, inspect_ai 0.3.285); else what stands for them here is
written from their sources (3fd15266, 499e6152e).
"""

import abc
import asyncio
import dataclasses
import importlib
import importlib.util
import inspect
import math
import types
from typing import Any

import pytest
from stand_ins import adapter, put

from verifiers.adapters import shared

GOOD, BAD = "<think>a</think><answer>4</answer>", "<think>a</think><answer>5</answer>"


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(shared, "_said", set())


# lighteval


class SampleLevelComputation(abc.ABC):
    @abc.abstractmethod
    def compute(self, doc, model_response, **kwargs): ...


@dataclasses.dataclass
class SampleLevelMetricGrouping:
    metric_name: list
    higher_is_better: dict
    category: Any
    sample_level_fn: Any
    corpus_level_fn: Any
    batched_compute: bool = False

    def compute_sample(self, **kwargs):
        return self.sample_level_fn.compute(**kwargs)

    def get_corpus_aggregations(self):
        return self.corpus_level_fn


@dataclasses.dataclass
class Doc:
    query: str
    choices: list
    gold_index: Any
    specific: dict | None = None
    id: str = ""

    def get_golds(self):
        places = self.gold_index if isinstance(self.gold_index, list) else [self.gold_index]
        return [self.choices[place] for place in places]


@dataclasses.dataclass
class ModelResponse:
    text: list
    text_post_processed: list | None = None

    @property
    def final_text(self):
        return self.text if self.text_post_processed is None else self.text_post_processed


def lighteval(monkeypatch):
    """lighteval's Doc and ModelResponse."""
    if importlib.util.find_spec("lighteval"):
        return (
            importlib.import_module("lighteval.tasks.requests").Doc,
            importlib.import_module("lighteval.models.model_output").ModelResponse,
        )
    put(
        monkeypatch,
        {
            "lighteval.metrics.metrics_sample": {"SampleLevelComputation": SampleLevelComputation},
            "lighteval.metrics.utils.metric_utils": {"SampleLevelMetricGrouping": SampleLevelMetricGrouping},
            "lighteval.tasks.requests": {"SamplingMethod": types.SimpleNamespace(GENERATIVE="GENERATIVE")},
        },
    )
    return Doc, ModelResponse


@pytest.mark.filterwarnings("ignore")
def test_lighteval(monkeypatch, caplog):
    doc, response = lighteval(monkeypatch)
    metric = adapter(monkeypatch, "lighteval").lighteval_metric("math + 0.1*format")
    for golds, texts, value in (
        (["4"], [GOOD], 1.1),
        (["4"], [BAD], 0.1),
        (["4"], [f"{GOOD}<|im_end|>", BAD], 0.6),
        (["3", "4"], [GOOD], 1.1),
        ([""], [GOOD], math.nan),
        (["4", ""], [GOOD], 1.1),
        (["3", ""], [GOOD], math.nan),
        ([], [GOOD], math.nan),
    ):
        made = doc(query="2+2?", choices=golds, gold_index=list(range(len(golds))))
        found = metric.compute_sample(model_response=response(text=texts), doc=made)
        assert found["reward"] == pytest.approx(value, nan_ok=True), (golds, texts)
        assert found["reward_unscored"] == float(math.isnan(value))
    assert caplog.text.count("is left out of the mean") == 1
    over = metric.get_corpus_aggregations()
    assert set(over) == {"reward", "reward_unscored"}
    assert over["reward"]([1.0, math.nan, 0.0]) == 0.5
    assert math.isnan(over["reward"]([math.nan]))
    assert over["reward_unscored"]([0.0, 1.0]) == 0.5
    assert "math + 0.1*format" in str(metric.sample_level_fn)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(importlib.util.find_spec("lighteval") is None, reason="lighteval is not installed")
def test_lighteval_itself(monkeypatch):
    """Uses lighteval's own loop over samples and metrics, its aggregation, and its standard error."""
    from lighteval.logging.info_loggers import MetricsLogger
    from lighteval.metrics import apply_metric

    doc, response = lighteval(monkeypatch)
    metric = adapter(monkeypatch, "lighteval").lighteval_metric("math")
    docs = [doc(query="2+2?", choices=[gold], gold_index=0) for gold in ("4", "4", "")]
    logger = MetricsLogger()
    for values in apply_metric([response(text=[text]) for text in (GOOD, BAD, GOOD)], docs, [metric]):
        logger.log("sums|0", values)
    task = types.SimpleNamespace(aggregation=metric.get_corpus_aggregations)
    logger.aggregate({"sums|0": task}, bootstrap_iters=20)
    assert logger.metric_aggregated["sums|0"]["reward"] == 0.5
    assert logger.metric_aggregated["sums|0"]["reward_unscored"] == pytest.approx(1 / 3)


# inspect_ai


@dataclasses.dataclass
class Score:
    value: float
    answer: str | None = None
    explanation: str | None = None
    metadata: dict | None = None

    @classmethod
    def unscored(cls, *, answer=None, explanation=None, metadata=None):
        return cls(math.nan, answer, explanation, metadata)


def scorer(metrics, name=None):
    def wrapper(make):
        def made(*args, **kwargs):
            score = make(*args, **kwargs)
            assert inspect.iscoroutinefunction(score)
            return score

        return made

    return wrapper


def test_inspect_ai(monkeypatch):
    """inspect_ai's protocol: an async call with the state and the target, which is a sequence of texts."""
    if importlib.util.find_spec("inspect_ai") is None:
        nothing = lambda: None  # noqa: E731
        put(monkeypatch, {"inspect_ai.scorer": dict(Score=Score, scorer=scorer, mean=nothing, stderr=nothing)})
    judge = adapter(monkeypatch, "inspect_ai").verified("math + 0.1*format")

    def asked(text, *target):
        output = types.SimpleNamespace(completion=text)
        state = types.SimpleNamespace(output=output, input_text="2+2?", sample_id=1, metadata={})
        return asyncio.run(judge(state, list(target)))

    found = asked(GOOD, "4")
    assert (found.value, found.answer, found.explanation) == (pytest.approx(1.1), "4", "math equal, format ok")
    assert found.metadata == {"math": 1.0, "format": 1.0, "unscored": 0.0}
    assert asked(BAD, "4").value == pytest.approx(0.1)
    assert asked(GOOD, "3", "4").value == pytest.approx(1.1)
    for golds in ([""], ["3", ""], []):
        found = asked(GOOD, *golds)
        assert math.isnan(found.value)
        assert "GoldError" in found.explanation
        assert found.metadata["unscored"] == 1.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(importlib.util.find_spec("inspect_ai") is None, reason="inspect_ai is not installed")
def test_inspect_ai_itself(tmp_path, monkeypatch):
    """Runs a whole evaluation with inspect_ai's mock model: unscored samples are left out of the mean."""
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model

    from verifiers.adapters.inspect_ai import verified

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("inspect_ai.model._model.count_text_tokens", len)  # its own fetches a vocabulary
    outputs = [ModelOutput.from_content("mockllm/model", text) for text in (GOOD, BAD, GOOD)]
    task = inspect_ai.Task(
        dataset=[Sample(input="2+2?", target=gold) for gold in ("4", "4", "")], scorer=verified("math")
    )
    (log,) = inspect_ai.eval(
        task, model=get_model("mockllm/model", custom_outputs=outputs), max_samples=1, display="none", log_dir="logs"
    )
    assert log.status == "success"
    (result,) = log.results.scores
    assert result.metrics["mean"].value == 0.5
    assert (result.scored_samples, result.unscored_samples) == (2, 1)
