"""A resumed run notices what was lost, changed or damaged since: it refuses, or makes it again, and always says so."""

import dataclasses
import gzip
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch

from r1lite.cli import main
from r1lite.config import GRPOConfig, dump, load
from r1lite.errors import UserError
from r1lite.grpo.loop import Loop
from r1lite.run.files import digest
from r1lite.run.places import newest_path
from r1lite.run.run_dir import RunDir
from r1lite.scoring.problems import fingerprint
from r1lite.scoring.scorer import rewards_of
from r1lite.tasks import Problems, find
from r1lite.training.resolve import resolve_config
from verifiers import Problem
from verifiers.__main__ import main as verify
from verifiers.rows import step_files

ROOT = Path(__file__).resolve().parents[2]
CLOCKS = {"generate_s", "score_s", "train_s", "step_s"}


@pytest.fixture(autouse=True)
def reward_is_found(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests")
    torch.set_num_threads(1)


def train(out, *more):
    return main(["grpo", "--out", str(out), "--trust", "--quiet", *more])


@pytest.fixture(scope="module")
def runs(tmp_path_factory, tiny_path, sums_path):
    """A run of two steps, and the same of three that was never stopped."""
    sys.path.insert(0, str(ROOT / "tests"))
    place = tmp_path_factory.mktemp("runs")
    for name, steps in (("two", 2), ("three", 3)):
        assert (
            train(
                place / name,
                *("--model", str(tiny_path), "--source", str(sums_path), "--template", "short", "--steps", str(steps)),
                *("--max-completion-tokens", "5", "--lr", "3e-3", "--prompts-per-step", "1", "--group-size", "2"),
                *("--eval-problems", "2", "--eval-sample-problems", "1", "--eval-samples", "2", "--score-workers", "0"),
                *(
                    "--reward",
                    "reward_for_tests:digits",
                    "--threads",
                    "1",
                    "--save-every",
                    "1",
                    "--keep-checkpoints",
                    "1",
                ),
            )
            == 0
        )
    return place


@pytest.fixture
def out(runs, tmp_path):
    shutil.copytree(runs / "two", tmp_path / "run")
    return tmp_path / "run"


def lines(path):
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def outcome(out):
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return (
        {step: lines(path) for step, path in step_files(out)},
        [{key: value for key, value in line.items() if key not in CLOCKS} for line in metrics],
        *(json.loads((out / f"{name}.json").read_text()) for name in ("eval_before", "eval_after", "reward")),
        (out / "checkpoints" / "step-000003" / "model.safetensors").read_bytes(),
    )


def cut(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def cut_in_a_key(path):
    """Half of the lines, and the beginning of the next: a cut within a number would leave good YAML."""
    lines = path.read_text().splitlines(keepends=True)
    half = len(lines) // 2
    path.write_text("".join(lines[:half]) + lines[half][:3])


def changed(path, pattern, by):
    text = path.read_text()
    assert re.search(pattern, text)
    path.write_text(re.sub(pattern, by, text, count=1))


def added(path, text):
    path.write_text(path.read_text() + text)


def flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def without_line(path):
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))


def resaved(checkpoint, change):
    """The checkpoint with another trainer.pt, and a manifest that agrees."""
    state = torch.load(checkpoint / "trainer.pt", weights_only=True)
    change(state)
    torch.save(state, checkpoint / "trainer.pt")
    with_manifest(checkpoint)


def with_manifest(checkpoint):
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    manifest["files"]["trainer.pt"] = digest(checkpoint / "trainer.pt")[1]
    (checkpoint / "manifest.json").write_text(json.dumps(manifest))


def garbled(checkpoint):
    (checkpoint / "trainer.pt").write_bytes(b"\x80\x02garbled")
    with_manifest(checkpoint)


def in_config(key, value):
    return lambda out: changed(out / "config.yaml", rf"(?m)^{key}: .*$", f"{key}: {value}")


NEWEST = "checkpoints/step-000002"
REFUSED = {
    "metrics cut": (lambda out: cut(out / "metrics.jsonl"), r"metrics\.jsonl has lost [\d,]+ of"),
    "metrics gone": (lambda out: (out / "metrics.jsonl").unlink(), r"metrics\.jsonl is missing"),
    "a line of metrics lost": (lambda out: without_line(out / "metrics.jsonl"), r"metrics\.jsonl has lost"),
    "metrics edited": (
        lambda out: changed(out / "metrics.jsonl", '"step": 1', '"step": 7'),
        r"metrics\.jsonl was changed or damaged",
    ),
    "rollouts cut": (
        lambda out: cut(out / "rollouts/step-000001.jsonl.gz"),
        r"rollouts/step-000001\.jsonl\.gz has lost",
    ),
    "rollouts gone": (lambda out: shutil.rmtree(out / "rollouts"), r"rollouts/step-000001\.jsonl\.gz is missing"),
    "rollouts edited": (
        lambda out: flipped(out / "rollouts/step-000002.jsonl.gz"),
        r"rollouts/step-000002\.jsonl\.gz was changed or damaged",
    ),
    "config cut": (lambda out: cut_in_a_key(out / "config.yaml"), r"config\.yaml: can't be read"),
    "lines of config lost": (
        lambda out: without_line(out / "config.yaml"),
        r"config\.yaml is damaged: it lacks",
    ),
    "config no YAML": (lambda out: (out / "config.yaml").write_bytes(b"\xff\x00{"), r"config\.yaml: can't be read"),
    "config edited": (
        in_config("lr", "0.5"),
        r"config\.yaml was changed after the run began: lr is 0\.5, but was 0\.003",
    ),
    "another seed": (in_config("seed", "5"), r"seed is 5, but was 0 when step 2 was saved"),
    "environment cut": (lambda out: cut(out / "environment.json"), r"environment\.json: damaged: not JSON"),
    "environment a list": (lambda out: (out / "environment.json").write_text("[]"), r"found a list"),
    "environment with odd values": (
        lambda out: (out / "environment.json").write_text('{"schema": 2, "resumed": {"a": 1}, "versions": [1]}'),
        r"environment\.json: damaged",
    ),
    "another version's odd values": (
        lambda out: (out / "environment.json").write_text('{"schema": 2, "resumed": [{"versions": 3}]}'),
        r"environment\.json: damaged",
    ),
    "environment with an infinite number": (
        lambda out: changed(out / "environment.json", '"cpu_count": [^,]*', '"cpu_count": 1e999'),
        r"environment\.json: damaged",
    ),
    "other weights": (
        lambda out: changed(out / "environment.json", '"weights": "sha256:', '"weights": "sha256:0'),
        r"the weights of --model changed after .* began: restore it, or start a new run",
    ),
    "another tokenizer": (
        lambda out: changed(out / "environment.json", '"tokenizer": "sha256:', '"tokenizer": "sha256:0'),
        r"the configuration or tokenizer of --model changed",
    ),
    "other tests of the problems": (
        lambda out: changed(out / "environment.json", r'"problems": "(\w+)\.\w+"', r'"problems": "\1.0"'),
        r"the problems of .* are no longer those that .* began with",
    ),
    "a newer schema": (
        lambda out: changed(out / "environment.json", '"schema": 2', '"schema": 99'),
        r"has schema 99, but r1lite .* only supports 2",
    ),
    "no intact checkpoint": (lambda out: cut(out / NEWEST / "trainer.pt"), r"no intact checkpoint"),
    "checkpoints gone": (lambda out: shutil.rmtree(out / "checkpoints"), r"has records of 2 steps.*--accept-lost"),
    "records of a manifest without a key": (
        lambda out: changed(out / NEWEST / "manifest.json", '"rollouts": \\{', '"rolls": {'),
        "no intact checkpoint",
    ),
    "records of a manifest with an odd value": (
        lambda out: changed(out / NEWEST / "manifest.json", r'("metrics.jsonl": \[\s*)\d+', r"\1null"),
        "no intact checkpoint",
    ),
    "state lacks a key": (
        lambda out: resaved(out / NEWEST, lambda state: state.pop("course")),
        r"this version of r1lite can't continue from the checkpoint .*step-000002: it lacks 'course'",
    ),
    "state of another shape": (
        lambda out: resaved(out / NEWEST, lambda state: state.update(learner={"optimizer": 3})),
        r"can't continue from the checkpoint .*step-000002",
    ),
    "state garbled": (lambda out: garbled(out / NEWEST), r"trainer\.pt: can't be read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_file_and_the_way_out(case, out, capsys):
    damage, said = REFUSED[case]
    damage(out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name != "environment.json"}
    assert train(out, "--resume", "--steps", "3") == 2
    shown = capsys.readouterr().err
    (line,) = [line for line in shown.splitlines() if line.startswith("error: ")]
    assert re.search(said, line)
    assert re.search("copy|new run|--accept-lost-records|that created it|can't be read", line)
    after = {path: path.read_bytes() for path in before}
    assert {path.name for path in before if before[path] != after[path]} <= {"config.yaml"}  # the number of steps


MADE_AGAIN = {
    "eval_before gone": (lambda out: (out / "eval_before.json").unlink(), "evaluating the initial weights"),
    "eval_before cut": (lambda out: cut(out / "eval_before.json"), "eval_before.json: damaged: not JSON"),
    "eval_before without a key": (lambda out: (out / "eval_before.json").write_text("{}"), "it lacks pass_at_1"),
    "eval_before edited": (
        lambda out: changed(out / "eval_before.json", '"pass_at_1": [^,]*', '"pass_at_1": 0.9'),
        "eval_before.json: changed or damaged since step 2",
    ),
    "answers cut": (lambda out: cut(out / "evaluations/step-000000.jsonl.gz"), "continuing after step 2"),
    "reward gone": (lambda out: (out / "reward.json").unlink(), "reward.json was missing"),
    "reward cut": (lambda out: cut(out / "reward.json"), "reward.json was damaged"),
    "environment gone": (lambda out: (out / "environment.json").unlink(), "environment.json was missing"),
    "environment empty": (lambda out: (out / "environment.json").write_text("{}"), "changes of them can't be noticed"),
    "problems by their texts only": (
        lambda out: changed(out / "environment.json", r'"problems": "(\w+)\.\w+"', r'"problems": "\1"'),
        "continuing after step 2",
    ),
    "half written parts": (
        lambda out: [(out / folder / ".some.part").mkdir() for folder in (".", "checkpoints", "rollouts")],
        "continuing after step 2",
    ),
    "a torn line": (lambda out: added(out / "metrics.jsonl", '{"step": 3, "rew'), "continuing after step 2"),
    "another torch": (
        lambda out: changed(out / "environment.json", '"torch": "[^"]*"', '"torch": "0.1"'),
        "torch was 0.1 when this run began",
    ),
    "another processor": (
        lambda out: changed(out / "environment.json", '"processor": .*,', '"processor": "8086",'),
        "processor was 8086 when this run began",
    ),
    "an older verifier": (
        lambda out: changed(out / "reward.json", '"versions": {[^}]*}', '"versions": {"reward_for_tests:digits": "0"}'),
        "was version 0 when this run began",
    ),
}


@pytest.mark.parametrize("case", MADE_AGAIN)
def test_made_again_and_said(case, out, runs, capsys):
    damage, said = MADE_AGAIN[case]
    damage(out)
    assert main(["grpo", "--resume", "--steps", "3", "--trust", "--out", str(out)]) == 0
    assert said in " ".join(capsys.readouterr().out.split())
    found, expected = outcome(out), outcome(runs / "three")
    if case == "an older verifier":  # kept: it is what the first steps were scored by
        found[4]["versions"] = expected[4]["versions"]
    assert found == expected
    assert not list(out.rglob(".*.part"))
    assert json.loads((out / "environment.json").read_text())["schema"] == 2


@pytest.mark.parametrize(
    "changed", [{"tests": {"outs": [2]}}, {"language": "fr"}, {"meta": {"numbers": [1, 3]}}, {"answer": "8"}]
)
def test_whatever_a_problem_holds_is_part_of_the_digest(changed):
    problem = Problem("?", "7", {"outs": [1]}, "en", "a", {"numbers": [1, 2], ("odd",): {3}})
    same = dataclasses.replace(problem, meta=dict(problem.meta))
    assert digest_of(problem) == digest_of(same) != digest_of(dataclasses.replace(problem, **changed))


def digest_of(problem):
    return fingerprint(Problems([problem], [problem], "here"))


def test_a_summary_of_odd_values_is_named(out, capsys):
    changed(out / "summary.json", '"pass_at_1_interval": \\[', '"pass_at_1_interval": ["a",')
    assert train(out, "--resume") == 2
    assert "summary.json: damaged (ValueError: too many values" in capsys.readouterr().err


def test_a_damaged_summary_is_made_again(out, runs):
    cut(out / "summary.json")
    assert train(out, "--resume") == 0
    found = json.loads((out / "summary.json").read_text())
    assert found["eval_after"] == json.loads((runs / "two" / "summary.json").read_text())["eval_after"]


@pytest.mark.parametrize(("flag", "key", "value"), [("problems", "problems", 1), ("samples", "k", 1)])
def test_another_evaluation_is_made_before_and_after(flag, key, value, out, capsys):
    assert train(out, "--resume", "--steps", "3", f"--eval-{flag}", str(value), "--no-quiet") == 0
    assert "the evaluation's settings have changed" in " ".join(capsys.readouterr().out.split())
    summary = json.loads((out / "summary.json").read_text())
    assert summary["eval_before"][key] == summary["eval_after"][key] == value
    assert summary["eval_before"] == json.loads((out / "eval_before.json").read_text())


@pytest.mark.parametrize("lost", ["metrics.jsonl", "rollouts", "checkpoints"])
def test_lost_records_can_be_accepted(lost, out, runs):
    shutil.rmtree(out / lost, ignore_errors=True)
    (out / lost).unlink(missing_ok=True)
    assert train(out, "--resume", "--steps", "3", "--accept-lost-records") == 0
    assert outcome(out)[-1] == outcome(runs / "three")[-1]
    assert train(out, "--resume") == 0  # what was accepted isn't asked for again


def of_schema_1(out):
    """As it was when rollouts were not compressed, and all of them kept."""
    changed(out / "environment.json", '"schema": 2', '"schema": 1')
    changed(out / "config.yaml", r"(?m)^keep_rollouts: .*\n", "")
    for _, path in step_files(out):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    path = out / NEWEST / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["records"]["rollouts"] = {path.name: digest(path) for _, path in step_files(out)}
    path.write_text(json.dumps(manifest))


def of_an_older_version(out):
    """As it was before there were schemas and digests."""
    of_schema_1(out)
    changed(out / "environment.json", '  "schema": 1,\n', "")
    path = out / NEWEST / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["records"]
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize("make", [of_schema_1, of_an_older_version])
def test_a_run_of_an_older_version_goes_on(make, out, runs, capsys):
    make(out)
    assert train(out, "--resume", "--steps", "3") == 0
    assert outcome(out) == outcome(runs / "three")
    names = [path.name for _, path in step_files(out)]
    assert names == ["step-000001.jsonl", "step-000002.jsonl", "step-000003.jsonl.gz"]
    capsys.readouterr()
    assert verify(["replay", str(out), "--trust"]) == 0
    assert "6 rollouts of 3 steps: 6 have the same reward" in capsys.readouterr().out
    assert train(out, "--resume", "--steps", "3") == 0


def test_a_plain_file_of_rollouts_before_the_checkpoint_that_was_cut(out, capsys):
    of_schema_1(out)
    cut(out / "rollouts/step-000001.jsonl")
    assert train(out, "--resume", "--steps", "3") == 2
    assert "rollouts/step-000001.jsonl has lost" in capsys.readouterr().err


@pytest.mark.parametrize(("kept", "left"), [("1", [3]), ("2", [2, 3]), ("0", []), ("all", [1, 2, 3])])
def test_rollouts_of_the_newest_steps_alone(kept, left, out, runs):
    """Also of a run that kept all of them until now; and one that does not goes on, whatever it is told next."""
    assert train(out, "--resume", "--steps", "3", "--keep-rollouts", kept) == 0
    assert [step for step, _ in step_files(out)] == left
    found, expected = outcome(out), outcome(runs / "three")
    assert found[1:] == expected[1:]
    assert found[0] == {step: expected[0][step] for step in left}
    assert train(out, "--resume", "--steps", "4", "--keep-rollouts", "all") == 0
    assert [step for step, _ in step_files(out)] == [*left, 4]


def test_a_kill_after_rollouts_were_removed_and_before_the_next_checkpoint(out, runs):
    assert train(out, "--resume", "--steps", "2", "--keep-rollouts", "1") == 0
    run_dir = RunDir(out, resume=True)
    run_dir.keep_rollouts = 1
    run_dir.write_rollouts(3, [])
    run_dir.close()
    assert [step for step, _ in step_files(out)] == [3]
    assert train(out, "--resume", "--steps", "3", "--keep-rollouts", "1") == 0
    assert outcome(out)[1:] == outcome(runs / "three")[1:]


def test_no_number_of_rollouts(out, capsys):
    assert train(out, "--resume", "--keep-rollouts", "-1") == 2
    assert "keep-rollouts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda out: without_line(out / "metrics.jsonl"), "metrics.jsonl lacks 1 of the 2 lines"),
        (lambda out: (out / "rollouts/step-000002.jsonl").unlink(), "rollouts/ lacks the files of 1 steps"),
    ],
)
def test_a_run_of_an_older_version_that_lost_records(damage, said, out, capsys):
    of_an_older_version(out)
    damage(out)
    assert train(out, "--resume", "--steps", "3") == 2
    assert said in capsys.readouterr().err


def test_a_kill_between_config_and_the_rest_in_an_older_version(out, runs):
    for name in ("environment.json", "reward.json", "eval_before.json", "metrics.jsonl"):
        (out / name).unlink()
    for folder in ("checkpoints", "rollouts"):
        shutil.rmtree(out / folder)
    assert train(out, "--resume", "--steps", "3") == 0
    assert outcome(out) == outcome(runs / "three")
    assert {"schema", "problems", "stage"} <= set(json.loads((out / "environment.json").read_text()))


def test_a_reward_that_breaks_keeps_the_steps_before_and_its_run_goes_on_once_it_is_mended(
    runs, tmp_path, tiny_path, sums_path, monkeypatch, capsys
):
    import reward_for_tests

    out, digits, broken = tmp_path / "run", reward_for_tests.digits, []

    def breaks(problem, completion):
        if broken:
            raise ZeroDivisionError("a mistake")
        return digits(problem, completion)

    def break_after_two(self, step):
        if step == 2:
            broken.append(step)
        return step_of(self, step)

    step_of = Loop.step
    monkeypatch.setattr(reward_for_tests, "digits", breaks)
    monkeypatch.setattr(Loop, "step", break_after_two)
    settings = (runs / "three" / "config.yaml").read_text()
    recipe = tmp_path / "again.yaml"
    recipe.write_text(re.sub("(?m)^out: .*\n", "", re.sub("(?m)^save_every: .*", "save_every: 10", settings)))
    assert main(["grpo", str(recipe), "--out", str(out), "--trust", "--quiet"]) == 1
    said = capsys.readouterr().err
    assert "mend the reward and continue with --resume" in said
    assert "a mistake" in said
    assert [path.name for path in (out / "checkpoints").iterdir()] == ["step-000002"]
    broken.clear()
    monkeypatch.setattr(Loop, "step", step_of)
    assert train(out, "--resume") == 0
    assert outcome(out)[-1] == outcome(runs / "three")[-1]


def begun(folder, *words):
    """The options that resume a run of `nano` which has begun with these words."""
    config, _ = resolve_config(load(GRPOConfig, ["--model", "nano", "--device", "cpu", *words]))
    reward = rewards_of(find(config.task), config)[0]
    folder.mkdir()
    (folder / "config.yaml").write_text(dump(config.model_copy(update={"reward": reward.formula})))
    return ["--resume", "--out", str(folder)]


def settled(words):
    return resolve_config(load(GRPOConfig, words))[0]


SERVERS = ["--engine", "vllm-server", "--engine-url", "http://elsewhere:8100"]


@pytest.mark.parametrize(
    ("engine", "other"),
    [
        ([*SERVERS, "--weight-transport", "gloo"], ["--engine", "transformers"]),
        ([*SERVERS, "--weight-transport", "gloo"], ["--engine", "sglang-server", "--engine-url", "http://a:1"]),
        (["--engine", "vllm", "--engine-sleep"], ["--engine", "transformers"]),
        (["--engine", "transformers", "--cuda-graphs"], ["--engine", "vllm"]),
    ],
)
def test_another_engine_does_not_get_the_settings_of_the_former(engine, other, tmp_path):
    resume = begun(tmp_path / "run", *engine, "--rollout-rows", "7", "--engine-untested")
    found = settled([*resume, *other])
    assert found.engine == other[1]
    assert found.engine_url == tuple(other[3:])
    assert (found.weight_transport, found.engine_sleep, found.cuda_graphs) == ("file", False, False)
    assert (found.rollout_rows, found.engine_untested) == (7, True)


def test_servers_of_the_other_kind_need_addresses(tmp_path):
    with pytest.raises(UserError, match="--engine sglang-server needs --engine-url"):
        settled([*begun(tmp_path / "run", *SERVERS), "--engine", "sglang-server"])


@pytest.mark.parametrize(
    "words",
    [
        ["--reward", "math + 0.1*format", "--overlong-penalty", "0.5"],
        ["--reward", "math", "--preset", "dapo", "--lr", "1e-6"],
        ["--importance", "auto", "--engine", "vllm"],
        ["--device", "cpu", "--engine", "auto", "--model", "nano"],
    ],
)
def test_the_words_that_began_a_run_resume_it(words, tmp_path):
    """As `r1lite launch` and its Slurm script do."""
    resume = begun(tmp_path / "run", *words)
    assert settled([*words, *resume]) == settled(resume)


@pytest.mark.parametrize(("named", "kept"), [([], "token"), (["--importance", "geometric"], "geometric")])
def test_another_engine_changes_only_a_correction_that_was_chosen_for_it(named, kept, tmp_path):
    resume = begun(tmp_path / "run", *named)
    assert settled(resume).importance == (named[1] if named else "off")
    assert settled([*resume, "--engine", "vllm"]).importance == kept
    assert settled([*resume, *named, "--engine", "vllm"]).importance == kept


def test_keys_that_a_recipe_leaves_open_resume_a_run(tmp_path):
    resume = begun(tmp_path / "run")
    recipe = tmp_path / "open.yaml"
    recipe.write_text("".join(f"{key}: null\n" for key in ("model", "source", "reward", "threads")))
    assert settled([str(recipe), *resume]) == settled(resume)


def test_another_reward_is_refused(tmp_path):
    resume = begun(tmp_path / "run", "--reward", "math + 0.1*format", "--overlong-penalty", "0.5")
    with pytest.raises(UserError, match=r"can't become math - 0\.5\*overlong"):
        settled([*resume, "--reward", "math"])


@pytest.mark.parametrize("missing", [None, "", 7])
def test_the_newest_run_is_that_which_began_last(missing, tmp_path, monkeypatch):
    """Also on the day when clocks go back, and beside a run whose beginning is unknown."""
    monkeypatch.chdir(tmp_path)
    runs = {"first": "2026-10-25T02:50:00+0200", "second": "2026-10-25T02:10:00+0100", "unknown": missing}
    for number, (name, started) in enumerate(runs.items()):
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        (folder / "config.yaml").touch()
        about = folder / "environment.json"
        about.write_text(json.dumps({"stage": "grpo", "started": started}))
        os.utime(about, (number, number))
    assert newest_path("grpo").name == "second"
    os.utime(about, (2e9, 2e9))
    assert newest_path("grpo").name == "unknown"
