"""Whatever happens to peers, network and board: in the end all have learned the same.

TOWN_SEEDS=50 lets as many things happen; by default it is few.
"""

import asyncio
import os

import pytest

from tests.unit.node.helpers import Client, House, SlowLoop, Town, play

CHUNKS = 80
SEEDS = int(os.environ.get("TOWN_SEEDS", "2"))


class Chaos:
    """Does something bad every few seconds, and undoes it later; two peers at most are down."""

    def __init__(self, town: Town) -> None:
        self.town, self.chance = town, town.chance
        self.down: list[House] = []
        self.frozen: list[House] = []
        self.leaving: list[House] = []
        self.done: list[str] = []

    @property
    def up(self) -> list[House]:
        busy = {*self.down, *self.frozen, *self.leaving}
        return [house for house in self.town.alive if house not in busy]

    async def step(self) -> None:
        deeds = [self.die, self.come_back, self.freeze, self.thaw, self.lose, self.find]
        deeds += [self.reset, self.join, self.leave, self.rest]
        deed = self.chance.choice(deeds)
        if await deed():
            self.done.append(deed.__name__)

    async def die(self) -> bool:
        if len(self.up) < 4 or len(self.down) == 2:
            return False
        house = self.chance.choice(self.up)
        await house.die()
        self.down.append(house)
        return True

    async def come_back(self) -> bool:
        if not self.down:
            return False
        self.down.pop(0).come_back()
        return True

    async def freeze(self) -> bool:
        if len(self.up) < 4:
            return False
        self.frozen.append(self.chance.choice(self.up))
        self.town.freeze(self.frozen[-1])
        return True

    async def thaw(self) -> bool:
        if not self.frozen:
            return False
        self.town.freeze(self.frozen.pop(0), frozen=False)
        return True

    async def lose(self) -> bool:
        self.town.board.lose(*self.chance.sample(self.town.peers, 2))
        return True

    async def find(self) -> bool:
        self.town.board.lose(*self.town.peers, lost=False)
        return True

    async def reset(self) -> bool:
        one, other = self.chance.sample(self.town.peers, 2)
        self.town.network.reset(one, other)
        return True

    async def join(self) -> bool:
        if len(self.town.houses) >= 9:
            return False
        self.town.add()
        return True

    async def leave(self) -> bool:
        if len(self.up) < 5 or self.leaving:
            return False
        self.leaving.append(self.chance.choice(self.up))
        self.leaving[-1].node.leave()
        return True

    async def rest(self) -> bool:
        """Give it time."""
        await asyncio.sleep(20)
        return True

    async def end(self) -> None:
        while self.down:
            self.down.pop().come_back()
        while self.frozen:
            await self.thaw()
        await self.find()
        for house in self.leaving:
            await house.gone()
            assert house.error is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_in_the_end_all_have_learned_the_same(seed: int) -> None:
    async def story(town: Town) -> None:
        for _ in range(6):
            town.add()
        client = Client(town)
        await town.until(town.settled)
        pushing = asyncio.create_task(client.push_all(range(CHUNKS), at_once=2))
        chaos = Chaos(town)
        while not pushing.done() or len(chaos.done) < 40:
            await chaos.step()
            await asyncio.sleep(town.chance.uniform(0.1, 6))
            assert all(house.error is None for house in town.houses)
        await chaos.end()
        await pushing
        await town.until(lambda: town.holds_what(range(CHUNKS)), 300)
        # Until the last ones that joined have standing, others hold their shards beside them.
        await town.until(lambda: town.settled() and town.holds_what(range(CHUNKS)), 1200)

    play(story, seed=seed, loop=SlowLoop)
