"""What a result tells of itself: the account, how surely it is known, and what its figures are worth."""

from __future__ import annotations

import re

import pytest

from breaks._break import RIGHT, Break, find, load_all
from breaks.lab.cli_run import command_for
from breaks.lab.doors import open_door
from breaks.lab.scene import cassette_path, play
from cassettes.stand_in import Settings
from cassettes.stand_in.profiles import profiles
from loop import desk
from tests.lab.program import Here

MANUAL = "claude-haiku-4-5"
EVERY = ("claude-haiku-5-5", "claude-opus-5-5", MANUAL)


@pytest.mark.parametrize("account", ["enforced", "legacy"])
@pytest.mark.parametrize("model", EVERY)
@pytest.mark.parametrize("variant", [(), ("--variant", "reloaded")])
def test_the_account_is_explained_where_it_matters(
    variant: tuple[str, ...], model: str, account: str, here: Here
) -> None:
    """Only where newer thinking was kept behind a changed past, on a model that leaves it to the account."""
    options = ["--model", model, "--account", account]
    seen = here.observed("rewritten-turn", *variant, *options, via="cassette")[1]
    matters = bool(variant) and model != MANUAL

    assert account == seen["account"]
    assert matters == any("account matters" in note for note in seen["notes"])
    if matters and account == "legacy":
        assert ["E17"] == [one["rule"] for one in seen["silent"]]
        assert "only recorded" in seen["silent"][0]["text"]
        assert seen["confidence"] == seen["silent"][0]["confidence"]


@pytest.mark.parametrize("brk", load_all(), ids=lambda brk: brk.label)
def test_every_account_that_is_offered_has_its_recording(brk: Break) -> None:
    """Whatever kinds of account the command line offers for a break, each model's recording is there."""
    command = command_for(brk.name, brk.title)
    kinds = next(param.type.choices for param in command.params if param.name == "account")

    assert brk.accounts[0] == "enforced"
    for model in EVERY:
        for kind in kinds:
            assert cassette_path(brk, model, kind).is_file()


@pytest.mark.parametrize("model", [profile.id for profile in profiles().values() if profile.served])
def test_a_scene_thinks_as_its_model_takes_it(model: str) -> None:
    """The first request of a scene is accepted on every model that is served, and thinking is switched on."""
    brk = find("missing-result")
    with open_door("stand-in", None, Settings()) as door:
        trace = play(brk, RIGHT, door, model, wait=0)

    assert 200 == trace.exchanges[0].status
    assert "thinking" in trace.exchanges[0].request


def test_a_sentence_that_may_not_be_the_first_is_held_less_surely(here: Here) -> None:
    """A list that ends in an open call breaks two rules, and which is named first is not known."""
    seen = here.observed("orphaned-result", "--variant", "in-memory", via="cassette")[1]

    assert ("C6", "low") == (seen["rule"], seen["confidence"])
    assert any("which of the two is named first" in note for note in seen["notes"])


def test_the_index_says_how_surely_it_is_known(here: Here) -> None:
    """Where the two ways of counting differ the document says low, as the screen does; else nothing."""
    seen = here.observed("orphaned-result", via="cassette")[1]
    alike = here.observed("missing-result", via="cassette")[1]

    assert {"joined": [0, 1], "sent": [1, 0], "confidence": "low"} == seen["index"]
    assert alike["index"]["joined"] == alike["index"]["sent"]
    assert alike["index"]["confidence"] is None


@pytest.mark.parametrize("name", ["missing-result", "split-results"])
def test_figures_carry_their_labels_whatever_the_verdict(name: str, here: Here) -> None:
    """Dispatch times stand beside the desk's own waits, and counts beside their being approximate."""
    seen = here.observed(name, via="cassette")[1]
    waits = next(note for note in seen["notes"] if "wait on purpose" in note)

    assert seen["figures"]["dispatch"]
    assert sorted(set(desk.WAIT_MS.values())) == [int(n) for n in re.findall(r"\d+", waits)]
    assert any("approximate" in note for note in seen["notes"])
