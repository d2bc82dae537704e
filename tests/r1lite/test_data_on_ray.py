"""Sets that are made on a Ray cluster are those of one machine, byte for byte, also when its parts are lost."""

import contextlib
import os
import threading

import pytest
from curation_for_tests import lines, stored, write
from on_ray_for_tests import Asked, kill_an_actor, remove_a_busy_node, set_token, waits_for

from r1lite.cli import main
from r1lite.config import EvalConfig, RejectConfig, load, trust
from r1lite.curation.near import Comparing
from r1lite.curation.on_ray import _OnNode
from r1lite.distributed.nodes import Nodes
from r1lite.errors import RunError, UserError
from r1lite.training.several import refuse
from verifiers.on_ray import Resources
from verifiers.on_ray.work import Jobs

set_token()
FILES = ("train.jsonl", "rejected.jsonl", "pairs.jsonl", "problems.jsonl", "manifest.json", "README.md", "reward.json")


@pytest.fixture(autouse=True)
def many_blocks(monkeypatch):
    monkeypatch.setattr("r1lite.curation.sources._BLOCK_BYTES", 20_000)


def same(one, other, files=FILES):
    for name in files:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.slow
def test_an_actor_and_a_node_that_are_lost_change_nothing(cluster, tmp_path):
    source = write(tmp_path / "rows.jsonl", stored(80, 6))
    slow, fatal = "on_ray_for_tests:takes_time", f"on_ray_for_tests:ends_its_process:once={tmp_path / 'once'}"
    argv = ["reject", "--rollouts", f"local://{source}", "--source", "bundled", "--pairs", "2", "--quiet"]
    argv += ["--filters", "correct", "finished", slow, fatal, "--workers", "2"]
    there = tmp_path / "there" / "set"

    def trouble():
        waits_for(lambda: len(list(there.glob("work/*.index"))) > 1)
        remove_a_busy_node(cluster)

    thread = threading.Thread(target=trouble)
    thread.start()
    try:
        assert main([*argv, "--on", f"ray:{cluster.address}", "--out", str(there)]) == 0
    finally:
        thread.join()
    assert (tmp_path / "once").exists()
    assert not (there / "work").exists()
    assert main([*argv, "--out", str(tmp_path / "here" / "set")]) == 0
    same(tmp_path / "here" / "set", there)


@pytest.mark.slow
def test_a_driver_that_is_killed_goes_on_with_what_is_left(cluster, tmp_path, forks, monkeypatch):
    rows = [{**row, "completion": f"**First** {row['completion']}", "finish_reason": "stop"} for row in stored(80, 3)]
    source = write(tmp_path / "rows.jsonl", rows)
    argv = ["cold-start", "--rollouts", str(source), "--rewrite", "rules", "--quiet", "--workers", "2"]
    argv += ["--filters", "correct", "on_ray_for_tests:takes_time:ms=30"]
    there, here = tmp_path / "there" / "set", tmp_path / "here" / "set"
    on_ray = ["--on", f"ray:{cluster.address}", "--out", str(there)]
    small = "import sys; from r1lite.curation import sources; sources._BLOCK_BYTES = 20_000; "
    code = small + "from r1lite.cli import main; sys.exit(main(sys.argv[1:]))"
    process = forks.start([*argv, *on_ray], code=code, env=dict(os.environ))
    waits_for(lambda: list(there.glob("work/*.index")), process)
    process.kill()
    process.communicate()
    assert not (there / "manifest.json").exists()
    done = {int(path.stem) for path in there.glob("work/*.index")}
    left = []
    each = Nodes.each
    monkeypatch.setattr(Nodes, "each", lambda self, blocks: left.extend(blocks) or each(self, blocks))
    assert main([*argv, *on_ray, "--resume"]) == 0
    parts = sorted((there / "rewritten").iterdir())
    again = {number for number, job in left if isinstance(job, tuple)}  # blocks
    assert done
    assert again
    assert done.isdisjoint(again)
    assert any(isinstance(job, Comparing) for _, job in left)
    assert main([*argv, "--out", str(here)]) == 0
    assert any(row["original"] for row in lines(there / "train.jsonl"))
    same(here, there, ("train.jsonl", "rejected.jsonl", "problems.jsonl", "manifest.json"))
    for part in parts:
        assert part.read_bytes() == (here / "rewritten" / part.name).read_bytes()


@pytest.mark.slow
def test_sampling_by_actors_one_of_which_is_lost(cluster, tiny_path, sums_path, tmp_path, monkeypatch):
    monkeypatch.setattr("r1lite.curation.generate._PART", 4)
    argv = ["reject", "--model", str(tiny_path), "--source", str(sums_path), "--samples", "3", "--threads", "2"]
    argv += ["--max-completion-tokens", "40", "--correct", "on_ray_for_tests:odd_length", "--filters", "correct"]
    argv += ["--template", "short", "--no-difficulty-window", "--quiet"]
    there = tmp_path / "there" / "set"

    def trouble():
        waits_for(lambda: list(there.glob("samples/part-*.jsonl")))
        kill_an_actor(cluster)

    thread = threading.Thread(target=trouble)
    thread.start()
    try:
        on_ray = ["--on", f"ray:{cluster.address}", "--engine-actors", "2", "--workers", "1"]
        assert main([*argv, *on_ray, "--out", str(there)]) == 0
    finally:
        thread.join()
    assert main([*argv, "--out", str(tmp_path / "here" / "set")]) == 0
    parts = sorted((tmp_path / "here" / "set" / "samples").iterdir())
    assert len(parts) == 11
    same(tmp_path / "here" / "set" / "samples", there / "samples", [path.name for path in parts])
    same(tmp_path / "here" / "set", there, [name for name in FILES if name != "pairs.jsonl"])


@pytest.mark.slow
def test_an_evaluation(cluster, tiny_path, sums_path, tmp_path):
    argv = ["eval", "--model", str(tiny_path), "--source", str(sums_path), "--eval-samples", "2", "--threads", "1"]
    argv += ["--max-completion-tokens", "8", "--template", "short", "--eval-sample-problems", "3", "--quiet"]
    there, here = tmp_path / "there", tmp_path / "here"
    assert main([*argv, "--on", f"ray:{cluster.address}", "--engine-actors", "1", "--out", str(there)]) == 0
    assert main([*argv, "--out", str(here)]) == 0
    same(here, there, ["problems.jsonl", "summary.json"])


@pytest.mark.slow
def test_a_job_that_fails_is_named(cluster):
    with contextlib.closing(Nodes(Asked, f"ray:{cluster.address}", Resources(1))) as nodes:
        assert nodes.start() == ["ready"]
        assert sorted(nodes.each(range(30))) == [(number, number) for number in range(30)]
        with pytest.raises(UserError, match="a damaged file"):
            list(nodes.each([1, UserError("a damaged file"), 2]))
        with pytest.raises(RunError, match="--on: an actor failed: KeyError: 'x'"):
            list(nodes.each([KeyError("x")]))
        with pytest.raises(RunError, match="job 2 was lost with 3 actors, one after the other"):
            list(nodes.each(["a", "exit", "b"]))
        assert list(nodes.each(["a"])) == [(0, "a")]
    for resources, said in (
        (Resources(99), "--on: 99 actors need 99 CPUs, and Ray has 9 on 3 nodes"),
        (Resources(2, gpus=1), "2 actors need 2 CPUs and 2 GPUs, .* and 0 GPUs, 0 of them free"),
    ):
        with (
            contextlib.closing(Nodes(Asked, f"ray:{cluster.address}", resources)) as nodes,
            pytest.raises(UserError, match=said),
        ):
            nodes.start()


@pytest.mark.quick
def test_jobs_are_read_as_they_are_given_out_and_made_again():
    work = Jobs(iter("abc"))
    first, second = work.next_call(), work.next_call()
    work.again([first, second], "gone")
    assert (first.tries, second.tries) == (1, 0)
    assert first.alone
    assert second.alone
    assert work.next_call(beside=True) is None  # neither one goes beside another
    assert [work.next_call().job for _ in range(3)] == ["a", "b", "c"]
    assert work.next_call() is None
    work.finished(second, "B")
    assert list(work.taken()) == [(1, "B")]
    assert not work.is_done
    work.finished(first, "A")
    work.finished(first, "C")
    assert work.is_done


@pytest.mark.quick
def test_a_node_that_does_not_see_the_folder_or_has_other_verifiers(tmp_path):
    class Versions:
        def versions(self):
            return {"math": "1"}

    seen = tmp_path / "seen.txt"
    for held in (None, "other"):
        if held:
            seen.write_text(held)
        with pytest.raises(UserError, match="isn't visible on this node: all nodes must see it"):
            _OnNode(None, Versions(), {"math": "1"}, seen, "token")
    with pytest.raises(UserError, match=r"other versions of the verifiers here, .*: install the same"):
        _OnNode(None, Versions(), {"math": "2"}, seen, "other")


def test_what_is_refused(capsys):
    for argv, said in (
        (["reject", "--on", "far"], "--on far: expected ray, ray:HOST:PORT or ray://HOST:PORT, or local"),
        (["eval", "--on", "ray", "--scoring", "ray"], "--on and --scoring both start actors: set --score-workers"),
    ):
        assert main(argv) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(UserError, match="--on ray uses actors instead of ranks"):
        refuse(load(EvalConfig, ["--on", "ray"]), 2)
    (foreign,) = trust.foreign({"on": "ray:10.0.0.1:6379"})
    assert foreign == "on: ray:10.0.0.1:6379"


@pytest.mark.quick
def test_a_recipe_may_say_on(tmp_path):
    (tmp_path / "mine.yaml").write_text("on: ray\n")
    assert load(RejectConfig, [str(tmp_path / "mine.yaml")]).on == "ray"
