//===- Steps.cpp - programs one after the other, each with a time limit ---===//
#include "tools/bench/cuda/Steps.h"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>

using namespace tandem;
using namespace tandem::gpu;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

/// One problem of a line, or nothing.
static std::string parseStep(const std::string &line, Step &step) {
  std::istringstream words(line);
  std::string limit, word;
  words >> step.name >> limit;
  if (step.name[0] == '!' || step.name[0] == '?') {
    step.need = step.name[0] == '!' ? Step::Need::First : Step::Need::Optional;
    step.name.erase(0, 1);
  }
  size_t slash = step.name.find('/');
  if (slash == std::string::npos || slash == 0 ||
      slash + 1 == step.name.size() ||
      step.name.find('/', slash + 1) != std::string::npos)
    return "expected KIND/NAME but got '" + step.name + "'";
  auto [end, error] =
      std::from_chars(limit.data(), limit.data() + limit.size(), step.limit);
  if (error != std::errc() || end != limit.data() + limit.size() ||
      !(step.limit > 0 && step.limit <= 3600))
    return "expected seconds from above 0 to 3600 but got '" + limit + "'";
  while (words >> word)
    step.words.push_back(word);
  return step.words.empty() ? "expected a command after the seconds" : "";
}

Result<std::vector<Step>> gpu::parseSteps(std::string_view text) {
  std::vector<Step> steps;
  std::string problems, line;
  std::istringstream lines{std::string(text)};
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t") == std::string::npos || line[0] == '#')
      continue;
    Step step;
    if (std::string problem = parseStep(line, step); !problem.empty())
      problems += (problems.empty() ? "line " : "; line ") +
                  std::to_string(number) + ": " + problem;
    steps.push_back(std::move(step));
  }
  if (!problems.empty())
    return Status::failed(problems);
  return steps;
}

namespace {

/// The end of a file, at most `most` bytes.
std::string tailOf(const std::string &path, size_t most) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file)
    return {};
  size_t size = size_t(file.tellg());
  file.seekg(std::streamoff(size > most ? size - most : 0));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  return text;
}

/// An object that a program printed: all of its output, or the last line.
Json resultIn(const std::string &output) {
  for (const std::string &text :
       {output, output.substr(output.rfind('\n') + 1)})
    if (Json json = Json::parse(text, nullptr, false); json.is_object())
      return json;
  return nullptr;
}

double rounded(double seconds) { return std::round(seconds * 1e3) / 1e3; }

class Run {
public:
  Run(const StepsOptions &options, std::vector<Step> steps)
      : options(options), steps(std::move(steps)),
        logs(options.file + ".logs") {}

  Status run();

private:
  double elapsed() const {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  double left() const { return options.minutes * 60 - elapsed(); }
  Status write(const Json &line);
  Json start() const;
  Json one(const Step &step, size_t number);
  void describe(const Step &step, const Ended &ended, double limit,
                const std::string &outputFile, const std::string &errorFile,
                Json &line) const;
  std::vector<std::string> commandOf(const Step &step) const;

  const StepsOptions &options;
  std::vector<Step> steps;
  std::string logs;
  Clock::time_point begin = Clock::now();
  std::string blockedBy; ///< a step that failed and is needed
  std::map<std::string, int> counts;
  int bad = 0;
};

/// One system call for each line, and on the disk when it returns.
Status Run::write(const Json &line) {
  std::string text =
      line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  int file = ::open(options.file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  bool isWritten = file >= 0 && ::write(file, text.data(), text.size()) ==
                                    ssize_t(text.size());
  if (isWritten)
    ::fsync(file);
  int error = errno;
  if (file >= 0)
    ::close(file);
  return isWritten ? Status::success()
                   : Status::failed("cannot write '" + options.file +
                                    "': " + std::strerror(error));
}

Json Run::start() const {
  char date[32];
  std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  utsname system = {};
  ::uname(&system);
  return {{"kind", "start"},
          {"version", 1},
          {"date", date},
          {"device", options.device},
          {"minutes", options.minutes},
          {"steps", steps.size()},
          {"processors", std::thread::hardware_concurrency()},
          {"system", std::string(system.sysname) + " " + system.release + " " +
                         system.machine}};
}

std::vector<std::string> Run::commandOf(const Step &step) const {
  std::vector<std::string> words = step.words;
  for (std::string &word : words)
    for (auto &[name, value] :
         {std::pair("@device", &options.device), std::pair("@out", &logs)})
      if (size_t at = word.find(name); at != std::string::npos)
        word.replace(at, std::strlen(name), *value);
  return words;
}

void Run::describe(const Step &step, const Ended &ended, double limit,
                   const std::string &outputFile, const std::string &errorFile,
                   Json &line) const {
  std::string output = tailOf(outputFile, 4 << 20);
  std::string status = ended.code == 0 ? "passed" : "failed", message;
  switch (ended.how) {
  case Ended::How::Exit:
    line["exit_code"] = ended.code;
    if (ended.code)
      message = tailOf(errorFile, 2000);
    break;
  case Ended::How::Signal:
    status = "crashed";
    line["signal"] = ended.code;
    message = tailOf(errorFile, 2000);
    break;
  case Ended::How::TimeOut:
    status = "timed out";
    message = tailOf(errorFile, 2000);
    if (limit < step.limit)
      message += (message.empty() ? "" : "\n") +
                 std::string("the run's time was over");
    if (ended.isStuck)
      message += (message.empty() ? "" : "\n") +
                 std::string("it was killed and did not end");
    break;
  case Ended::How::Missing:
    status = "missing";
    message = tailOf(errorFile, 2000);
    break;
  }
  line["status"] = status;
  line["seconds"] = rounded(ended.seconds);
  line["limit_seconds"] = rounded(limit);
  if (Json result = resultIn(output); !result.is_null())
    line["result"] = std::move(result);
  else if (!output.empty())
    line["output"] =
        output.size() > 4000 ? output.substr(output.size() - 4000) : output;
  if (!message.empty())
    line["message"] = message;
}

Json Run::one(const Step &step, size_t number) {
  Json line = {{"kind", "step"}, {"step", step.name}};
  if (step.need == Step::Need::Optional)
    line["optional"] = true;
  std::string why;
  if (left() < 1)
    why = "no time is left";
  else if (!blockedBy.empty())
    why = "'" + blockedBy + "' failed";
  if (!why.empty()) {
    line["status"] = "skipped";
    line["message"] = why;
    return line;
  }
  double limit = std::min(step.limit, left());
  std::string files = logs + "/" + std::to_string(number) + "-" +
                      step.name.substr(step.name.find('/') + 1);
  Ended ended =
      runProgram(commandOf(step), limit, files + ".out", files + ".err");
  describe(step, ended, limit, files + ".out", files + ".err", line);
  if (step.need == Step::Need::First && line["status"] != "passed")
    blockedBy = step.name;
  return line;
}

Status Run::run() {
  std::error_code error;
  std::filesystem::create_directories(logs, error);
  if (error)
    return Status::failed("cannot make the folder '" + logs +
                          "': " + error.message());
  if (Status status = write(start()); !status)
    return status;
  for (size_t i = 0; i < steps.size(); ++i) {
    Json line = one(steps[i], i + 1);
    std::string state = line["status"];
    ++counts[state];
    bool isBad = steps[i].need != Step::Need::Optional && state != "passed";
    bad += isBad;
    std::string message = line.value("message", "");
    std::printf("[%4.0f s] %-44s %s%s%s\n", elapsed(), steps[i].name.c_str(),
                state.c_str(), message.empty() ? "" : ": ",
                message.substr(0, message.find('\n')).c_str());
    std::fflush(stdout);
    if (Status status = write(line); !status)
      return status;
  }
  if (Status status = write({{"kind", "end"},
                             {"seconds", rounded(elapsed())},
                             {"not_passed", bad},
                             {"counts", counts}});
      !status)
    return status;
  return bad ? Status::failed(
                   std::to_string(bad) + " of " + std::to_string(steps.size()) +
                   " steps did not pass; all is in '" + options.file + "'")
             : Status::success();
}

} // namespace

Status gpu::runSteps(const StepsOptions &options) {
  std::ifstream file("steps");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file.is_open())
    return Status::failed("there is no file 'steps' in the folder: 'gpu-check "
                          "--prepare' makes it");
  auto steps = parseSteps(text);
  if (!steps)
    return std::move(steps).status().in("steps");
  if (!options.only.empty()) {
    // The expression was checked with the options.
    std::regex only(options.only, std::regex::extended);
    std::erase_if(*steps, [&](const Step &step) {
      return step.need != Step::Need::First &&
             !std::regex_search(step.name, only);
    });
  }
  return Run(options, std::move(*steps)).run();
}
