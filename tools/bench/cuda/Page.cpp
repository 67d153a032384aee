//===- Page.cpp - a page of what gpu-check found --------------------------===//
//
// A kernel's floor is what its bytes take at the bandwidth that the device's
// copies reached in this run, or its operations at the rate that the largest
// product of their type reached (steps roof/...), whichever is more.
//
//===----------------------------------------------------------------------===//
#include "tools/bench/cuda/Page.h"
#include "runtime/io/File.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

using namespace tandem;
using Json = nlohmann::json;

namespace {

std::string number(double value, const char *format = "%.4g") {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// A number or a text of an object, as text; nothing where there is none.
std::string textOf(const Json &object, const char *name) {
  auto found = object.find(name);
  if (found == object.end())
    return "";
  if (found->is_string())
    return found->get<std::string>();
  if (found->is_number_float())
    return number(found->get<double>());
  return found->dump();
}

double numberOf(const Json &object, const char *name) {
  auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

/// The first line of a text, with nothing that ends a cell of a table.
std::string cell(std::string text) {
  text = text.substr(0, text.find('\n'));
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text;
}

class Table {
public:
  Table(std::ostringstream &page, std::vector<std::string> head) : page(page) {
    row(head);
    row(std::vector<std::string>(head.size(), "---"));
  }
  ~Table() { page << "\n"; }
  void row(const std::vector<std::string> &cells) {
    page << "|";
    for (const std::string &text : cells)
      page << " " << cell(text) << " |";
    page << "\n";
  }

private:
  std::ostringstream &page;
};

struct Step {
  std::string kind, name, status;
  Json line, result; ///< an empty object where there is none
};

/// What the device reached in this run.
struct Roofs {
  double bytesPerSecond = 0;
  std::map<std::string, double> flopsPerSecond; ///< by type

  /// In milliseconds.
  double floorOf(const Json &kernel) const {
    double floor = 0;
    if (bytesPerSecond > 0)
      floor = numberOf(kernel, "bytes") / bytesPerSecond;
    if (auto rate = flopsPerSecond.find(textOf(kernel, "dtype"));
        rate != flopsPerSecond.end())
      floor = std::max(floor, numberOf(kernel, "flops") / rate->second);
    return floor * 1e3;
  }
};

class Page {
public:
  explicit Page(const std::vector<Json> &lines);
  std::string write();

private:
  void summary();
  void roofs();
  void kernels();
  void others();
  void times(const Step &step);

  std::vector<Step> steps;
  std::optional<Json> start, end;
  Roofs reached;
  std::ostringstream page;
};

Page::Page(const std::vector<Json> &lines) {
  for (const Json &line : lines) {
    std::string kind = textOf(line, "kind");
    if (kind == "start")
      start = line;
    else if (kind == "end")
      end = line;
    if (kind != "step")
      continue;
    Step step;
    std::string name = textOf(line, "step");
    step.kind = name.substr(0, name.find('/'));
    step.name = name.substr(name.find('/') + 1);
    step.status = textOf(line, "status");
    step.line = line;
    step.result = line.value("result", Json::object());
    reached.bytesPerSecond =
        std::max(reached.bytesPerSecond,
                 numberOf(step.result, "copy_gbytes_per_second") * 1e9);
    if (step.kind == "roof")
      for (const Json &kernel : step.result.value("kernels", Json::array()))
        if (double ms = numberOf(kernel, "ms"); ms > 0) {
          double &rate = reached.flopsPerSecond[textOf(kernel, "dtype")];
          rate = std::max(rate, numberOf(kernel, "flops") / ms * 1e3);
        }
    steps.push_back(std::move(step));
  }
}

std::string Page::write() {
  summary();
  roofs();
  kernels();
  others();
  for (const Step &step : steps)
    if (textOf(step.result, "check") == "times" && step.kind != "roof")
      times(step);
  return page.str();
}

void Page::summary() {
  std::string device = start ? textOf(*start, "device") : "";
  for (const Step &step : steps)
    if (textOf(step.result, "check") == "device")
      device = textOf(step.result, "description");
  page << "# gpu-check: " << device << "\n\n";
  if (start)
    page << textOf(*start, "date") << ", on " << textOf(*start, "system")
         << " with " << textOf(*start, "processors") << " processors.\n\n";
  std::map<std::string, int> counts;
  for (const Step &step : steps)
    ++counts[step.status];
  page << steps.size() << " steps";
  for (auto &[status, count] : counts)
    page << ", " << count << " " << status;
  page << ".\n";
  if (!end)
    page << "\n**The run was cut: it has no end"
         << (start ? ", and " + textOf(*start, "steps") + " steps were planned"
                   : "")
         << ".**\n";
  page << "\n";
  bool isFine = std::ranges::all_of(
      steps, [](const Step &step) { return step.status == "passed"; });
  if (isFine)
    return;
  page << "## What did not pass\n\n";
  Table table(page, {"step", "status", "s", "what it said"});
  for (const Step &step : steps)
    if (step.status != "passed")
      table.row({textOf(step.line, "step") +
                     (step.line.value("optional", false) ? " (optional)" : ""),
                 step.status, textOf(step.line, "seconds"),
                 textOf(step.line, "message")});
}

void Page::roofs() {
  page << "## What the device reaches\n\n";
  Table table(page, {"what", "rate"});
  for (const Step &step : steps)
    if (textOf(step.result, "check") == "device")
      for (auto [name, what] :
           {std::pair("copy_gbytes_per_second", "copies, read and written"),
            std::pair("fill_gbytes_per_second", "fills"),
            std::pair("from_host_gbytes_per_second", "copies from the host"),
            std::pair("to_host_gbytes_per_second", "copies to the host")})
        table.row({what, textOf(step.result, name) + " GB/s"});
  for (auto &[type, rate] : reached.flopsPerSecond)
    table.row({"products of " + type, number(rate * 1e-12) + " TFLOP/s"});
}

void Page::kernels() {
  if (std::ranges::none_of(steps, [](const Step &step) {
        return textOf(step.result, "check") == "kernels";
      }))
    return;
  page << "## Kernels compared with expected results\n\n"
          "The difference is the largest of an element, over the largest "
          "magnitude of its output.\n\n";
  Table table(page, {"kernel", "status", "difference", "allowed", "runs",
                     "other bits", "s"});
  for (const Step &step : steps)
    if (textOf(step.result, "check") == "kernels")
      table.row(
          {step.name, step.status, textOf(step.result, "difference"),
           textOf(step.result, "tolerance"), textOf(step.result, "repeats"),
           textOf(step.result, "other_bits"), textOf(step.line, "seconds")});
}

void Page::others() {
  page << "## Other steps\n\n";
  Table table(page, {"step", "status", "median ms", "s"});
  for (const Step &step : steps)
    if (std::string check = textOf(step.result, "check");
        check != "kernels" && check != "device")
      table.row({textOf(step.line, "step"), step.status,
                 textOf(step.result, "median_ms"),
                 textOf(step.line, "seconds")});
}

void Page::times(const Step &step) {
  page << "## " << textOf(step.line, "step") << ": each launch\n\n"
       << textOf(step.result, "code") << ", program "
       << textOf(step.result, "program") << ": "
       << textOf(step.result, "median_ms") << " ms a call, "
       << textOf(step.result, "launches_ms")
       << " ms in launches that are timed one by one.\n\n";
  struct Row {
    Json kernel;
    double ms, floor;
  };
  std::vector<Row> rows;
  double ms = 0, floor = 0;
  for (const Json &kernel : step.result.value("kernels", Json::array())) {
    double launches = numberOf(kernel, "launches");
    rows.push_back({kernel, numberOf(kernel, "ms") * launches,
                    reached.floorOf(kernel) * launches});
    ms += rows.back().ms;
    floor += rows.back().floor;
  }
  std::ranges::sort(rows, [](const Row &one, const Row &other) {
    return one.ms - one.floor > other.ms - other.floor;
  });
  Table table(page, {"kernel", "launches", "ms", "floor ms", "above it ms",
                     "computes"});
  for (const Row &row : rows)
    table.row({textOf(row.kernel, "kernel"), textOf(row.kernel, "launches"),
               number(row.ms, "%.4f"), number(row.floor, "%.4f"),
               number(row.ms - row.floor, "%.4f"),
               textOf(row.kernel, "computes")});
  table.row({"all", "", number(ms, "%.4f"), number(floor, "%.4f"),
             number(ms - floor, "%.4f"), ""});
}

} // namespace

static Result<std::vector<Json>> parseLines(const std::string &text) {
  std::vector<Json> lines;
  size_t begin = 0;
  for (int row = 1; begin < text.size(); ++row) {
    size_t end = text.find('\n', begin);
    bool isCut = end == std::string::npos;
    Json line = Json::parse(text.substr(begin, end - begin), nullptr, false);
    begin = isCut ? text.size() : end + 1;
    if (line.is_object())
      lines.push_back(std::move(line));
    else if (!isCut)
      return Status::failed("line " + std::to_string(row) +
                            ": expected an object of JSON");
  }
  if (lines.empty() || textOf(lines[0], "kind") != "start")
    return Status::failed("expected a line of kind 'start' first");
  if (lines[0].value("version", Json()) != 1)
    return Status::failed("expected version 1 but got " +
                          textOf(lines[0], "version"));
  return lines;
}

Result<std::string> gpu::pageOf(const std::string &text) {
  auto lines = parseLines(text);
  if (!lines)
    return std::move(lines).status();
  return Page(*lines).write();
}

Result<std::map<std::string, std::string>>
gpu::calibrationsOf(const std::string &text) {
  auto lines = parseLines(text);
  if (!lines)
    return std::move(lines).status();
  std::map<std::string, std::string> files;
  for (const Json &line : *lines) {
    Json result = line.value("result", Json::object());
    if (textOf(result, "check") != "times")
      continue;
    Json kernels = Json::array();
    for (const Json &kernel : result.value("kernels", Json::array()))
      // Neither copies nor calls of libraries, which are named behind a space.
      if (std::string name = textOf(kernel, "kernel");
          kernel.contains("class") && name.find(' ') == std::string::npos)
        kernels.push_back({{"kernel", name}, {"ms", kernel["ms"]}});
    std::string name = textOf(line, "step");
    std::ranges::replace(name, '/', '-');
    if (!kernels.empty())
      files[name] = Json{{"kernels", kernels}}.dump(1) + "\n";
  }
  return files;
}

static Status write(const std::string &path, const std::string &text) {
  return io::replaceFile(
      path,
      std::vector{io::Bytes(reinterpret_cast<const std::byte *>(text.data()),
                            text.size())});
}

Status gpu::writePage(const std::string &file, const std::string &page,
                      const std::string &calibrations) {
  auto bytes = io::readFile(file);
  if (!bytes)
    return std::move(bytes).status();
  std::string lines(reinterpret_cast<const char *>(bytes->data()),
                    bytes->size());
  auto text = pageOf(lines);
  if (!text)
    return std::move(text).status().in("'" + file + "'");
  if (Status status = write(page, *text); !status || calibrations.empty())
    return status;
  auto files = calibrationsOf(lines);
  if (!files)
    return std::move(files).status();
  for (const auto &[name, content] : *files)
    if (Status status = write(calibrations + "." + name + ".json", content);
        !status)
      return status;
  return Status::success();
}
