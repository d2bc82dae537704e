"""The command line. It parses arguments before it imports torch."""

from __future__ import annotations

import importlib
import io
import itertools
import os
import pkgutil
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
from verifiers.core import did_you_mean
from verifiers.terminal import guarded, unbroken

_HELP = {"-h", "--help", "--help-all"}

_UNTIL_PRINTED_S = 2.0

# sub-command -> (configuration, "module:function", one line of help)
COMMANDS: dict[str, tuple[type[Section], str, str]] = {
    "grpo": (GRPOConfig, "r1lite.stages.grpo:run", "train a model with group relative policy optimization"),
    "ppo": (PPOConfig, "r1lite.stages.grpo:run", "train a model with a critic: proximal policy optimization"),
    "cold-start": (
        ColdStartConfig,
        "r1lite.stages.cold_start:run",
        "make a first data set of readable chains of thought",
    ),
    "reject": (RejectConfig, "r1lite.stages.reject:run", "make a data set of right completions"),
    "sft": (SFTConfig, "r1lite.stages.sft:run", "fine-tune a model on prompts with completions"),
    "dpo": (DPOConfig, "r1lite.stages.dpo:run", "train a model on pairs of answers, without a reward model"),
    "distill": (DistillConfig, "r1lite.stages.distill:run", "train a smaller model to imitate a larger one"),
    "pretrain": (PretrainConfig, "r1lite.stages.pretrain:run", "train the bundled model nano from scratch"),
    "reward-model": (RewardModelConfig, "r1lite.stages.reward_model:run", "train a reward model on pairs of answers"),
    "serve-engine": (
        ServeEngineConfig,
        "r1lite.stages.serve_engine:run",
        "start a vLLM server for runs with --engine vllm-server",
    ),
    "r1": (PipelineConfig, "r1lite.pipeline.run:run", "run a pipeline of stages and compare the models"),
    "eval": (EvalConfig, "r1lite.stages.evaluate:run", "evaluate a model: greedy accuracy and pass@k"),
}

# Commands without a configuration: sub-command -> ("module:function" from arguments to exit code, help)
PLAIN: dict[str, tuple[str, str]] = {
    "launch": ("r1lite.launch.command:main", "start and supervise ranks and engines"),
    "doctor": ("r1lite.doctor.command:main", "diagnose a run, or this machine"),
    "log": ("r1lite.trackers.command:main", "send a run to W&B, trackio, TensorBoard or MLflow"),
    "selftest": ("r1lite.selftest.command:main", "test engines, training, memory and verdicts on this machine"),
    "report": ("r1lite.report.command:main", "write an HTML report of a run"),
    "forecast": ("r1lite.report.forecast:main", "extrapolate accuracy to more compute, with intervals"),
    "watch": ("r1lite.report.command:watch", "show a running run in the browser"),
    "show-preset": ("r1lite.config.presets:main", "list the settings of a preset with their sources"),
    "tasks": ("r1lite.tasks.command:main", "list tasks, and check their gold answers"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a sub-command; its output can't control the terminal.

    Returns: 0; 1 if the run can't continue; 2 for wrong usage; 128 + signal if it was stopped.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):  # characters that the terminal can't show are escaped
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    code = 0  # also if the reader of the help closes the pipe
    with guarded(), unbroken():
        code = _ran(*(arguments or [""]))
    return code


def _ran(name: str, *rest: str) -> int:
    if "" not in sys.path and os.getcwd() not in sys.path:  # `module:attr` may be in the working directory
        sys.path.append("")
    # Spinning threads make a step 30 times slower as soon as another program needs a core (measured).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # oneDNN compiles a bfloat16 kernel per shape. Its default cache of 1,024 takes hundreds of MiB and is not faster.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    try:
        if name in ("", "-h", "--help"):
            print(_help())
            return 0 if name else 2
        if name == "--version":
            print(f"r1lite {__version__}")
            return 0
        if (here := rank_info()) is not None:
            refuse_command(name, here.size)
        if name in PLAIN:
            code: int = pkgutil.resolve_name(PLAIN[name][0])(list(rest))
            sys.stdout.flush()  # so that a closed pipe is noticed here
            return code
        if name not in COMMANDS:
            known = [*COMMANDS, *PLAIN]
            hint = did_you_mean(name, [*known, "--help", "--version"], f"known: {', '.join(known)}")
            raise UserError(f"unknown command '{name}'; {hint}")
        config_class, target, _ = COMMANDS[name]
        _refuse_flags_of_others(name, rest)
        config = load(config_class, rest, prog=f"r1lite {name}")
        importlib.import_module("r1lite.training.early").check_early(config)
        try:
            pkgutil.resolve_name(target)(config)
        except SystemExit as error:
            # Without a message, a run that a user's code ended would look like a success.
            if error.code in (0, None):
                raise RunError("code that this command called ended the program by sys.exit()") from error
            raise
    except UserError as error:
        return _fail(str(error), 2)
    except ModuleNotFoundError as error:
        if error.name in ("torch", "transformers", "datasets", "safetensors", "numpy"):
            return _fail(f"r1lite {name} needs {error.name}: in r1lite's repository, pip install '.[train]'", 2)
        raise
    except (ImportError, MemoryError) as error:
        if isinstance(error, ImportError) and "failed to map segment" not in str(error):  # of a library into memory
            raise
        return _fail(f"{name}: this machine, or its limit (ulimit -v), has too little memory", 1)
    except RunError as error:
        return _fail(str(error), 1)
    except RuntimeError as error:  # of pathlib, wherever a path is used
        if "determine home directory" not in str(error):
            raise
        given = next((word for word in rest if "~" in word), "a path")
        return _fail(f"{given} begins with ~ and the name of no user of this machine: write the whole path", 2)
    except BrokenPipeError:  # for example `| head` after enough lines
        return (
            0
            if name in PLAIN or not {*_HELP, "--version"}.isdisjoint((name, *rest))
            else _fail(f"{name}: the output was closed", 1)
        )
    except OSError as error:  # disk full, folder removed, ...
        return _fail(f"{error.filename or name or 'r1lite'}: {error.strerror or error}", 1)
    except Interrupted as stopped:
        return 128 + stopped.signum
    except KeyboardInterrupt:  # outside of the part of a run that handles signals
        return 130
    return 0


def _refuse_flags_of_others(name: str, words: Sequence[str]) -> None:
    """Raises UserError for flags of other commands or trainers and misplaced recipes, with the right name or place."""
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
            why = (
                "GRPO compares completions of a group instead of using a critic; "
                if (name, owners) == ("grpo", ["ppo"])
                else ""
            )
            raise UserError(
                f"--{field.replace('_', '-')} is no option of r1lite {name}: {why}"
                f"it belongs to r1lite {', '.join(owners)}"
            )
        if (ours := called_elsewhere(field)) in COMMANDS[name][0].model_fields:
            raise UserError(f"{word.partition('=')[0]} is called --{str(ours).replace('_', '-')} here")


def _fail(message: str, code: int) -> int:
    if os.environ.get("LOCAL_RANK", "0") != "0":  # with several ranks on a machine, only one prints the error
        time.sleep(_UNTIL_PRINTED_S)  # the launcher ends the others as soon as this one exits
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
        "Train language models to reason with rule-based rewards.\n\n"
        f"{commands}\n\nr1lite COMMAND --help shows the flags of a command; r1lite --version prints the version."
    )
