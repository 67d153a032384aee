"""What a report is made of, for report.sh.

  report.py block PAGE FACTS     the page's block of JSON is FACTS; one script
                                 and one style, which the policy names; nothing
                                 refers to another file
  report.py shown DOM FACTS      the numbers on the page, as the browser has
                                 it, are those of FACTS
  report.py rows DOM             no table leaves a row out; prints how many rows
                                 the longest has
  report.py more PAGE            the page has the budget curve and gradients
  report.py code PAGE KIND...    it has code of these kinds, which is whole
  report.py passes FACTS         what the passes did is whole, without times
  report.py timeline PAGE JSON   its timeline is the one that was simulated
  report.py same PAGE OTHER      both pages have the same bytes but for times
  report.py planned FACTS        what the plan says is of the launches that the
                                 artifact has, and says where they are from
"""

import base64
import hashlib
import html.parser
import json
import re
import sys
import zlib


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.scripts, self.styles, self.data = [], [], {}
        self.policy, self.references, self.into = "", [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name in ("src", "href", "srcset", "action", "style"):
            if name in attributes:
                self.references.append((tag, name, attributes[name]))
        self.references += [(tag, name) for name in attributes if
                            name.startswith("on")]
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        if tag == "script":
            self.scripts.append([attributes.get("type", ""), ""])
            self.into = self.scripts[-1]
        elif tag == "style":
            self.styles.append(["", ""])
            self.into = self.styles[-1]
        elif tag == "data" and "id" in attributes:
            self.data[attributes["id"]] = attributes["value"]

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.into = None

    def handle_data(self, text):
        if self.into:
            self.into[1] += text


def digest(text):
    hashed = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(hashed).decode()}'"


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: expected {wanted!r} but got {got!r}"[:2000])


def without_times(text):
    """Without what the compilation took, which differs each time."""
    text = re.sub(r',"phase_seconds":\[[^\]]*\]', "", text)
    rows = re.search(r'"passes":\[.*?\]', text)
    if not rows:
        return text
    return text.replace(rows[0], re.sub(r',"seconds":[-+.e0-9]+', "", rows[0]))


def check_same(page, other):
    one, two = read(page), read(other)
    timed = without_times(one)
    expect("times on the page", '"phase_seconds"' in one and timed != one, True)
    expect("the other page", without_times(two) == timed, True)


def check_passes(facts):
    passes = json.loads(read(facts))["passes"]
    phases = list(dict.fromkeys(row["phase"] for row in passes))
    expect("phases", phases, ["functionalize", "joint", "optimize",
                              "partition", "plan", "lower"])
    expect("times", [row for row in passes if "seconds" in row], [])
    expect("passes that did not run",
           [row["pass"] for row in passes if row["runs"] < 1], [])
    expect("passes without a purpose",
           [row["pass"] for row in passes if not row["purpose"]], [])
    # What a pass on the whole module leaves is what the next one finds.
    for row, following in zip(passes, passes[1:]):
        if row["phase"] != "lower":
            expect(f"ops before {following['pass']}",
                   following["ops_before"], row["ops_after"])
    changes = {row["pass"]: row["ops_after"] - row["ops_before"]
               for row in passes if row["phase"] != "lower"}
    expect("differentiate adds ops", changes["differentiate"] > 0, True)
    expect("simplify removes ops", changes["simplify"] < 0, True)
    emitted = next(row for row in passes if row["pass"] == "emit-cpu-kernels")
    expect("kernels are counted", emitted["ops_after"] > emitted["ops_before"],
           True)


def check_block(page, facts):
    text = read(page)
    page = Page(text)
    expect("kinds of scripts", [kind for kind, _ in page.scripts],
           ["application/json", "module"])
    expect("styles", len(page.styles), 1)
    block, script = page.scripts[0][1], page.scripts[1][1]
    expect("what ends a script in the block",
           [part for part in ("<", ">", "&", "\u2028", "\u2029")
            if part in block], [])
    shown = json.loads(without_times(block))
    del shown["timeline"]
    shown.pop("code", None)
    shown.pop("not_fused", None)
    expect("the facts", shown, json.loads(read(facts)))
    expect("the policy", page.policy,
           f"default-src 'none'; script-src {digest(script)}; style-src "
           f"{digest(page.styles[0][1])}; base-uri 'none'; form-action 'none'")
    expect("references", page.references, [])
    # Names of other files are in no form that a browser would follow.
    for word in ("eval(", "new Function", "innerHTML", "insertAdjacentHTML",
                 "document.write", "fetch(", "XMLHttpRequest", "import("):
        expect(f"the script with {word}", word in script, False)
    expect("addresses", [line for line in script.splitlines() if "://" in line
                         and "http://www.w3.org/2000/svg" not in line], [])


def check_shown(dom, facts):
    shown = Page(read(dom)).data
    facts = json.loads(read(facts))
    manifest, summary = facts["manifests"][0], facts["summaries"][0]
    names = {program["name"] for program in manifest["programs"]}
    step = [program for program in summary["programs"] if program["name"] in
            (("step",) if "step" in names else ("forward", "backward"))]
    wanted = {"parameters": summary["parameters"],
              "trained": summary["trained"],
              "peak": summary["peaks"][0],
              "file": facts["file"]["bytes"]}
    for key in ("flops", "bytes", "kernels", "seconds"):
        wanted[key] = sum(program[key] for program in step)
    for key, value in wanted.items():
        expect(key, float(shown.get("fact-" + key, "nan")), float(value))


def check_rows(dom):
    text = read(dom)
    expect("tables that say so", re.findall(r"\b40 of \d+ rows", text), [])
    print(max(table.count("<tr") for table in text.split("<table")[1:]),
          "rows at most")


def check_code(page, *kinds):
    facts = json.loads(Page(read(page)).scripts[0][1])
    code, manifest = facts["code"][0], facts["manifests"][0]
    expect("kernels that are left out", code["left_out"], 0)
    expect("kernels with code", list(sorted(code["kernels"])),
           sorted(kernel["symbol"] for kernel in manifest["kernels"]))
    size = 0
    for symbol, texts in code["kernels"].items():
        expect("kinds of code", list(texts), list(kinds))
        size += sum(map(len, texts.values()))
        texts = {kind: zlib.decompress(base64.b64decode(text)).decode()
                 for kind, text in texts.items()}
        for kind, part in (("MLIR", "tandem.kernel "),
                           ("LLVM IR", f"define void @{symbol}("),
                           ("PTX", f".visible .entry {symbol}("),
                           ("assembly", "\tret")):
            if kind in texts and part not in texts[kind]:
                sys.exit(f"the {kind} of {symbol} lacks '{part}'")
        # What jumps go to is there.
        assembly = texts.get("assembly", "")
        labels = set(re.findall(r"^(0x[0-9a-f]+):$", assembly, re.M))
        jumps = set(re.findall(r"^\tj[a-z]+\t(0x[0-9a-f]+)$", assembly, re.M))
        expect(f"jumps of {symbol} to nowhere", jumps - labels, set())
        expect(f"{symbol} has bytes that are no code", ".byte" in assembly,
               False)
    expect("bytes of code", code["bytes"], size)


def check_methods(planned):
    """The method that was chosen is the one that the launch has."""
    seen = set()
    for program in planned["programs"]:
        for launch in program["launches"]:
            if "methods" not in launch:
                continue
            seen.add(launch["methods"])
            rows = planned["methods"][launch["methods"]]["methods"]
            chosen = [row["name"] for row in rows if row["chosen"]]
            expect("the method in the schedule", [
                name for name in chosen
                if f"method = {name}" in launch["schedule"]], chosen)
            expect("methods that are chosen", len(chosen), 1)
            expect("reasons", [bool(row.get("against")) for row in rows
                               if not row["chosen"]], [True] * (len(rows) - 1))
    expect("kernels with a choice", seen, set(range(len(planned["methods"]))))
    expect("is there a choice", bool(seen), True)


def check_planned(facts):
    facts = json.loads(read(facts))
    expect("the targets of a size", [len(size) for size in facts["planned"]],
           [len(facts["manifests"])])
    for planned, manifest in zip(facts["planned"][0], facts["manifests"]):
        counts = {program["name"]: len(program["launches"])
                  for program in planned["programs"]}
        for program in manifest["programs"]:
            expect(program["name"], counts.get(program["name"]),
                   len(program["launches"]))
        check_methods(planned)
        forward = planned["programs"][0]
        expect("an op of the forward with its place", any(
            op["op"] == "matmul" and op["types"] == ["f32[32, 128]"] and
            op["where"].startswith("mlp.mlir:") and "launch" in op
            for op in forward["ops"]), True)


def check_timeline(page, simulation):
    timeline = json.loads(Page(read(page)).scripts[0][1])["timeline"][0]
    step = json.loads(read(simulation))["step_ms"] / 1e3
    near = lambda a, b: abs(a - b) <= 1e-9 + 1e-6 * abs(b)
    expect("the time of a step", near(timeline["seconds"], step), True)
    parts = ("arithmetic", "memory", "launches", "exposed", "bubble")
    for rank in timeline["ranks"]:
        expect("the parts of a rank's time",
               near(sum(rank[part] for part in parts), step), True)
        for stream in rank["streams"]:
            end = 0
            for name, kind, start, time, *rest in stream["tasks"]:
                expect("a task that begins early", start < end - 2, False)
                end = start + time
                expect("names", max(name, kind, *rest[1:]) <
                       len(timeline["names"]), True)
            expect("a task that ends late", end > step * 1e9 + 2, False)
    exchanged = sum(one["count"] for rank in timeline["ranks"]
                    for one in rank["exchanges"])
    print(len(timeline["ranks"]), "ranks,", exchanged, "exchanges")


def check_more(page):
    facts = json.loads(Page(read(page)).scripts[0][1])
    expect("budgets", [point["budget"] for point in
                       facts["budget_curve"]["points"]],
           [i / 10 for i in range(11)])
    reasons = facts["not_fused"][0]
    expect("reasons of a step", any(
        row["program"] == "step" and row["why"] and row["times"] > 0 and
        " at mlp.mlir:" in row["a"] + row["b"] for row in reasons), True)
    expect("the gradient of relu", "p.dy()" in facts["gradients"]["relu"], True)


{"block": check_block, "code": check_code, "more": check_more,
 "passes": check_passes, "planned": check_planned, "rows": check_rows,
 "same": check_same, "shown": check_shown,
 "timeline": check_timeline}[sys.argv[1]](*sys.argv[2:])
