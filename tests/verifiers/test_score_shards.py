"""`python -m verifiers score` of folders, patterns and URLs: the same results on every route and every repetition."""

import json
import sys
from pathlib import Path

import pytest
from score_shards_for_tests import files, row, write_shards

from verifiers.__main__ import main
from verifiers.commands import storage
from verifiers.commands.results import read

REWARD = ["--reward", "math + 0.1*format", "--workers", "0"]


@pytest.fixture
def shards(tmp_path):
    return write_shards(tmp_path / "in")


def test_each_shard_has_results_and_a_summary_and_all_a_manifest(shards, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["score", str(shards), *REWARD, "--out", str(out)]) == 0
    assert capsys.readouterr().out.startswith("120 completions, 0 unscored")
    manifest = json.loads((out / "manifest.json").read_text())
    names = ["more/part-3.jsonl", *(f"part-{n}.{'parquet' if n == 1 else 'jsonl'}" for n in (0, 1, 2, 4, 5))]
    assert [shard["results"] for shard in manifest["shards"]] == names
    assert manifest["reward"] == "math + 0.1*format"
    for name in names:
        shard = int(name.rpartition("-")[2].partition(".")[0])
        found = list(read(out / name))
        assert [one["id"] for one in found] == [str(n) for n in range(shard * 20, (shard + 1) * 20)]
        assert [one["reward"] for one in found] == [
            0.1 if n % 3 == 0 else 1.1 for n in range(shard * 20, shard * 20 + 20)
        ]
    one = tmp_path / "one.jsonl"
    assert main(["score", str(shards / "part-0.jsonl"), *REWARD, "--out", str(one)]) == 0
    assert one.read_bytes() == (out / "part-0.jsonl").read_bytes()


def test_what_is_done_stays_done(shards, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    argv = ["score", f"{shards}/*.jsonl", *REWARD, "--out", str(out)]
    assert main(argv) == 0
    whole, said = files(out), capsys.readouterr().out
    assert {"part-0.jsonl", "part-4.jsonl", "part-5.jsonl"} < set(whole)
    (out / "manifest.json").unlink()
    (out / "part-4.jsonl.summary.json").unlink()
    (out / ".part-4.0123.part.jsonl").write_text("half")
    done = (out / "part-0.jsonl").stat().st_mtime_ns
    assert main(argv) == 0
    assert files(out) == whole
    assert capsys.readouterr().out == said
    assert (out / "part-0.jsonl").stat().st_mtime_ns == done
    assert main([*argv[:2], "--reward", "format", "--out", str(out)]) == 2
    assert "holds results of different reward and versions" in capsys.readouterr().err
    (shards / "part-9.jsonl").write_text("{}\n")
    assert main(argv) == 2
    assert "holds results of different inputs" in capsys.readouterr().err


def test_an_interrupt_says_how_to_go_on(shards, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out.jsonl"
    argv = ["score", str(shards / "part-0.jsonl"), *REWARD]

    def interrupted(self):
        raise KeyboardInterrupt

    for more in ([], ["--out", str(out)]):
        with monkeypatch.context() as patch:
            patch.setattr("verifiers.commands.score.Progress.add", interrupted)
            assert main([*argv, *more]) == 130
        said = f"interrupted; run the same command again to resume {out}"
        assert (said in capsys.readouterr().err) == bool(more)
    assert main([*argv, "--out", str(out)]) == 0
    assert len(list(read(out))) == 20


def test_a_shard_without_results_may_be_repaired_or_removed(tmp_path, capsys):
    shards = tmp_path / "in"
    shards.mkdir()
    for name in "abc":
        (shards / f"{name}.jsonl").write_text(json.dumps(row(ord(name))) + "\n")
    (shards / "d.parquet").write_bytes(b"")
    out = tmp_path / "out"
    argv = ["score", str(shards), *REWARD, "--out", str(out)]
    assert main(argv) == 2
    assert "d.parquet: not a Parquet file" in capsys.readouterr().err
    done = (out / "a.jsonl").stat().st_mtime_ns
    was = (shards / "a.jsonl").read_text()
    (shards / "a.jsonl").write_text(was * 2)  # one that has results may not
    assert main(argv) == 2
    assert "holds results of different inputs (a.jsonl); remove it" in capsys.readouterr().err
    (shards / "a.jsonl").write_text(was)
    (shards / "d.parquet").unlink()
    (shards / "e.jsonl").write_text(json.dumps(row(9)) + "\n")
    assert main(argv) == 0
    assert capsys.readouterr().out.startswith("4 completions, 0 unscored")
    assert (out / "a.jsonl").stat().st_mtime_ns == done
    for name in "be":  # all have results: none may go or come
        content = (shards / f"{name}.jsonl").read_text()
        (shards / f"{name}.jsonl").unlink()
        assert main(argv) == 2
        assert f"different inputs ({name}.jsonl)" in capsys.readouterr().err
        (shards / f"{name}.jsonl").write_text(content)
    (shards / "f.jsonl").write_text("")
    assert main(argv) == 2
    assert "different inputs (f.jsonl)" in capsys.readouterr().err


def test_a_file_may_be_named_like_a_pattern_and_a_link_to_nothing_is_told(tmp_path, capsys):
    odd = tmp_path / "part [1] of *.jsonl"
    odd.write_text(json.dumps(row(1)) + "\n")
    assert main(["score", str(odd), *REWARD, "--out", str(tmp_path / "one.jsonl")]) == 0
    assert capsys.readouterr().out.startswith("1 completions")
    folder = tmp_path / "in [2]"
    folder.mkdir()
    odd.rename(folder / odd.name)
    (folder / "notes").symlink_to("nowhere")  # no shard
    assert main(["score", str(folder), *REWARD, "--out", str(tmp_path / "out")]) == 0
    (folder / "gone.jsonl").symlink_to("nowhere")
    for named in (str(folder), f"{tmp_path}/in*/*.jsonl"):
        assert main(["score", named, *REWARD, "--out", str(tmp_path / "other")]) == 2
        assert "gone.jsonl: a link to a file that does not exist" in capsys.readouterr().err


def test_urls_of_fsspec(shards, tmp_path, capsys):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.put(str(shards), "/bucket/in", recursive=True)
    assert main(["score", "memory://bucket/in", *REWARD, "--out", "memory://bucket/out"]) == 0
    assert main(["score", str(shards), *REWARD, "--out", str(tmp_path / "here")]) == 0
    assert main(["score", f"file://{shards}", *REWARD, "--out", f"file://{tmp_path}/there"]) == 0
    for name, content in files(tmp_path / "here").items():
        assert memory.cat(f"/bucket/out/{name}") == content, name
        assert (tmp_path / "there" / name).read_bytes() == content, name
    found = storage.list_files("memory://bucket/in/more/*.jsonl", (".jsonl",))
    assert [(one.name, one.url) for one in found] == [("part-3.jsonl", "memory:///bucket/in/more/part-3.jsonl")]
    assert main(["score", "memory://bucket/nothing", *REWARD, "--out", str(tmp_path / "x")]) == 2
    assert "no .jsonl, .jsonl.gz, .parquet file there" in capsys.readouterr().err


def test_two_commands_do_not_write_one_folder(shards, tmp_path, capsys):
    out = tmp_path / "out"
    command = ["score", str(shards), *REWARD, "--out", str(out)]
    with storage.alone_in(str(out)):
        half = out / f".part-0.{'0' * 16}.part.jsonl"
        half.touch()
        assert main(command) == 2
        assert half.exists()
    assert f"--out {out}: another command is writing it" in capsys.readouterr().err
    assert main(command) == 0
    assert not half.exists()


def test_what_is_refused(shards, tmp_path, capsys, monkeypatch):
    Path(f"{shards}.txt").touch()
    for argv, said in (
        (["score", str(shards), *REWARD], "--out FOLDER is needed"),
        (["score", str(shards), *REWARD, "--out", str(shards / "scores")], "its results would be taken for shards"),
        (["score", str(shards), *REWARD, "--out", str(shards) + ".txt"], "and this is a file"),
        (["score", "nosuch://a/b", *REWARD, "--out", str(tmp_path)], "nosuch"),
    ):
        assert main(argv) == 2
        assert said in capsys.readouterr().err
    (shards / "part-2.jsonl").write_text("{}\n")
    assert main(["score", str(shards), *REWARD, "--out", str(tmp_path / "x")]) == 2
    assert "2 shards would have the same results file part-2.jsonl" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    assert main(["score", "s3://bucket/in", *REWARD, "--out", "x"]) == 2
    assert "URLs need fsspec: pip install fsspec" in capsys.readouterr().err
