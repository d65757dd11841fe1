from __future__ import annotations

import pytest

from agentforge.devices.null import detect_null, null_roofline
from agentforge.profiling.speed_of_light import (
    Work,
    amdahl_limit,
    at_ceilings,
    gain_of,
    least_time,
    speed_of_light,
    work_of,
    work_of_model,
)
from agentforge.schema import Bound, Profile
from tests.store import nouns

DEVICE, ROOFLINE = detect_null(), null_roofline()


@pytest.mark.parametrize(
    ("share", "time_s", "floor_s", "limit"),
    [(0.5, 1.0, 0.5, 4 / 3), (1.0, 2.0, 0.5, 4.0), (0.5, 1.0, 2.0, 1.0), (0.0, 0.0, 0.0, 1.0)],
)
def test_amdahl(share: float, time_s: float, floor_s: float, limit: float) -> None:
    assert amdahl_limit(share, time_s, floor_s) == pytest.approx(limit)


def test_what_bounds_a_call() -> None:
    assert speed_of_light(Work(1e9, 1e9), DEVICE, ROOFLINE).bound is Bound.MEMORY
    compute = speed_of_light(Work(1e9, 1e12), DEVICE, ROOFLINE)
    assert (compute.bound, compute.seconds) == (Bound.COMPUTE, 1e12 / ROOFLINE.peak_flops["float32"])
    tiny = speed_of_light(Work(4, 1), DEVICE, ROOFLINE)
    assert (tiny.bound, tiny.floor_s) == (Bound.OVERHEAD, ROOFLINE.call_overhead_s)


def _profile() -> Profile:
    """Of one bottleneck: 1 GB in 25 ms, called twice."""
    profile = nouns.profile()
    (bottleneck,) = profile.bottlenecks[:1]
    site = bottleneck.call_sites[0].model_copy(update={"bytes": 1e9, "flops": 0.0, "time_s": 0.025})
    workload = bottleneck.workloads[0].model_copy(update={"weight": 2.0})
    changed = bottleneck.model_copy(
        update={"call_sites": (site,), "workloads": (workload,), "time_s": 0.05, "share": 0.5}
    )
    return profile.model_copy(update={"bottlenecks": (changed,), "call_sites": (site,)})


def test_a_profile_at_higher_ceilings() -> None:
    slow = ROOFLINE.model_copy(update={"bandwidth": 5e10})
    (before,) = at_ceilings(_profile(), DEVICE, slow).bottlenecks
    assert (before.sol_s, before.gain_s) == pytest.approx((0.04, 0.0))
    profile = at_ceilings(_profile(), DEVICE, ROOFLINE)
    (after,) = profile.bottlenecks
    assert after.sol_s == 0.02
    assert after.gain_s == gain_of(0.05, 0.02) == pytest.approx(0.025)
    assert after.speedup_limit == amdahl_limit(0.5, 0.05, 0.02)
    assert after.call_sites[0].sol_s == profile.call_sites[0].sol_s == 0.01
    assert work_of(after.call_sites[0]) == Work(1e9, 0.0, "float32")
    assert at_ceilings(profile, DEVICE, ROOFLINE) == profile


def test_a_range_of_shapes_is_bounded_by_the_work_of_all_its_sizes() -> None:
    """The first call site is the smallest size: 4 bytes, then 1 GB in three calls."""
    profile = _profile()
    (bottleneck,) = profile.bottlenecks
    (large,) = bottleneck.call_sites
    sizes = (large.model_copy(update={"bytes": 4.0}), large.model_copy(update={"calls": 3}))
    workloads = [w.model_copy(update={"weight": n}) for w in bottleneck.workloads for n in (1.0, 3.0)]
    changed = bottleneck.model_copy(update={"call_sites": sizes, "workloads": tuple(workloads)})
    (found,) = at_ceilings(
        profile.model_copy(update={"bottlenecks": (changed,)}), DEVICE, ROOFLINE
    ).bottlenecks
    small = speed_of_light(Work(4, 0), DEVICE, ROOFLINE)
    floor_s = small.floor_s + 0.03
    assert found.sol_s == pytest.approx(small.seconds + 0.03)
    assert found.gain_s == pytest.approx(gain_of(0.05, floor_s))
    assert found.speedup_limit == pytest.approx(amdahl_limit(0.5, 0.05, floor_s))
    assert found.bound is Bound.MEMORY


def test_limits_after_a_promotion_are_those_of_the_time_that_is_left() -> None:
    profile = at_ceilings(_profile(), DEVICE, ROOFLINE).model_copy(update={"total_s": 0.1})
    now = profile.with_solutions({profile.bottlenecks[0].definition.hash: 2.0})
    (left,) = now.bottlenecks
    assert now.total_s == pytest.approx(0.075)
    assert (left.time_s, left.share, left.gain_s) == pytest.approx((0.025, 1 / 3, 0.0))
    assert left.speedup_limit == pytest.approx(amdahl_limit(1 / 3, 0.025, 0.02))


def test_no_limit_promises_a_call_without_cost() -> None:
    tiny = _profile().call_sites[0].model_copy(update={"bytes": 4.0})
    profile = _profile()
    bottleneck = profile.bottlenecks[0].model_copy(update={"call_sites": (tiny,), "share": 1.0})
    profile = profile.model_copy(update={"bottlenecks": (bottleneck,)})
    (found,) = at_ceilings(profile, DEVICE, ROOFLINE).bottlenecks
    assert found.speedup_limit == pytest.approx(0.05 / (2 * ROOFLINE.call_overhead_s))


def test_what_computes_in_nobody_knows_what_has_the_highest_peak() -> None:
    """A whole reference, whose inputs may be token numbers: no honest kernel is below its speed of light."""
    site = _profile().call_sites[0].model_copy(update={"outputs": (), "bytes": 4.0, "flops": 1e12})
    highest = max(ROOFLINE.peak_flops.values())
    assert highest > ROOFLINE.peak_flops["float32"]
    assert speed_of_light(work_of(site), DEVICE, ROOFLINE).seconds == 1e12 / highest


def test_the_dtype_of_products_counts_if_their_result_has_another() -> None:
    profile = _profile()
    site = profile.call_sites[0].model_copy(update={"dtype": "bfloat16", "flops": 1e12, "bytes": 4.0})
    ceilings = ROOFLINE.model_copy(update={"peak_flops": {"float32": 1e11, "bfloat16": 8e11}})
    assert speed_of_light(work_of(site), DEVICE, ceilings).seconds == 1e12 / 8e11
    several = profile.model_copy(update={"call_sites": (site, site), "least_bytes": 4.0})
    assert least_time(several, DEVICE, ceilings) == 2e12 / 8e11


def test_the_work_of_a_model_is_that_of_its_only_region() -> None:
    profile = _profile()
    (site,) = profile.call_sites
    assert work_of_model(profile) == work_of(site)
    several = [(site, site), (), (site.model_copy(update={"unit": "layers.0"}),)]
    several += [(site.model_copy(update=changes),) for changes in ({"calls": 2}, {"bytes": 0.0})]
    for sites in several:
        assert work_of_model(profile.model_copy(update={"call_sites": sites})) is None


def test_the_least_time_of_listed_workloads_is_their_geometric_mean() -> None:
    profile = _profile()
    (site,) = profile.call_sites
    light, busy = (site.model_copy(update={"unit": f"@{n}", "flops": f}) for n, f in ((1, 0.0), (2, 1e13)))
    bytes_of = {"1": 5e8, "2": 5e8}
    several = profile.model_copy(update={"call_sites": (light, busy), "workload_bytes": bytes_of})
    each = 5e8 / ROOFLINE.bandwidth, 1e13 / ROOFLINE.peak_flops["float32"]
    assert least_time(several, DEVICE, ROOFLINE) == pytest.approx((each[0] * each[1]) ** 0.5)
    unknown = several.model_copy(update={"workload_bytes": {"1": 5e8, "2": 0.0}})
    assert least_time(unknown, DEVICE, ROOFLINE) is None


def test_the_least_time_of_several_regions_counts_what_crosses_the_models_border() -> None:
    profile = _profile()
    (site,) = profile.call_sites
    assert least_time(profile, DEVICE, ROOFLINE) == speed_of_light(work_of(site), DEVICE, ROOFLINE).seconds
    several = profile.model_copy(update={"call_sites": (site, site), "least_bytes": 5e8})
    assert least_time(several, DEVICE, ROOFLINE) == pytest.approx(5e8 / ROOFLINE.bandwidth)
    busy = site.model_copy(update={"flops": 1e12, "calls": 2})
    compute = several.model_copy(update={"call_sites": (site, busy)})
    assert least_time(compute, DEVICE, ROOFLINE) == pytest.approx(2e12 / ROOFLINE.peak_flops["float32"])
    in_parts = several.model_copy(update={"least_bytes": 0.0})
    assert least_time(in_parts, DEVICE, ROOFLINE) is None
