"""The report's files: what a page and a picture hold, of runs of any stage and state, and what they cost."""

import base64
import contextlib
import fcntl
import gzip
import http.client
import json
import os
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from threading import Thread

import pytest
from report_for_tests import HOSTILE, made_pipeline, made_run, row_of, write_rollouts

from r1lite.cli import main
from r1lite.doctor import diagnose
from r1lite.errors import UserError
from r1lite.report import Options, read_run, write_report
from r1lite.report.build import Report
from r1lite.report.live import make_server
from r1lite.report.picture import picture, smoothed, ticks
from r1lite.report.rollouts import evaluation_chunk, set_chunk
from r1lite.report.stages import chunks
from r1lite.report.tokens import Vocabulary, vocabulary_of
from r1lite.run import files
from r1lite.run.files import lock_folder
from verifiers import rows


def unpacked(text):
    return json.loads(gzip.decompress(base64.b64decode(text)))


def elements(page):
    return dict(re.findall(r'<script type="text/plain" id="([^"]*)">([^<]*)</script>', page))


def test_a_finished_run(tmp_path, capsys):
    run = made_run(tmp_path / "run")
    assert main(["report", str(run)]) == 0
    assert "report.html" in capsys.readouterr().out
    found = elements((run / "report.html").read_text())
    (one,) = unpacked(found["head"])["runs"]
    assert (one["status"], one["stage"], one["curves"]["steps"]) == ("finished", "grpo", list(range(1, 21)))
    assert [evaluation["step"] for evaluation in one["evaluations"]] == [0, 10, 20]
    assert one["curves"]["series"]["tokens_per_s"][0] == pytest.approx(3900 / 1.8, rel=1e-4)
    assert one["curves"]["reasons"]["by"]["math"]["equal"][-1] > one["curves"]["reasons"]["by"]["math"]["equal"][0]
    assert one["command"] == """r1lite grpo --out 'it'"'"'s here'"""
    assert one["recurring"] == {"p0": list(range(20))}
    assert [chunk["label"] for chunk in one["chunks"]] == [f"step {step}" for step in range(1, 21)]
    step = unpacked(found["c0-step-7"])
    assert [group["id"] for group in step["groups"]] == ["p0", "p7-1", "p7-2", "p7-3"]
    row = step["groups"][0]["rows"][0]
    assert row["text"][slice(*row["verdicts"][0]["span"])] == row["verdicts"][0]["answer"]


def test_runs_that_go_on_or_were_killed(tmp_path):
    run = made_run(tmp_path / "run", finished=False)
    with open(run / "metrics.jsonl", "a") as file:
        file.write('{"step": 21, "rew')  # cut short by a kill
    (run / "rollouts" / "step-000021.jsonl").write_text('{"step": 21, "problem_id"')
    whole = (run / "rollouts" / "step-000020.jsonl.gz").read_bytes()
    (run / "rollouts" / "step-000022.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (run / "rollouts" / "step-000023.jsonl.gz").write_bytes(whole[:20] + b"\xff" * 20 + whole[40:])
    assert read_run(run).status == "stopped"
    with open(run / ".lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert read_run(run).status == "running"
        head = Report([run]).head["runs"][0]
    assert head["curves"]["steps"][-1] == 20
    assert len(head["evaluations"]) == 2


def test_a_run_without_a_step(tmp_path):
    (tmp_path / "config.yaml").write_text("task: gsm8k\n")
    assert unpacked(elements(Report([tmp_path]).html())["head"])["runs"][0]["curves"]["steps"] == []
    with pytest.raises(UserError, match="no step was recorded"):
        picture([read_run(tmp_path)])


def test_what_is_no_run_is_refused(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert "contains no run" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "nothing")]) == 2
    assert "is not a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "options", "named"),
    [
        ("report", ["--max-mb", "nan"], "--max-mb must be"),
        ("report", ["--max-mb", "inf"], "--max-mb must be"),
        ("watch", ["--max-mb", "0"], "--max-mb must be"),
        ("report", ["--svg", "--everything"], "--svg leaves --everything without effect"),
        ("report", ["--svg", "--max-mb", "3"], "--svg leaves --max-mb"),
        ("report", ["--everything", "--max-mb", "3"], "--everything leaves --max-mb"),
        ("watch", ["--port", "70000"], "--port 70000"),
    ],
)
def test_options_that_mean_nothing_are_refused(command, options, named, tmp_path, capsys):
    assert main([command, str(made_run(tmp_path / "run", steps=1)), *options]) == 2
    assert named in capsys.readouterr().err


def test_files_that_are_no_files_or_go_away(tmp_path, monkeypatch):
    run = made_run(tmp_path / "run", steps=3)
    (run / "evaluations").mkdir()
    (run / "checkpoints" / "step-000003").mkdir(parents=True)
    for name in ("evaluations/step-000001.jsonl", "checkpoints/step-000003/tokenizer.json"):
        os.mkfifo(run / name)  # whose reading would never end
    (run / "evaluations" / "step-\u00b2\u00b2\u00b2\u00b2\u00b2\u00b2.jsonl").write_text("{}\n")
    found = rows.step_files(run)
    found[0][1].unlink()  # --keep-rollouts, since the files were listed
    monkeypatch.setattr(rows, "step_files", lambda path, folder="rollouts": found if folder == "rollouts" else [])
    assert [chunk["step"] for chunk in Report([run]).head["runs"][0]["chunks"]] == [2, 3]
    monkeypatch.undo()
    assert [chunk["label"] for chunk in Report([run]).head["runs"][0]["chunks"]] == ["step 2", "step 3"]
    (run / "environment.json").write_text('{"schema": 1, "stage": "eval"}')
    (run / "config.yaml").write_text(json.dumps({"against": "a" * 300}))
    (run / "problems.jsonl").write_text('{"problem_id": "p", "greedy": {"text": "7"}}\n')
    assert [chunk["groups"] for chunk in Report([run]).head["runs"][0]["chunks"]] == [1]
    pipeline = made_pipeline(tmp_path / "pipeline")
    os.mkfifo(pipeline / "stages" / "pipe.yaml")
    assert len(Report([pipeline]).head["pipeline"]["nodes"]) == 4


def test_nothing_of_the_data_is_markup(tmp_path):
    run = made_run(tmp_path / "<b>run", steps=2, hostile=HOSTILE)
    page = Report([run]).html()
    for text in ("owned", "onload", "<b>run", "\u202e", "\x1b"):
        assert text not in page
    assert page.count("<script") == 3 + 1  # the head, two steps, and the page's own
    assert page.count("</script>") == 4
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    assert set(re.findall(r"\w+://[^\"]*", page)) == {"http://www.w3.org/2000/svg"}
    group = unpacked(elements(page)["c0-step-2"])["groups"][-1]
    assert {row["text"] for row in group["rows"]} == set(HOSTILE)


def test_places_are_those_of_javascript(tmp_path):
    text = "\U0001f600\U0001f600 it is <answer>42</answer>"
    run = made_run(tmp_path / "run", steps=1, rollouts=False)
    write_rollouts(run, 1, [row_of(1, "p", 0, text, right=True)])
    (row,) = unpacked(elements(Report([run]).html())["c0-step-1"])["groups"][0]["rows"]
    units = text.encode("utf-16-le")
    start, end = row["verdicts"][0]["span"]
    assert units[2 * start : 2 * end].decode("utf-16-le") == "42"


def test_rows_that_are_not_as_they_should_be(tmp_path):
    """Files of a run are data: a page is made of what can be read."""
    run = made_run(tmp_path / "run", steps=2)
    rows = [
        {},
        {"problem_id": 3, "completion": None, "reward": "high", "verdicts": [None, {"span": ["a", 2], "flags": 7}]},
        {"completion": ["a"], "reward": float("1e400"), "meta": [1], "token_ids": ["x"], "logprobs": {}},
        row_of(2, "p", 0, "fine", right=True, verdicts=[{"verifier": "math", "span": [-5, 10**9], "score": True}]),
    ]
    lines = [
        *map(json.dumps, rows),
        *("[]", "not", '{"step": 2, "problem_id": "p", "order": "x"}', r'{"step": 2, "problem_id": "\q"}'),
    ]
    (run / "rollouts" / "step-000002.jsonl.gz").unlink()
    (run / "rollouts" / "step-000002.jsonl").write_text("\n".join(lines) + "\n")
    (run / "summary.json").write_text("[]")
    (run / "environment.json").write_text('{"argv": 3, "versions": []}')
    groups = unpacked(elements(Report([run]).html())["c0-step-2"])["groups"]
    assert sum(len(group["rows"]) for group in groups) == 5
    assert groups[-1]["rows"][0]["verdicts"][0]["span"] == [0, 4]


def test_huge_texts_of_a_problem_are_cut(tmp_path):
    run = made_run(tmp_path / "run", steps=1, rollouts=False)
    huge = "\u200b" * 3_000_000
    rows = [row_of(1, "p", 0, huge, right=True, question=huge, gold=huge, verdicts=[{"detail": "x" * 1000}] * 1000)]
    write_rollouts(run, 1, rows)
    (group,) = unpacked(elements(Report([run]).html())["c0-step-1"])["groups"]
    assert group["q"] == group["gold"] == "\u200b" * 20_000 + " ... (2,980,000 more characters)"
    assert len(group["rows"][0]["text"]) == 2_000_000
    assert [len(one["detail"]) for one in group["rows"][0]["verdicts"]] == [600] * 64


def test_problems_of_several_tasks_with_the_same_ids(tmp_path):
    def row(task, text, right):
        answer = {"text": text, "correct": right, "well_formed": True, "tokens": 1}
        return {**dict.fromkeys(("task", "problem", "question"), task), "problem_id": "test-0", "greedy": answer}

    for name in ("this", "other"):
        rows = [row("gsm8k", f"{name} 1", right=True), row("svamp", f"{name} 2", right=False)]
        (tmp_path / name).write_text("".join(json.dumps(one) + "\n" for one in rows))
    chunk, table = evaluation_chunk(tmp_path / "this", 0, "problems", 10**6, tmp_path / "other")
    assert table == [["gsm8k test-0", 1, None, 1, None], ["svamp test-0", 0, None, 0, None]]
    groups = {group["id"]: [answer["text"] for answer in group["rows"]] for group in unpacked(chunk.data)["groups"]}
    assert groups == {"gsm8k test-0": ["this 1", "other 1"], "svamp test-0": ["this 2", "other 2"]}


@pytest.mark.parametrize("column", ["completion", "messages", "conversations", "output"])
def test_rows_of_a_set_in_every_format(column, tmp_path):
    said = {"messages": [{"content": "Q"}, {"content": "yes"}], "conversations": [{"value": "Q"}, {"value": "yes"}]}
    (tmp_path / "train.jsonl").write_text(json.dumps({"problem_id": "p", column: said.get(column, "yes")}) + "\n")
    chunk = set_chunk(tmp_path / "train.jsonl", "kept", None, 10**6)
    assert [row["text"] for row in unpacked(chunk.data)["groups"][0]["rows"]] == ["yes"]


def test_rejected_rows_of_a_parquet_set(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"problem_id": ["p"], "completion": ["yes"]}), tmp_path / "train.parquet")
    (tmp_path / "rejected.jsonl").write_text('{"problem_id": "p", "completion": "no"}\n')
    (tmp_path / "config.yaml").write_text("task: gsm8k\n")
    (tmp_path / "environment.json").write_text('{"stage": "reject"}')
    (tmp_path / "manifest.json").write_text('{"data": {"file": "train.parquet"}, "steps": []}')
    assert [chunk.label for chunk in chunks(read_run(tmp_path), 10**6).chunks] == ["kept", "rejected"]


ODD = [
    "NaN",
    "-Infinity",
    "1e400",
    "1" + "0" * 400,
    "true",
    "-1",
    "null",
    '"x"',
    "[1, [NaN]]",
    '{"a": {"b": NaN}}',
    "[" * 300 + "]" * 300,
]


@pytest.mark.parametrize("value", ODD)
def test_a_page_and_a_diagnosis_whatever_a_value_is(value, tmp_path):
    """Each value of a run's files in turn, in place of all."""
    run = made_run(tmp_path / "run", steps=2)
    for name in ("metrics.jsonl", "evaluations.jsonl", "summary.json", "eval_before.json", "eval_after.json"):
        path = run / name
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        odd = [json.dumps({key: "@" if key != "step" else one for key, one in line.items()}) for line in lines]
        path.write_text("".join(f"{line}\n" for line in odd).replace('"@"', value))
    for path in (run / "rollouts").iterdir():
        rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        odd = [
            json.dumps({key: "@" if key not in ("step", "problem_id") else one for key, one in row.items()})
            for row in rows
        ]
        path.write_bytes(gzip.compress("".join(f"{line}\n" for line in odd).replace('"@"', value).encode()))
    assert elements(Report([run]).html())["head"]
    with contextlib.suppress(UserError):  # nothing to draw
        picture([read_run(run)])
    list(diagnose(run))


@pytest.mark.parametrize("value", ODD)
def test_curves_whatever_an_interval_or_the_step_of_an_evaluation_is(value, tmp_path):
    run = made_run(tmp_path / "run", steps=2)
    evaluations = [{"step": 1, "pass_at_1": 0.5, "pass_at_1_interval": ["@", 0.6]}]
    if isinstance(step := json.loads(value), int):
        evaluations.append({"step": step, "pass_at_1": 0.5, "pass_at_1_interval": [0.4, 0.6]})
    lines = [json.dumps(line).replace('"@"', value) for line in evaluations]
    (run / "evaluations.jsonl").write_text("".join(f"{line}\n" for line in lines))
    assert picture([read_run(run)]).endswith("</svg>\n")


@pytest.mark.parametrize("model", ["[a, [b]]", "2026-11-28", ".nan", "{a: {b: .inf}}", "null"])
def test_a_page_whatever_the_configuration_holds(model, tmp_path):
    run = made_run(tmp_path / "run", steps=2)
    (run / "config.yaml").write_text(
        f"model: {model}\nlr: {model}\ngroup_size: {model}\n2026-11-28: 1\nhabits: {{? !!binary aGk= : 2, 3: 4}}\n"
    )
    assert elements(Report([run]).html())["head"]


def test_a_folder_whose_name_is_a_mark_of_the_page_or_no_text(tmp_path):
    run = made_run(tmp_path / "@SCRIPT@ @DATA@", steps=2)
    assert Report([run]).html().count("<script>") == Report([made_run(tmp_path / "b", steps=2)]).html().count(
        "<script>"
    )
    other = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    shutil.copytree(run, other)
    assert "udcff" in write_report([other], tmp_path / "page.html").read_text()
    make_server([other], 0, Options()).server_close()


def test_the_size_is_kept(tmp_path):
    run = made_run(tmp_path / "run", steps=40)
    letters = "".join(chr(97 + i % 26) for i in range(1000))
    for step in range(1, 41):
        rows = []
        for number in range(30):
            text = f"{step * number} {letters * 3} {number * step**2}"
            rows.append(row_of(step, "p0" if number == 3 else f"p{step}-{number}", 0, text, right=True))
        write_rollouts(run, step, rows)
    whole = Report([run], Options(max_mib=10))
    small = Report([run], Options(max_mib=0.12))
    assert len(whole.html()) > 0.12 * 2**20 > len(small.html())
    kept = small.head["runs"][0]
    assert kept["steps_with_rollouts"] == 40
    steps = [chunk["step"] for chunk in kept["chunks"]]
    assert {1, 40} <= set(steps)
    assert len(steps) > 4
    assert all("p0" in small.chunks[chunk["id"]].problems for chunk in kept["chunks"])  # it is followed
    assert [chunk.data for chunk in Report([run], Options(max_mib=0.12)).chunks.values()] == [
        chunk.data for chunk in small.chunks.values()
    ]


def test_everything_lies_beside(tmp_path):
    run = made_run(tmp_path / "run")
    out = write_report([run], tmp_path / "page.html", Options(max_mib=0.01, everything=True))
    files = sorted(path.name for path in (tmp_path / "page_files").iterdir())
    assert len(files) == 20
    script = (tmp_path / "page_files" / files[0]).read_text()
    assert re.fullmatch(r'r1lite_chunk\("c0-step-1","[A-Za-z0-9+/=]+"\)\n', script)
    assert list(elements(out.read_text())) == ["head"]
    other = write_report([made_run(tmp_path / "b", seed=1)], tmp_path / "b#%.html", Options(everything=True))
    assert (tmp_path / "page_files" / files[0]).read_text() == script  # of the first page, as before
    assert unpacked(elements(other.read_text())["head"])["beside"] == "b%23%25_files"
    assert len(list((tmp_path / "b#%_files").iterdir())) == 20


def test_two_write_the_same_report_at_once(tmp_path, monkeypatch):
    """The command, while the run ends: the second took the first one's half-written file away."""
    run, sync, begun = made_run(tmp_path / "run", steps=1), files.sync, []

    def meanwhile(path):
        sync(path)
        if not begun:
            begun.append(path)
            write_report([run], tmp_path / "report.html")

    monkeypatch.setattr(files, "sync", meanwhile)
    assert elements(write_report([run], tmp_path / "report.html").read_text())["head"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "run"]


def test_everything_of_evaluations_and_sets(tmp_path):
    long = [os.urandom(2000).hex() for _ in range(500)]
    run, made = made_run(tmp_path / "run", steps=1), tmp_path / "set"
    (run / "evaluations").mkdir()
    lines = [json.dumps({"problem_id": f"p{n}", "greedy": {"text": text}}) for n, text in enumerate(long)]
    (run / "evaluations" / "step-000000.jsonl").write_text("\n".join(lines))
    made.mkdir()
    (made / "config.yaml").write_text("task: gsm8k\n")
    (made / "manifest.json").write_text('{"steps": []}')
    (made / "train.jsonl").write_text(
        "".join(json.dumps({"problem_id": f"p{n}", "completion": text}) + "\n" for n, text in enumerate(long))
    )
    for place, most in ((run, 499), (made, 400)):
        some, every = (Report([place], Options(1, whole)).head["runs"][0]["chunks"][0] for whole in (False, True))
        assert 0 < some["groups"] <= most
        assert every["groups"] == every["of"] == some["of"] == 500


def test_seeds_and_others(tmp_path):
    runs = [made_run(tmp_path / name, seed=seed, rollouts=False) for name, seed in (("a", 0), ("b", 1))]
    runs.append(made_run(tmp_path / "c", rollouts=False, config={"lr": 1.0}))
    runs.append(shutil.copytree(runs[0], tmp_path / "other" / "a"))
    a, b, c, same = Report(runs).head["runs"]
    assert a["like"] == b["like"] != c["like"]
    assert [run["name"] for run in (a, b, c)] == [f"{tmp_path.name}/a", "b", "c"]
    assert same["name"] == "other/a"


def test_several_runs_leave_the_report_of_the_first(tmp_path):
    runs = [str(made_run(tmp_path / name, rollouts=False)) for name in ("a", "b")]
    assert main(["report", runs[0]]) == main(["report", *runs]) == 0
    own, both = ((tmp_path / "a" / name).read_text() for name in ("report.html", "report-of-2-runs.html"))
    assert [len(unpacked(elements(page)["head"])["runs"]) for page in (own, both)] == [1, 2]


def test_a_very_long_run_is_drawn_by_means(tmp_path):
    run = made_run(tmp_path / "run", steps=9000, rollouts=False)
    curves = Report([run]).head["runs"][0]["curves"]
    assert len(curves["steps"]) == 3000
    assert curves["width"] == 3
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()[:3]]
    assert curves["series"]["accuracy"][0] == pytest.approx(sum(line["accuracy"] for line in lines) / 3, rel=1e-4)


def test_the_picture(tmp_path):
    import xml.etree.ElementTree as tree

    runs = [made_run(tmp_path / f"{name}", seed=seed) for seed, name in enumerate(("<0>", "<1>", "a" * 20 + "&b"))]
    out = tmp_path / "curves.svg"
    assert main(["report", *map(str, runs), "--svg", "--out", str(out)]) == 0
    root = tree.fromstring(out.read_text())
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Reward", "Accuracy", "Length, tokens", "Entropy, nats per token", "<0>", "<1>"} <= set(texts)
    assert "a" * 20 + "&b" in texts
    paths = [node for node in root.iter("{http://www.w3.org/2000/svg}path") if node.get("stroke-width") == "2"]
    assert len(paths) == 3 * (1 + 1 + 2 + 1 + 1)  # the mean and the largest length; the loss is the last one


def test_a_pipeline(tmp_path):
    place = made_pipeline(tmp_path / "pipeline")
    head = Report([place]).head
    nodes = {node["name"]: node for node in head["pipeline"]["nodes"]}
    assert {name: node["from"] for name, node in nodes.items()} == {
        "zero": ["nano"],
        "again": ["zero"],
        "eval-Zero": ["zero"],
    }
    assert [nodes[name]["state"] for name in ("zero", "again", "eval-Zero")] == ["finished", "finished", "begun"]
    assert [run["name"] for run in head["runs"]] == ["again", "zero"]
    assert nodes["eval-Zero"]["run"] is None
    assert main(["report", str(place), str(place / "stages" / "zero")]) == 2  # by itself
    assert main(["report", str(place)]) == 0


def test_smoothing_and_ticks():
    assert smoothed([1.0, None, 3.0], 0.5) == [1.0, 1.0, pytest.approx((0.25 * 1 + 0.5 * 3) / 0.75)]
    assert ticks(0, 1) == pytest.approx([0, 0.5, 1.0]) or ticks(0, 1) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(0.013, 0.029) == pytest.approx([0.015, 0.02, 0.025])
    assert ticks(-3, 40)[0] == 0


def test_tokens_of_the_bundled_model(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    from r1lite.nano import nano_path

    vocabulary = vocabulary_of(tmp_path, "nano")
    text = "<think>23 + 52 = 75; caf\u00e9 \U0001f600</think><answer>75</answer>"
    ids = tokenizers.Tokenizer.from_file(str(nano_path() / "tokenizer.json")).encode(text).ids
    lengths = vocabulary.lengths(ids, text)
    assert sum(lengths) == len(text)
    assert lengths[0] == len("<think>")
    assert vocabulary.lengths([*ids, 0], text) is None or vocabulary.lengths([*ids, 0], text)[-1] == 0
    assert vocabulary.lengths(ids, text + "x") is None
    assert vocabulary.lengths([10**9], text) is None


def test_tokens_are_those_of_the_newest_checkpoint(tmp_path):
    for name, token in (("step-999999", "b"), ("step-1000000", "a"), ("step-9999999-old", "b")):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
        text = json.dumps({"model": {"vocab": {token: 0}}, "decoder": {"type": "ByteLevel"}})
        (tmp_path / "checkpoints" / name / "tokenizer.json").write_text(text)
    assert vocabulary_of(tmp_path, None).lengths([0], "a") == [1]


def test_tokens_of_sentence_piece():
    vocabulary = Vocabulary(
        {
            "model": {"vocab": [["<s>", 0.0], ["▁It", 0.0], ["▁is", 0.0], ["<0xC3>", 0.0], ["<0xA9>", 0.0]]},
            "decoder": {"type": "Sequence"},
            "added_tokens": [{"id": 0, "content": "<s>", "special": True}],
        }
    )
    assert vocabulary.lengths([1, 2, 3, 4, 0], "It is\u00e9") == [2, 3, 0, 1, 0]


def test_the_live_page(tmp_path, monkeypatch):
    monkeypatch.setattr("r1lite.report.live._FRESH_S", 0.0)
    run = made_run(tmp_path / "run", finished=False)
    server = make_server([run], 0, Options())
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        with urllib.request.urlopen(f"{address}/") as reply:
            assert "connect-src 'self'" in reply.read().decode()
        with urllib.request.urlopen(f"{address}/head") as reply:
            tag, head = reply.headers["ETag"], unpacked(reply.read())
        assert head["live"] is True
        with urllib.request.urlopen(f"{address}/chunk/{head['runs'][0]['chunks'][-1]['id']}") as reply:
            assert unpacked(reply.read())["step"] == 20
        asked = urllib.request.Request(f"{address}/head", headers={"If-None-Match": tag})
        with pytest.raises(urllib.error.HTTPError, match="304"):
            urllib.request.urlopen(asked)
        with lock_folder(run), urllib.request.urlopen(asked) as reply:  # goes on; a kill leaves no other trace either
            assert unpacked(reply.read())["runs"][0]["status"] == "running"
        on_port_80 = urllib.request.Request(f"{address}/head", headers={"Host": "127.0.0.1"})
        assert urllib.request.urlopen(on_port_80).status == 200
        for path, headers, code in (("/chunk/../config.yaml", {}, 404), ("/head", {"Host": "evil.example:80"}, 403)):
            with pytest.raises(urllib.error.HTTPError, match=str(code)):
                urllib.request.urlopen(urllib.request.Request(address + path, headers=headers))
    finally:
        server.shutdown()
        server.server_close()


def test_the_live_page_of_a_run_that_can_not_be_read_meanwhile(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("r1lite.report.live._FRESH_S", 0.0)
    run, moved = made_run(tmp_path / "run", finished=False), tmp_path / "moved"
    server = make_server([run], 0, Options())
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{server.server_address[1]}"

    def asked(target):
        connection = http.client.HTTPConnection(address)
        connection.putrequest("GET", target, skip_host=True)
        connection.putheader("Host", address)
        connection.endheaders()
        reply = connection.getresponse()
        return reply.status, reply.read().decode()

    try:
        run.rename(moved)
        code, text = asked("/head")
        assert code == 503
        assert str(run) in text
        moved.rename(run)
        assert asked("/head")[0] == 200
        (run / "config.yaml").write_text("model: [nano")
        assert asked("/")[0] == 503
        (run / "config.yaml").write_text("model: nano")
        assert asked("/")[0] == 200
        assert asked("http://[/")[0] == 404
        (run / "config.yaml").write_text("model: nano\nseed: 2")
        monkeypatch.setattr("r1lite.report.live.Report", lambda *_, **__: 1 / 0)
        assert asked("/head") == (503, "ZeroDivisionError: division by zero")
    finally:
        server.shutdown()
        server.server_close()
    assert capfd.readouterr().err == ""


def test_a_report_needs_no_torch(tmp_path):
    import subprocess
    import sys

    run = made_run(tmp_path / "run", steps=2)
    code = (
        f"import r1lite.cli, sys; r1lite.cli.main(['report', {str(run)!r}]); "
        "print(sorted({'torch', 'transformers', 'numpy', 'tokenizers', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
