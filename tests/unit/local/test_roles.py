"""Command lines, and what swarm is possible."""

from pathlib import Path

import msgspec
import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.local.roles import Spec, arguments_of, role_named

DATA, STATUS = Path("/s/data"), Path("/s/status.json")
COMMON = "--data-dir /s/data --listen /ip4/127.0.0.1/tcp/{} --status-file /s/status.json"


@pytest.mark.parametrize(
    ("role", "link", "line"),
    [
        (
            "bootstrap",
            "",
            "--new bees --open --shards 8 --replicas 3 --redundancy 1 --profile subwords --chunk 64"
            f" {COMMON.format(0)}",
        ),
        ("bootstrap", "L", f"--join L {COMMON.format(0)}"),
        (
            "storage",
            "L",
            f"--join L {COMMON.format(0)} --metrics-port 0 --patience 4 --memory-only",
        ),
        ("compute", "L", f"--join L {COMMON.format(0)} --metrics-port 0"),
        ("gateway", "L", "--join L --listen 127.0.0.1:0 --status-file /s/status.json"),
    ],
)
def test_each_role_has_its_command_line(role: str, link: str, line: str) -> None:
    spec = Spec(name="bees", shards=8, replicas=3, arguments={"storage": ["--memory-only"]})
    assert arguments_of(role, spec, link=link, data=DATA, status_file=STATUS) == line.split()


def test_column_segments_are_passed_on_to_the_founder_of_a_swarm_of_subwords() -> None:
    with_some = arguments_of(
        "bootstrap", Spec(column_segments=4), link="", data=DATA, status_file=STATUS
    )
    assert with_some[with_some.index("--column-segments") + 1] == "4"
    usual = arguments_of("bootstrap", Spec(), link="", data=DATA, status_file=STATUS)
    assert "--column-segments" not in usual
    with pytest.raises(UsageError, match="an option of the profile subwords"):
        Spec(profile="words", column_segments=4)


@pytest.mark.parametrize(
    ("spec", "line", "seconds"),
    [
        (Spec(cut="day=16,sea=4"), ["--cut", "day=16,sea=4"], 60),
        (Spec(cut_like="/a text"), ["--cut-like", "/a text"], 960),
    ],
)
def test_columns_are_cut_by_the_founder_who_may_learn_a_sample_for_that(
    spec: Spec, line: list[str], seconds: float
) -> None:
    founder = arguments_of("bootstrap", spec, link="", data=DATA, status_file=STATUS)
    at = founder.index(line[0])
    assert founder[at : at + 2] == line
    assert spec.link_within == seconds
    other = arguments_of("bootstrap", spec, link="L", data=DATA, status_file=STATUS)
    usual = arguments_of("bootstrap", Spec(), link="", data=DATA, status_file=STATUS)
    assert not {"--cut", "--cut-like"} & {*other, *usual}


def test_only_the_founder_raises_the_rules_by_itself() -> None:
    spec = Spec(reshard="auto")
    founder = arguments_of("bootstrap", spec, link="", data=DATA, status_file=STATUS)
    assert founder[founder.index("--reshard") + 1] == "auto"
    other = arguments_of("bootstrap", spec, link="L", data=DATA, status_file=STATUS)
    usual = arguments_of("bootstrap", Spec(), link="", data=DATA, status_file=STATUS)
    assert "--reshard" not in other + usual


def test_a_capacity_is_passed_on_and_whether_it_may_be_too_much() -> None:
    for spec, told in (
        (Spec(), []),
        (Spec(capacity="2GiB"), ["--capacity", "2GiB"]),
        (Spec(capacity="9TiB", force=True), ["--capacity", "9TiB", "--force"]),
    ):
        found = arguments_of("storage", spec, link="L", data=DATA, status_file=STATUS)
        assert found[found.index("--patience") + 2 :] == told


def test_a_gateway_comes_back_where_it_was_also_in_a_swarm_of_an_earlier_release() -> None:
    spec = Spec(entries={"storage": "peers.storage.daemon:main"}, gateways=1, storages=0)
    found = arguments_of(
        "gateway", spec, link="L", data=DATA, status_file=STATUS, listen="127.0.0.1:8440"
    )
    assert found[2:4] == ["--listen", "127.0.0.1:8440"]
    assert spec.entry("gateway") == "giaann_p2p.cli.serve:main"
    assert "giaann_p2p.cli.serve" in spec.modules


def test_who_comes_back_has_its_ports() -> None:
    found = arguments_of(
        "storage",
        Spec(),
        link="L",
        data=DATA,
        status_file=STATUS,
        listen="/ip4/127.0.0.1/tcp/41",
        metrics_port=42,
    )
    assert found == f"--join L {COMMON.format(41)} --metrics-port 42 --patience 4".split()


def test_what_is_imported_is_what_the_roles_call() -> None:
    assert Spec().modules == ["bootstrap.daemon", "peers.storage.daemon"]
    assert Spec(computes=1).modules == [
        "bootstrap.daemon",
        "peers.storage.daemon",
        "peers.compute.daemon",
    ]
    same = dict.fromkeys(("bootstrap", "storage", "compute"), "one:main")
    assert Spec(entries=same, computes=1).modules == ["one"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bootstraps": 0}, "at least one bootstrap peer"),
        ({"storages": -1}, "-1 storage peers are not possible"),
        ({"computes": 501}, "501 compute peers are not possible"),
        ({"cut": "day=2", "cut_like": "text"}, "give --cut to name the columns, or --cut-like"),
        ({"cut": "day"}, "'day' is no column with its number of parts: give WORD=PARTS"),
        ({"entries": {"storage": "peers.storage"}}, "module:function, not 'peers.storage'"),
    ],
)
def test_a_swarm_that_cannot_be_is_said(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        msgspec.structs.replace(Spec(), **changes)


def test_a_role_that_is_not_there_is_said() -> None:
    assert role_named("storage") == "storage"
    with pytest.raises(
        UsageError, match=r"no role 'storege': did you mean storage\?; give bootstrap"
    ):
        role_named("storege")
    with pytest.raises(UsageError, match="no role 'x'; give bootstrap or storage or compute"):
        role_named("x")
