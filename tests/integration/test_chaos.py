"""Whatever goes wrong: no device twice, no reservation without pod, no bound pod without claims, nobody forgotten."""

from __future__ import annotations

import pytest

from tests.integration.chaos import Battle, Chaos
from tests.integration.world import World

SEEDS = 20
QUICK_SEEDS = 1

SITUATIONS = {
    "calm": Chaos(),
    "failing calls": Chaos(failure_rate=0.1),
    "components killed": Chaos(restarts=0.1),
    "devices shrink": Chaos(devices_change=True, nodes_come_and_go=True),
    "two schedulers": Chaos(schedulers=("default-scheduler", "other-scheduler")),
    "two schedulers of one name": Chaos(schedulers=("default-scheduler", "default-scheduler")),
    "everything": Chaos(
        failure_rate=0.1,
        restarts=0.05,
        schedulers=("default-scheduler", "other-scheduler", "default-scheduler"),
        devices_change=True,
        nodes_come_and_go=True,
    ),
}

CASES = [
    pytest.param(situation, seed, marks=() if seed < QUICK_SEEDS else pytest.mark.slow, id=f"{situation}-{seed}")
    for situation in SITUATIONS
    for seed in range(SEEDS)
]


@pytest.mark.parametrize(("situation", "seed"), CASES)
async def test_the_cluster_stays_sound_and_settles(situation: str, seed: int) -> None:
    battle = Battle(await World.make(), SITUATIONS[situation], seed)
    assert await battle.fight() == []
    assert len(battle.bound) >= 10  # it was worth the fight
