"""Settings by paper, their place among the layers, and options that contradict each other."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from r1lite.cli import main
from r1lite.config import GRPOConfig, PPOConfig, dump, load
from r1lite.config.presets import PRESETS
from r1lite.errors import UserError
from r1lite.training.resolve import resolve_config

ROOT = Path(__file__).resolve().parents[2]
STAGES = {"grpo": GRPOConfig, "ppo": PPOConfig}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_sets_fields_that_exist_and_agree(name):
    preset = PRESETS[name]
    config = load(STAGES[preset.stage], ["--preset", name])
    assert {field: getattr(config, field) for field in preset.settings} == preset.values
    assert all(source.strip() for _, source in preset.settings.values())
    assert "arXiv:" in preset.paper


def test_layers_from_below(tmp_path):
    """Defaults, preset, recipe, flags."""
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("preset: dapo\nclip_high: 0.5\nlr: 1.0e-3\n")
    config = load(GRPOConfig, [str(recipe), "--lr", "2e-3"])
    assert (config.eval_every, config.dynamic_sampling, config.clip_high, config.lr) == (0, True, 0.5, 2e-3)
    assert config.model_fields_set == {"preset", "clip_high", "lr"}  # what the preset sets was not given


def test_a_bundled_models_recipe_lies_above_a_preset():
    config, notes = resolve_config(load(GRPOConfig, ["--preset", "r1_zero", "--model", "nano", "--kl-coef", "0.01"]))
    nano = yaml.safe_load((ROOT / "recipes" / "gsm8k-nano.yaml").read_text())
    assert (config.group_size, config.template) == (nano["group_size"], nano["template"])
    assert f"; lr is the recipe's {nano['lr']:g} / sqrt(16 updates per rollout)" in notes["settings"]
    assert config.lr == nano["lr"] / 4  # over the square root of the rollout's 16 updates
    assert (config.kl_coef, config.reference_refresh_steps, config.clip_high) == (0.01, 25, 10.0)
    # As many updates of a rollout are off policy as in the paper; its size is nano's.
    assert (config.minibatches, config.prompts_per_step) == (16, nano["prompts_per_step"])


def test_the_kept_configuration_is_the_same_again(tmp_path):
    config = load(GRPOConfig, ["--preset", "high_entropy", "--group-size", "8"])
    (tmp_path / "config.yaml").write_text(dump(config))
    assert load(GRPOConfig, [str(tmp_path / "config.yaml")]) == config


def test_a_run_names_its_preset(tiny_path, sums_path, tmp_path, capsys):
    flags = [
        *("--model", str(tiny_path), "--source", str(sums_path), "--reward", "format", "--template", "short"),
        *("--steps", "1", "--group-size", "2", "--prompts-per-step", "2", "--max-completion-tokens", "4"),
        *("--minibatches", "1"),
        *("--eval-problems", "2", "--eval-samples", "1", "--eval-sample-problems", "1", "--threads", "1"),
    ]
    said = "preset    dr_grpo (arXiv:2503.20783), overridden by other settings; r1lite show-preset dr_grpo lists it"
    again = ["--resume", "--trust", "--out", str(tmp_path / "with")]
    with_one, resumed, without = (
        [*flags, "--preset", "dr_grpo", "--out", str(tmp_path / "with")],
        again,
        [*flags, "--out", str(tmp_path / "without")],
    )
    for argv in (with_one, resumed):
        assert main(["grpo", *argv]) == 0
        assert capsys.readouterr().out.splitlines().count(said) == 1
    assert main(["grpo", *without]) == 0
    assert "\npreset " not in capsys.readouterr().out


def test_show_preset(capsys):
    assert main(["show-preset", "dapo"]) == 0
    shown = capsys.readouterr().out
    assert "arXiv:2503.14476" in shown
    for line in ("clip_high              0.28        sec. 3.1", "dynamic_sampling       true        eq. 11"):
        assert line in shown
    assert main(["show-preset"]) == 0
    assert set(PRESETS) <= set(capsys.readouterr().out.split())
    assert main(["show-preset", "dapoo"]) == 2
    assert "did you mean 'dapo'" in capsys.readouterr().err


def test_show_preset_loads_no_torch():
    code = "import sys, r1lite.cli as c; c.main(['show-preset', 'dapo']); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--preset dapoo", "did you mean 'dapo'"),
        ("--preset ppo", "is for r1lite ppo, not for r1lite grpo"),
        ("--loss reinforce --updates-per-rollout 2", "--updates-per-rollout 2 .* use --loss clip"),
        ("--loss reinforce --minibatches 2", "--minibatches 2 .* use --loss clip"),
        ("--preset dapo --loss reinforce", "--minibatches 16"),
        ("--clip-low 1.5", "a ratio is never below 0"),
        ("--loss cispo --clip-dual 3", "--clip-dual belongs to --loss clip"),
        ("--loss sapo --clip-delta 3", "--clip-delta belongs to --loss clip"),
        ("--clip-delta 1.1", "a lower cap would cut ratios that the clip allows"),
        ("--loss sapo --ratio-level sequence", "--ratio-level sequence is for --loss clip"),
        ("--loss gmpo", "needs --aggregation sequence_mean, not token_mean"),
        ("--loss gmpo --aggregation sequence_mean --advantage reinforce_pp", "one advantage per completion"),
        ("--loss gmpo --aggregation sequence_mean --top-entropy-share 0.2", "one value per completion"),
        ("--kl-coef 0.1 --kl-in reward --kl-estimator k3+", "changes only the gradient"),
        ("--kl-target 0.1", "whose initial value must be above 0"),
        ("--reference-refresh-steps 400", "with --kl-coef 0 there is none"),
        ("--reference-decay 0.9", "with --kl-coef 0 there is none"),
        ("--kl-coef 0.1 --reference-decay 0.9 --reference-refresh-steps 4", "choose one"),
        ("--advantage maxrl --kl-coef 0.1 --kl-in reward", "maxrl needs rewards >= 0"),
        ("--advantage gdpo --kl-coef 0.1 --kl-in reward", "gdpo normalises the terms"),
        (
            "--engine vllm-server --engine-url http://x --max-staleness 1 --dynamic-sampling",
            "before the last step is scored",
        ),
        ("--max-staleness 3 --importance off", "learns from tokens of earlier weights"),
        ("--minibatches 17", "a group is never split"),
        ("--loss clipp", "did you mean 'clip'.*module:function"),
        ("--loss my-module:f", "--loss 'my-module:f' is unknown"),
        ("--advantage grop", "did you mean 'grpo'"),
        ("--loss a_star --aggregation sequence_mean", "--advantage a_star belong together"),
        ("--loss dppo --ratio-level completion", "--ratio-level completion is for --loss clip"),
        ("--advantage pass_at_k --advantage-k 9", "more than --group-size 8"),
        ("--advantage-k 2", "no effect without --advantage pass_at_k"),
        ("--dro-beta 1", "no effect without --loss dro"),
        ("--normalize-advantages --advantage reinforce_pp", "one advantage per completion"),
        ("--kl-coef 0.1 --kl-in reward --kl-estimator full", "full is for --kl-in loss"),
        ("--kl-coef 0.1 --kl-estimator k2 --kl-cap 10", "--kl-cap has no effect without"),
        ("--stop-kl-to reference --kl-coef 0.1", "needs --stop-kl"),
        ("--retire-solved 0.9 --curriculum", "choose one"),
        ("--ratio-to engine --importance token", "would correct twice"),
        (
            "--loss reinforce --ratio-to engine",
            "--ratio-to has no effect .* --loss reinforce .* use --importance token",
        ),
        ("--ratio-to engine --importance-high 4", "--importance-high has no effect without --ratio-to old"),
        ("--kl-coef 0.1 --kl-estimator k1", "k1 has no effect with --kl-in loss"),
        ("--loss cispo --clip-high 4", "--clip-high has no effect without --loss clip, clip_cov, gmpo, dppo"),
        ("--loss r1lite.rl.losses:reinforce --ratio-level sequence", "--ratio-level has no effect without a --loss of"),
        ("--whiten-advantages --gamma 0.9", "--gamma has no effect without --advantage reinforce_pp"),
        ("--advantage rloo --advantage-eps 1", "--advantage-eps has no effect without --advantage grpo"),
        ("--advantage maxrl --advantage-ddof 0", "--advantage-ddof has no effect without --advantage grpo"),
        ("--kl-horizon 9", "--kl-horizon has no effect without --kl-target"),
        ("--max-refills 2", "--max-refills has no effect without --dynamic-sampling"),
        ("--min-lr-ratio 0.5", "--min-lr-ratio has no effect without --lr-schedule linear or cosine"),
        ("--lora-alpha 8", "--lora-alpha has no effect without --lora-rank"),
        ("--lora-targets q_proj", "--lora-targets has no effect without --lora-rank"),
    ],
)
def test_contradictions_are_refused_with_the_reason(flags, message):
    with pytest.raises(UserError, match=message):
        load(GRPOConfig, flags.split())


def test_a_part_of_a_preset_that_is_replaced_leaves_the_rest_without_effect():
    assert load(GRPOConfig, "--preset dapo --loss cispo".split()).clip_high == 0.28
    with pytest.raises(UserError, match="--clip-high has no effect"):
        load(GRPOConfig, "--preset dapo --loss cispo --clip-high 0.3".split())


def test_a_run_that_began_with_settings_without_effect_is_continued():
    load(GRPOConfig, "--resume --loss cispo --clip-high 4".split())


def test_a_contradiction_names_what_the_preset_sets():
    with pytest.raises(UserError) as caught:
        load(GRPOConfig, "--preset dapo --prompts-per-step 4".split())
    assert str(caught.value).endswith(
        "a group is never split; --preset dapo sets --minibatches 16: set it yourself as well, or leave out the preset"
    )
    with pytest.raises(UserError, match=r"never split$"):
        load(GRPOConfig, "--preset dapo --prompts-per-step 4 --minibatches 5".split())


def test_all_contradictions_are_named_at_once(capsys):
    assert main(["grpo", "--kl-target", "0.1", "--loss", "gmpo"]) == 2
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 2
    assert all(line.startswith("error: --") for line in shown)


def test_a_critic_is_no_option_of_grpo(tmp_path, capsys):
    (tmp_path / "mine.yaml").write_text("critic: own\n")
    assert main(["grpo", str(tmp_path / "mine.yaml")]) == 2
    assert "unknown key 'critic'" in capsys.readouterr().err
    (tmp_path / "mine.yaml").write_text("advantage: gae\n")
    assert main(["grpo", str(tmp_path / "mine.yaml")]) == 2
    assert "--advantage gae needs a critic: r1lite ppo has one" in capsys.readouterr().err
