"""Diagnoses a run: why is the loss 0, the reward flat, the run unstable? Each check finds one kind of problem.

Thresholds are set so that a run that learns gives no findings: rates are compared over windows of up to ten steps, and
a change counts only beyond three standard errors.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from pathlib import Path

from r1lite.doctor.record import Finding, Record, Window, read
from r1lite.run.environment import read_environment
from r1lite.run.files import opened_regular

__all__ = ["Record", "diagnose", "read"]

_SURE = 3.0  # standard errors
_AFTER = 3  # number of steps in which the effect of an update shows
_SAID = 2000  # bytes of a message that are shown
_SLOW_S = 1.0  # seconds of scoring in a step
_WITHOUT_STEPS = ("cold-start", "eval", "reject")  # stages without metrics
_RATES = ("reward", "accuracy", "format_rate")
_FLAT_STEPS = 40  # a shorter run may not have had time to improve


def diagnose(run: Record | Path) -> list[Finding]:
    """All problems of a run, causes before their consequences. Raises UserError if there is no run."""
    record = read(run) if isinstance(run, Path) else run
    found = [finding for check in CHECKS for finding in check(record)]
    hidden = {other for finding in found for other in _EXPLAINS.get(finding.name, ())}
    return [finding for finding in found if finding.name not in hidden]


def _files(run: Record) -> Iterable[Finding]:
    said = None
    with contextlib.suppress(OSError), opened_regular(run.path / "stacks.txt") as file:
        said = file.readline(_SAID).decode("utf-8", "replace").strip().removeprefix("error: ")
    if said is not None:
        yield Finding(
            "hung",
            "The watchdog ended the run because it made no progress.",
            f"stacks.txt: {said}",
            "See in stacks.txt what the threads were waiting for, such as a file system, a server or your verifier. "
            "Then use --resume; if the work is only slow, raise the --stall-...-s limit that the file names.",
        )
    kept = sorted((run.path / "bad_batches").glob("step-*.pt"))
    skipped = sum(line.get("skipped_updates") or 0 for line in run.metrics)
    skipped += sum(line.get("critic_skipped_updates") or 0 for line in run.metrics)
    if kept or skipped:
        steps = [line["step"] for line in run.metrics if line.get("skipped_updates")]
        where = f" in steps {', '.join(map(str, steps[:6]))}" if steps else ""
        yield Finding(
            "nonfinite",
            "Some gradients were not finite, and their updates were skipped.",
            f"{skipped} updates skipped{where}; {len(kept)} batches kept in {run.path / 'bad_batches'}",
            "Open a batch (torch.load(path, weights_only=True)): `parameters` names the weights with such a gradient, "
            "`batches` has the data. Lower --lr, or use --dtype float32; look for log-probabilities near -inf.",
        )
    if not run.metrics and not kept and read_environment(run.path)["stage"] not in _WITHOUT_STEPS:
        yield Finding(
            "no_steps",
            "The run finished no step.",
            f"{run.path / 'metrics.jsonl'} is empty",
            "The run's last message gives the reason; r1lite doctor without a directory checks the machine.",
        )


def _unscored(run: Record) -> Iterable[Finding]:
    mean, highest = run.whole.mean("unscored"), run.whole.highest("unscored")
    if mean is not None and highest is not None and (mean > 0.01 or highest > 0.05):
        worst = max(run.metrics, key=lambda line: line.get("unscored") or 0)
        yield Finding(
            "verifier_errors",
            "Verifiers failed on some completions, which were left out.",
            f"{mean:.1%} of all completions unscored, {highest:.0%} in step {worst['step']}; rollouts/step-"
            f"{worst['step']:06d}.jsonl.gz has the error of each",
            "Fix the verifier or its sandbox (python -m verifiers doctor; python -m verifiers audit NAME). Nothing is "
            "learnt from unscored completions, and if the verifier fails on hard ones, the run learns a biased task.",
        )
    counts: dict[str, list[int]] = {}
    for line in run.last.lines:
        for name, reasons in (line.get("reasons") or {}).items():
            slow, total = counts.setdefault(name, [0, 0])
            late = sum(count for reason, count in reasons.items() if "timeout" in reason or reason == "too_slow")
            counts[name] = [slow + late, total + sum(reasons.values())]
    for name, (slow, total) in counts.items():
        if total and slow > 0.2 * total:
            yield Finding(
                "verifier_timeouts",
                f"'{name}' times out on many completions, which then count as wrong.",
                f"{slow} of {total} verdicts in {run.last.steps}",
                "Either the completions or the machine are slow: raise the verifier's time limit and see whether "
                "verdicts change (python -m verifiers replay RUN).",
            )


def _slow_scoring(run: Record) -> Iterable[Finding]:
    scoring, step = run.last.mean("score_s"), run.last.mean("step_s")
    if scoring is not None and step is not None and scoring > max(0.5 * step, _SLOW_S):
        yield Finding(
            "slow_scoring",
            "Most of the time is spent on scoring.",
            f"{scoring:.1f} of {step:.1f} s of a step in {run.last.steps}, while nothing was sampled or learnt",
            "Make the reward's verifiers faster, or score in more processes (--score-workers N, or --scoring ray).",
        )


def _truncated(run: Record) -> Iterable[Finding]:
    share = run.last.mean("truncated")
    if share is None or share < 0.5:
        return
    limit, before = run.config.get("max_completion_tokens"), run.first.mean("truncated")
    never = share > 0.95 and (before or 0) > 0.95 and not run.config.get("stop_text")
    yield Finding(
        "truncated",
        "Most completions are cut off before they end" + (", from the start of the run." if never else "."),
        f"{share:.0%} truncated at {limit} tokens in {run.last.steps}"
        + (f", {before:.0%} in {run.first.steps}" if before is not None else ""),
        ("A base model needs --stop-text (such as </answer>), or a template that makes it end. " if never else "")
        + "Raise --max-completion-tokens, or discourage length: --overlong-filter leaves cut completions out, "
        '"- 0.5*overlong" in the formula lowers the reward of long ones.',
    )


def _no_signal(run: Record) -> Iterable[Finding]:
    share, accuracy = run.last.mean("groups_without_signal"), run.last.mean("accuracy")
    at_first, accuracy_first = run.first.mean("groups_without_signal"), run.first.mean("accuracy")
    # With a critic, groups aren't compared, and distillation has no rewards.
    if share is None or share < 0.9 or run.config.get("advantage") == "gae" or "teacher" in run.config:
        return
    evidence = f"{share:.0%} of groups have equal rewards in {run.last.steps}"
    evidence += f"; accuracy {accuracy:.1%}" if accuracy is not None else ""
    evidence += f", loss {run.last.mean('loss') or 0:.3g}"
    if accuracy is not None and accuracy > 0.9:
        # A task that was learnt has no signal left either; only a task that was too easy from the start is a problem.
        if at_first is not None and at_first >= 0.9 and (accuracy_first or 0) > 0.9:
            yield Finding(
                "too_easy",
                "Almost every completion was right from the start, so there is nothing to learn.",
                evidence,
                "Use harder problems, or --dynamic-sampling to find problems with a signal.",
            )
        return
    if accuracy is not None and accuracy >= 0.1:
        yield Finding(
            "no_signal",
            "The completions of a group all get the same reward, although some problems are solved and others not.",
            evidence + f"; entropy {run.last.mean('entropy') or 0:.3g} nats per token",
            "The samples of a problem are too similar: raise --temperature towards 1, --group-size, or the entropy "
            "(--entropy-target); check that the reward formula distinguishes answers.",
        )
        return
    still = not run.last.mean("grad_norm")
    yield Finding(
        "no_signal",
        ("Loss and gradient are 0: the" if still else "The") + " completions of a group all get the same reward, and "
        "hardly any is right.",
        evidence,
        "The task is too hard for this model, or no completion can earn the reward. Read a few rows of rollouts/: is "
        "the answer present but not recognised (template, format, verifier)? Otherwise try easier problems, a cold "
        "start (r1lite sft), a larger --group-size, or --dynamic-sampling.",
    )


def _hacked(run: Record) -> Iterable[Finding]:
    accuracy = run.changed("accuracy")
    if accuracy is None or accuracy[0] - accuracy[1] < 0.05 or not run.fell("accuracy"):
        return
    rising = []
    shape, reward = run.changed("format_rate"), run.changed("reward")
    if shape is not None and shape[1] - shape[0] > 0.1 and run.rose("format_rate"):
        rising.append(("format", *shape))
    if reward is not None and reward[1] - reward[0] > 0.1 * max(abs(reward[0]), 0.1) and run.rose("reward"):
        rising.append(("reward", *reward))
    if rising:
        moves = ", ".join(f"{name} {before:.2f} -> {after:.2f}" for name, before, after in rising)
        yield Finding(
            "hacked",
            f"The {' and the '.join(name for name, *_ in rising)} rise while the accuracy falls.",
            f"{moves}, accuracy {accuracy[0]:.1%} -> {accuracy[1]:.1%} ({run.first.steps} against {run.last.steps})",
            "The reward favours something other than right answers. Gate the other terms by a right answer: "
            '--reward "math * (0.5 + 0.5*format)". With a reward model: stop earlier, or use a larger --kl-coef.',
        )


def _mismatch(run: Record) -> Iterable[Finding]:
    exact = run.config.get("dtype") == "float32" or str(run.config.get("device")).startswith("cpu")
    exact = exact and not run.config.get("max_staleness")  # completions may be of the weights of earlier steps
    kl, largest = run.last.mean("mismatch_kl"), run.whole.highest("mismatch_logprob_max")
    limit = 0.01 if exact else 3.0
    if (kl is not None and abs(kl) > 0.01) or (largest is not None and largest > limit):
        ratio = run.last.mean("mismatch_ratio_max")
        yield Finding(
            "engine_mismatch",
            "The engine samples from a different distribution than the trainer's.",
            f"KL {kl or 0:.3g} nats per token in {run.last.steps}; largest difference of a token's log-probability "
            f"in the whole run {largest or 0:.3g}"
            + (f", trainer/engine ratio up to {ratio:.3g}" if ratio is not None else ""),
            "Temperature, top-p, weights or precision differ between engine and trainer. Compare with --temperature 1, "
            "no top-p and --dtype float32; --importance token bounds the remaining difference.",
        )


def _clipped(run: Record) -> Iterable[Finding]:
    low, high = run.last.mean("clipped_low"), run.last.mean("clipped_high")
    if low is not None and high is not None and low + high > 0.3:
        yield Finding(
            "clipped",
            "Many tokens of each update are clipped: the policy moves too far within a step.",
            f"{low + high:.0%} of tokens clipped in {run.last.steps} ({low:.0%} below, {high:.0%} above)",
            "Use a lower --lr, fewer --updates-per-rollout or --minibatches, or --stop-kl.",
        )


def _broken(run: Record) -> Iterable[Finding]:
    """Finds a lasting fall of the reward with a change of the text within an update or two: the step was too large."""
    means = {key: run.means_to_end(key) for key in _RATES}  # else every dip would read the whole rest of the run
    for place in range(1, len(run.metrics)):
        # A step samples with the weights after the step before, so the first step's update shows in the second step.
        before, after = Window(run.metrics[max(0, place - 5) : place]), Window(run.metrics[place : place + _AFTER])
        best, now = before.mean("reward"), after.mean("reward")
        if best is None or now is None or best - now < 0.5 * abs(best):
            continue
        rest = Window(run.metrics[place:], {key: known[place] for key, known in means.items()})
        then = rest.mean("reward")
        if then is None or best - then < 0.5 * abs(best):
            continue
        if not any(_lower(run, key, before, rest) for key in _RATES):
            continue
        moved = _moved(before, after)
        if not moved:
            continue
        lr = max((line.get("lr") or 0.0 for line in before.lines), default=0.0) or run.whole.highest("lr") or 0.0
        norms = run.whole.highest("grad_norm")
        yield Finding(
            "learning_rate",
            "The reward fell and the text changed right after an update: the learning rate is too high.",
            f"reward {best:.3f} in {before.steps}, {then:.3f} from step {run.metrics[place]['step']} on; "
            f"{', '.join(moved)}; lr {lr:.3g}" + (f", gradient norm up to {norms:.3g}" if norms is not None else ""),
            f"Try --lr {lr / 10:.1g} or less, and --warmup-steps of 5-10. A checkpoint of {before.steps} may still be "
            "good.",
        )
        return


def _lower(run: Record, key: str, before: Window, after: Window) -> bool:
    """True if the metric is lower by two standard errors. Two are enough, since other signs are required too, and few
    completions precede a fall at the first update."""
    values = before.mean(key), after.mean(key)
    return None not in values and values[0] - values[1] > 2 * run.error(key, before, after)  # type: ignore[operator]


def _moved(before: Window, after: Window) -> list[str]:
    """Properties of the text that changed with an update, but that normally change slowly."""
    said = []
    entropy = before.mean("entropy"), after.mean("entropy")
    if entropy[0] is not None and entropy[1] is not None:
        if entropy[1] > max(2 * entropy[0], entropy[0] + 0.3):
            said.append(f"entropy {entropy[0]:.3g} -> {entropy[1]:.3g} nats per token")
        elif entropy[0] > 0.02 and entropy[1] < 0.02 * entropy[0]:
            said.append(f"entropy {entropy[0]:.3g} -> {entropy[1]:.3g} nats per token: always the same text")
    cut = before.mean("truncated"), after.mean("truncated")
    if cut[0] is not None and cut[1] is not None and cut[1] - cut[0] > 0.5:
        said.append(f"{cut[0]:.0%} -> {cut[1]:.0%} truncated")
    shape = before.mean("format_rate"), after.mean("format_rate")
    if shape[0] is not None and shape[1] is not None and shape[0] > 0.5 and shape[1] < 0.2 * shape[0]:
        said.append(f"format {shape[0]:.0%} -> {shape[1]:.0%}")
    return said


def _learning_rate(run: Record) -> Iterable[Finding]:
    if len(run.metrics) < 8:
        return
    windows = run.windows()
    known = [(value, window) for window in windows if (value := window.mean("reward")) is not None]
    if not known:
        return
    best, when = max(known, key=lambda item: item[0])
    last = known[-1][0]
    lr = run.whole.highest("lr") or 0.0
    # The best of several windows is partly luck, so the required difference grows with their number.
    sure = math.sqrt(_SURE**2 + 2 * math.log(len(known)))
    if best - last > max(0.3 * abs(best), 0.05, sure * run.error("reward", when, run.last)):
        norms = run.whole.highest("grad_norm")
        yield Finding(
            "collapsed",
            "The reward rose or was high, and then collapsed.",
            f"{best:.3f} in {when.steps}, {last:.3f} in {run.last.steps}; lr up to {lr:.3g}"
            + (f", gradient norm up to {norms:.3g}" if norms is not None else ""),
            f"The learning rate is too high for this model: try --lr {lr / 5:.1g}, --warmup-steps of 5-10, or "
            f"--kl-coef 0.001. A checkpoint of {when.steps} may still be good.",
        )
        return
    reward, signal = run.changed("reward"), run.whole.mean("groups_without_signal")
    accuracy = run.last.mean("accuracy")
    flat = reward is not None and abs(reward[1] - reward[0]) < run.error("reward", run.first)
    moved = max(value for value, _ in known[1:]) - known[1][0]
    if len(run.metrics) < _FLAT_STEPS or not flat or signal is None or signal > 0.7 or (accuracy or 0) > 0.9:
        return
    if moved < 2 * run.error_of_rate(known[1][0]):
        assert reward is not None
        yield Finding(
            "flat",
            "Groups have a signal, but the reward doesn't change: the learning rate is too low.",
            f"reward {reward[0]:.3f} in {run.first.steps}, {reward[1]:.3f} in {run.last.steps}; "
            f"{1 - signal:.0%} of groups have a signal; lr {lr:.3g}",
            f"Try --lr {10 * lr:.1g}. (If entropy and length don't change either, nothing is learnt at all.)",
        )


def _entropy(run: Record) -> Iterable[Finding]:
    entropy, accuracy = run.changed("entropy"), run.changed("accuracy")
    if entropy is None or accuracy is None:
        return
    middle = run.windows()[len(run.windows()) // 2].mean("accuracy")
    still = middle is not None and accuracy[1] - middle < max(0.02, 2 * run.error("accuracy", run.last))
    if entropy[1] < 0.1 * entropy[0] and accuracy[1] < 0.7 and still and len(run.metrics) >= 20:
        yield Finding(
            "entropy_collapse",
            "The policy became deterministic before it became accurate: it no longer explores.",
            f"entropy {entropy[0]:.3g} -> {entropy[1]:.3g} nats per token, accuracy {accuracy[0]:.1%} -> "
            f"{accuracy[1]:.1%}, unchanged since the middle of the run",
            "Try --clip-high 0.28, an --entropy-target, a lower --lr or more varied problems; check whether a cheap "
            "answer gets a reward.",
        )
    if entropy[1] > 2 * entropy[0] and entropy[1] > 1.0 and accuracy[1] < accuracy[0]:
        yield Finding(
            "entropy_blowup",
            "The policy drifts into noise.",
            f"entropy {entropy[0]:.3g} -> {entropy[1]:.3g} nats per token, accuracy {accuracy[0]:.1%} -> "
            f"{accuracy[1]:.1%}",
            "Lower --lr or --entropy-coef; a --kl-coef of 0.001 keeps the policy near the initial model.",
        )


def _kl(run: Record) -> Iterable[Finding]:
    kl, moved = run.last.mean("kl"), run.whole.highest("policy_kl")
    if run.config.get("kl_coef") and kl is not None and kl > 0.5:
        target = run.config.get("kl_target")
        yield Finding(
            "kl_blowup",
            "The policy is far from its reference.",
            f"KL {kl:.3g} nats per token in {run.last.steps}, {run.first.mean('kl') or 0:.3g} in {run.first.steps}; "
            f"coefficient {run.last.mean('kl_coef') or run.config['kl_coef']:.3g}",
            "Use a larger --kl-coef" + ("" if target else ", or --kl-target to adapt it") + ", or a lower --lr.",
        )
    elif moved is not None and moved > 0.5:
        worst = max(run.metrics, key=lambda line: line.get("policy_kl") or 0)
        yield Finding(
            "kl_blowup",
            "A single step moves the policy far from the one that sampled.",
            f"KL(before || after) {moved:.3g} nats per token in step {worst['step']}",
            "Use --stop-kl 0.05, a lower --lr, or fewer --updates-per-rollout.",
        )


def _length(run: Record) -> Iterable[Finding]:
    tokens, accuracy = run.changed("completion_tokens"), run.changed("accuracy")
    if tokens is not None and accuracy is not None and tokens[1] < 0.4 * tokens[0] and not run.rose("accuracy"):
        yield Finding(
            "length_collapse",
            "Completions become shorter without becoming better: the model stops thinking.",
            f"{tokens[0]:.0f} -> {tokens[1]:.0f} tokens, accuracy {accuracy[0]:.1%} -> {accuracy[1]:.1%} "
            f"({run.first.steps} against {run.last.steps})",
            "The reward favours short guesses: wrong answers get a format or length term too. Gate that term by "
            'correctness, or add "thinking"; --aggregation token_mean doesn\'t favour short right answers.',
        )


def _language(run: Record) -> Iterable[Finding]:
    language = run.changed("parts.language")
    if language is not None and language[0] - language[1] > 0.2 and run.fell("parts.language"):
        yield Finding(
            "language_collapse",
            "The thinking leaves the language of the prompt.",
            f"share of the required language {language[0]:.0%} -> {language[1]:.0%} ({run.first.steps} against "
            f"{run.last.steps})",
            'Give the language more weight, gated by correctness: "math * (0.5 + 0.5*language)".',
        )


def _critic(run: Record) -> Iterable[Finding]:
    explained = run.last.mean("explained_variance") if len(run.metrics) >= 20 else None
    if explained is not None and explained < -0.5:
        yield Finding(
            "bad_critic",
            "The critic is worse than predicting the mean: its advantages are mostly noise.",
            f"explained variance {explained:.2f} in {run.last.steps}, value loss "
            f"{run.last.mean('value_loss') or 0:.3g}",
            "Try --critic-warmup-steps 10, another --critic-lr, a --value-clip larger than the change of rewards in a "
            "step, or r1lite grpo, which needs no critic.",
        )


def _overfit(run: Record) -> Iterable[Finding]:
    rates = [(line["step"], line["pass_at_1"]) for line in run.evaluations if line.get("pass_at_1") is not None]
    accuracy = run.changed("accuracy")
    if len(rates) < 3 or accuracy is None:
        return
    best_step, best = max(rates, key=lambda item: item[1])
    problems = max(1, int(run.evaluations[0].get("problems") or run.config.get("eval_problems") or 100))
    # Both rates have sampling errors, and the best of several rates is partly luck.
    variances = [max(rate * (1 - rate), 0.01) / problems for rate in (best, rates[-1][1])]
    sure = math.sqrt(_SURE**2 + 2 * math.log(len(rates)))
    if best - rates[-1][1] > max(0.05, sure * math.sqrt(sum(variances))) and accuracy[1] > accuracy[0]:
        yield Finding(
            "overfit",
            "The accuracy on training problems still rises, but falls on held-out problems.",
            f"held out {best:.1%} at step {best_step}, {rates[-1][1]:.1%} at step {rates[-1][0]}; in training "
            f"{accuracy[0]:.1%} -> {accuracy[1]:.1%}",
            f"Use the checkpoint of step {best_step}, more problems, or a --kl-coef.",
        )


CHECKS: tuple[Callable[[Record], Iterable[Finding]], ...] = (
    _files,
    _unscored,
    _slow_scoring,
    _broken,
    _truncated,
    _mismatch,
    _no_signal,
    _hacked,
    _learning_rate,
    _entropy,
    _kl,
    _clipped,
    _length,
    _language,
    _critic,
    _overfit,
)
# Causes that explain other findings: only the cause is reported.
_EXPLAINS = {
    "learning_rate": (
        *("truncated", "no_signal", "hacked", "collapsed", "flat", "entropy_collapse", "entropy_blowup", "kl_blowup"),
        *("clipped", "length_collapse", "language_collapse", "overfit"),
    ),
    "collapsed": ("overfit", "no_signal"),
    "hacked": ("flat",),
    "entropy_blowup": ("entropy_collapse",),
}
