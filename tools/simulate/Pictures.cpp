//===- Pictures.cpp - the timeline of a simulated step --------------------===//
#include "tools/simulate/Pictures.h"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

namespace tandem::simulate {
namespace {

std::string_view colorOf(Spent spent) {
  switch (spent) {
  case Spent::Arithmetic:
    return "#3b6fb6";
  case Spent::Memory:
    return "#6fa66f";
  case Spent::Launch:
    return "#b0b0b0";
  case Spent::Exchange:
    return "#d08030";
  }
  return "";
}

std::string escaped(std::string_view words) {
  std::string text;
  for (char c : words)
    text += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return text;
}

class Svg {
public:
  Svg(double width, double height) {
    print("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
          "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"12\">\n",
          width, height);
    print("<rect width=\"%.0f\" height=\"%.0f\" fill=\"white\"/>\n", width,
          height);
  }
  void text(double x, double y, std::string_view words) {
    print("<text x=\"%.1f\" y=\"%.1f\">", x, y);
    made += escaped(words) + "</text>\n";
  }
  void bar(double x, double y, double width, double height,
           std::string_view color) {
    print("<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"",
          x, y, width, height);
    made += std::string(color) + "\"/>\n";
  }
  std::string finish() { return made + "</svg>\n"; }

private:
  template <typename... Values>
  void print(const char *format, Values... values) {
    char buffer[256];
    std::snprintf(buffer, sizeof buffer, format, values...);
    made += buffer;
  }
  std::string made;
};

} // namespace

std::map<int, std::string> streamsOf(const RankTasks &tasks) {
  std::map<int, std::string> streams;
  for (const Task &task : tasks)
    streams.try_emplace(task.stream,
                        task.stream == kComputeStream
                            ? "kernels"
                            : "communication " + std::to_string(task.stream));
  return streams;
}

std::string nameOfRank(const StepResult &result, size_t rank) {
  std::string name = "rank " + std::to_string(rank);
  const std::vector<int64_t> &stages = result.ranks[rank].stages;
  for (int64_t stage : stages)
    name +=
        (stage == stages.front() ? " (stage " : ", ") + std::to_string(stage);
  return stages.empty() ? "every rank" : name + ")";
}

std::string toTrace(const StepResult &result) {
  using nlohmann::ordered_json;
  ordered_json events = ordered_json::array();
  int64_t arrows = 0;
  for (size_t rank = 0; rank < result.tasks.size(); ++rank) {
    events.push_back({{"ph", "M"},
                      {"pid", rank},
                      {"name", "process_name"},
                      {"args", {{"name", nameOfRank(result, rank)}}}});
    for (const auto &[stream, name] : streamsOf(result.tasks[rank]))
      events.push_back({{"ph", "M"},
                        {"pid", rank},
                        {"tid", stream},
                        {"name", "thread_name"},
                        {"args", {{"name", name}}}});
    for (const Task &task : result.tasks[rank]) {
      ordered_json event = {{"ph", "X"},
                            {"pid", rank},
                            {"tid", task.stream},
                            {"name", std::string(task.name)},
                            {"cat", std::string(spelling(task.spent))},
                            {"ts", task.start * 1e6},
                            {"dur", task.seconds * 1e6}};
      if (task.bytes > 0)
        event["args"] = {{"bytes", task.bytes}};
      events.push_back(std::move(event));
      for (int number : task.after) {
        const Task &other = result.tasks[rank][size_t(number)];
        if (other.stream == task.stream)
          continue;
        ordered_json begin = {{"ph", "s"},
                              {"pid", rank},
                              {"tid", other.stream},
                              {"name", "waits for"},
                              {"cat", "wait"},
                              {"id", arrows},
                              {"ts", other.end * 1e6}};
        ordered_json end = begin;
        end["ph"] = "f";
        end["bp"] = "e";
        end["tid"] = task.stream;
        end["ts"] = task.start * 1e6;
        events.push_back(std::move(begin));
        events.push_back(std::move(end));
        ++arrows;
      }
    }
  }
  ordered_json all = {{"traceEvents", std::move(events)},
                      {"displayTimeUnit", "ms"}};
  return all.dump(0, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string toSvg(const StepResult &result, const std::string &title) {
  constexpr double left = 190, width = 1000, line = 18, gap = 10, top = 58;
  double height = top + 30;
  for (const RankTasks &tasks : result.tasks)
    height += line * double(streamsOf(tasks).size()) + gap;
  Svg svg(left + width + 20, height);
  svg.text(left, 20, title);
  double keyX = left;
  for (Spent spent :
       {Spent::Arithmetic, Spent::Memory, Spent::Launch, Spent::Exchange}) {
    svg.bar(keyX, 32, 12, 12, colorOf(spent));
    svg.text(keyX + 16, 42, spelling(spent));
    keyX += 120;
  }
  double scale = width / std::max(result.seconds, 1e-12), y = top;
  for (size_t rank = 0; rank < result.tasks.size(); ++rank) {
    svg.text(8, y + 13, nameOfRank(result, rank));
    for (const auto &[stream, name] : streamsOf(result.tasks[rank])) {
      svg.text(110, y + 13, stream == kComputeStream ? "kernels" : "links");
      // What is too short to be seen, and touches what is before it, is one
      // bar with that.
      double from = 0, to = -1;
      Spent spent = Spent::Arithmetic;
      auto draw = [&] {
        if (to >= from)
          svg.bar(left + from * scale, y, std::max((to - from) * scale, 0.3),
                  line - 3, colorOf(spent));
      };
      for (const Task &task : result.tasks[rank]) {
        if (task.stream != stream || task.seconds <= 0)
          continue;
        bool isOne =
            task.spent == spent && (task.start - to) * scale < 0.25 && to >= 0;
        if (!isOne) {
          draw();
          from = task.start;
        }
        to = task.end;
        spent = task.spent;
      }
      draw();
      y += line;
    }
    y += gap;
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.3f ms", result.seconds * 1e3);
  svg.text(left + width - 60, y + 14, text);
  svg.text(left, y + 14, "0");
  return svg.finish();
}

} // namespace tandem::simulate
