"""Merges several streams into one, each item with the number of its stream."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

_Item = TypeVar("_Item")
_AHEAD = 16
"""Items that may wait for the reader; then the streams wait, too."""


async def merged(
    streams: Sequence[AsyncGenerator[_Item, None]],
) -> AsyncGenerator[tuple[int, _Item], None]:
    """Yield the items of all streams as they come; an error of one ends all."""
    if len(streams) == 1:  # the usual case needs no task
        async with aclosing(streams[0]) as only:
            async for item in only:
                yield 0, item
        return
    queue: asyncio.Queue[tuple[int, _Item] | BaseException | None] = asyncio.Queue(_AHEAD)

    async def read(number: int, stream: AsyncGenerator[_Item, None]) -> None:
        try:
            async with aclosing(stream):
                async for item in stream:
                    await queue.put((number, item))
        except Exception as error:  # noqa: BLE001  (the reader gets it)
            await queue.put(error)
        else:
            await queue.put(None)

    tasks = [asyncio.ensure_future(read(n, stream)) for n, stream in enumerate(streams)]
    try:
        left = len(tasks)
        while left:
            found = await queue.get()
            if isinstance(found, BaseException):
                raise found
            if found is None:
                left -= 1
            else:
                yield found
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def gathered(works: Iterable[Coroutine[Any, Any, _Item]]) -> list[_Item]:
    """Run coroutines at once, and return their results; an error cancels the rest and is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
