"""`r1lite forecast`: parameters of known curves are found again, and what can't be told is not."""

import json
import random
import re

import pytest
from report_for_tests import HOSTILE, made_run
from test_report import elements, unpacked

from r1lite.cli import main
from r1lite.errors import UserError
from r1lite.evaluation import sigmoid
from r1lite.evaluation.intervals import trials_of
from r1lite.evaluation.sigmoid import Point, fit
from r1lite.report import read_run, write_report
from r1lite.report.forecast import FEWEST, forecast
from r1lite.rl.passk import wilson_interval

np = pytest.importorskip("numpy")
TRUE = {"start": 0.1, "end": 0.8, "midpoint": 1.0, "exponent": 2.5}


def rate(compute, start=0.1, end=0.8, midpoint=1.0, exponent=2.5):
    return start + (end - start) * compute**exponent / (compute**exponent + midpoint**exponent)


def measured(expected, problems, rng):
    """(rate, interval) of so many problems."""
    right = sum(rng.random() < expected for _ in range(problems))
    return right / problems, wilson_interval(right, problems)


def points(seed, last=3.0, count=16, problems=200):
    rng = random.Random(seed)
    found = []
    for number in range(count):
        compute = last * number / (count - 1)
        found.append(Point(compute, measured(rate(compute), problems, rng)[0], problems))
    return found


def run_with(path, last=3.0, count=15, problems=400, seed=0, **more):
    """A run of 60 steps of 1,000 tokens whose accuracy follows the curve; C_mid is at 60,000 / last tokens."""
    made_run(path, steps=60, seed=seed, rollouts=False, config=more.pop("config", None))
    rng = random.Random(f"forecast-{seed}")
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    (path / "metrics.jsonl").write_text("".join(json.dumps({**line, "tokens": 1000}) + "\n" for line in lines))

    def evaluation(step):
        value, interval = measured(rate(last * step / 60), problems, rng)
        return {"sampled_accuracy": value, "sampled_accuracy_interval": list(interval), "problems": problems, **more}

    before, *between, after = ((step, evaluation(step)) for step in range(0, 61, 60 // count))
    (path / "eval_before.json").write_text(json.dumps(before[1]))
    (path / "eval_after.json").write_text(json.dumps(after[1]))
    rows = [json.dumps({"step": step, **one}) + "\n" for step, one in between]
    (path / "evaluations.jsonl").write_text("".join(rows))
    return path


@pytest.mark.quick
def test_exact_points_give_the_curve_itself():
    exact = [Point(x, rate(x), 2000) for x in (0, 0.3, 0.6, 0.9, 1.2, 1.6, 2, 3, 4)]
    found = fit(exact)
    for name, value in TRUE.items():
        estimate = getattr(found, name)
        assert estimate.value == pytest.approx(value, rel=0.01)
        assert estimate.low < value < estimate.high
    assert found.scatter < 0.05
    assert [round(amount) for amount, _ in found.ahead] == [8, 16, 40]
    assert found.ahead[2][1].value == pytest.approx(rate(40), abs=0.005)


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """40 seeds, and 200 in benchmarks/forecast_coverage.py. Fewer than 33 of 40 is a chance of 1 in 1,400."""
    held = dict.fromkeys(TRUE, 0)
    for seed in range(40):
        found = fit(points(seed), resamples=200, seed=seed)
        for name, value in TRUE.items():
            estimate = getattr(found, name)
            held[name] += estimate is not None and estimate.low <= value <= estimate.high
    assert min(held.values()) >= 33, held


@pytest.mark.quick
def test_the_end_is_not_named_before_the_midpoint():
    early = fit(points(0, last=0.7))
    assert early.end is None
    assert early.midpoint is None
    assert early.ahead == []
    assert "midpoint is not certainly passed" in early.missing
    assert early.midpoint_at_least > 0.4
    flat = fit([Point(x, 0.3 + 0.01 * (x % 2), 200) for x in range(12)])
    assert flat.end is None
    assert "no rise beyond noise" in flat.missing
    falling = fit([Point(x, 0.6 - 0.04 * x, 500) for x in range(12)])
    assert falling.end is None


@pytest.mark.quick
@pytest.mark.parametrize(("right", "problems"), [(0, 40), (3, 200), (100, 200), (200, 200), (1.5, 2.5)])
def test_an_interval_tells_its_trials(right, problems):
    low, high = wilson_interval(right, problems)
    assert trials_of(low, high, right / problems) == pytest.approx(problems, rel=1e-6)


@pytest.mark.quick
@pytest.mark.parametrize(
    "bad", [(0.5, 0.5, 0.5), (0.6, 0.4, 0.5), (0.0, 1.0, 0.5), (-1, 0.4, 0.2), (0.1, 0.2, float("nan"))]
)
def test_no_interval(bad):
    with pytest.raises(ValueError, match="interval"):
        trials_of(*bad)


@pytest.mark.quick
def test_scatter_widens_the_intervals():
    rng = random.Random(0)
    quiet = [Point(x / 4, rate(x / 4), 2000) for x in range(17)]
    wild = [Point(one.compute, min(1, max(0, one.rate + rng.gauss(0, 0.05))), 2000) for one in quiet]
    a, b = fit(quiet), fit(wild)
    assert b.scatter > 3
    assert b.end.high - b.end.low > 2 * (a.end.high - a.end.low)
    assert fit(wild) == b  # seeded


@pytest.mark.quick
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([Point(x, 0.5, 20) for x in range(5)], "6 different amounts"),
        ([Point(0, 0.5, 20)] * 20, "6 different amounts"),
        ([Point(x, 1.5, 20) for x in range(9)], "rates in"),
        ([Point(x, 0.5, 0.0) for x in range(9)], "trials >= 1"),
        ([Point(x - 1, 0.5, 20) for x in range(9)], "compute >= 0"),
        ([Point(x, float("nan"), 20) for x in range(9)], "rates in"),
    ],
)
def test_points_that_make_no_sense(bad, message):
    with pytest.raises(ValueError, match=message):
        fit(bad)


def test_the_command(tmp_path, capsys):
    run = run_with(tmp_path / "one")
    assert main(["forecast", str(run)]) == 0
    shown = capsys.readouterr().out
    assert "one: sampled_accuracy, 16 evaluations up to 60 k tokens" in shown
    assert re.search(r"A +ends at +\d\d\.\d% \(", shown)
    assert "at 120 k tokens" in shown
    assert main(["forecast", str(run), "--json", "--against", "seconds"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["points"][-1]["compute"] == pytest.approx(60 * 1.8)
    assert found["end"]["low"] <= 0.8 <= found["end"]["high"]
    assert main(["forecast", str(run_with(tmp_path / "early", last=0.6))]) == 0
    shown = capsys.readouterr().out
    assert "A      not named: the midpoint is not certainly passed" in shown
    assert "C_mid  at least" in shown


def test_seeds_are_pooled_and_others_stand_alone(tmp_path, capsys):
    runs = [str(run_with(tmp_path / f"seed{seed}", seed=seed)) for seed in range(3)]
    other = str(run_with(tmp_path / "other", config={"task": "add_carry"}))
    assert main(["forecast", "--json", *runs, other]) == 0
    pooled, alone = map(json.loads, capsys.readouterr().out.splitlines())
    assert (pooled["runs"], len(pooled["points"])) == (["seed0", "seed1", "seed2"], 48)
    assert alone["runs"] == ["other"]
    assert main(["forecast", "--json", "--each", *runs]) == 0
    each = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(each) == 3
    assert pooled["end"]["high"] - pooled["end"]["low"] < min(one["end"]["high"] - one["end"]["low"] for one in each)


def test_flops_are_counted_from_the_checkpoint(tmp_path, capsys):
    from safetensors.numpy import save_file

    run = run_with(tmp_path / "run", config={"kl_coef": 0.1, "updates_per_rollout": 2})
    assert main(["forecast", str(run), "--against", "flops"]) == 2
    assert "has no checkpoint" in capsys.readouterr().err
    folder = run / "checkpoints" / "step-000060"
    for name in ("step-000060", "step-000060-copy"):
        (run / "checkpoints" / name).mkdir(parents=True)
    save_file({"a": np.zeros((10, 20), np.float32), "b": np.zeros(50, np.float32)}, folder / "model.safetensors")
    assert main(["forecast", str(run), "--against", "flops", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["points"][-1]["compute"] == 60_000 * 250 * (2 + 12 + 2)
    (folder / "model.safetensors").write_bytes(b"\xff" * 100)
    assert main(["forecast", str(run), "--against", "flops"]) == 2
    assert "pass --parameters N" in capsys.readouterr().err
    assert main(["forecast", str(run), "--against", "flops", "--parameters", "1000"]) == 0


def test_too_few_evaluations(tmp_path, capsys):
    assert FEWEST == sigmoid.FEWEST
    assert main(["forecast", str(made_run(tmp_path / "run"))]) == 2
    assert "run: 3 evaluations of pass_at_1, but 6 are needed" in capsys.readouterr().err
    assert main(["forecast", str(tmp_path / "run"), "--parameters", "1000"]) == 2
    assert "--against flops" in capsys.readouterr().err
    assert main(["forecast", str(tmp_path)]) == 2
    assert "contains no run" in capsys.readouterr().err


@pytest.mark.quick
def test_rows_that_are_not_as_they_should_be(tmp_path):
    run = run_with(tmp_path / HOSTILE[2].replace("/", ""))
    good = len(forecast([read_run(run)]).points)
    rows = (run / "evaluations.jsonl").read_text().splitlines()
    whole = json.loads(rows[0])
    bad = [
        {**whole, "step": 3, "sampled_accuracy": "0.5"},
        {**whole, "step": 5, "sampled_accuracy": 7},
        {**whole, "step": 6, "sampled_accuracy": True},
        {**whole, "step": 7, "sampled_accuracy_interval": [0.5, 0.4]},
        {**whole, "step": 9, "sampled_accuracy_interval": [HOSTILE[0], 1]},
        {**whole, "step": 10, "sampled_accuracy_interval": {"low": 0}},
        {**whole, "step": -4},
        {**whole, "step": 10**30},
    ]
    (run / "evaluations.jsonl").write_text("".join(line + "\n" for line in [*rows, *map(json.dumps, bad)]))
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    metrics[3] |= {"tokens": HOSTILE[0], "step_s": -5}
    metrics[4] |= {"tokens": -1e300}
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
    found = forecast([read_run(run)])
    assert len(found.points) == good
    assert found.points[-1][0].compute == 58_000
    json.dumps(found.as_dict(), allow_nan=False)
    for line in metrics:
        line["tokens"] = 0
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
    with pytest.raises(UserError, match="1 evaluations of sampled_accuracy"):
        forecast([read_run(run)])


def test_the_report_has_a_section(tmp_path):
    runs = [run_with(tmp_path / f"seed{seed}", seed=seed) for seed in range(2)]
    few = made_run(tmp_path / "few", config={"task": "add_carry"})
    head = unpacked(elements(write_report([few, *runs], tmp_path / "r.html").read_text())["head"])
    (found,) = head["forecasts"]
    assert (found["runs"], found["numbers"]) == (["seed0", "seed1"], [1, 2])
    assert len(found["drawn"]) == 41
    assert unpacked(elements(write_report([few], tmp_path / "few.html").read_text())["head"])["forecasts"] == []
