//===- Conformance.cpp - runs the ONNX backend tests ----------------------===//
//
// Some cases run in a process, which takes as long to begin as most of them;
// from one that crashes or hangs on, each has a process of its own, so that it
// is a failure and no more. Prints what passed by suite and what did not by
// operator; fails if a case does not pass that is expected to, or the other way
// around.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/Translator.h"
#include "tools/commands/Options.h"
#include "tools/onnx/CheckGradients.h"
#include "tools/onnx/Expected.h"
#include "tools/onnx/TestCase.h"

#include "nlohmann/json.hpp"
#include "llvm/Support/Regex.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <sys/wait.h>
#include <unistd.h>

using namespace tandem;
using namespace tandem::commands;
using onnx::Outcome;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

struct Case {
  std::string name; ///< "node/test_abs"
  std::string folder;
  Outcome outcome;
};

struct Arguments {
  std::string data = "/usr/share/libonnx-testdata/data", filter, expected, json;
  std::optional<int64_t> jobs, timeout;
  bool all = false, gradients = false, operators = false, help = false;
};

constexpr const char *suites[] = {"node", "simple", "pytorch-operator",
                                  "pytorch-converted"};

/// Cases in a process of their own: what each writes comes through a pipe, a
/// line each.
struct Child {
  pid_t pid;
  int pipe;
  std::span<Case> of;
};

constexpr size_t kCasesOfAProcess = 16;

const char *spelling(Outcome::Kind kind) {
  return kind == Outcome::Kind::Passed     ? "passed"
         : kind == Outcome::Kind::Failed   ? "failed"
         : kind == Outcome::Kind::Excluded ? "excluded"
                                           : "unsupported";
}

void writeAll(int file, const std::string &text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n <= 0)
      break;
    done += static_cast<size_t>(n);
  }
}

Child start(std::span<Case> cases, bool gradients, unsigned seconds) {
  int ends[2];
  if (pipe(ends) != 0)
    std::abort();
  pid_t pid = fork();
  if (pid != 0) {
    close(ends[1]);
    return {pid, ends[0], cases};
  }
  close(ends[0]);
  for (Case &one : cases) {
    alarm(seconds);
    Outcome outcome = gradients ? onnx::checkGradients(one.folder)
                                : onnx::runTestCase(one.folder, {});
    Json json = {{"kind", static_cast<int>(outcome.kind)},
                 {"op", outcome.op},
                 {"reason", outcome.reason}};
    writeAll(ends[1],
             json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n');
  }
  _exit(0);
}

/// What the process said; returns how many cases it came to an end with.
size_t finish(Child &child) {
  std::string text;
  char buffer[4096];
  ssize_t n;
  while ((n = read(child.pipe, buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<size_t>(n));
  close(child.pipe);
  int state = 0;
  waitpid(child.pid, &state, 0);
  size_t done = 0;
  for (size_t end; (end = text.find('\n')) != std::string::npos; ++done) {
    Json json = Json::parse(text.substr(0, end));
    child.of[done].outcome = {
        static_cast<Outcome::Kind>(json["kind"].get<int>()), json["op"],
        json["reason"]};
    text.erase(0, end + 1);
  }
  if (done == child.of.size())
    return done;
  std::string &reason = child.of[done].outcome.reason;
  if (WIFSIGNALED(state) && WTERMSIG(state) == SIGALRM)
    reason = "took too long";
  else
    reason = "crashed: " + std::string(WIFSIGNALED(state)
                                           ? strsignal(WTERMSIG(state))
                                           : "no result");
  return done;
}

void runAll(std::span<Case> cases, bool gradients, int64_t jobs,
            unsigned seconds) {
  std::vector<Child> running;
  auto finishFirst = [&] {
    Child child = running.front();
    running.erase(running.begin());
    size_t done = finish(child);
    if (child.of.size() == 1)
      return;
    for (; done < child.of.size(); ++done) {
      Child alone = start(child.of.subspan(done, 1), gradients, seconds);
      finish(alone);
    }
  };
  bool shows = isatty(2);
  for (size_t i = 0; i < cases.size(); i += kCasesOfAProcess) {
    if (running.size() == static_cast<size_t>(jobs))
      finishFirst();
    if (shows)
      std::fprintf(stderr, "\r%zu of %zu", i + 1, cases.size());
    running.push_back(
        start(cases.subspan(i, std::min(kCasesOfAProcess, cases.size() - i)),
              gradients, seconds));
  }
  while (!running.empty())
    finishFirst();
  if (shows)
    std::fprintf(stderr, "\r%*s\r", 20, "");
}

/// The share is that of what passed; of gradients, among the models that have
/// some.
void printTable(const std::vector<Case> &cases, bool gradients) {
  std::printf("%-20s %8s %8s %12s %s%8s\n", "suite", "passed", "failed",
              "unsupported", gradients ? " excluded " : "", "cases");
  int64_t all[4] = {};
  auto row = [&](const char *name, const int64_t *counts) {
    int64_t total = counts[0] + counts[1] + counts[2] + counts[3];
    int64_t of = gradients ? counts[0] + counts[1] : total;
    std::printf(
        "%-20s %8lld %8lld %12lld ", name, static_cast<long long>(counts[0]),
        static_cast<long long>(counts[1]), static_cast<long long>(counts[2]));
    if (gradients)
      std::printf("%9lld ", static_cast<long long>(counts[3]));
    std::printf("%8lld  %5.1f%%\n", static_cast<long long>(total),
                of ? 100.0 * static_cast<double>(counts[0]) /
                         static_cast<double>(of)
                   : 0.0);
  };
  for (const char *suite : suites) {
    int64_t counts[4] = {};
    for (const Case &one : cases)
      if (one.name.starts_with(std::string(suite) + "/"))
        ++counts[static_cast<int>(one.outcome.kind)];
    if (counts[0] + counts[1] + counts[2] + counts[3])
      row(suite, counts);
    for (int i = 0; i < 4; ++i)
      all[i] += counts[i];
  }
  row("all", all);
}

/// What did not pass, by the operator that is the reason.
void printByOperator(const std::vector<Case> &cases) {
  struct Row {
    int64_t failed = 0, unsupported = 0;
    std::string example;
  };
  std::map<std::string, Row> rows;
  for (const Case &one : cases) {
    if (one.outcome.kind == Outcome::Kind::Passed ||
        one.outcome.kind == Outcome::Kind::Excluded)
      continue;
    Row &row = rows[one.outcome.op.empty() ? "(none)" : one.outcome.op];
    ++(one.outcome.kind == Outcome::Kind::Failed ? row.failed
                                                 : row.unsupported);
    if (row.example.empty())
      row.example = one.name + ": " +
                    one.outcome.reason.substr(0, one.outcome.reason.find('\n'));
  }
  if (rows.empty())
    return;
  std::printf("\n%-28s %8s %12s  %s\n", "operator", "failed", "unsupported",
              "example");
  for (const auto &[name, row] : rows)
    std::printf("%-28s %8lld %12lld  %s\n", name.c_str(),
                static_cast<long long>(row.failed),
                static_cast<long long>(row.unsupported), row.example.c_str());
}

/// For tools/onnx/compare-operators.
void printOperators() {
  for (const auto &[name, entry] : onnx::opTable().all())
    std::printf("%s %s %lld %lld\n",
                name.first.empty() ? "ai.onnx" : name.first.c_str(),
                name.second.c_str(), static_cast<long long>(entry.first),
                static_cast<long long>(entry.last));
}

Status writeJson(const std::vector<Case> &cases, const std::string &path) {
  Json list = Json::array();
  for (const Case &one : cases)
    list.push_back({{"case", one.name},
                    {"outcome", spelling(one.outcome.kind)},
                    {"operator", one.outcome.op},
                    {"reason", one.outcome.reason}});
  std::ofstream file(path);
  file << list.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
  file.close();
  return file ? Status::success()
              : Status::failed("cannot write '" + path + "'");
}

Result<std::vector<Case>> findCases(const Arguments &arguments) {
  llvm::Regex filter(arguments.filter.empty() ? "." : arguments.filter);
  std::string message;
  if (!filter.isValid(message))
    return Status::usage("expected --filter to be a regular expression: " +
                         message);
  std::vector<Case> cases;
  for (const char *suite : suites) {
    fs::path folder = fs::path(arguments.data) / suite;
    std::error_code error;
    size_t first = cases.size();
    for (const auto &entry : fs::directory_iterator(folder, error)) {
      std::string name =
          std::string(suite) + "/" + entry.path().filename().string();
      if (fs::exists(entry.path() / "model.onnx") && filter.match(name))
        cases.push_back({name, entry.path(), {}});
    }
    std::sort(cases.begin() + static_cast<std::ptrdiff_t>(first), cases.end(),
              [](const Case &a, const Case &b) { return a.name < b.name; });
  }
  if (cases.empty())
    return Status::failed("no cases in '" + arguments.data +
                          "'; Debian's package libonnx-testdata has them");
  return cases;
}

/// Prints and counts the cases that did not end as expected.
Status compare(const std::vector<Case> &cases, const std::string &path) {
  auto expected = onnx::Expected::read(path);
  if (!expected)
    return expected.status();
  int64_t worse = 0, better = 0;
  for (const Case &one : cases) {
    bool passed = one.outcome.kind == Outcome::Kind::Passed;
    bool mayFail = expected->find(one.name) != nullptr;
    if (passed != mayFail)
      continue;
    ++(passed ? better : worse);
    std::printf("%s %s, which was not expected%s%s\n", one.name.c_str(),
                spelling(one.outcome.kind), passed ? "" : ": ",
                one.outcome.reason.c_str());
  }
  if (!worse && !better)
    return Status::success();
  return Status::failed(std::to_string(worse) + " cases are worse and " +
                        std::to_string(better) + " better than '" + path +
                        "' says");
}

Status run(int argc, char **argv) {
  OptionTable table("[options]",
                    "Runs the ONNX backend tests with the compiler for this "
                    "processor.");
  Arguments arguments;
  table.text("data", "DIR", arguments.data,
             "the folder with node, simple, pytorch-operator and\n"
             "pytorch-converted (default: that of Debian's libonnx-testdata)");
  table.text("filter", "REGEX", arguments.filter,
             "only cases whose name (node/test_abs) it matches a part of");
  table.text("expected", "FILE", arguments.expected,
             "the cases that need not pass; exit code 1 if others do not,\n"
             "or if these do");
  table.text("json", "FILE", arguments.json, "write what came of each case");
  table.integer("jobs", "N", arguments.jobs, 1, 256,
                "cases at a time (default: 2)");
  table.integer("timeout", "SECONDS", arguments.timeout, 1, 3600,
                "for one case (default: 120)");
  table.flag("gradients", arguments.gradients,
             "check gradients against differences, on the reference, instead");
  table.flag("all", arguments.all, "print every case that did not pass");
  table.flag("operators", arguments.operators,
             "print the operators that are understood instead, a line each:\n"
             "domain, name, first and last version");
  std::vector<std::string_view> words(argv + 1, argv + argc);
  if (Status s = table.parse(words); !s)
    return s;
  if (table.helpAsked()) {
    std::fputs(table.help(argv[0]).c_str(), stdout);
    return Status::success();
  }
  if (arguments.operators) {
    printOperators();
    return Status::success();
  }
  auto cases = findCases(arguments);
  if (!cases)
    return cases.status();
  Status gradients = Status::success();
  runAll(*cases, arguments.gradients, arguments.jobs.value_or(2),
         static_cast<unsigned>(arguments.timeout.value_or(120)));
  if (arguments.gradients) {
    // Differences can mislead: one in twenty may be off.
    auto count = [&](Outcome::Kind kind) {
      return std::count_if(cases->begin(), cases->end(), [&](const Case &one) {
        return one.outcome.kind == kind;
      });
    };
    auto passed = count(Outcome::Kind::Passed),
         failed = count(Outcome::Kind::Failed);
    if (passed < 19 * failed)
      gradients = Status::failed(std::to_string(failed) + " of " +
                                 std::to_string(passed + failed) +
                                 " gradients differ from differences");
  }
  if (arguments.all)
    for (const Case &one : *cases)
      if (one.outcome.kind != Outcome::Kind::Passed)
        std::printf("%s %s: %s\n", one.name.c_str(), spelling(one.outcome.kind),
                    one.outcome.reason.c_str());
  printTable(*cases, arguments.gradients);
  printByOperator(*cases);
  if (!arguments.json.empty())
    if (Status s = writeJson(*cases, arguments.json); !s)
      return s;
  if (!gradients || arguments.gradients)
    return gradients;
  return arguments.expected.empty() ? Status::success()
                                    : compare(*cases, arguments.expected);
}

} // namespace

int main(int argc, char **argv) {
  Status status = run(argc, argv);
  if (!status)
    std::fprintf(stderr, "onnx-conformance: %s\n", status.message().c_str());
  return status.exitCode();
}
