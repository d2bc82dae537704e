"""Fine-tuning: what is read, what is refused, and that packing and micro-batches change nothing."""

import json
import signal
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from r1lite.cli import main
from r1lite.config import SFTConfig, load
from r1lite.errors import UserError
from r1lite.model.batch import Row
from r1lite.model.packing import fit, keeps_rows_apart, packed_batches, packed_logits
from r1lite.model.policy import Policy
from r1lite.scoring.problems import make_prompts
from r1lite.supervised.loop import RowOrder, nll_pieces
from r1lite.supervised.sft.encode import Encoder, Overlap, template_facts
from r1lite.supervised.sft.formats import RowError, example, format_of
from r1lite.supervised.sft.reading import find_set, rows
from r1lite.tasks import Problems
from r1lite.training import setup
from r1lite.training.resolve import resolve_config
from verifiers import Problem

ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    *("--template", "short", "--max-completion-tokens", "12", "--rows-per-step", "8", "--epochs", "1.5"),
    *("--lr", "3e-3", "--warmup-steps", "2", "--save-every", "2", "--threads", "1", "--micro-batch-tokens", "64"),
    *("--eval-problems", "4", "--eval-sample-problems", "2", "--eval-samples", "2"),
]


def arguments(tiny_path, sums_path, data, out, *more):
    return [
        "sft",
        "--model",
        str(tiny_path),
        "--source",
        str(sums_path),
        "--data",
        str(data),
        *FLAGS,
        "--out",
        str(out),
        *more,
    ]


def write_rows(path, found):
    path.write_text("".join(json.dumps(row) + "\n" for row in found))
    return path


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    """40 rows of small sums in prompt/completion form."""
    found = [{"prompt": f"{i}+{i % 7}?\n", "completion": f"{i + i % 7}" + "." * (i % 5)} for i in range(40)]
    return write_rows(tmp_path_factory.mktemp("set") / "train.jsonl", found)


# --- what a row says


@pytest.mark.parametrize(
    ("row", "format", "asked", "said"),
    [
        ({"prompt": "a?", "completion": "b"}, "prompt/completion", "a?", "b"),
        ({"prompt": [{"role": "user", "content": "a?"}], "completion": [{"role": "assistant", "content": "b"}]},) * 1
        + ("prompt/completion", "a?", "b"),
        (
            {"messages": [{"role": "user", "content": "a?"}, {"role": "assistant", "content": "b"}]},
            "messages",
            "a?",
            "b",
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "a?"}]},
                    {"role": "assistant", "content": "b"},
                ]
            },
            "messages",
            "a?",
            "b",
        ),
        ({"conversations": [{"from": "human", "value": "a?"}, {"from": "gpt", "value": "b"}]}, "ShareGPT", "a?", "b"),
        ({"instruction": "a", "input": "", "output": "b"}, "Alpaca", "a", "b"),
        ({"instruction": "a", "input": "c", "output": "b"}, "Alpaca", "a\n\nc", "b"),
        ({"question": "a?", "answer": "#### 4"}, "question/answer", "a?", "#### 4"),
        ({"question": "a?", "answer": 44}, "question/answer", "a?", "44"),
        ({"prompt": "a?", "completion": 0.5}, "prompt/completion", "a?", "0.5"),
        ({"question": "a?", "prompt": "User: a?", "completion": "b"}, "prompt/completion", "a?", "b"),
    ],
)
def test_formats(row, format, asked, said):
    assert format_of(row) == format
    found = example(row, format)
    assert (found.question or found.prompt, found.completion) == (asked, said)
    assert not found.turns


def test_conversations_keep_their_turns():
    row = {
        "system": "be brief",
        "history": [["a", "b"]],
        "instruction": "c",
        "output": "d",
    }
    found = example(row, "Alpaca")
    assert found.turns == (("system", "be brief"), ("user", "a"), ("assistant", "b"), ("user", "c"))
    assert found.completion == "d"


@pytest.mark.parametrize(
    ("row", "format", "message"),
    [
        ({"prompt": "a"}, "prompt/completion", "no column 'completion'"),
        ({"prompt": "a", "completion": " \n"}, "prompt/completion", "the completion is empty"),
        ({"prompt": "", "completion": "b"}, "prompt/completion", "the prompt is empty"),
        ({"prompt": 1, "completion": "b"}, "prompt/completion", "must be text, got 1"),
        ({"question": "a", "answer": True}, "question/answer", "must be text or a number, got true"),
        ({"prompt": "a", "completion": "\ud800"}, "prompt/completion", "half a character"),
        ({"messages": []}, "messages", "must be a list of messages"),
        ({"messages": [{"role": "user", "content": "a"}]}, "messages", "must be the assistant's"),
        ({"messages": [{"role": "tool", "content": "a"}]}, "messages", "unknown role 'tool'"),
        ({"messages": ["a"]}, "messages", "must hold messages"),
        ({"messages": [{"role": "assistant", "content": "a"}] * 2}, "messages", "must be the user's"),
        ({"instruction": "a", "output": "b", "history": ["c"]}, "Alpaca", "pairs"),
    ],
)
def test_rows_that_teach_nothing(row, format, message):
    with pytest.raises(RowError, match=message):
        example(row, format)


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet"])
def test_files(kind, tmp_path):
    import pyarrow
    import pyarrow.parquet

    found = [{"prompt": f"a\u2028{i}", "completion": "b"} for i in range(3)]
    path = tmp_path / f"train.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(found), path)
    else:
        path.write_text(
            json.dumps(found) if kind == "json" else "\n".join(json.dumps(row, ensure_ascii=False) for row in found)
        )
    for place in (path, tmp_path):
        assert list(rows(str(place), "train")) == [(f"{path}:{i + 1}", row) for i, row in enumerate(found)]


@pytest.mark.parametrize("data", ["/nowhere/set", "./set", "nothing", "a/b/c", "set.jsonl", "~/nothing"])
def test_places_that_are_no_set(data):
    with pytest.raises(UserError, match="no such file or folder"):
        find_set(data, "train")


def test_a_name_of_the_hub_is_asked_for_there():
    assert find_set("open-r1/OpenR1-Math-220k", "train") is None
    with pytest.raises(UserError, match="can't be loaded from the Hub"):
        next(rows("nobody/nothing-of-the-kind", "train"))


# --- packing and micro-batches

lengths = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12)


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 40))
def test_every_row_is_packed_once_and_fits(sizes, width):
    sequences = fit(sizes, width)
    assert sorted(i for sequence in sequences for i in sequence) == list(range(len(sizes)))
    for sequence in sequences:
        assert sum(sizes[i] for i in sequence) <= width or len(sequence) == 1


def made_rows(sizes, seed):
    generator = torch.Generator().manual_seed(seed)
    ids = lambda n: tuple(torch.randint(2, 48, (n,), generator=generator).tolist())  # noqa: E731
    return [Row(ids(prompt), ids(completion)) for prompt, completion in sizes]


def loss_and_gradients(model, rows, **options):
    config = SFTConfig(**options)
    policy = Policy(model, pad_id=0)
    model.zero_grad(set_to_none=True)
    total = sum(len(row.token_ids) for row in rows)
    loss = 0.0
    for piece in nll_pieces(config, policy, rows, config.packing == "on", config.micro_batch_tokens):
        part = piece.loss() / total
        part.backward()
        loss += part.item()
    return loss, torch.cat([p.grad.flatten() for p in model.parameters()])


@settings(max_examples=25, deadline=None)
@given(lengths, st.integers(0, 100), st.integers(8, 60), st.integers(20, 200))
def test_packed_rows_have_the_loss_and_gradients_they_have_alone(double_model, sizes, seed, width, budget):
    found = made_rows(sizes, seed)
    total = sum(len(row.token_ids) for row in found)
    alone = [loss_and_gradients(double_model, [row], packing="off") for row in found]
    share = [len(row.token_ids) / total for row in found]
    expected = sum(part * loss for part, (loss, _) in zip(share, alone, strict=True))
    gradient = sum(part * grad for part, (_, grad) in zip(share, alone, strict=True))
    for options in (
        {"packing": "on", "packed_tokens": width, "micro_batch_tokens": budget},
        {"packing": "off", "micro_batch_tokens": budget},
    ):
        loss, found_gradient = loss_and_gradients(double_model, found, **options)
        # Norms and rotations are in float32 whatever the model's precision.
        assert abs(loss - expected) < 1e-6
        assert (found_gradient - gradient).norm() < 1e-6 * gradient.norm()


@pytest.fixture(scope="module")
def double_model():
    from conftest import make_tiny_model

    return make_tiny_model(num_hidden_layers=1).double()


def test_a_packed_row_does_not_see_its_neighbours(double_model):
    def logits(neighbour):
        (batch,) = packed_batches(
            [Row((5, 6, 7), neighbour), Row((8, 9), (10,))], width=40, max_tokens=40, pad_id=0, device="cpu"
        )
        assert batch.input_ids.shape[0] == 1
        return packed_logits(double_model, batch)[-1]

    with torch.no_grad():
        assert torch.equal(logits((11, 12, 13)), logits((21, 22, 23)))


def test_models_that_mix_packed_rows_are_found_out(double_model):
    assert keeps_rows_apart(double_model)
    forward = double_model.forward

    def forgets_positions(input_ids, position_ids, **options):
        return forward(input_ids=input_ids, **options)

    def knows_none(input_ids, **options):
        return forward(input_ids=input_ids, **options)

    try:
        for broken in (forgets_positions, knows_none):
            double_model.forward = broken
            assert not keeps_rows_apart(double_model)
    finally:
        del double_model.forward


@given(st.integers(1, 50), st.integers(1, 20), st.floats(0.1, 3.5), st.integers(0, 5))
def test_an_epoch_takes_every_row_once(num_rows, per_step, epochs, seed):
    order = RowOrder.of(SFTConfig(rows_per_step=per_step, epochs=epochs, seed=seed), num_rows)
    taken = [number for step in range(order.steps) for number in order(step)]
    assert len(taken) == max(1, round(epochs * num_rows))
    for start in range(0, len(taken), num_rows):
        epoch = taken[start : start + num_rows]
        assert len(set(epoch)) == len(epoch)


def test_a_recipe_names_no_epochs_beside_steps():
    for more, named in (([], True), (["--steps", "20"], False)):
        _, notes = resolve_config(load(SFTConfig, ["--model", "nano", "--device", "cpu", *more]))
        assert ("epochs" in notes["settings"]) == named


# --- whole runs


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tiny_path, sums_path, sums):
    out = tmp_path_factory.mktemp("whole") / "run"
    assert main(arguments(tiny_path, sums_path, sums, out)) == 0
    return out


def test_an_engine_with_its_own_weights_answers_with_the_trained_ones(
    whole, tmp_path, tiny_path, sums_path, sums, monkeypatch
):
    open_engine = setup.open_engine
    monkeypatch.setattr(setup, "open_engine", lambda *args, **kwargs: open_engine(*args, **kwargs | {"in_parts": True}))
    assert main(arguments(tiny_path, sums_path, sums, tmp_path / "run")) == 0
    before, after = (json.loads((tmp_path / "run" / f"eval_{when}.json").read_text()) for when in ("before", "after"))
    assert before["examples"] != after["examples"]
    assert after == json.loads((whole / "eval_after.json").read_text())
    assert outcome(tmp_path / "run") == outcome(whole)


def outcome(out):
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    for line in metrics:
        del line["step_s"]
    weights = {path.name: (path / "model.safetensors").read_bytes() for path in sorted((out / "checkpoints").iterdir())}
    return metrics, weights


def test_a_run_learns_and_says_what_from(whole):
    metrics, _ = outcome(whole)
    assert len(metrics) == 8  # 60 rows, 8 a step
    assert metrics[-1]["rows"] == 4
    assert metrics[-1]["epoch"] == 1.5
    assert metrics[-1]["token_loss"] < metrics[0]["token_loss"]
    assert metrics[0]["lr"] == 1.5e-3
    assert metrics[-1]["lr"] == pytest.approx(3e-4)
    facts = json.loads((whole / "set.json").read_text())
    assert (facts["rows"], facts["format"], facts["rows_too_long"]) == (40, "prompt/completion", 0)
    assert facts["template"] == template_facts("short", None)
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["tokens_trained_on"] == sum(line["tokens"] for line in metrics)
    assert {"eval_before", "eval_after", "checkpoint"} <= set(summary)


KILLED_IN_STEP_5 = """
import os, signal, sys
from r1lite.supervised import loop as supervised
from r1lite.cli import main
step = supervised.FineTuning.step
def killed(self, number):
    done = step(self, number)
    if number == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return done
supervised.FineTuning.step = killed
main(sys.argv[1:])
"""


def test_killed_and_resumed_is_the_same_as_never_stopped(whole, tiny_path, sums_path, sums, tmp_path, forks):
    out = tmp_path / "run"
    argv = arguments(tiny_path, sums_path, sums, out, "--quiet")
    assert forks.run(argv, code=KILLED_IN_STEP_5)[0] == -signal.SIGKILL
    assert not (out / "summary.json").exists()
    assert main(["sft", "--resume", "--out", str(out), "--quiet"]) == 0
    assert outcome(out) == outcome(whole)


def test_packed_and_padded_runs_agree(whole, tiny_path, sums_path, sums, tmp_path):
    assert (
        main(arguments(tiny_path, sums_path, sums, tmp_path / "run", "--packing", "on", "--packed-tokens", "50")) == 0
    )
    (padded, _), (packed, _) = outcome(whole), outcome(tmp_path / "run")
    for a, b in zip(padded, packed, strict=True):
        assert a["token_loss"] == pytest.approx(b["token_loss"], rel=1e-4)


def test_another_set_is_not_gone_on_with(whole, sums, tmp_path, capsys):
    import shutil

    out = tmp_path / "run"
    shutil.copytree(whole, out)
    text = sums.read_text()
    try:
        sums.write_text(text.replace("39+4?", "39+5?"))
        assert main(["sft", "--resume", "--out", str(out)]) == 2
    finally:
        sums.write_text(text)
    assert "no longer those" in capsys.readouterr().err


BAD_SETS = [
    ([{"prompt": "1+1?", "text": "2"}], "match none of the formats"),
    ([{"prompt": "1+1?", "completion": "2"}, {"prompt": "1+2?"}], ":2: no column 'completion'"),
    ([{"prompt": "1+1?", "completion": ""}], "1 rows can't be learnt from"),
    ([{"prompt": "1+1?", "completion": "2" * 20}], "1 of 1 rows are too long"),
    ([{"prompt": "1+1?", "completion": "2<eos>3"}], "is inside the completion"),
    ([{"prompt": "40+5?\n", "completion": "45"}], "1 of the 8 test problems"),
    ([{"question": "40+5?", "answer": "45"}], "1 of the 8 test problems"),
    ([["a"]], "must be an object"),
    (
        [{"messages": [{"role": r, "content": "a"} for r in ("system", "user", "assistant")]}],
        "needs --template chat",
    ),
    ([], "no usable row is left"),
]


@pytest.mark.parametrize(("found", "message"), BAD_SETS, ids=[message for _, message in BAD_SETS])
def test_sets_that_are_refused_leave_nothing_behind(found, message, tiny_path, sums_path, tmp_path, capsys):
    data = write_rows(tmp_path / "set.jsonl", found)
    assert main(arguments(tiny_path, sums_path, data, tmp_path / "run")) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--data", "/nowhere"], "--data /nowhere: no such file or folder"),
        (["--template", "chat"], "has no chat template"),
        (["--epochs", "0"], "--epochs must be > 0"),
        (["--rows-per-step", "0"], "--rows-per-step must be >= 1"),
    ],
)
def test_mistakes_of_use(flags, message, tiny_path, sums_path, sums, tmp_path, capsys):
    assert main([*arguments(tiny_path, sums_path, sums, tmp_path / "run"), *flags]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_no_set_at_all(tiny_path, sums_path, tmp_path, capsys):
    argv = arguments(tiny_path, sums_path, "x", tmp_path / "run")
    at = argv.index("--data")
    assert main([*argv[:at], *argv[at + 2 :]]) == 2
    assert "--data is missing" in capsys.readouterr().err


def loaded(path, tiny_model, tokenizer, **options):
    from r1lite.supervised.sft.encode import load_set

    config = SFTConfig(data=str(path), **{"template": "short", **options})
    return load_set(config, Problems([], [], ""), [], tiny_model, tokenizer)


def test_long_rows_are_dropped_on_request_and_counted(tmp_path, tiny_model, tiny_tokenizer):
    data = write_rows(tmp_path / "a.jsonl", [{"prompt": "a", "completion": "b" * n} for n in (3, 30, 4, 300)])
    found = loaded(data, tiny_model, tiny_tokenizer, long_rows="drop", max_completion_tokens=10)
    assert (found.results["set"]["rows"], found.results["set"]["rows_too_long"]) == (2, 2)
    with pytest.raises(UserError, match="no usable row is left: all 4 are too long"):
        loaded(data, tiny_model, tiny_tokenizer, long_rows="drop", max_completion_tokens=1)


def test_the_completion_ends_once(tmp_path, tiny_model, tiny_tokenizer):
    data = write_rows(tmp_path / "a.jsonl", [{"prompt": "a", "completion": said} for said in ("b", "b<eos>")])
    found = loaded(data, tiny_model, tiny_tokenizer).value
    assert found[0].token_ids == found[1].token_ids
    assert found[0].token_ids[-1] == tiny_tokenizer.eos_token_id


def test_a_tokenizer_without_an_end_is_refused(tmp_path, tiny_model):
    from conftest import make_tiny_tokenizer

    tokenizer = make_tiny_tokenizer()
    tokenizer.eos_token = None
    tiny_model.generation_config.eos_token_id = None
    data = write_rows(tmp_path / "a.jsonl", [{"prompt": "a", "completion": "b"}])
    with pytest.raises(UserError, match="token that ends a text"):
        loaded(data, tiny_model, tokenizer)


CHAT = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: <think>{% endif %}"
)


def test_chat_templates_are_used_and_recorded(tmp_path, tiny_model):
    from conftest import make_tiny_tokenizer

    tokenizer = make_tiny_tokenizer()
    tokenizer.chat_template = CHAT
    talk = [{"role": r, "content": c} for r, c in (("system", "s"), ("user", "q"), ("assistant", "<think>x</think>4"))]
    found = loaded(write_rows(tmp_path / "a.jsonl", [{"messages": talk}]), tiny_model, tokenizer, template="chat")
    (row,) = [found.value[0]]
    assert row.prompt_ids == tuple(tokenizer("system: s\nuser: q\nassistant: <think>")["input_ids"])
    # The template has opened the thinking already.
    assert row.token_ids == (*tokenizer("x</think>4")["input_ids"], tokenizer.eos_token_id)
    assert found.results["set"]["template"] == template_facts("chat", tokenizer)
    assert found.results["set"]["template"]["name"] == "chat"


def test_a_question_is_put_into_the_template_and_a_prompt_is_not(tmp_path, tiny_model, tiny_tokenizer):
    data = write_rows(tmp_path / "a.jsonl", [{"question": "q", "prompt": "p", "completion": "b"}])
    asked = loaded(data, tiny_model, tiny_tokenizer).value[0].prompt_ids
    verbatim = loaded(data, tiny_model, tiny_tokenizer, prompts="verbatim").value[0].prompt_ids
    assert asked == tuple(tiny_tokenizer("q\n")["input_ids"])
    assert verbatim == tuple(tiny_tokenizer("p")["input_ids"])


@pytest.mark.parametrize(
    "row",
    [
        {"question": "What is 2 + 3?", "prompt": "User: What is 2 + 3?", "completion": "5"},
        {"prompt": "what is  2 + 3?\n", "completion": "5"},
        {"instruction": "Solve it.", "input": "What is 2 + 3?", "output": "5"},
        {"history": [["What is 2 + 3?", "5"]], "instruction": "Thanks.", "output": "Bye."},
        {
            "problem": "What is 2 + 3?",
            "messages": [
                {"role": "user", "content": "Solve it: what is 2 + 3?"},
                {"role": "assistant", "content": "5"},
            ],
        },
    ],
)
@pytest.mark.parametrize("prompts", ["auto", "verbatim"])
def test_a_test_problem_is_found_wherever_it_is_asked(row, prompts, tiny_tokenizer):
    config = SFTConfig(template="short", prompts=prompts)
    overlap = Overlap([Problem("What is 2 + 3?"), Problem("What is 2 + 4?")], config, tiny_tokenizer)
    overlap.see(example(row, format_of(row), verbatim=prompts == "verbatim"))
    assert overlap.count == 1


def test_prompts_are_those_of_the_evaluation(tmp_path, tiny_model, tiny_tokenizer):
    """Also for a task with a template of its own."""
    config = SFTConfig(task="mbpp", template="short", max_completion_tokens=8)
    problem = Problem("Add one.")
    (asked,) = make_prompts([problem], config, tiny_model, tiny_tokenizer)
    assert "The answer is the whole program" in asked.text
    data = write_rows(tmp_path / "a.jsonl", [{"question": problem.prompt, "answer": "b"}])
    assert loaded(data, tiny_model, tiny_tokenizer, task="mbpp").value[0].prompt_ids == asked.token_ids
    overlap, encoder = Overlap([problem], config, tiny_tokenizer), Encoder(config, tiny_model, tiny_tokenizer)
    overlap.see(encoder.read({"prompt": asked.text, "completion": "b"}))
    assert overlap.count == 1


@pytest.mark.slow
def test_gsm8k_itself_can_be_learnt_from(shared_data, tmp_path, capsys):
    rows = (shared_data / "gsm8k" / "train.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)[:1000]
    (tmp_path / "train.jsonl").write_text("".join(rows), encoding="utf-8")
    argv = ["sft", "--data", str(tmp_path / "train.jsonl"), "--model", "nano", "--steps", "2"]
    argv += [
        "--rows-per-step",
        "8",
        "--source",
        str(shared_data / "gsm8k"),
        "--long-rows",
        "drop",
        "--max-completion-tokens",
        "400",
    ]
    argv += [
        "--eval-problems",
        "4",
        "--eval-sample-problems",
        "1",
        "--eval-samples",
        "1",
        "--out",
        str(tmp_path / "run"),
    ]
    assert main(argv) == 0
    facts = json.loads((tmp_path / "run" / "set.json").read_text())
    assert facts["rows_read"] == 1000
    assert facts["rows"] + facts["rows_too_long"] == 1000
