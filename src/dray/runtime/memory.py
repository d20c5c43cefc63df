"""How often Python looks for reference cycles.

A control plane holds many long-lived objects (JSON, parsed claims) and makes hardly any cycles, but the default
thresholds make the collector walk all of them again and again: with a few thousand pods that is 40 % of all CPU time.
Servers call `calm_garbage_collector` once at their start.
"""

from __future__ import annotations

import gc


def calm_garbage_collector() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
