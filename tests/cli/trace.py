"""A timeline in Chrome's trace format, for simulate.sh and profile.sh.

  trace.py TRACE [MICROSECONDS]

Every event has what its kind needs, every line a name; the boxes of a line do
not lie above each other; an arrow begins where a box ends and ends where one
begins. With MICROSECONDS the last box ends then.
"""

import json
import sys


def near(one, other):
    return abs(one - other) <= 1e-6 * max(abs(one), abs(other)) + 1e-3


def main(path, wanted=None):
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    assert trace["displayTimeUnit"] == "ms"
    lines, names, arrows = {}, {}, {}
    for event in trace["traceEvents"]:
        place = event["pid"], event.get("tid", 0)
        kind = event["ph"]
        if kind == "M":
            assert event["name"] in ("process_name", "thread_name"), event
            assert event["args"]["name"]
            names[event["name"], event["pid"],
                  event.get("tid") if event["name"] == "thread_name"
                  else None] = True
        elif kind == "X":
            assert event["name"] and event["ts"] >= 0 and event["dur"] >= 0
            assert event.get("args", {}).get("bytes", 1) > 0
            lines.setdefault(place, []).append(
                (event["ts"], event["ts"] + event["dur"]))
        else:
            assert kind in "sf", event
            arrows.setdefault(event["id"], {})[kind] = event
    assert lines, "nothing runs"
    for (process, thread), boxes in lines.items():
        assert ("process_name", process, None) in names
        assert ("thread_name", process, thread) in names
        for (_, end), (begin, _) in zip(boxes, boxes[1:]):
            assert begin >= end - 1e-3, (process, thread, begin, end)
    for arrow in arrows.values():
        begin, end = arrow["s"], arrow["f"]
        assert begin["ts"] <= end["ts"] + 1e-3 and begin["tid"] != end["tid"]
        assert any(near(box[1], begin["ts"])
                   for box in lines[begin["pid"], begin["tid"]])
        assert any(near(box[0], end["ts"])
                   for box in lines[end["pid"], end["tid"]])
    if wanted is not None:
        end = max(box[1] for boxes in lines.values() for box in boxes)
        assert near(end, float(wanted)), (end, wanted)
    print(len(lines), "lines,", len(arrows), "arrows")


main(*sys.argv[1:])
