"""Where a target's time goes: call sites, rooflines, ranked bottlenecks."""
