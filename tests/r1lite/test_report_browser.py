"""The report in a real browser: headless Chromium opens the file from disk, without a network, and uses it."""

import json
import os
import re
import shutil
import time
from threading import Thread

import pytest
from report_for_tests import HOSTILE, made_pipeline, made_run, row_of, write_rollouts

from r1lite.report import Options, write_report
from r1lite.report.live import make_server

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
TIMEOUT_MS = 60_000  # a loaded machine


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*options, "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """open(path) -> a page of which every request but for the file itself, and every error, is noted."""
    contexts = []

    def open_(address, **options):
        context = browser.new_context(offline=address.startswith("file:"), **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(address)
        page.wait_for_selector('html[data-ready="all"]')
        return page

    yield open_
    for context in contexts:
        context.close()


def until(page, condition):
    """Waits; the page's policy forbids what Playwright's own function of this kind does, to evaluate a text."""
    end = time.monotonic() + TIMEOUT_MS / 1000
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(50)


def shown(page):
    until(page, "document.querySelectorAll('.group, .empty').length > 0")
    return page.locator(".group")


def test_a_run_is_looked_through(tmp_path, opened):
    run = made_run(tmp_path / "run", steps=20)
    page = opened(f"file://{write_report([run], tmp_path / 'report.html')}")
    assert page.title() == "run - r1lite"
    assert page.locator("h1").inner_text() == "run"
    assert "25.0 % → 90.0 % (85.0-93.0)" in page.locator("#overview").inner_text()
    assert page.locator("#curves .panel").count() >= 8
    assert "0 in every step: Unscored." in page.locator("#curves").inner_text()
    groups = shown(page)
    assert "step 20" in groups.first.inner_text()

    picture = page.locator("#curves .panel svg").first  # a click on a step opens it
    box = picture.bounding_box()
    picture.click(position={"x": box["width"] * 0.55, "y": box["height"] / 2})
    until(page, "!document.querySelector('.group').innerText.startsWith('step 20')")
    number = int(groups.first.inner_text().split()[1])
    assert 7 <= number <= 14

    page.get_by_label("which").select_option("no")
    until(page, "document.querySelectorAll('.answer.yes').length === 0")
    page.get_by_label("which").select_option("")
    page.get_by_role("button", name="all").click()
    page.get_by_label("search texts").fill("p7-2")
    until(page, "document.querySelectorAll('.group').length === 1")
    assert "p7-2" in groups.first.inner_text()
    page.get_by_label("search texts").fill("no such text")
    page.wait_for_selector(".empty")
    page.get_by_label("search texts").fill("")
    page.get_by_label("which").select_option("")
    shown(page)

    page.locator("button", has_text="the same problem in 20 places").first.click()
    until(page, "document.querySelectorAll('.group').length === 12")
    assert {text.split()[2] for text in groups.all_inner_texts()} == {"p0"}
    page.locator("button", has_text="show 8 more of 8").click()
    until(page, "document.querySelectorAll('.group').length === 20")

    span = page.locator(".answer .span").first
    assert span.inner_text() in ("42", "7")
    page.locator("#reasons button", has_text="different").click()
    until(page, "document.getElementById('reason').value === 'different'")
    until(page, "document.querySelectorAll('.answer.yes').length === 0")
    assert page.said == []
    assert [url for url in page.asked if not url.startswith("file:")] == []


def test_odd_values_spoil_no_other_part_of_the_page(tmp_path, opened):
    run = made_run(tmp_path / "run", steps=3)
    for name in ("eval_before", "eval_after"):
        path = run / f"{name}.json"
        odd = {"problems": {"toString": 1}, "pass_at_1_interval": ["x", 0.5], "mean_tokens": [[{"valueOf": 3}]]}
        path.write_text(json.dumps({**json.loads(path.read_text()), **odd, "examples": {"completions": 3}}))
    page = opened(f"file://{write_report([run], tmp_path / 'report.html')}")
    assert page.locator("#curves .panel").count() >= 8
    assert "step 3" in shown(page).first.inner_text()
    overview = page.locator("#overview").inner_text()
    assert '{"toString":1} problems' in overview
    assert "This part can't be shown: the run's files hold unexpected values" in overview
    assert page.said == []


def test_the_keyboard(tmp_path, opened):
    run = made_run(tmp_path / "run", steps=3)
    page = opened(f"file://{write_report([run], tmp_path / 'report.html')}", color_scheme="light")
    groups = shown(page)
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert "here" in groups.nth(1).get_attribute("class")
    page.keyboard.press("k")
    assert "here" in groups.nth(0).get_attribute("class")
    page.keyboard.press("[")
    until(page, "document.querySelector('.group').innerText.startsWith('step 2')")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.press("Escape")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    assert page.said == []


def test_colours_of_tokens(tmp_path, opened):
    from r1lite.nano import nano_path

    run = made_run(tmp_path / "run", steps=1, rollouts=False)
    vocabulary = json.loads((nano_path() / "tokenizer.json").read_text())
    ids = {one["content"]: one["id"] for one in vocabulary["added_tokens"]}
    text = "<think> + </think><answer> - </answer>"
    pieces = ["<think>", " + ", "</think>", "<answer>", " - ", "</answer>"]
    row = row_of(
        1, "p", 0, text, right=True, token_ids=[ids[p] for p in pieces], logprobs=[0.0, -3.0, 0.0, 0.0, -0.1, 0]
    )
    recorded = {
        "trainer_logprobs": [0.0, -2.5, 0.0, 0.0, -0.1, 0],
        "token_entropy": [0.1, 1.234, 0, 0, 0, 0],
        "token_advantages": [0.7, -0.35, 0.7, 0.7, 0.7, 0.7],
    }
    write_rollouts(run, 1, [row])
    write_rollouts(run, 2, [{**row, "step": 2, **recorded}])
    page = opened(f"file://{write_report([run], tmp_path / 'report.html')}")
    shown(page)
    page.locator("#tint").select_option("lp")
    token = page.locator('.answer [title^="probability 5.0 %"]')
    assert token.inner_text() == " + "
    assert token.evaluate("it => it.style.background") != ""
    page.locator("#tint").select_option("adv")
    assert page.locator('.answer [title*="advantage 0.7"]').count() > 0
    assert page.locator('.answer [title="advantage -0.35"]').inner_text() == " + "
    page.locator("#tint").select_option("te")
    assert page.locator('.answer [title="entropy 1.23 nats"]').inner_text() == " + "
    page.locator("#tint").select_option("mis")
    assert page.locator('.answer [title="trainer \u2212 engine 0.50 nats"]').inner_text() == " + "
    assert "--record-tokens" not in page.locator("#said").inner_text()
    page.keyboard.press("[")
    until(page, "document.querySelector('.group').innerText.startsWith('step 1')")
    assert "this colour needs a run with --record-tokens" in page.locator("#said").inner_text()
    assert page.said == []


def test_hostile_texts_are_shown(tmp_path, opened):
    line = "x" * 1_000_000
    run = made_run(tmp_path / "run", steps=2, hostile=[*HOSTILE, line])
    page = opened(f"file://{write_report([run], tmp_path / 'report.html')}")
    page.get_by_label("search texts").fill("hostile")
    until(page, "document.querySelectorAll('.group').length === 1")
    texts = page.locator(".answer .text").all_inner_texts()
    assert "</script><script>document.title='owned'</script>" in texts
    assert "<svg onload=document.title='owned'>" in texts
    assert any("\\u202egnp.exe\\u202c" in text and "\\u200bzero\\ufeffwidth" in text for text in texts)
    assert any("\\u001b[2J\\u001b[31mred\\u0007" in text for text in texts)
    assert any("half a character \\ud83d and a whole one \U0001f600" in text for text in texts)
    assert any("invisible \\u{e0041}\\u{e0042} and empty \\u3164\\u115f" in text for text in texts)
    assert all("\u202e" not in text and "\x1b" not in text for text in texts)
    assert page.title() == "run - r1lite"
    page.locator("button", has_text="show 996,000 more characters").click()
    until(page, "[...document.querySelectorAll('.answer .text')].some(it => it.textContent.length === 1000000)")
    assert page.locator("#app script, #app img, #app iframe").count() == 0
    assert page.said == []


def test_several_runs_and_a_phone(tmp_path, opened):
    runs = [made_run(tmp_path / f"seed{seed}", seed=seed, steps=30) for seed in range(3)]
    out = write_report(
        [*runs, made_run(tmp_path / "other", config={"lr": 1.0}, finished=False)], tmp_path / "report.html"
    )
    page = opened(f"file://{out}", viewport={"width": 390, "height": 800}, color_scheme="dark")
    assert page.locator("#curves .panel").first.locator("polygon").count() == 1  # the seeds' band
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator(".legend button", has_text="other").click()
    page.locator("button", has_text="seeds as a band").click()
    assert page.locator("#curves .panel").first.locator("polygon").count() == 0
    page.get_by_label("run", exact=True).select_option("3")
    until(page, "document.querySelector('.group').innerText.startsWith('step 20')")
    assert page.said == []


def test_a_pipeline(tmp_path, opened):
    page = opened(f"file://{write_report([made_pipeline(tmp_path / 'pipeline')], tmp_path / 'report.html')}")
    assert "2 of 3 stages are finished" in page.locator("#overview").inner_text()
    assert page.locator("#overview .edge").count() == 2
    assert page.locator("#overview table").first.inner_text().splitlines()[1].startswith("<b>Zero")
    page.locator("#overview .node", has_text=re.compile("^zero")).click()
    until(page, "[...document.querySelectorAll('.legend button')].at(-1).ariaPressed === 'true'")
    assert page.locator("#overview > details").nth(1).get_attribute("open") is not None
    assert page.said == []


def test_everything_beside(tmp_path, opened):
    run = made_run(tmp_path / "run", steps=4)
    page = opened(f"file://{write_report([run], tmp_path / 'report.html', Options(everything=True))}")
    assert "step 4" in shown(page).first.inner_text()
    assert [url.rpartition("/")[2] for url in page.asked] == ["report.html", "c0-step-4.js"]
    assert page.said == []


def test_live(tmp_path, opened):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").write_text("task: gsm8k\n")
    server = make_server([run], 0, Options())
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        page = opened(f"http://127.0.0.1:{server.server_address[1]}/")
        assert page.locator("nav a").all_inner_texts() == ["Overview"]
        made_run(run, steps=4, finished=False)
        until(page, "document.querySelector('.group')")  # tabs that have something to show appear
        assert page.locator("nav a").all_inner_texts() == ["Overview", "Curves", "Reasons", "Completions"]
        assert "step 4" in shown(page).first.inner_text()
        assert "stopped" in page.locator("#overview").inner_text()
        made_run(run, steps=5, finished=True)
        until(page, "document.getElementById('overview').innerText.includes('finished')")
        until(page, "document.querySelector('.group').innerText.startsWith('step 5')")
        assert page.said == []
    finally:
        server.shutdown()
        server.server_close()
