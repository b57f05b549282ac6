"""``python -m tests.scale.farm ADDRESS WORKERS FOLDER``: so many of Dask's own workers in one process, each a thread that waits, until it is ended.

They speak to the scheduler as any worker does. What a worker does for itself alone is switched off or made rare: profiles, watching its memory.
"""

import asyncio
import sys
from pathlib import Path

import dask
import distributed

from tests.scale import work

TOGETHER = 20  # workers that start at a time
ALONE = {  # nothing of it reaches a scheduler, but for numbers in heartbeats, which are as long as ever
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.admin.tick.interval": "10s",
}


async def run_workers(address: str, n: int, folder: str) -> None:
    """Start them, some at a time, and stay until the scheduler goes away. What items need is imported and compiled by then."""
    work.Work(seconds=0, spread=0, features=1).state(0)
    turn = asyncio.Semaphore(TOGETHER)

    async def start(number: int) -> distributed.Worker:
        async with turn:
            return await distributed.Worker(
                address, name=f"w{number}", nthreads=1, memory_limit=0, host="127.0.0.1", dashboard=False, local_directory=str(Path(folder) / "space")
            )

    workers = await asyncio.gather(*(start(k) for k in range(n)))
    await asyncio.gather(*(worker.finished() for worker in workers))


if __name__ == "__main__":
    with dask.config.set(ALONE):
        asyncio.run(run_workers(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
