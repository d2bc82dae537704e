"""`r1lite eval`: how good a model is at a task."""

from __future__ import annotations

from typing import Any

from r1lite.config import EvalConfig
from r1lite.errors import Interrupted, UserError
from r1lite.evaluation import evaluate
from r1lite.setup import begin, settle
from r1lite.signals import StopSignal


def run(config: EvalConfig) -> dict[str, Any]:
    """Measures greedy accuracy and pass@k, and keeps them in the run directory's summary.json.

    Raises:
        UserError: something that was asked for can't be had.
        Interrupted: a signal asked it to stop.
    """
    if config.resume:
        raise UserError("r1lite eval has nothing to resume; run it again")
    config, notes = settle(config)
    setup = begin(config, notes)
    try:
        setup.display.start("measuring", 1)
        with StopSignal() as stop, stop.interruptible():
            measured = evaluate(setup.engine, setup.test, setup.judge, config, setup.display.progress)
        setup.display.finish()
        summary = {"eval_after": measured, "model": config.model, "source": config.source, "device": config.device}
        setup.run_dir.write_result("summary", summary)
        setup.display.summary(summary, [("run", str(setup.run_dir.path))])
        return summary
    except Interrupted:
        setup.run_dir.discard()  # there is nothing to continue, so nothing may stand in the way of the next try
        raise
    finally:
        setup.display.finish()
        setup.run_dir.close()
