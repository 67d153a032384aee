//===- DiffText.cpp - a comparison as people read it ----------------------===//
//
// A part for each list of the object that has rows, the first few of them: what
// has the largest effect. Names are anybody's, and are made printable.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/DiffFacts.h"
#include "tools/tandem/FactsView.h"

#include "runtime/artifact/Text.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;

/// Rows of a part that are shown.
static constexpr size_t kShown = 12;

static std::string shown(const Json &value) {
  if (value.is_null())
    return "-";
  return artifact::printable(value.is_string() ? value.get<std::string>()
                                               : value.dump());
}

/// "+5.0 %" from a to b; of nothing there is no such part.
static std::string percentText(double a, double b) {
  if (a == b)
    return "same";
  if (a == 0)
    return "new";
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", (b - a) / a * 100);
  return text;
}

static std::string signedText(double change,
                              const std::function<std::string(double)> &text) {
  return (change < 0 ? "-" : "+") + text(std::abs(change));
}

static std::string bytesOfDouble(double bytes) {
  return bytesText(static_cast<int64_t>(bytes));
}

namespace {
using Cells = std::vector<std::string>;

/// Text in columns that are as wide as their widest cell.
class Text {
public:
  void line(const std::string &text) { all += text + "\n"; }
  void table(const std::string &title, const Cells &heads, const Json &rows,
             const std::function<Cells(const Json &)> &cellsOf);
  std::string all;

private:
  void columns(const std::vector<Cells> &lines);
};
} // namespace

void Text::columns(const std::vector<Cells> &lines) {
  // A long name does not push all other columns away.
  constexpr size_t kWidest = 44;
  std::vector<size_t> widths;
  for (const Cells &cells : lines)
    for (size_t i = 0; i < cells.size(); ++i) {
      widths.resize(std::max(widths.size(), i + 1));
      widths[i] = std::max(widths[i], std::min(cells[i].size(), kWidest));
    }
  for (const Cells &cells : lines) {
    std::string text = " ";
    for (size_t i = 0; i < cells.size(); ++i) {
      text += " " + cells[i];
      if (i + 1 < cells.size() && cells[i].size() < widths[i])
        text.append(widths[i] - cells[i].size(), ' ');
      text += i + 1 < cells.size() ? " " : "";
    }
    line(text);
  }
}

void Text::table(const std::string &title, const Cells &heads, const Json &rows,
                 const std::function<Cells(const Json &)> &cellsOf) {
  if (rows.empty())
    return;
  line("\n" + title);
  std::vector<Cells> lines = {heads};
  for (const Json &row : rows)
    if (lines.size() <= kShown)
      lines.push_back(cellsOf(row));
  columns(lines);
  if (rows.size() > kShown)
    line("  and " + std::to_string(rows.size() - kShown) +
         " more: --json and --html have all of all programs");
}

static void addStep(const Json &step, Text &text) {
  const Json &a = step["a"], &b = step["b"];
  Json rows = Json::array();
  auto add = [&](const char *name, const char *key, auto shownAs) {
    if (!a[key].is_number() && !b[key].is_number())
      return;
    auto cell = [&](const Json &side) {
      return side[key].is_number() ? shownAs(side[key].get<double>()) : "-";
    };
    std::string change = a[key].is_number() && b[key].is_number()
                             ? percentText(a[key], b[key])
                             : "";
    rows.push_back({name, cell(a), cell(b), change});
  };
  add("predicted time", "seconds", secondsText);
  add("planned peak", "peak", bytesOfDouble);
  add("FLOP", "flops", countText);
  add("bytes moved", "bytes", bytesOfDouble);
  add("kernels", "kernels", countText);
  auto programs = [](const Json &side) {
    std::string names;
    for (const Json &name : side["programs"])
      names += (names.empty() ? "" : " and ") + shown(name);
    return names;
  };
  std::string what = programs(a);
  if (programs(b) != what)
    what += " against " + programs(b);
  text.table("a step (" + what + ")", {"", "a", "b", "change"}, rows,
             [](const Json &row) {
               return Cells{row[0], row[1], row[2], row[3]};
             });
}

/// The rows of programs that a step runs; of others where it has none.
static Json ofStep(const Json &target, const char *part) {
  Json own = Json::array();
  auto isIn = [&](const char *side, const Json &program) {
    const Json &list = target["step"][side]["programs"];
    return std::find(list.begin(), list.end(), program) != list.end();
  };
  for (const Json &row : target[part])
    if (isIn("a", row["program"]) || isIn("b", row["program"]))
      own.push_back(row);
  return own.empty() ? target[part] : own;
}

static std::string programName(const Json &row) {
  std::string name = shown(row["program"]);
  return row.contains("size") ? name + " (" + shown(row["size"]) + ")" : name;
}

static std::string kernelName(const Json &row) {
  std::string name;
  if (row.contains("summary"))
    return shown(row["summary"]);
  for (const Json &op : row["ops"])
    name += (name.empty() ? "" : ", ") + shown(op);
  return name;
}

/// A figure of a side that may not be there.
static std::string figure(const Json &side, const char *key,
                          const std::function<std::string(double)> &text) {
  return side.is_object() && side[key].is_number()
             ? text(side[key].get<double>())
             : "-";
}

static void addWork(const Json &target, Text &text) {
  text.table("programs", {"program", "a", "b", "time", "a", "b", "most in use"},
             target["programs"], [](const Json &row) {
               const Json &a = row["a"], &b = row["b"];
               auto change = [&](const char *key) {
                 return a.is_object() && b.is_object()
                            ? percentText(a[key], b[key])
                            : std::string(a.is_object() ? "gone" : "new");
               };
               return Cells{programName(row),
                            figure(a, "seconds", secondsText),
                            figure(b, "seconds", secondsText),
                            change("seconds"),
                            figure(a, "peak_bytes", bytesOfDouble),
                            figure(b, "peak_bytes", bytesOfDouble),
                            change("peak_bytes")};
             });
  text.table("kernels, of all their launches in a program",
             {"time", "program", "a", "b", "kernel"}, ofStep(target, "kernels"),
             [](const Json &row) {
               auto side = [](const Json &sum) {
                 return sum.is_object() ? sum["launches"].dump() + " x"
                                        : std::string("-");
               };
               return Cells{signedText(row["seconds"], secondsText),
                            programName(row), side(row["a"]), side(row["b"]),
                            kernelName(row)};
             });
  text.table("schedules", {"of", "program", "kernel: a, then b"},
             ofStep(target, "schedules"), [](const Json &row) {
               auto side = [](const Json &cuts) {
                 std::string all;
                 for (const auto &[cut, count] : cuts.items())
                   all += (all.empty() ? "" : "; ") + shown(Json(cut)) +
                          (count == 1 ? "" : " (" + count.dump() + " x)");
                 return all;
               };
               return Cells{secondsText(row["seconds"]), programName(row),
                            kernelName(row) + "\n      a: " + side(row["a"]) +
                                "\n      b: " + side(row["b"])};
             });
  text.table("ops in kernels", {"change", "a", "b", "program", "op"},
             ofStep(target, "ops"), [](const Json &row) {
               int64_t more = row["more"];
               return Cells{(more > 0 ? "+" : "") + std::to_string(more),
                            row["a"].dump(), row["b"].dump(), programName(row),
                            shown(row["op"])};
             });
}

static void addKept(const Json &target, Text &text) {
  auto sideText = [](const Json &side) {
    if (side.is_null())
      return std::string("no");
    return "yes: " + shown(side["reason"]) +
           (side.value("host", false) ? ", in the host's memory" : "");
  };
  auto sideOf = [](const Json &row) -> const Json & {
    return row["a"].is_object() ? row["a"] : row["b"];
  };
  auto placeOf = [&](const Json &row) { return textAt(sideOf(row), "where"); };
  // An argument that is saved has a name, and neither op nor place.
  auto savedText = [&](const Json &row) {
    std::string op = textAt(row, "op"), place = placeOf(row);
    return shown(op.empty() ? sideOf(row)["name"] : row["op"]) + " " +
           shown(row["type"]) + (place.empty() ? "" : " at " + shown(place));
  };
  text.table("saved for the backward", {"bytes", "value", "a", "b"},
             target["saved"], [&](const Json &row) {
               return Cells{signedText(row["bytes"], bytesOfDouble),
                            savedText(row), sideText(row["a"]),
                            sideText(row["b"])};
             });
  text.table("computed again in the backward", {"time", "op", "a", "b"},
             target["repeated"], [&](const Json &row) {
               return Cells{signedText(row["seconds"], secondsText),
                            shown(row["op"]) + " at " + shown(placeOf(row)),
                            sideText(row["a"]), sideText(row["b"])};
             });
}

static void addTarget(const Json &target, Text &text) {
  std::string name = shown(target["a"]);
  if (target["b"] != target["a"])
    name += " against " + shown(target["b"]);
  text.line("\nfor " + name);
  for (const Json &note : target["notes"])
    text.line("  " + shown(note));
  addStep(target["step"], text);
  auto plain = [](const Json &row) {
    return Cells{shown(row["name"]), shown(row["a"]), shown(row["b"])};
  };
  text.table("the compilation", {"", "a", "b"}, target["options"], plain);
  text.table("values", {"bytes", "value", "a", "b"}, target["values"],
             [](const Json &row) {
               return Cells{signedText(row["bytes"], bytesOfDouble),
                            shown(row["name"]), shown(row["a"]),
                            shown(row["b"])};
             });
  text.table("memory of a step", {"change", "", "a", "b"}, target["memory"],
             [](const Json &row) {
               auto side = [](const Json &bytes) {
                 return bytes.is_number() ? bytesText(bytes) : std::string("-");
               };
               return Cells{signedText(row["bytes"], bytesOfDouble),
                            shown(row["name"]), side(row["a"]), side(row["b"])};
             });
  addWork(target, text);
  addKept(target, text);
  constexpr const char *lists[] = {"options",  "values",  "memory",
                                   "programs", "kernels", "schedules",
                                   "ops",      "saved",   "repeated"};
  if (std::ranges::all_of(lists, [&](auto key) { return target[key].empty(); }))
    text.line("\nall that is known of the two is equal: their bytes are not");
}

std::string commands::diffText(const Json &diff) {
  Text text;
  text.line("a: " + shown(diff["a"]["file"]) + ", " +
            bytesText(diff["a"]["bytes"]));
  text.line("b: " + shown(diff["b"]["file"]) + ", " +
            bytesText(diff["b"]["bytes"]));
  if (diff["equal"].get<bool>()) {
    text.line("they are equal, byte by byte");
    return text.all;
  }
  for (const Json &one : diff["alone"])
    text.line("only " + shown(one["in"]) + " has code for " +
              shown(one["target"]));
  for (const Json &target : diff["targets"])
    addTarget(target, text);
  if (diff["targets"].empty())
    text.line("they have no target in common, so nothing else is compared");
  text.table("sections of the file that differ", {"section", "a", "b"},
             diff["sections"], [](const Json &row) {
               auto side = [](const Json &bytes) {
                 return bytes.is_number() ? bytesText(bytes) : std::string("-");
               };
               return Cells{shown(row["name"]), side(row["a"]), side(row["b"])};
             });
  return text.all;
}
