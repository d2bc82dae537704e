"""`python -m verifiers bench`: comparable figures for any verifier, on labelled cases."""

from __future__ import annotations

import argparse
from pathlib import Path

from verifiers.audit import bench
from verifiers.commands.shared import count_or_zero, import_from_here, need_folders, positive


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument(
        "verifier",
        nargs="+",
        help="math, my_pkg:fn, trl:NAME, verl:module:function, math-verify, or a formula; each runs in its own process",
    )
    parser.add_argument(
        "--cases",
        type=Path,
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="JSONL or Parquet of cases: gold, text, expected (true or false) and optionally prompt",
    )
    parser.add_argument(
        "--bundled",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="generated pairs and known hacks; default: only if --cases is not given",
    )
    parser.add_argument("--timeout", type=positive, default=10.0, metavar="S", help="deadline of one verdict (10)")
    parser.add_argument(
        "--show", type=count_or_zero, default=10, metavar="N", help="number of disagreements shown (10)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write figures and all disagreements as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table")


def run(options: argparse.Namespace) -> int:
    """Exit code 0: measured; 2: a verifier or a file can't be used."""
    import_from_here()
    cases = [case for path in options.cases for case in bench.read_cases(path)]
    own = bench.bundled() if options.bundled or (options.bundled is None and not options.cases) else []
    cases += own
    if not cases:
        files = ", ".join(map(str, options.cases))
        raise ValueError(
            f"{files} has no rows" if files else "there are no cases: give --cases FILE, or omit --no-bundled"
        )
    need_folders(options.json, options.markdown)
    targets = list(dict.fromkeys(options.verifier))
    figures = [bench.measure(target, cases, timeout_s=options.timeout) for target in targets]
    table = bench.as_markdown(figures, cases)
    print(table)
    if own:
        print(f"\n{len(own)} of the {len(cases)} cases ship with verifiers; `math` was developed with them")
    for one in figures:
        if one.unscored:
            reason = one.reason.removeprefix("VerifierError: ")
            print(
                f"\n{one.verifier} gave no verdict on {one.unscored} of {len(cases)} cases; on the first: {reason:.300}"
            )
    found = bench.disagreements(cases, figures)
    print(f"\n{len(found)} of {len(cases)} cases are not judged as expected by every verifier")
    for case in found[: options.show]:
        wrong = [name for name, paid in case["paid"].items() if paid is not case["expected"]]
        what = "right" if case["expected"] else "wrong"
        print(f"  {what}, misjudged by {', '.join(wrong)}: gold {case['gold']!r:.60}, {case['text']!r:.120}")
    if options.json:
        # The cases may hold lone surrogates, which no file can; JSON reads their escapes.
        options.json.write_text(bench.as_json(figures, cases), encoding="utf-8", errors="backslashreplace")
    if options.markdown:
        options.markdown.write_text(table + "\n", encoding="utf-8")
    return 0
