"""Work that Ctrl-C does not cut in two."""

import signal

import pytest

from giaann_p2p.store.undisturbed import undisturbed


def test_ctrl_c_takes_effect_at_the_end() -> None:
    done: list[str] = []

    def work() -> None:
        with undisturbed():
            signal.raise_signal(signal.SIGINT)
            done.append("all")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_within_another_section_it_takes_effect_at_the_end_of_the_outer_one() -> None:
    done: list[str] = []

    def work() -> None:
        with undisturbed():
            outer = signal.getsignal(signal.SIGINT)
            with undisturbed():
                assert signal.getsignal(signal.SIGINT) is outer
                signal.raise_signal(signal.SIGINT)
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_where_nobody_listens_nothing_is_held_back() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with undisturbed():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
