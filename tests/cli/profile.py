"""What `profile --json` prints, for profile.sh (docs/PROFILE_JSON.md).

  profile.py facts PROFILE         sums agree, and each launch is of one kernel
  profile.py places PROFILE        modules and lines are sums over launches
  profile.py passes PROFILE PASS... these passes have launches, and no other
  profile.py flame PICTURE PROFILE the boxes at the bottom are the launches
  profile.py page PAGE PROFILE     the report has the same facts
  profile.py same PROFILE OTHER    both are of the same kernels
  profile.py emulated PROFILE      all launches were timed, by the emulator
"""

import json
import re
import sys
import xml.etree.ElementTree as xml


def near(one, other):
    assert abs(one - other) <= 1e-9 + 1e-6 * abs(other), (one, other)


def spread(one):
    assert 0 <= one["low"] <= one["median"] <= one["high"], one


def facts(profile):
    assert profile["kind"] == "profile" and profile["version"] == 2
    spread(profile["seconds"])
    spread(profile["unwatched_seconds"])
    near(profile["overhead"],
         profile["seconds"]["median"] / profile["unwatched_seconds"]["median"]
         - 1)
    launches = profile["launches"]
    seen = []
    total = roof = 0
    before = float("inf")
    for kernel in profile["kernels"]:
        spread(kernel["seconds"])
        seconds = sum(launches[at]["seconds"]["median"]
                      for at in kernel["launches"])
        assert seconds <= before, "kernels are not by their times"
        before = seconds
        total += seconds
        roof += kernel["roof_seconds"]
        seen += kernel["launches"]
        near(kernel["roof_seconds"],
             max(kernel["flops"] / profile["roofs"]["flops_f32"],
                 kernel["bytes"] / profile["roofs"]["bytes"]))
        assert kernel["predicted_seconds"] > 0
        near(kernel["bytes_per_second"],
             kernel["bytes"] / kernel["seconds"]["median"])
        waited = 0
        for at in kernel["launches"]:
            assert launches[at]["kernel"] == kernel["kernel"]
            assert len(launches[at]["threads"]) == profile["threads"]
            waited += sum(max(0, launches[at]["seconds"]["median"] - one)
                          for one in launches[at]["threads"])
        near(kernel["waited_seconds"], waited)
    assert sorted(seen) == list(range(len(launches)))
    near(profile["kernels_seconds"], total)
    near(profile["roof_seconds"], roof)
    counters = profile["counters"]
    names = {"cycles", "instructions", "cache_misses", "page_faults",
             "nanoseconds"}
    assert set(counters["counted"]) | set(counters["missing"]) == names
    assert not set(counters["counted"]) & set(counters["missing"])
    assert all(counters["missing"].values()), "no reason"
    for kernel in profile["kernels"]:
        assert list(kernel.get("counts", {})) == counters["counted"]
    if "nanoseconds" in counters["counted"]:
        assert sum(kernel["counts"]["nanoseconds"]
                   for kernel in profile["kernels"]) > 0


def places(profile):
    for table, key in (("modules", "path"), ("lines", "where")):
        for one in profile[table]:
            mine = [launch for launch in profile["launches"]
                    if launch.get(key, "") == one[key]]
            for field, kind in (("forward_seconds", "forward"),
                                ("recompute_seconds", "recompute"),
                                ("gradient_seconds", "backward"),
                                ("update_seconds", "update")):
                near(one[field],
                     sum(launch["seconds"]["median"] for launch in mine
                         if launch["pass"] == kind))
    assert len(profile["lines"]) > 3
    assert any(line["gradient_seconds"] > 0 for line in profile["lines"])
    whole = sum(launch["seconds"]["median"] for launch in profile["launches"])
    for one in profile["passes"]:
        mine = [launch["seconds"]["median"] for launch in profile["launches"]
                if launch["pass"] == one["pass"]]
        assert len(mine) == one["launches"], one
        near(one["seconds"], sum(mine))
        near(one["share"], sum(mine) / whole)
    near(1, sum(one["share"] for one in profile["passes"]))
    for launch in profile["launches"]:
        assert launch["pass"] == "backward" or "gradient_of" not in launch


def passes(profile, *wanted):
    """Its launches are of these passes, in this order."""
    assert [one["pass"] for one in profile["passes"]] == list(wanted), (
        profile["passes"])


def flame(picture, profile):
    boxes = {}
    for box in xml.parse(picture).getroot().iter(
            "{http://www.w3.org/2000/svg}rect"):
        for title in box:
            boxes.setdefault(title.text.rsplit(": ", 1)[0], 0)
            boxes[title.text.rsplit(": ", 1)[0]] += float(box.get("width"))
    total = sum(launch["seconds"]["median"] for launch in profile["launches"])
    for kernel in profile["kernels"]:
        width = 1200 / total * sum(
            profile["launches"][at]["seconds"]["median"]
            for at in kernel["launches"])
        if width > 10:
            assert abs(boxes[kernel["kernel"]] - width) < 0.01 * width + 1
    assert abs(boxes["step"] - 1200) < 1 and "backward" in boxes


def page(text, profile):
    block = re.search(r'id="facts"[^>]*>(.*?)</script>', text, re.DOTALL)[1]
    facts = json.loads(block)
    assert facts["measured"] == profile and facts["planned"]


def same(profile, other):
    assert ([launch["kernel"] for launch in profile["launches"]] ==
            [launch["kernel"] for launch in other["launches"]])
    assert "places" in profile and "modules" not in profile


def emulated(profile):
    assert profile["emulated"] is True and profile["roofs"] is None
    assert profile["kernels_seconds"] > 0
    assert all(launch["seconds"]["median"] > 0
               for launch in profile["launches"]), "one was not timed"


def main():
    command, *files = sys.argv[1:]
    arguments = [open(file).read() if file.endswith(".html") else
                 json.load(open(file)) if file.endswith(".json") else
                 file for file in files]
    globals()[command](*arguments)


main()
