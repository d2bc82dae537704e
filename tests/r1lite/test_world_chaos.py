"""Faults drawn at random: a run ends by one named error, leaves nothing running, and is continued to the same end."""

import pytest
from chaos_for_tests import AT_ALL, COMMANDS, FAULTS, Chaos, at_once, drawn

ROUNDS = range(20)
LANES = 4  # a round waits most of its time, for a deadline or for its other rank


@pytest.fixture(scope="module")
def rounds(request, tmp_path_factory, forks):
    """The rounds of all tests that were asked for, begun at once."""
    asked = [item.callspec.params["seed"] for item in request.session.items if "rounds" in item.fixturenames]
    with at_once(LANES) as lanes:
        yield Chaos(tmp_path_factory.mktemp("chaos"), forks).rounds(asked, lanes)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*ROUNDS[:2], *(pytest.param(n, marks=pytest.mark.exhaustive) for n in ROUNDS[2:])])
def test_faults_drawn_at_random(seed, rounds):
    what, wrong = rounds[seed].result()
    assert wrong is None, f"{what}\n{wrong}"


def test_all_faults_are_drawn_on_either_rank():
    found = [drawn(seed) for seed in ROUNDS]
    assert {fault for _, fault, _, _ in found} == set(FAULTS)
    assert {name for name, _, _, _ in found} == set(COMMANDS)
    of_one = {(fault, rank) for _, fault, rank, _ in found if fault not in AT_ALL}
    assert of_one == {(fault, rank) for fault in set(FAULTS) - set(AT_ALL) for rank in (0, 1)} - {("full_disk", 1)}
    assert ("grpo in parts", "out_of_memory") in {one[:2] for one in found}  # the only ones that end by it
