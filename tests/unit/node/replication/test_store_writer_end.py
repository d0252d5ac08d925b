"""The end of the store's writer does not wait for a whole snapshot."""

import asyncio
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from giaann_p2p.errors import StoreError
from giaann_p2p.store import journal
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.state import Captured, StoreState
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.wire.actions import Hold
from tests.unit.node.replication.test_store_writer import ALL, LAYOUT, SPEC, Desk, taught


def test_a_snapshot_in_progress_is_aborted_after_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("giaann_p2p.store.state._PART", 0)  # one shard a part
    capture, captured = StoreState.capture, list[list[int]]()
    may_go_on = threading.Event()
    disk = FakeDisk()

    async def main() -> None:
        loop, began = asyncio.get_running_loop(), asyncio.Event()

        def slowly(state: StoreState, shards: Iterable[int]) -> Captured:
            captured.append(list(shards))
            loop.call_soon_threadsafe(began.set)
            assert may_go_on.wait(5)
            return capture(state, captured[-1])

        with Store.open(disk, SPEC, LAYOUT) as store, ThreadPoolExecutor(2) as executor:
            desk = Desk(store, write=executor)
            desk.store_writer.do(Hold(ALL))
            desk.apply(1)
            await desk.store_writer.idle()
            monkeypatch.setattr(StoreState, "capture", slowly)
            monkeypatch.setattr(journal, "_LEAST_LOG", 1)
            desk.store_writer._work.set()  # a snapshot is due, and nothing else
            await began.wait()
            desk.task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # the end has begun, and waits for the part
            assert not desk.task.done()
            may_go_on.set()
            await desk.end()
            with pytest.raises(StoreError, match="the store is about to be closed"):
                store.snapshot()
            monkeypatch.setattr(StoreState, "capture", capture)

    asyncio.run(main())
    assert len(ALL) > 1 == len(captured)
    assert not [name for name in disk.names() if name.startswith("snapshot")]
    assert dict(Store.open(disk).digests()) == taught([1])
