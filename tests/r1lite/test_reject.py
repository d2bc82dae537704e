"""`r1lite reject`: whole runs."""

import collections
import itertools
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from curation_for_tests import lines, problems, stored, write

from r1lite.cli import main
from verifiers.__main__ import main as verifiers_main

ROOT = Path(__file__).resolve().parents[2]

FILES = ("train.jsonl", "rejected.jsonl", "pairs.jsonl", "problems.jsonl", "manifest.json", "README.md", "reward.json")


# `r1lite reject` in a fork, with blocks of so many bytes.
IN_BLOCKS = (
    "import sys; from r1lite.cli import main; from r1lite.curation import sources; "
    "sources._BLOCK_BYTES = int(sys.argv.pop(1)); sys.exit(main(['reject', *sys.argv[1:]]))"
)


def reject(source, out, *more):
    return main(["reject", "--rollouts", str(source), "--out", str(out), "--quiet", "--workers", "1", *more])


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write(tmp_path_factory.mktemp("stored") / "rows.jsonl", stored())


@pytest.fixture(scope="module")
def made(tmp_path_factory, source):
    out = tmp_path_factory.mktemp("made") / "set"
    assert reject(source, out, "--pairs", "2", "--source", "bundled") == 0
    return out


def test_rows_add_up(made, source):
    manifest = json.loads((made / "manifest.json").read_text())
    steps = manifest["steps"]
    assert steps[0]["entered"] == len(lines(source))
    for before, after in itertools.pairwise(steps):
        assert before["left"] == after["entered"]
    for step in steps:
        assert step["entered"] - step["left"] == sum(step["reasons"].values())
        assert {example["reason"] for example in step["examples"]} == set(step["reasons"])
    kept, rejected = lines(made / "train.jsonl"), lines(made / "rejected.jsonl")
    assert len(kept) == steps[-1]["left"] == manifest["data"]["rows"] > 0
    assert len(kept) + len(rejected) == len(lines(source))
    assert {row["rejected_by"] for row in rejected} >= {"correct", "finished", "format", "exact_duplicates"}


def test_what_is_kept_is_right_and_says_how_it_was_made(made):
    for row in lines(made / "train.jsonl"):
        verdicts = {verdict["verifier"]: verdict for verdict in row["verdicts"]}
        assert verdicts["math"]["score"] == verdicts["format"]["score"] == 1.0
        assert verdicts["math"]["version"]
        assert verdicts["math"]["answer"] in row["completion"]
        assert 0 < row["pass_rate"] < 1
        assert row["pass_rate"] == row["num_correct"] / row["num_samples"]
        assert row["prompt_hash"].startswith("sha256:")
        assert row["provenance"]["run"] == "rows.jsonl"


def test_any_number_of_workers_makes_the_same_bytes(made, source, tmp_path, forks):
    argv = [20_000, "--rollouts", source, "--out", tmp_path / "set", "--quiet", "--pairs", "2", "--source", "bundled"]
    assert forks.run([*argv, "--workers", "3"], code=IN_BLOCKS)[0] == 0
    for name in FILES:
        assert (tmp_path / "set" / name).read_bytes() == (made / name).read_bytes(), name


@pytest.mark.slow
def test_killed_anywhere_and_resumed_is_the_same(tmp_path, forks):
    """Enough bytes for several blocks; killed at random moments until one go comes to its end."""
    source = write(tmp_path / "rows.jsonl", stored(60, 4))
    argv = [40_000, "--rollouts", source, "--pairs", "1", "--quiet", "--workers", "2"]
    assert forks.run([*argv, "--out", tmp_path / "whole" / "set"], code=IN_BLOCKS)[0] == 0
    out, draw, kills = tmp_path / "killed" / "set", random.Random(1), 0
    for _ in range(40):
        resume = ["--resume"] if (out / "config.yaml").exists() else []
        process = forks.start([*argv, "--out", out, *resume], code=IN_BLOCKS)
        try:
            _, said = process.communicate(timeout=draw.uniform(0.1, 0.8) + 0.3 * kills)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
            continue
        assert process.returncode == 0, said
        break
    else:  # a loaded machine
        resume = ["--resume"] if (out / "config.yaml").exists() else []
        code, _, said = forks.run([*argv, "--out", out, *resume], code=IN_BLOCKS)
        assert code == 0, said
    assert kills
    for name in FILES:
        assert (out / name).read_bytes() == (tmp_path / "whole" / "set" / name).read_bytes(), name
    assert not (out / "work").exists()


def test_a_worker_whose_parent_is_gone_does_nothing(tmp_path):
    """It was given blocks before its parent was killed, and began after."""
    given = pickle.dumps(("no doer", os.getppid())) + pickle.dumps((0, "no block"))
    command = [sys.executable, "-c", "from r1lite.curation.workers import main; main()"]
    done = subprocess.run(command, input=given, capture_output=True, cwd=ROOT, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_workers_end_with_their_parent(tmp_path, forks):
    source = write(tmp_path / "rows.jsonl", stored(60, 4))
    argv = [40_000, "--rollouts", source, "--out", tmp_path / "set", "--workers", "2"]
    process = forks.start([*argv, "--filters", "correct", "curation_for_tests:takes_its_time"], code=IN_BLOCKS)
    deadline = time.monotonic() + 200
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while time.monotonic() < deadline and process.poll() is None and len(children.read_text().split()) < 2:
        time.sleep(0.01)
    found = [int(pid) for pid in children.read_text().split()]
    assert len(found) == 2
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and any(_runs(pid) for pid in found):
        time.sleep(0.05)
    assert not any(_runs(pid) for pid in found)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_finished_set_is_left_alone(made, source, capsys, monkeypatch):
    before = (made / "manifest.json").stat().st_mtime_ns
    monkeypatch.chdir(source.parent)
    for words in ([], ["--rollouts", source.name, "--device", "auto"]):
        assert main(["reject", *words, "--resume", "--out", str(made)]) == 0
        assert "already finished" in capsys.readouterr().out
    assert (made / "manifest.json").stat().st_mtime_ns == before
    assert main(["reject", "--resume", "--out", str(made), "--per-problem", "9"]) == 2
    assert "--per-problem is 4" in capsys.readouterr().err


def test_a_source_that_changed_is_noticed(tmp_path, capsys, monkeypatch):
    source = write(tmp_path / "rows.jsonl", stored(20))
    monkeypatch.setattr("r1lite.curation.curate.Index", None)  # breaks after the first pass
    with pytest.raises(TypeError):
        reject(source, tmp_path / "set")
    monkeypatch.undo()
    write(source, stored(21))
    assert main(["reject", "--resume", "--out", str(tmp_path / "set")]) == 2
    assert "have changed since this set was begun" in capsys.readouterr().err


def test_it_loads_no_torch(source, tmp_path):
    code = (
        "import sys; from r1lite.cli import main; "
        f"code = main(['reject', '--rollouts', {str(source)!r}, '--out', {str(tmp_path / 'set')!r}]); "
        "print(code, sorted({'torch', 'transformers', 'datasets'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


@pytest.mark.parametrize("form", ["messages", "sharegpt", "alpaca"])
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_it_loads_as_a_data_set(source, tmp_path, form, kind):
    from datasets import load_dataset

    assert reject(source, tmp_path / "set", "--format", form, "--file-type", kind, "--pairs", "1") == 0
    cache = str(tmp_path / "cache")
    rows = load_dataset(str(tmp_path / "set"), split="train", cache_dir=cache)
    column = {"messages": "messages", "sharegpt": "conversations", "alpaca": "output"}[form]
    assert {column, "verdicts", "provenance", "pass_rate"} <= set(rows.column_names)
    others = {"prompt", "completion", "messages", "conversations", "output"} - {column}
    assert not others & set(rows.column_names)  # a trainer takes the first that it knows
    assert rows.num_rows == json.loads((tmp_path / "set" / "manifest.json").read_text())["data"]["rows"]
    assert rows[0][column] if form == "alpaca" else rows[0][column][1]
    again = reject(tmp_path / "set", tmp_path / "again", "--no-difficulty-window")  # a set is a source too
    assert again == 0
    assert len(lines(tmp_path / "again" / "train.jsonl")) == rows.num_rows
    if (form, kind) == ("messages", "jsonl"):
        for name in ("rejected", "pairs", "problems"):
            assert load_dataset(str(tmp_path / "set"), name, split="train", cache_dir=cache).num_rows


def test_parquet_and_jsonl_hold_the_same(source, tmp_path):
    import pyarrow.parquet

    for kind in ("jsonl", "parquet"):
        assert reject(source, tmp_path / kind, "--file-type", kind) == 0
    rows = pyarrow.parquet.read_table(tmp_path / "parquet" / "train.parquet").to_pylist()
    assert rows == lines(tmp_path / "jsonl" / "train.jsonl")
    again = tmp_path / "again"  # a set is a source too, and so is Parquet
    assert reject(tmp_path / "parquet", again, "--no-difficulty-window") == 0
    assert [row["completion"] for row in lines(again / "train.jsonl")] == [row["completion"] for row in rows]


def test_foreign_columns_of_other_types(tmp_path):
    """What a set can't hold in its own type is left out, or the row is not read."""
    foreign = {"seed": "42", "temperature": 1, "model": 7, "max_tokens": 64.0, "policy_version": 10**400, "task": "t"}
    foreign["original_correct"] = "yes"
    rows = [{**row, **foreign} for row in stored(4)]
    source = write(tmp_path / "rows.jsonl", [*rows, {**rows[0], "sample": 2**63}])
    flags = ["--no-difficulty-window", "--filters", "correct"]
    made = {}
    for kind in ("jsonl", "parquet"):
        assert reject(source, tmp_path / kind, *flags, "--file-type", kind) == 0
        made[kind] = lines(tmp_path / kind / f"train.{kind}")
    assert made["jsonl"] == made["parquet"]
    known = made["jsonl"][0]["provenance"]
    assert (known["seed"], known["model"], known["policy_version"]) == (None,) * 3
    assert (known["temperature"], known["max_tokens"], known["task"]) == (1.0, 64, "t")
    (unread,) = json.loads((tmp_path / "jsonl" / "manifest.json").read_text())["steps"][0]["examples"]
    assert unread["detail"].endswith("sample has more than 64 bits")


def test_shards_behind_a_url(tmp_path, monkeypatch, capsys, forks):
    """Lines, row groups and packed files are read by fsspec; `local` is its name for this machine's files."""
    import gzip

    import pyarrow.parquet

    pytest.importorskip("fsspec")
    monkeypatch.setattr("r1lite.curation.sources._BLOCK_BYTES", 20_000)
    shards = tmp_path / "in"
    shards.mkdir()
    write(shards / "a.jsonl", stored(16, seed=1))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(stored(6, seed=2)), shards / "b.parquet", row_group_size=15)
    (shards / "c.jsonl.gz").write_bytes(gzip.compress(write(tmp_path / "c.jsonl", stored(4, seed=3)).read_bytes()))
    few = ["--filters", "correct", "finished", "--no-report"]
    assert reject(shards, tmp_path / "here" / "set", *few) == 0
    argv = [20_000, "--rollouts", f"local://{shards}", "--out", tmp_path / "there" / "set", "--quiet", *few]
    assert forks.run([*argv, "--workers", "2"], code=IN_BLOCKS)[0] == 0
    for name in set(FILES) - {"pairs.jsonl"}:
        assert (tmp_path / "here" / "set" / name).read_bytes() == (tmp_path / "there" / "set" / name).read_bytes(), name
    for url, said in ((f"local://{tmp_path}/none", "no .jsonl, .jsonl.gz, .parquet file"), ("odd://x/y", "odd")):
        assert reject(url, tmp_path / "refused") == 2
        assert said in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr("r1lite.curation.curate.Index", None)  # breaks after the first pass
        with pytest.raises(TypeError):
            reject(f"local://{shards}/*.jsonl", tmp_path / "changed")
    write(shards / "a.jsonl", stored(17, seed=1))
    assert main(["reject", "--resume", "--out", str(tmp_path / "changed")]) == 2
    assert "have changed since this set was begun" in capsys.readouterr().err


def test_pairs_are_a_right_and_a_wrong_one(made):
    kept = {(row["problem_id"], row["completion"]) for row in lines(made / "train.jsonl")}
    wrong = {
        (row["problem_id"], row["completion"])
        for row in lines(made / "rejected.jsonl")
        if row["verdicts"][0]["score"] == 0
    }
    pairs = lines(made / "pairs.jsonl")
    assert pairs
    for pair in pairs:
        assert (pair["problem_id"], pair["chosen"]) in kept
        assert (pair["problem_id"], pair["rejected"]) in wrong
    counts = collections.Counter(pair["problem_id"] for pair in pairs)
    assert max(counts.values()) == 2


def test_the_rejected_one_of_a_pair_may_have_full_marks_of_all_verifiers(tmp_path):
    rows = [{"completion": f"\\boxed{{{n}}}", "question": "q?", "answer": 1} for n in (1, 2)]
    flags = ["--correct", "1 - math", "--filters", "correct", "--pairs", "1", "--no-difficulty-window"]
    assert reject(write(tmp_path / "rows.jsonl", rows), tmp_path / "set", *flags) == 0
    assert [pair["rejected_because"] for pair in lines(tmp_path / "set" / "pairs.jsonl")] == ["equal"]


def test_the_end_names_the_pairs_if_there_are_any(made, source, tmp_path, capsys):
    count = len(lines(made / "pairs.jsonl"))
    assert main(["reject", "--resume", "--out", str(made)]) == 0  # already finished
    files = f"train.jsonl, pairs.jsonl ({count} pairs), manifest.json, README.md"
    assert f"set       {made}: {files}\n" in capsys.readouterr().out
    argv = [
        "reject",
        "--rollouts",
        str(source),
        "--out",
        str(tmp_path / "set"),
        "--workers",
        "1",
        "--source",
        "bundled",
    ]
    assert main(argv) == 0
    assert f"set       {tmp_path / 'set'}: train.jsonl, manifest.json, README.md\n" in capsys.readouterr().out


def test_pass_rates_are_of_all_completions(made, source):
    right = collections.defaultdict(list)
    for row in lines(source):
        said = row["completion"].rpartition("<answer>")[2].partition("</answer>")[0]
        right[row["id"]].append(said == row["answer"])
    for row in lines(made / "problems.jsonl"):
        given = right[row["problem_id"]]
        assert (row["num_samples"], row["num_correct"]) == (len(given), sum(given))
        assert row["pass_rate"] == sum(given) / len(given) == pytest.approx(row["pass_at"]["1"])
        n, c = len(given), sum(given)
        chosen = list(itertools.combinations([1] * c + [0] * (n - c), 4))
        assert row["pass_at"]["4"] == pytest.approx(sum(map(any, chosen)) / len(chosen))


def test_a_filters_reason_does_not_change_the_pass_rates(tmp_path):
    """Not even a reason that rows without a completion have too."""
    source = write(tmp_path / "rows.jsonl", stored(5))
    flags = ["--dedup", "none", "--filters", "correct", "curation_for_tests:no_first_sample"]
    assert reject(source, tmp_path / "set", "--no-difficulty-window", *flags) == 0
    assert "unreadable" in {row["reason"] for row in lines(tmp_path / "set" / "rejected.jsonl")}
    assert [row["num_samples"] for row in lines(tmp_path / "set" / "problems.jsonl")] == [6] * 5


@pytest.mark.parametrize("choice", ["shortest", "longest", "diverse", "random"])
def test_choice(tmp_path, choice):
    question, answer = "How many are 40 and 2?", "42"
    says = ["add them", "add them all", "add them up now", "count on from forty by two steps and stop there",
            "four tens and two ones make the whole of it here"]  # fmt: skip
    texts = [f"<think>{text}</think> <answer>{answer}</answer>" for text in says]
    rows = [{"question": question, "answer": answer, "completion": text, "sample": n} for n, text in enumerate(texts)]
    source = write(tmp_path / "rows.jsonl", rows)
    more = ("--no-difficulty-window", "--dedup", "exact", "--per-problem", "2", "--choose", choice)
    assert reject(source, tmp_path / "set", *more) == 0
    kept = [row["sample"] for row in lines(tmp_path / "set" / "train.jsonl")]
    expected = {"shortest": [0, 1], "longest": [3, 4], "diverse": [0, 4]}
    assert len(kept) == 2
    if choice in expected:
        assert kept == expected[choice]
    else:
        assert reject(source, tmp_path / "other", *more, "--seed", "5") == 0
        chosen = {tuple(kept), tuple(row["sample"] for row in lines(tmp_path / "other" / "train.jsonl"))}
        assert len(chosen) == 2


def test_problems_take_turns_under_max_rows(tmp_path, source):
    assert reject(source, tmp_path / "set", "--max-rows", "20", "--dedup", "exact") == 0
    rows = lines(tmp_path / "set" / "train.jsonl")
    assert len(rows) == len({row["problem_id"] for row in rows}) == 20


def test_near_duplicates_go_and_others_stay(tmp_path):
    chain = "first we take the seven boxes and open each of them, then we count the pens that we find in every one: "
    rows = []
    for n, (question, text) in enumerate(
        [("How many pens?", chain + "42"), ("How many pens?", chain + "42."),
         ("How many pens?", "seven times six is 42"), ("How many books?", chain + "42")]
    ):  # fmt: skip
        rows.append({"question": question, "answer": 42, "sample": n,
                     "completion": f"<think>{text}</think> <answer>42</answer>"})  # fmt: skip
    source = write(tmp_path / "rows.jsonl", rows)
    assert reject(source, tmp_path / "set", "--no-difficulty-window") == 0
    assert [row["sample"] for row in lines(tmp_path / "set" / "train.jsonl")] == [0, 2, 3]
    (gone,) = lines(tmp_path / "set" / "rejected.jsonl")
    assert (gone["rejected_by"], gone["reason"]) == ("near_duplicates", "near_duplicate")
    assert gone["detail"].endswith("like row 0")


def test_a_set_proves_itself(made, tmp_path, capsys):
    assert verifiers_main(["replay", str(made), "--workers", "0"]) == 0
    assert "0 differ" in capsys.readouterr().out
    copy = tmp_path / "set"
    shutil.copytree(made, copy)
    rows = lines(copy / "train.jsonl")
    rows[0]["completion"] = rows[0]["completion"].replace("<answer>", "<answer>1")
    write(copy / "train.jsonl", rows)
    assert verifiers_main(["replay", str(copy), "--workers", "0"]) == 1
    assert "1.0 equal" in capsys.readouterr().out


BAD = [
    ([{"question": "q", "answer": 1}], [], "no text of a completion"),
    ([{"completion": "c", "answer": 1}], [], "no column for the question"),
    ([{"completion": "c", "question": "q"}], [], "no column for the right answer"),
    ([], [], "contains no rows"),
    ([{"completion": "c", "question": "q", "answer": 1}], ["--filters", "correct", "formt"], "did you mean 'format'"),
    ([{"completion": "c", "question": "q", "answer": 1}], ["--correct", "mth"], "--correct: unknown verifier"),
    ([{"completion": "c", "question": "q", "answer": 1}], ["--decontaminate", "nowhere.jsonl"], "no such file"),
    ([{"completion": "c", "question": "q", "answer": 1}], ["--decontaminate", "test"], "needs --task and --source"),
    ([{"completion": "c", "question": "q", "answer": 1}], ["--push-to-hub", "a b/c"], "OWNER/NAME"),
    ([], ["--pass-rate-above", "0.9", "--pass-rate-below", "0.1"], "must be below"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "more", "message"), BAD, ids=[message for _, _, message in BAD])
def test_bad_input_is_refused_at_the_start(tmp_path, capsys, rows, more, message):
    source = write(tmp_path / "rows.jsonl", rows)
    assert reject(source, tmp_path / "set", *more) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "set").exists()


def test_nothing_to_keep(tmp_path, capsys):
    rows = [{"completion": "<think>a</think> <answer>2</answer>", "question": "q?", "answer": 1}] * 3
    assert reject(write(tmp_path / "rows.jsonl", rows), tmp_path / "set") == 1
    assert "none of the 3 completions is right by 'math' (different 3)" in capsys.readouterr().err
    rows = [{"completion": "<think>a</think> <answer>1</answer>", "question": "q?", "answer": 1}] * 3
    assert reject(write(tmp_path / "rows2.jsonl", rows), tmp_path / "set2") == 1
    assert "--no-difficulty-window" in capsys.readouterr().err


def test_an_evaluation_set_that_is_the_training_set(source, tmp_path, capsys):
    assert reject(source, tmp_path / "set", "--decontaminate", str(source)) == 2
    assert "is it the training set?" in capsys.readouterr().err
    same = write(tmp_path / "test.jsonl", [{"question": row["question"]} for row in lines(source)])
    assert reject(source, tmp_path / "set", "--decontaminate", str(same)) == 2
    assert "word for word" in capsys.readouterr().err


def test_rows_that_cant_be_read_are_counted(tmp_path):
    rows = stored(10)
    path = write(tmp_path / "rows.jsonl", rows)
    with path.open("a") as file:
        file.write('{"torn": \n[1, 2]\n{"question": "q", "answer": 3}\n')
    assert reject(path, tmp_path / "set") == 0
    steps = json.loads((tmp_path / "set" / "manifest.json").read_text())["steps"]
    assert steps[0]["reasons"] == {"unreadable": 3}
    assert "not JSON" in steps[0]["examples"][0]["detail"]


def test_other_versions_of_the_verifiers_are_told(tmp_path, capsys):
    rows = [{**row, "verdicts": [{"verifier": "math", "version": "0"}], "correct": False} for row in stored(10)]
    source = write(tmp_path / "rows.jsonl", rows)
    assert main(["reject", "--rollouts", str(source), "--out", str(tmp_path / "set"), "--workers", "1"]) == 0
    assert "version 0 of 'math' judged the completions" in capsys.readouterr().out
    assert json.loads((tmp_path / "set" / "manifest.json").read_text())["judged_otherwise_before"] > 0


@pytest.mark.parametrize("place", ["correct", "filter"])
def test_a_verifier_of_your_own_may_hang(place, tmp_path):
    rows = [{**row, "completion": row["completion"].replace("The", "hang", n == 20)} for n, row in enumerate(stored(6))]
    source = write(tmp_path / "rows.jsonl", rows)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("verifiers: {calm: {use: curation_for_tests:slow}}")
    more = ("--correct", "calm", "--filters", "correct") if place == "correct" else ("--filters", "correct", "calm")
    more = (*more, "--score-timeout-s", "1", "--no-difficulty-window", "--workers", "1", "--quiet")
    assert main(["reject", str(recipe), "--rollouts", str(source), "--out", str(tmp_path / "set"), *more]) == 0
    steps = json.loads((tmp_path / "set" / "manifest.json").read_text())["steps"]
    number = 1 if place == "correct" else 2
    assert steps[number]["reasons"] == {"unscored": 1}
    assert steps[number]["left"] == steps[number - 1]["left"] - 1


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grpo")
    for split, chosen in (("train", problems(70)[10:]), ("test", problems(10))):
        rows = [{"id": name, "question": asked, "answer": f"#### {answer}"} for name, asked, _, answer in chosen]
        write(folder / f"{split}.jsonl", rows)
    out = folder / "run"
    more = (
        "--source",
        str(folder),
        "--steps",
        "2",
        "--prompts-per-step",
        "8",
        "--group-size",
        "4",
        "--no-report",
        "--eval-problems",
        "2",
        "--eval-sample-problems",
        "2",
        "--eval-samples",
        "2",
    )
    assert main(["grpo", "--model", "nano", "--out", str(out), "--quiet", "--seed", "3", *more]) == 0
    return out


def test_out_of_a_run(run_dir, tmp_path):
    assert reject(run_dir, tmp_path / "set", "--no-difficulty-window", "--filters", "correct") == 0
    manifest = json.loads((tmp_path / "set" / "manifest.json").read_text())
    assert manifest["origin"]["kind"] == "run"
    assert manifest["judged_otherwise_before"] == 0
    assert manifest["evaluation_sets"] == {"gsm8k test": 10}
    rollouts = [row for path in sorted((run_dir / "rollouts").iterdir()) for row in lines(path)]
    assert manifest["steps"][0]["entered"] == len(rollouts)
    assert manifest["steps"][1]["left"] == sum(row["correct"] for row in rollouts)
    by_place = {(row["step"], row["problem_id"], row["sample"]): row for row in rollouts}
    for row in lines(tmp_path / "set" / "train.jsonl"):
        made = by_place[row["step"], row["problem_id"], row["sample"]]
        assert (row["prompt"], row["completion"]) == (made["prompt"], made["completion"])
        assert row["num_tokens"] == len(made["token_ids"])
        known = row["provenance"]
        assert known["policy_version"] == made["policy_version"]
        assert (known["model"], known["engine"], known["seed"], known["run"]) == ("nano", "transformers", 3, "run")
        assert known["model_hash"].startswith("sha256:")
        assert known["engine_version"]
    assert verifiers_main(["replay", str(tmp_path / "set"), "--workers", "0"]) == 0


def test_a_run_without_rollouts(run_dir, tmp_path, capsys):
    empty = tmp_path / "empty"
    empty.mkdir()
    shutil.copy(run_dir / "config.yaml", empty)
    assert reject(empty, tmp_path / "set") == 2
    shutil.copy(run_dir / "metrics.jsonl", empty)  # which are no completions
    assert reject(empty, tmp_path / "set") == 2
    (empty / "rollouts").mkdir()
    assert reject(empty, tmp_path / "set") == 2
    shutil.copytree(run_dir, tmp_path / "wrong")
    write(tmp_path / "wrong" / "metrics.jsonl", [{"step": 1, "accuracy": 0.0}, {"step": 2, "accuracy": 0.0}])
    assert reject(tmp_path / "wrong", tmp_path / "set") == 2
    said = capsys.readouterr().err
    assert said.count("without rollouts") == 2
    assert said.count("has no rollouts") == 1
    assert said.count("none of the run's completions is right") == 1
    assert reject(tmp_path / "nowhere", tmp_path / "set") == 2
