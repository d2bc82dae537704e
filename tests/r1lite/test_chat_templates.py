"""Chat templates as real models have them: what they write of the reply, whom they refuse, what ends a turn."""

import dataclasses
import json
import re
import subprocess
import sys

import pytest
import torch
from scripted_engine import ScriptedEngine
from templates_for_tests import CHATML, ENDS, GEMMA, QWEN3_CLOSED, R1_DISTILL, SILENT, make_tokenizer, save_model
from tokenizers.processors import TemplateProcessing

from r1lite.cli import main
from r1lite.config import engines
from r1lite.config.engines import EngineSpec
from r1lite.errors import UserError
from r1lite.rollout import eos_ids, text_of
from r1lite.rollout.build import Started
from r1lite.supervised.sft.encode import _after
from r1lite.supervised.sft.formats import Example
from r1lite.tasks import prompts
from verifiers import rows

BLOCKS = {  # by template: (what a right and well-formed completion is, what it writes of the reply)
    "opens": (R1_DISTILL, "so {a}</think><answer>{a}</answer>", "<think>"),
    "closes": (QWEN3_CLOSED, "<answer>{a}</answer>", "<think></think>"),
    "neither": (CHATML, "<think>so {a}</think><answer>{a}</answer>", ""),
}


class Shared(ScriptedEngine):
    """Says what the test wants in the place of the trainer's own model, with that model's log-probabilities."""

    shares_weights, runs_aside, model = True, False, None

    def _completion(self, prompt, seed, sampling):
        made = super()._completion(prompt, seed, sampling)
        ids = torch.tensor([[*prompt, *made.token_ids]])
        with torch.inference_mode():
            logits = self.model(ids).logits[0, len(prompt) - 1 : -1]
        logprobs = logits.log_softmax(-1).gather(-1, ids[0, len(prompt) :, None]).squeeze(-1)
        return dataclasses.replace(made, logprobs=tuple(logprobs.tolist()))


SCRIPT = {}  # what the engine says, by the test that runs


def start_scripted(request):
    """Puts the sum that a problem asks for into the completion."""

    def script(prompt, seed, version):
        a, b = re.findall(r"(\d+)\+(\d+)\?", request.tokenizer.decode(prompt))[-1]
        return SCRIPT["completion"].replace("{a}", str(int(a) + int(b)))

    engine = Shared(request.tokenizer, script)
    engine.model = request.model
    return Started(engine, "scripted", "1", name="scripted")


@pytest.fixture(autouse=True)
def _scripted(monkeypatch):
    spec = EngineSpec(start=f"{__name__}:start_scripted", shares_weights=True)
    monkeypatch.setitem(engines.BUILTIN, "scripted", spec)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A tiny model a template, as folders."""
    folder = tmp_path_factory.mktemp("templates")
    return {name: save_model(folder / name, make_tokenizer(row[0])) for name, row in BLOCKS.items()}


def rows_of(path):
    return [row for _, row in rows.rows(path)]


def common(model, sums_path, out):
    argv = ["--model", str(model), "--engine", "scripted", "--template", "chat", "--task", "gsm8k", "--device", "cpu"]
    argv += ["--source", str(sums_path), "--max-completion-tokens", "64", "--max-prompt-tokens", "400", "--quiet"]
    return [*argv, "--threads", "1", "--no-report", "--out", str(out)]


SMALL_EVAL = ["--eval-problems", "4", "--eval-sample-problems", "2", "--eval-samples", "2"]


@pytest.mark.parametrize("name", BLOCKS)
def test_an_evaluation_judges_what_the_template_began(name, models, sums_path, tmp_path):
    _, completion, _ = BLOCKS[name]
    SCRIPT["completion"] = completion
    assert main(["eval", *common(models[name], sums_path, tmp_path / "run"), *SMALL_EVAL]) == 0
    found = json.loads((tmp_path / "run" / "summary.json").read_text())["tasks"]["gsm8k"]
    assert (found["pass_at_1"], found["format_rate"]) == (1.0, 1.0)


def test_an_answer_within_reasoning_that_the_template_opened_does_not_count(models, sums_path, tmp_path):
    """The completion never closes what the prompt opened, so there is no answer after the reasoning."""
    SCRIPT["completion"] = "so the answer is {a}"
    for name, right in (("opens", 0.0), ("neither", 1.0)):
        assert main(["eval", *common(models[name], sums_path, tmp_path / name), *SMALL_EVAL]) == 0
        found = json.loads((tmp_path / name / "summary.json").read_text())["tasks"]["gsm8k"]
        assert found["pass_at_1"] == right


def test_a_second_think_is_not_paid(models, sums_path, tmp_path):
    SCRIPT["completion"] = "<think>so {a}</think><answer>{a}</answer>"
    assert main(["eval", *common(models["opens"], sums_path, tmp_path / "run"), *SMALL_EVAL]) == 0
    found = json.loads((tmp_path / "run" / "summary.json").read_text())["tasks"]["gsm8k"]
    assert (found["pass_at_1"], found["format_rate"]) == (1.0, 0.0)


@pytest.mark.parametrize("stage", ["grpo", "ppo"])
def test_training_pays_by_it_says_so_and_replays(stage, models, sums_path, tmp_path, capsys):
    SCRIPT["completion"] = BLOCKS["opens"][1]
    argv = [stage, *common(models["opens"], sums_path, tmp_path / "run"), *SMALL_EVAL, "--steps", "1"]
    argv += ["--prompts-per-step", "2", *(["--group-size", "2"] if stage == "grpo" else [])]
    argv.remove("--quiet")
    assert main(argv) == 0
    assert "chat template opens <think> itself" in " ".join(capsys.readouterr().out.split())
    ((_, path),) = rows.step_files(tmp_path / "run")
    found = rows_of(path)
    assert {row["reward"] for row in found} == {1.1}
    assert all(row["prompt"].endswith("<think>\n") and row["prefill"] == "<think>" for row in found)
    row = found[0]
    (span,) = [v["span"] for v in row["verdicts"] if v["verifier"] == "math"]
    assert row["completion"][slice(*span)] == row["gold"].split()[-1]  # the tag before it is not counted
    command = [sys.executable, "-m", "verifiers", "replay", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_set_is_curated_by_it_from_samples_and_from_its_own_rows(models, sums_path, tmp_path):
    SCRIPT["completion"] = BLOCKS["opens"][1]
    filters = ["--filters", "correct", "format", "--no-difficulty-window", "--dedup", "none"]
    argv = ["reject", *common(models["opens"], sums_path, tmp_path / "a"), *filters, "--samples", "2"]
    assert main([*argv, "--max-problems", "3"]) == 0
    found = rows_of(tmp_path / "a" / "train.jsonl")
    assert len(found) == 6
    assert all(row["prefill"] == "<think>" and "<think>" not in row["completion"] for row in found)
    again = ["reject", "--rollouts", str(tmp_path / "a"), *filters, "--no-report", "--quiet", "--workers", "1"]
    assert main([*again, "--out", str(tmp_path / "b")]) == 0
    assert len((tmp_path / "b" / "train.jsonl").read_text().splitlines()) == 6


@pytest.mark.parametrize(
    ("prompt", "example", "said"),
    [
        ("q<think>\n", Example("<think>\nr</think>4", question="q"), "r</think>4"),
        ("q<think>\n", Example("r</think>4", question="q", prefill="<think>"), "r</think>4"),
        ("q:", Example("r</think>4", question="q", prefill="<think>"), "<think>r</think>4"),
        ("q:", Example("<think>r</think>4", question="q"), "<think>r</think>4"),
        ("q<think>\n\n</think>\n\n", Example("4", question="q", prefill="<think></think>"), "4"),
    ],
)
def test_fine_tuning_opens_the_reasoning_once(prompt, example, said):
    assert _after(prompt, example) == said


def test_a_questions_own_end_opens_nothing(tiny_tokenizer):
    assert prompts.prefill("short", "{question}", tiny_tokenizer) == ""
    assert prompts.prefill("r1_zero", "{question}", tiny_tokenizer) == ""
    assert prompts.prefill("{question} <think>", "{question}", tiny_tokenizer) == "<think>"
    assert prompts.prefill("{question} Write <think> r </think>:", "{question}", tiny_tokenizer) == ""


@pytest.mark.parametrize("template", [GEMMA, SILENT])
def test_a_system_message_that_is_refused_stands_in_the_users_turn(template):
    tokenizer = make_tokenizer(template)
    asked = prompts.render("chat", "2+2?", tokenizer)
    assert f"{prompts.CHAT_INSTRUCTION}\n\n2+2?" in asked
    assert asked.count("2+2?") == 1


@pytest.mark.parametrize("told", ["Add.", "I"])  # in the question, and in the template
def test_a_system_message_that_occurs_elsewhere_is_not_taken_for_kept(told):
    talk = [{"role": "system", "content": told}, {"role": "user", "content": "Add. 2+2?"}]
    assert f"[INST] {told}\n\nAdd. 2+2? [/INST]" in prompts.render_messages(talk, make_tokenizer(SILENT))
    assert "[INST] Add. 2+2? [/INST]" in prompts.render_messages(
        [{"role": "system", "content": ""}, talk[1]], make_tokenizer(SILENT)
    )


def test_a_template_that_takes_it_keeps_it():
    asked = prompts.render("chat", "2+2?", make_tokenizer(CHATML))
    assert asked.startswith(f"<|im_start|>system\n{prompts.CHAT_INSTRUCTION}<|im_end|>\n<|im_start|>user\n2+2?")


def test_another_failure_of_a_template_is_told():
    tokenizer = make_tokenizer("{{ raise_exception('no tools today') }}")
    with pytest.raises(UserError, match="no tools today; try --template r1_zero"):
        prompts.render("chat", "2+2?", tokenizer)


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("end", ["<eos>", *ENDS[:3]])
def test_a_turns_end_ends_a_completion_and_is_no_part_of_its_text(end, special, tiny_model):
    """Special or not, and whether or not the generation config has it."""
    tokenizer = make_tokenizer(special_ends=special)
    ends = eos_ids(tiny_model, tokenizer)
    number = tokenizer.convert_tokens_to_ids(end)
    assert number in ends
    ids = tokenizer("<answer>4</answer>")["input_ids"]
    assert text_of(tokenizer, [*ids, number], ends) == text_of(tokenizer, ids, ends) == "<answer>4</answer>"


def test_the_generation_configs_list_counts(tiny_model):
    tokenizer = make_tokenizer(special_ends=False)
    own = tokenizer.convert_tokens_to_ids("</s>")
    assert own not in eos_ids(tiny_model, tokenizer)
    tiny_model.generation_config.eos_token_id = [2, own]
    assert own in eos_ids(tiny_model, tokenizer)


@pytest.mark.quick
@pytest.mark.parametrize("single", ["<bos> $A", "<bos> $A <eos>", "$A <eos>", "$A"])
def test_a_prompt_begins_once_and_does_not_end(single):
    """Whatever the tokenizer adds, and whether or not the text holds it already."""
    tokenizer = make_tokenizer(CHATML)
    ends = [("<bos>", 1), ("<eos>", 2)]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=single, special_tokens=ends)
    plain = tokenizer("a", add_special_tokens=False)["input_ids"]
    adds = [1] * ("<bos>" in single)
    assert prompts.encode(["a", "<bos>a", ""], "{question}", tokenizer) == [[*adds, *plain], [1, *plain], adds]
    assert prompts.encode(["a", "<bos>a"], "chat", tokenizer) == [plain, [1, *plain]]


@pytest.mark.quick
def test_a_tokenizer_whose_first_token_is_also_its_last():
    tokenizer = make_tokenizer(CHATML)
    tokenizer.eos_token = "<bos>"
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)])
    assert prompts.encode([""], "{question}", tokenizer) == [[1]]


@pytest.mark.parametrize("template", ["hello", "{% for m in messages %}{{ m.role }}{% endfor %}"])
def test_a_template_that_leaves_out_the_question_is_refused(template):
    with pytest.raises(UserError, match="leaves out the question"):
        prompts.render("chat", "What is 2 + 3?", make_tokenizer(template))


def test_a_template_may_change_a_question():
    shouting = "{% for m in messages %}{{ m.content.replace('two', '2') }}{% endfor %}"
    assert "What is 2 + 3?" in prompts.render("chat", "What is two + 3?", make_tokenizer(shouting))


def test_a_failure_without_a_word_names_its_kind(monkeypatch):
    tokenizer = make_tokenizer(CHATML)

    def fails(*messages, **settings):
        raise MemoryError

    monkeypatch.setattr(tokenizer, "apply_chat_template", fails)
    with pytest.raises(UserError, match="chat template fails: MemoryError"):
        prompts.render("chat", "What is 2 + 3?", tokenizer)
