"""Files of rows that are cut or damaged, or contain half a character: the error names file and line."""

import gzip
import json
import random
import re
from pathlib import Path

import pytest

from r1lite.cli import main
from verifiers.__main__ import main as verifiers_main
from verifiers.adapters.trl import _problem
from verifiers.core import GoldError
from verifiers.rows import Columns, RowError, is_text, pair, parsed, rows
from verifiers.sandbox import CodeVerifier

pytestmark = pytest.mark.quick


def made(count=300):
    rng = random.Random(0)
    return [
        {
            "id": f"p{i}",
            "question": f"{i}+1?",
            "prompt": f"{i}+1?",
            "completion": f"<think>{rng.random()}</think><answer>{i + 1}</answer>",
            "answer": str(i + 1),
            "chosen": str(i + 1),
            "rejected": "no",
        }
        for i in range(count)
    ]


def lines(found):
    return "".join(json.dumps(row) + "\n" for row in found).encode()


def damaged(name):
    data = lines(made())
    packed = gzip.compress(data, mtime=0)
    middle = len(packed) // 2
    return {
        "cut": packed[:middle],
        "cut in the header": packed[:6],
        "a bit flipped": packed[:middle] + bytes([packed[middle] ^ 1]) + packed[middle + 1 :],
        "the checksum": packed[:-8] + bytes(8),
        "not packed": data,
    }[name]


COMMANDS = {
    "score": ["score", "{file}", "--reward", "math", "--out", "{out}/scores.jsonl"],
    "reject": [
        *("reject", "--rollouts", "{file}", "--out", "{out}", "--correct", "math", "--filters", "correct", "--quiet"),
        *("--decontaminate", "none", "--no-difficulty-window", "--workers", "1"),
    ],
    "reward-model": ["reward-model", "--source", "{file}", "--out", "{out}", "--quiet"],
    "sft": ["sft", "--data", "{file}", "--model", "nano", "--out", "{out}", "--quiet"],
}


def run(command, file, out):
    words = [word.format(file=file, out=out) for word in COMMANDS[command]]
    return (verifiers_main if command == "score" else main)(words)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("damage", ["cut", "cut in the header", "a bit flipped", "the checksum", "not packed"])
def test_a_damaged_gzip_file(damage, command, tmp_path, capsys):
    path = tmp_path / "some.jsonl.gz"
    path.write_bytes(damaged(damage))
    assert run(command, path, tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert f"{path}:" in said
    if damage == "not packed":
        assert "not a gzip file, whatever its name says" in said
    else:
        assert "gzip file is cut short or damaged" in said or "not JSON" in said or "not UTF-8" in said


def test_a_number_of_too_many_digits_is_refused_without_advice_to_programmers():
    assert "sys." not in str(parsed(b'{"a": %s}' % (b"9" * 5000)))


@pytest.mark.parametrize(
    ("command", "column"),
    [("reward-model", "question"), ("reward-model", "chosen"), ("sft", "question"), ("sft", "completion")],
)
def test_half_a_character_is_refused_with_its_line(command, column, tmp_path, capsys):
    found = made(20)
    found[10][column] += "\ud800"
    path = tmp_path / "some.jsonl"
    path.write_bytes(lines(found))
    assert run(command, path, tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert f"{path}:11" in said
    assert "half a character" in said


@pytest.mark.parametrize("column", ["question", "completion", "answer", "id", "prompt"])
def test_a_row_with_half_a_character_is_left_out_of_a_set(column, tmp_path):
    found = made(20)
    found[10][column] += "\ud800"
    path = tmp_path / "some.jsonl"
    path.write_bytes(lines(found))
    assert run("reject", path, tmp_path / "out") == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    (step,) = [step for step in manifest["steps"] if step["step"] == "readable"]
    assert step["reasons"] == {"unreadable": 1}
    assert "half a character" in step["examples"][0]["detail"]


def test_lines_that_are_no_rows(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"a": 1}\n\n{"a": \n\xff{}\n' + b"[" * 100_000 + b'\n{"a": "\xed\xa0\x80"}\n{"a": 2}\n'
    )
    found = list(rows(path))
    assert [(number, row) for number, row in found if not isinstance(row, RowError)] == [(1, {"a": 1}), (7, {"a": 2})]
    said = [str(row).partition(":")[0] for _, row in found if isinstance(row, RowError)]
    assert said == [
        "not JSON",
        "not UTF-8 text (byte 0 of the line)",
        "not JSON",
        "not UTF-8 text (byte 7 of the line)",
    ]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.jsonl", json.dumps([{"a": 1}, {"a": 2}]).encode(), ":1: one JSON list; its file must be a .json"),
        ("a.jsonl", b"\xef\xbb\xbf" + json.dumps([{"a": 1}], indent=1).encode(), ":1: one JSON list"),
        (
            "a.json.gz",
            gzip.compress(json.dumps([{"a": 1}]).encode()),
            ":1: one JSON list; its file must be a .json, unc",
        ),
        ("a.jsonl", gzip.compress(lines(made(3))), ":1: a gzip file; let its name end in .gz"),
        ("a.txt", b"PAR1\x15\x04\n", ":1: a Parquet file; let its name end in .parquet"),
        ("a.json", lines(made(2)), ":2: not JSON: Extra data at column 1; one object a line is .jsonl"),
        ("A.CSV", b"a\n1\n", ": .CSV is not a format that is read"),
        ("A.PARQUET", b"x", ": not a Parquet file"),
    ],
)
def test_a_file_of_another_format_than_its_name_says(name, data, said, tmp_path):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ValueError, match=re.escape(f"{path}{said}")):
        list(rows(path))


def test_suffixes_in_capitals(tmp_path):
    (tmp_path / "A.JSON").write_text('[{"a": 1}]')
    (tmp_path / "A.JSONL.GZ").write_bytes(gzip.compress(b'{"a": 1}\n'))
    assert all(list(rows(path)) == [(1, {"a": 1})] for path in tmp_path.iterdir())


@pytest.mark.parametrize("ending", ["\n", ""])
def test_the_rest_of_a_long_line_is_no_row(ending, tmp_path, monkeypatch):
    monkeypatch.setattr("verifiers.rows._MAX_LINE", 32)
    path = tmp_path / "rows.jsonl"
    fits = json.dumps({"a": "x" * 22})
    assert len(fits) == 31
    path.write_text(fits + "\n" + "[" * 64 + '{"completion": "4"}\n' + "[" * 32 + "\n" + fits + ending)
    found = [(number, str(row)) for number, row in rows(path)]
    assert found == [
        (1, str(json.loads(fits))),
        *((n, "the line is longer than 0 MiB") for n in (2, 3)),
        (4, found[0][1]),
    ]


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_a_key_that_occurs_twice(suffix, tmp_path):
    path = tmp_path / f"rows{suffix}"
    row = '{"completion": "4", "meta": {"a": 1, "b": 2, "a": 3}}'
    path.write_text(row if suffix == ".jsonl" else f"[{row}]")
    with pytest.raises(ValueError, match="the key 'a' occurs twice in one object"):  # noqa: PT012
        ((_, found),) = rows(path)
        raise found


def test_an_open_text_is_located(tmp_path):
    (tmp_path / "some.jsonl").write_text('{"a": "b\n')
    assert [str(row) for _, row in rows(tmp_path / "some.jsonl")] == [
        "not JSON: Unterminated string starting at column 7"
    ]
    (tmp_path / "some.json").write_text('[{"a": "b')
    with pytest.raises(ValueError, match="starting at column 8"):
        list(rows(tmp_path / "some.json"))


def test_a_row_that_can_not_be_scored_keeps_its_id(tmp_path):
    (tmp_path / "some.jsonl").write_text('{"id": "e", "prompt": "1+1?"}\n{"id": ["x"]}\n')
    out = tmp_path / "out.jsonl"
    assert verifiers_main(["score", str(tmp_path / "some.jsonl"), "--reward", "format", "--out", str(out)]) == 1
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == ["e", ""]


def test_score_never_proposes_to_remove_a_file_that_it_did_not_write(tmp_path, capsys):
    path, link = tmp_path / "some.jsonl", tmp_path / "link.jsonl"
    path.write_bytes(lines(made(3)))
    link.symlink_to(path)
    for out in (path, link):
        assert verifiers_main(["score", str(path), "--reward", "math", "--out", str(out)]) == 2
        said = capsys.readouterr().err
        assert f"--out {out} exists, and holds no results of `score`" in said
        assert "remove" not in said
    assert path.read_bytes() == lines(made(3))


def test_options_that_occur_twice_are_refused(capsys):
    twice = '{"math": {"strict": true, "strict": false}}'
    for command in (["score", "x.jsonl", "--reward", "math"], ["audit", "math"]):
        assert verifiers_main([*command, "--options", twice]) == 2
        assert "the key 'strict' occurs twice in one object" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"), [("", True), ("a\x00é😀", True), ("\ud83d\ude00", False), ("a\udc80", False)]
)
def test_what_is_text(text, expected):
    assert is_text(text) is expected


BAD_FILES = {
    "nothing but bytes": (bytes(range(256)) * 40, 1),
    "UTF-16": ("\n".join(json.dumps(row) for row in made(3)).encode("utf-16"), 2),
    "a mark of UTF-8": (b"\xef\xbb\xbf" + lines(made(3)), 0),
    "half a character": (b'{"completion": "\\ud800", "answer": "1"}\n', 1),
    "half a character in the id": (b'{"completion": "1", "answer": "1", "id": "\\udfff"}\n', 1),
    "no completion": (b'{"answer": "1"}\n', 1),
    "a number for a row": (b"17\n", 1),
    "a number for the tokens": (b'{"completion": "1", "answer": "1", "token_ids": 5}\n', 1),
    "a list for the id": (b'{"completion": "1", "answer": "1", "id": ["x"]}\n', 1),
    "many digits": (b'{"completion": "1", "answer": %s}\n' % (b"9" * 5000), 1),
    "deep": (b'{"completion": "1", "answer": %s1%s}\n' % (b"[" * 3000, b"]" * 3000), 1),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_score_names_file_and_line(what, tmp_path, capsys):
    data, code = BAD_FILES[what]
    path = tmp_path / "some.jsonl"
    path.write_bytes(data)
    assert verifiers_main(["score", str(path), "--reward", "math", "--workers", "0"]) == code
    said = capsys.readouterr()
    assert (f"{path}:1" in said.out + said.err) is (code != 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{folder}"], "--out FOLDER is needed"),
        (["{folder}/none.jsonl"], "No such file"),
        (["{folder}/some.parquet"], "Parquet"),
    ],
)
def test_score_without_a_file(words, message, tmp_path, capsys):
    (tmp_path / "some.parquet").write_bytes(b"PAR1 no more")
    found = [word.format(folder=tmp_path) for word in words]
    assert verifiers_main(["score", *found, "--reward", "math"]) == 2
    assert message in capsys.readouterr().err


def test_score_with_a_column_that_is_not_there(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("some.jsonl")
    path.write_bytes(lines(made(3)))
    words = ["score", str(path), "--reward", "math", "--answer-column", "golds", "--workers", "0"]
    assert verifiers_main(words) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "no column 'golds'; the row has id" in line]
    assert line.startswith(f"{path}:1: ")
    assert line.endswith(" 3")  # rows that fail alike are counted together


def test_score_without_a_completion_names_the_option_whatever_the_path(tmp_path, capsys):
    path = tmp_path / ("folder" * 10) / "problems.jsonl"
    path.parent.mkdir()
    path.write_text('{"question": "1 + 1?", "answer": "2"}\n')
    assert verifiers_main(["score", str(path), "--reward", "math", "--workers", "0"]) == 1
    assert "use --completion-column" in capsys.readouterr().out


def test_score_of_an_empty_file(tmp_path, capsys):
    (tmp_path / "empty.jsonl").touch()
    assert verifiers_main(["score", str(tmp_path / "empty.jsonl"), "--reward", "math", "--workers", "0"]) == 2
    assert "empty.jsonl: no rows" in capsys.readouterr().err


@pytest.mark.parametrize("as_text", [False, True])
def test_tests_and_meta_are_also_read_from_json_text(as_text):
    tests, meta = {"style": "asserts", "tests": ["assert f(1) == 2"]}, {"level": 3}
    row = {"response": "x", "tests": json.dumps(tests) if as_text else tests, "meta": json.dumps(meta)}
    problem, _ = pair(row, Columns(), default_id="1")
    assert problem.tests == tests
    assert problem.meta["level"] == 3
    assert _problem("q", row, 0).tests == tests  # of TRL's columns


@pytest.mark.parametrize("tests", [["assert f(1) == 2"], "assert f(1) == 2", "{no JSON", 7, '["a list"]'])
def test_tests_in_another_form_are_named(tests):
    problem, completion = pair({"response": "x", "tests": tests}, Columns(), default_id="1", reads_gold=False)
    assert problem.tests is None
    with pytest.raises(GoldError, match=rf"no tests \(the row's 'tests' is {type(tests).__name__}\)"):
        CodeVerifier()(problem, completion)


@pytest.mark.parametrize(
    ("content", "text"), [("a\nb", "a\nb"), ([{"type": "text", "text": "a\n"}, {"text": "b"}, {"image": "x"}], "a\nb")]
)
def test_a_conversation_s_contents_are_text_or_parts(content, text):
    row = {"prompt": [{"role": "user", "content": content}], "completion": [{"role": "assistant", "content": content}]}
    problem, completion = pair(row, Columns(), default_id="1")
    assert problem.prompt == completion.text == text


def test_a_column_that_is_null_is_named():
    with pytest.raises(RowError, match="'response' is null"):
        pair({"question": "1?", "response": None}, Columns(), default_id="1")


def test_compare_takes_files_of_results(capsys):
    assert verifiers_main(["compare", "math", "format"]) == 2
    assert "math: no such file; A and B are results of `python -m verifiers score --out`" in capsys.readouterr().err


def test_parquet_values_that_python_cannot_express_are_left_out(tmp_path):
    import pyarrow
    import pyarrow.parquet

    columns = {
        "completion": pyarrow.array(["\\boxed{4}", "\\boxed{5}"]),
        "answer": pyarrow.array(["4", "5"]),
        "day": pyarrow.array([1, 2**30], pyarrow.date32()),
        "time": pyarrow.array([1, 2], pyarrow.timestamp("s", "Mars/Phobos")),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "some.parquet")
    found = [row for _, row in rows(tmp_path / "some.parquet")]
    assert [row["answer"] for row in found] == ["4", "5"]
    assert [sorted(row) for row in found] == [["answer", "completion", "day"], ["answer", "completion"]]
    assert verifiers_main(["score", str(tmp_path / "some.parquet"), "--reward", "math", "--workers", "0"]) == 0


def test_results_are_written_to_files_only(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text('{"completion": "4", "answer": "4"}\n')
    for place in ("/dev/full", "/dev/null", str(tmp_path)):
        assert verifiers_main(["score", str(tmp_path / "a.jsonl"), "--reward", "math", "--out", place]) == 2
        assert "no file that results can be added to" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["r.json", "r.jsonl.gz", "r.csv", "r.PARQUET"])
def test_results_have_no_name_of_another_format(tmp_path, capsys, name):
    (tmp_path / "a.jsonl").write_text('{"completion": "4", "answer": "4"}\n')
    argv = ["score", str(tmp_path / "a.jsonl"), "--reward", "math", "--out", str(tmp_path / name)]
    assert verifiers_main(argv) == 2
    assert "choose a name that ends in .jsonl or .parquet" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_an_audit_names_the_line_of_a_bad_row(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text('{"prompt": "q", "answer": "4"}\n{"prompt": "q", "answer": " "}\n')
    assert verifiers_main(["audit", "math", "--data", str(tmp_path / "a.jsonl")]) == 2
    assert f"{tmp_path / 'a.jsonl'}:2: the gold is empty" in capsys.readouterr().err
