"""The command line: parses first, imports torch after."""

from __future__ import annotations

import difflib
import importlib
import io
import itertools
import os
import sys
import time
from collections.abc import Sequence

from r1lite import __version__
from r1lite.config import (
    ColdStartConfig,
    DistillConfig,
    DPOConfig,
    EvalConfig,
    GRPOConfig,
    PPOConfig,
    RejectConfig,
    RewardModelConfig,
    Section,
    SFTConfig,
    load,
)
from r1lite.config.loading import called_elsewhere
from r1lite.config.pipeline import PipelineConfig
from r1lite.config.serve_engine import ServeEngineConfig
from r1lite.distributed.launcher import rank_info
from r1lite.errors import Interrupted, RunError, UserError
from r1lite.nano.config import PretrainConfig
from r1lite.training.several import refuse_command
from verifiers.terminal import guarded, unbroken

_HELP = {"-h", "--help", "--help-all"}

_UNTIL_SAID_S = 2.0

# sub-command -> (configuration, "module:function", one line of help)
COMMANDS: dict[str, tuple[type[Section], str, str]] = {
    "grpo": (GRPOConfig, "r1lite.stages.grpo:run", "train a model to reason, by group relative policy optimization"),
    "ppo": (PPOConfig, "r1lite.stages.ppo:run", "the same with a critic: proximal policy optimization"),
    "cold-start": (ColdStartConfig, "r1lite.stages.cold_start:run", "make a first data set of readable chains"),
    "reject": (RejectConfig, "r1lite.stages.reject:run", "make a data set of completions that are right"),
    "sft": (SFTConfig, "r1lite.stages.sft:run", "fine-tune a model on prompts with completions"),
    "dpo": (DPOConfig, "r1lite.stages.dpo:run", "learn from pairs of answers, without a reward model"),
    "distill": (DistillConfig, "r1lite.stages.distill:run", "teach a smaller model what a larger one knows"),
    "pretrain": (PretrainConfig, "r1lite.stages.pretrain:run", "make the bundled model nano, from nothing"),
    "reward-model": (RewardModelConfig, "r1lite.stages.reward_model:run", "learn a reward from pairs of answers"),
    "serve-engine": (
        ServeEngineConfig,
        "r1lite.stages.serve_engine:run",
        "a vLLM server for runs with --engine vllm-server",
    ),
    "r1": (PipelineConfig, "r1lite.pipeline.run:run", "run a recipe of stages, and compare the models they make"),
    "eval": (EvalConfig, "r1lite.stages.evaluate:run", "measure a model: greedy accuracy and pass@k"),
}

# Those without a configuration: sub-command -> ("module:function" of the arguments that returns the exit code, help)
PLAIN: dict[str, tuple[str, str]] = {
    "launch": ("r1lite.launch.command:main", "start ranks and engines, and watch over them"),
    "doctor": ("r1lite.doctor.command:main", "say what is wrong with a run, or with this machine"),
    "log": ("r1lite.trackers.command:main", "send a run to W&B, trackio, TensorBoard or MLflow afterwards"),
    "selftest": ("r1lite.selftest.command:main", "try engines, training, memory and verdicts on this machine"),
    "report": ("r1lite.report.command:main", "write what a run did as one HTML file"),
    "forecast": ("r1lite.report.forecast:main", "fit where accuracy goes as compute grows, with intervals"),
    "watch": ("r1lite.report.command:watch", "show a run in the browser while it goes on"),
    "show-preset": ("r1lite.config.presets:main", "list the settings of a paper, and where each is from"),
    "tasks": ("r1lite.tasks.command:main", "list what can be solved, and check the answers that are known"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a sub-command; what it prints can't steer the terminal.

    Returns: 0; 1 when the run can't go on; 2 for mistakes of use; 128 + signal when stopped.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):  # a terminal that can't show a character gets its escape, not a traceback
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    code = 0  # of help whose reader has read enough, too
    with guarded(), unbroken():
        code = _ran(*(arguments or [""]))
    return code


def _ran(name: str, *rest: str) -> int:
    if name in ("", "-h", "--help"):
        print(_help())
        return 0 if name else 2
    if name == "--version":
        print(f"r1lite {__version__}")
        return 0
    if "" not in sys.path and os.getcwd() not in sys.path:  # `module:attr` may stand in the working directory
        sys.path.append("")
    # Threads that wait by spinning make a step 30 times slower as soon as another program wants a core (measured).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # oneDNN compiles a kernel for each shape in bfloat16, and would keep 1,024 of them: hundreds of MiB, and no faster.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    try:
        if (here := rank_info()) is not None:
            refuse_command(name, here.size)
        if name in PLAIN:
            module, _, function = PLAIN[name][0].partition(":")
            code: int = getattr(importlib.import_module(module), function)(list(rest))
            sys.stdout.flush()  # so that a reader that is gone is noticed here
            return code
        if name not in COMMANDS:
            known = [*COMMANDS, *PLAIN]
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
            raise UserError(f"unknown command '{name}'; {hint}")
        config_class, target, _ = COMMANDS[name]
        _refuse_flags_of_others(name, rest)
        config = load(config_class, rest, prog=f"r1lite {name}")
        importlib.import_module("r1lite.training.early").check_early(config)
        module, _, function = target.partition(":")
        getattr(importlib.import_module(module), function)(config)
    except UserError as error:
        return _fail(str(error), 2)
    except ModuleNotFoundError as error:
        if error.name in ("torch", "transformers", "datasets", "safetensors", "numpy"):
            return _fail(
                f"r1lite {name} needs {error.name}: install r1lite with its extra, as in: pip install '.[train]'", 2
            )
        raise
    except RunError as error:
        return _fail(str(error), 1)
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains once more at its end
        return 0 if name in PLAIN or not _HELP.isdisjoint(rest) else _fail(f"{name}: the output was closed", 1)
    except OSError as error:  # disk full, a folder taken away, ...
        return _fail(f"{error.filename or name}: {error.strerror or error}", 1)
    except Interrupted as stopped:
        return 128 + stopped.signum
    except KeyboardInterrupt:  # before or after the part of a run that handles it
        return 130
    return 0


def _refuse_flags_of_others(name: str, words: Sequence[str]) -> None:
    """Says where a flag or a recipe belongs: a critic for GRPO is a misunderstanding, not a misspelling."""
    for before, word in itertools.pairwise(("", *words)):
        field = word.removeprefix("--").partition("=")[0].replace("-", "_")
        if word.partition("=")[0] in ("--config", "--recipe") or (
            word.endswith((".yaml", ".yml")) and before and not before.startswith("--")
        ):
            raise UserError(
                f"{word}: a recipe is the first argument and has no flag, as in: r1lite {name} recipe.yaml --steps 3"
            )
        if not word.startswith("--") or field in COMMANDS[name][0].model_fields:
            continue
        owners = [other for other, (config_class, _, _) in COMMANDS.items() if field in config_class.model_fields]
        if owners:
            why = "GRPO compares siblings instead of asking a critic; " if (name, owners) == ("grpo", ["ppo"]) else ""
            raise UserError(
                f"--{field.replace('_', '-')} is no option of r1lite {name}: {why}"
                f"it belongs to r1lite {', '.join(owners)}"
            )
        if (ours := called_elsewhere(field)) in COMMANDS[name][0].model_fields:
            raise UserError(f"{word.partition('=')[0]} is called --{str(ours).replace('_', '-')} here")


def _fail(message: str, code: int) -> int:
    if os.environ.get("LOCAL_RANK", "0") != "0":  # of several ranks on a machine one says what all have found
        time.sleep(_UNTIL_SAID_S)  # the launcher ends the others as soon as this one is gone
        return code
    for line in message.splitlines():
        print(f"error: {line}" if not line.startswith("  ") else line, file=sys.stderr)
    return code


def _help() -> str:
    texts = {name: text for name, (_, _, text) in COMMANDS.items()} | {name: text for name, (_, text) in PLAIN.items()}
    width = max(map(len, texts))
    commands = "\n".join(f"  {name:<{width}}  {text}" for name, text in texts.items())
    return (
        "usage: r1lite COMMAND [RECIPE.yaml] [FLAGS]\n\n"
        "Train language models to reason from rewards that rules can check.\n\n"
        f"{commands}\n\nr1lite COMMAND --help shows its flags; r1lite --version the version."
    )
