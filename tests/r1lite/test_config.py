"""Configuration: layers, messages, and what is kept of it."""

import re

import pytest
import yaml

from r1lite.bundled import bundled
from r1lite.cli import COMMANDS
from r1lite.config import ColdStartConfig, EvalConfig, GRPOConfig, SFTConfig, dump, load, loading, read_recipe
from r1lite.errors import UserError
from r1lite.nano.config import PretrainConfig
from r1lite.training.machine import RECIPES, recipe_for

pytestmark = pytest.mark.quick


def test_layers(tmp_path):
    (tmp_path / "base.yaml").write_text("lr: 1e-5\nsteps: 7\ntemplate: short\n")
    (tmp_path / "mine.yaml").write_text("base: base.yaml\nsteps: 9\n")
    config = load(GRPOConfig, [str(tmp_path / "mine.yaml"), "--group-size", "4"])
    assert (config.lr, config.steps, config.template, config.group_size) == (1e-5, 9, "short", 4)
    assert config.model_fields_set == {"lr", "steps", "template", "group_size"}


def test_a_checkpoint_keeps_the_source_for_its_own_task_only(tmp_path):
    (tmp_path / "checkpoints" / "step-000001").mkdir(parents=True)
    (tmp_path / "environment.json").write_text('{"stage": "grpo"}')
    (tmp_path / "config.yaml").write_text("task: mine:TASK\nsource: generated\ntemplate: short\n")
    for task, kept in (("mine:TASK", {"source": "generated", "template": "short"}), ("gsm8k", {"template": "short"})):
        assert recipe_for(str(tmp_path / "checkpoints" / "step-000001"), GRPOConfig, task)[1] == kept


def test_what_is_kept_runs_again(tmp_path):
    config = load(GRPOConfig, ["--lr", "0.001", "--model", "nano", "--out", "somewhere", "--verbose"])
    (tmp_path / "config.yaml").write_text(dump(config))
    again = load(GRPOConfig, [str(tmp_path / "config.yaml")])
    assert again.model_dump(exclude={"out", "verbose"}) == config.model_dump(exclude={"out", "verbose"})
    assert again.out is None


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--group-size", "1"], "--group-size must be >= 2, got 1: GRPO compares the completions"),
        (["--lr", "-1"], "--lr must be > 0.0, got -1.0"),
        (["--lr", "nan"], "--lr: Input should be a finite number"),
        (["--minibatches", "17"], "a group is never split"),
        (["--quiet", "--verbose"], "contradict"),
        (["nowhere.yaml"], "nowhere.yaml: no such recipe"),
    ],
)
def test_mistakes(argv, message):
    with pytest.raises(UserError, match=message.split("(")[0].replace("[", r"\[")):
        load(GRPOConfig, argv)


@pytest.mark.parametrize("name", ["gsm8k-nano", "gsm8k-nano.yaml", "recipes/gsm8k-nano.yaml"])
def test_recipes_that_ship_are_found_by_name_from_anywhere(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named = load(GRPOConfig, [name, "--steps", "3"])  # also on a GPU, where another model is the default
    assert (named.prompts_per_step, named.model, named.task) == (16, "nano", "gsm8k")
    assert load(GRPOConfig, ["gsm8k-qwen2.5-0.5b"]).model == "Qwen/Qwen2.5-0.5B"  # a name with dots
    search = load(GRPOConfig, ["countdown-nano"])
    assert (search.model, search.task) == ("nano-countdown", "countdown_small")
    (tmp_path / "gsm8k-nano.yaml").write_text("prompts_per_step: 5\n")  # a file of the user's comes first
    assert load(GRPOConfig, ["gsm8k-nano.yaml"]).prompts_per_step == 5


@pytest.mark.parametrize(
    ("name", "hint"), [("gsm8k-nan", "did you mean 'gsm8k-nano'?"), ("zzz", "bundled recipes: add_carry")]
)
def test_a_recipe_that_is_not_there_names_those_that_are(name, hint):
    with pytest.raises(UserError) as caught:
        load(GRPOConfig, [name])
    assert hint in str(caught.value)


def test_all_mistakes_at_once():
    with pytest.raises(UserError) as caught:
        load(GRPOConfig, ["--group-size", "1", "--steps", "0"])
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lrr: 1", "unknown key 'lrr' of r1lite grpo; did you mean 'lr'"),
        ("lerning_rate: 1", "did you mean 'lr'"),
        ("num_generations: 8", "did you mean 'group_size'"),
        ("zzz: 1", "the nearest are "),
        ("- lr", "a recipe is a map"),
        ("lr: [", "can't be read"),
        ("base: mine.yaml", "cycle"),
        ("base: other.yaml", "other.yaml: no such recipe"),
        ("steps: many", "mine.yaml: steps: Input should be a valid integer"),
        ("group_size: 1", "mine.yaml: group_size must be >= 2"),
    ],
)
def test_recipe_mistakes(tmp_path, text, message):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        load(GRPOConfig, [str(path)])


@pytest.mark.parametrize("flag", ["--grup-size", "--no-such-flag"])
def test_unknown_flags_exit_with_2(flag, capsys):
    with pytest.raises(SystemExit) as caught:
        load(GRPOConfig, [flag, "3"], prog="r1lite grpo")
    assert caught.value.code == 2
    shown = capsys.readouterr()
    assert flag in shown.out + shown.err


@pytest.mark.parametrize("config_class", [configuration for configuration, *_ in COMMANDS.values()])
def test_help_is_written_for_every_field(config_class):
    assert [name for name, field in config_class.model_fields.items() if not field.description] == []


@pytest.mark.parametrize("name", RECIPES.values())
def test_shipped_recipes_are_valid(name):
    GRPOConfig.model_validate(read_recipe(bundled(name), GRPOConfig))
    assert yaml.safe_load(bundled(name).read_text())


def test_a_flag_for_several_values_is_repeated():
    config = load(
        GRPOConfig,
        ["--engine-url", "http://a:1", "--steps", "3", "--engine-url=http://b:2", "--engine", "vllm-server"],
    )
    assert (config.engine_url, config.steps) == (("http://a:1", "http://b:2"), 3)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--engine", "vllm-server"], "needs --engine-url"),
        (["--engine", "vllm-server", "--engine-url", "http://a:1,http://b:2"], "repeat --engine-url for each server"),
        (["--engine", "vllm", "--engine-url", "http://a:1"], "is for --engine vllm-server"),
    ],
)
def test_engines_and_addresses_belong_together(argv, message):
    with pytest.raises(UserError, match=message):
        load(GRPOConfig, argv)


@pytest.mark.parametrize("config_class", [GRPOConfig, EvalConfig, SFTConfig])
def test_help_shows_everyday_options_first_and_all_on_request(config_class, capsys):
    flags = [f"--{name.replace('_', '-')}" for name in loading.flag_annotations(config_class)]
    for asked in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as ended:
            load(config_class, ["--steps", "3", asked], prog="r1lite x")
        assert ended.value.code == 0
        text = capsys.readouterr().out
        shown = [flag for flag in flags if re.search(rf"^\W+ {flag}[ ,]", text, re.MULTILINE)]
        if asked == "--help":
            assert 5 <= len(shown) <= 24
            assert f"--help-all shows the other {len(flags) - len(shown)} options" in " ".join(text.split())
        else:
            assert shown == flags


@pytest.mark.parametrize("config_class", [GRPOConfig, ColdStartConfig, PretrainConfig])
def test_help_shows_defaults_that_are_lists(config_class, capsys):
    with pytest.raises(SystemExit):
        load(config_class, ["--help-all"], prog="r1lite x")
    assert "Undefined" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "argv",
    [
        ["--lr=3e-3", "--no-report", "--seed", "-1", "--engine_url", "a", "--engine-url", "b"],
        ["--steps", "3", "rest"],
        ["--steps"],
        ["--steps", "x"],
        ["--report", "yes"],
        ["--steps", "3", "--stepz", "4"],
        ["--steps", "3", "-x"],
        [],
    ],
)
def test_flags_are_read_as_if_all_were_described(argv, monkeypatch, capsys):
    found = []
    for of_flags in (loading._of_flags, lambda argv, annotations: annotations):
        monkeypatch.setattr(loading, "_of_flags", of_flags)
        try:
            read = loading._read_flags(GRPOConfig, argv, "r1lite grpo")
        except SystemExit as stopped:
            read = stopped.code
        found.append((read, capsys.readouterr()))
    assert found[0] == found[1]
