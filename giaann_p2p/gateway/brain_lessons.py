"""Teaches a brain texts, one at a time, in a thread; a lesson ends when its client leaves.

The parser is used by one thread at a time: after each chunk, prompts that wait for it have a turn.
"""

import asyncio
import threading
import time

from giaann_p2p.client.plain import trained_json
from giaann_p2p.gateway.backend import Learned, Progress, Teaching
from giaann_p2p.gateway.daemon_pool import DaemonPool
from giaann_p2p.gateway.failures import Busy
from giaann_p2p.solo.brain import Brain
from giaann_p2p.solo.reports import Trained

_EVERY = 0.25
"""Seconds between two reports of progress."""
_TURN = 0.002
"""Seconds after a chunk in which a prompt that waits for the parser can take it."""


class Lessons:
    """Teaches a brain."""

    def __init__(self, brain: Brain, parsing: threading.Lock) -> None:
        self._brain, self._parsing = brain, parsing
        self._lesson: asyncio.Future[Trained] | None = None
        self._stop = threading.Event()
        """Makes the newest lesson stop at its next chunk; each lesson has an event of its own,
        because the stream of an earlier one may be closed while the next is under way."""
        self._thread = DaemonPool(1, "giaann-lesson")

    async def learn(self, name: str, text: str) -> Teaching:
        """Learn a text; yield its progress, and at the end the report."""
        if self._lesson is not None and not self._lesson.done():
            raise Busy("another text is being learned; send this one again later")
        far = [Progress(name=name, done=0, of=None, share=0.0, rate=0.0)]
        stop = self._stop = threading.Event()
        lesson = self._lesson = asyncio.get_running_loop().run_in_executor(
            self._thread, self._learned, name, text, far, stop
        )
        try:
            while not lesson.done():
                yield far[0]
                await asyncio.wait([lesson], timeout=_EVERY)
            yield Learned(report=trained_json(lesson.result()))
        finally:
            stop.set()

    async def end(self, within: float) -> bool:
        """End the lesson, if there is one; return whether that took no longer than `within`.

        Its chunks so far are kept.
        """
        self._stop.set()
        return await asyncio.to_thread(self._thread.end, within)

    def _learned(self, name: str, text: str, far: list[Progress], stop: threading.Event) -> Trained:
        def note(report: Trained, share: float) -> None:
            seconds = max(time.monotonic() - began, 0.001)
            done = report.chunks_known + report.chunks
            rate = report.sentences / seconds
            far[0] = Progress(name=name, done=done, of=None, share=share, rate=rate)
            self._parsing.release()
            time.sleep(_TURN)
            self._parsing.acquire()

        began = time.monotonic()
        if not any(map(str.isspace, text)):
            text += "\n"  # a word alone would be looked up as a file's name
        with self._parsing:
            (report,) = self._brain.train(text, name=name, progress=note, should_stop=stop.is_set)
        return report
