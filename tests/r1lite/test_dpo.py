"""r1lite dpo: the loss of pairs, any split into micro-batches, a run that learns and goes on, and what is refused."""

import json

import papers
import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer

from r1lite.cli import main
from r1lite.config import DPOConfig, load
from r1lite.errors import UserError
from r1lite.model.batch import Row
from r1lite.model.policy import Policy
from r1lite.supervised.preferences import load_pairs, pair_pieces
from r1lite.tasks import Problems

ROWS = [
    *(Row((5, 6, 7), (8, 9, 10)), Row((5, 6, 7), (11,))),
    *(Row((4,), (9, 9)), Row((4,), (12, 13, 14, 15, 16))),
    *(Row((7, 8), (3, 4, 5, 6)), Row((7, 8), (6, 5))),
]


def policies():
    policy = Policy(make_tiny_model().double(), pad_id=0)
    reference = policy.frozen_copy()
    torch.manual_seed(0)
    for parameter in policy.model.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    return policy, reference


def gain(row, policy, reference):
    """Log-ratio of a completion, by itself."""
    ids = torch.tensor([[*row.prompt_ids, *row.token_ids]])
    with torch.no_grad():
        ours, theirs = (p.model(ids).logits[0].log_softmax(-1) for p in (policy, reference))
    start = len(row.prompt_ids)
    tokens = torch.tensor(row.token_ids)
    places = torch.arange(start - 1, start - 1 + len(tokens))
    return float((ours[places, tokens] - theirs[places, tokens]).sum())


@pytest.mark.parametrize("settings", [{}, {"label_smoothing": 0.1, "beta": 0.5}, {"loss": "ipo", "beta": 0.3}])
def test_the_loss_is_the_papers_however_it_is_cut(settings):
    config = DPOConfig(**settings)
    policy, reference = policies()
    expected = 0.0
    for chosen, rejected in zip(ROWS[::2], ROWS[1::2], strict=True):
        gains = [gain(row, policy, reference) for row in (chosen, rejected)]
        if config.loss == "ipo":
            gains = [g / len(row.token_ids) for g, row in zip(gains, (chosen, rejected), strict=True)]
            expected += papers.ipo_pair(*gains, config.beta)
        else:
            expected += papers.dpo_pair(*gains, config.beta, config.label_smoothing)
    gradients = []
    for max_tokens in (1, 16, 10_000):
        policy.model.zero_grad(set_to_none=True)
        margins = {}
        pieces = pair_pieces(config, policy, reference, ROWS, margins, max_tokens)
        total = sum(piece.loss() for piece in pieces)
        total.backward()
        assert total.item() == pytest.approx(expected, rel=1e-5)
        assert len(margins) == len(pieces)
        assert sum(piece.num_rows for piece in pieces) == 3
        gradients.append(torch.cat([p.grad.flatten() for p in policy.model.parameters() if p.grad is not None]))
    assert len(pieces) == 1
    for other in gradients[1:]:
        torch.testing.assert_close(other, gradients[0], rtol=1e-4, atol=1e-7)


@pytest.fixture
def pairs(tmp_path):
    rows = [{"question": f"what is {n}+1?", "chosen": n + 1, "rejected": "no idea"} for n in range(24)]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def argv(tiny_path, sums_path, pairs, out, *more):
    return [
        *("dpo", "--data", str(pairs), "--model", str(tiny_path), "--source", str(sums_path)),
        *("--template", "short", "--max-completion-tokens", "20", "--threads", "1", "--lr", "3e-3", "--quiet"),
        *("--lr-schedule", "constant", "--rows-per-step", "8", "--steps", "8", "--save-every", "3"),
        *("--eval-problems", "2", "--eval-samples", "1", "--eval-sample-problems", "1", "--out", str(out), *more),
    ]


@pytest.mark.parametrize("loss", ["dpo", "ipo"])
def test_a_run_learns_and_goes_on_to_the_same_weights(tiny_path, sums_path, pairs, tmp_path, loss):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main(argv(tiny_path, sums_path, pairs, whole, "--loss", loss)) == 0
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert lines[0]["accuracy"] == 0.5  # the reference itself: no margin at all
    assert lines[0]["margin"] == 0
    assert lines[-1]["accuracy"] == 1
    assert lines[-1]["margin"] > 0
    assert lines[-1]["loss"] < lines[0]["loss"]
    assert main(argv(tiny_path, sums_path, pairs, cut, "--loss", loss, "--steps", "5")) == 0
    assert main(["dpo", "--resume", "--trust", "--out", str(cut), "--steps", "8", "--quiet"]) == 0
    kept = [out / "checkpoints" / "step-000008" / "model.safetensors" for out in (whole, cut)]
    assert kept[0].read_bytes() == kept[1].read_bytes()


def test_the_pairs_of_a_folder_that_reject_made(tiny_path, sums_path, pairs, tmp_path, capsys):
    (tmp_path / "train.jsonl").write_text('{"prompt": "a", "completion": "b"}\n')
    words = argv(tiny_path, sums_path, tmp_path, tmp_path / "run", "--steps", "1")
    assert main([word for word in words if word != "--quiet"]) == 0
    assert "epochs    0.333, in 1 step\n" in capsys.readouterr().out
    summary = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[0])
    assert summary["rows"] == 8


def test_pairs_are_counted_as_pairs(pairs, tiny_model, tiny_tokenizer):
    def read(**options):
        config = DPOConfig(data=str(pairs), template="short", **options)
        return load_pairs(config, Problems([], [], ""), [], tiny_model, tiny_tokenizer)

    found = read()
    assert f"{pairs}: 24 pairs, " in found.lines[0][1]
    assert (found.results["set"]["rows_read"], found.results["set"]["rows"]) == (24, 24)
    with pytest.raises(UserError, match="24 of 24 pairs are too long"):
        read(max_completion_tokens=1)


def test_the_prompt_may_be_repeated_in_the_completions(tmp_path, tiny_model):
    """As in UltraFeedback's pairs."""
    tokenizer = make_tiny_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    said = [("user", "q"), ("assistant", "a"), ("assistant", "b")]
    user, good, bad = ({"role": role, "content": text} for role, text in said)
    path, found = tmp_path / "pairs.jsonl", []
    for row in (
        {"question": "q", "chosen": "a", "rejected": "b"},
        {"prompt": "q", "chosen": [user, good], "rejected": [user, bad]},
        {"prompt": [user], "chosen": [user, good], "rejected": [bad]},
    ):
        path.write_text(json.dumps(row))
        config = DPOConfig(data=str(path), template="chat")
        read = load_pairs(config, Problems([], [], ""), [], tiny_model, tokenizer).value
        found.append([(read[n].prompt_ids, read[n].token_ids) for n in range(2)])
    assert found[1] == found[2] == found[0]
    path.write_text(json.dumps({"prompt": "p", "chosen": [user, good], "rejected": [user, bad]}))
    with pytest.raises(UserError, match=r"the assistant's, optionally after the messages of the prompt"):
        load_pairs(config, Problems([], [], ""), [], tiny_model, tokenizer)


def test_what_is_refused(tiny_path, sums_path, pairs, tmp_path, capsys):
    with pytest.raises(UserError, match=r"--label-smoothing 0\.1 has no effect without --loss dpo"):
        load(DPOConfig, ["--loss", "ipo", "--label-smoothing", "0.1"])
    for row, message in (
        ({"question": "a?", "chosen": "b"}, "no text in the column 'rejected'"),
        ({"question": "a?", "chosen": "b", "rejected": "b"}, "a pair without a difference"),
        ({"chosen": "b", "rejected": "c"}, "prompt"),
    ):
        bad = tmp_path / "bad.jsonl"
        bad.write_text(json.dumps(row) + "\n")
        assert main(argv(tiny_path, sums_path, bad, tmp_path / "out")) == 2
        assert message in capsys.readouterr().err
    assert main(argv(tiny_path, sums_path, tmp_path / "none.jsonl", tmp_path / "out")) == 2
