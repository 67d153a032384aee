//===- FlameGraph.cpp - where in a model the time goes, as a picture ------===//
#include "tools/tandem/FlameGraph.h"

#include "runtime/artifact/Text.h"
#include "tools/commands/KernelTimes.h"
#include "tools/commands/Svg.h"

#include <map>
#include <memory>

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;

static constexpr double kWidth = 1200, kRow = 20, kTop = 30;

namespace {
/// What lies below one box, in the order of names: the same model gives the
/// same picture but for its times.
struct Frame {
  double seconds = 0;
  std::map<std::string, Frame> below;

  Frame &at(const std::string &name) { return below[name]; }
  size_t depth() const {
    size_t most = 0;
    for (const auto &[name, frame] : below)
      most = std::max(most, frame.depth());
    return most + 1;
  }
};

class Picture {
public:
  Picture(const Frame &root, const std::string &title)
      : all(root.seconds), svg(kWidth, kTop + kRow * double(root.depth())) {
    svg.text(kWidth / 2, 20, "middle", title);
  }
  std::string finish() && { return std::move(svg).finish(); }

  void draw(const std::string &name, const Frame &frame, double x, int depth,
            bool isGradient) {
    double width = all > 0 ? kWidth * frame.seconds / all : 0;
    if (width < 0.3) // nobody could see it
      return;
    double y = kTop + kRow * depth;
    svg.box(x, y, width, kRow - 1, colorOf(name, isGradient),
            name + ": " + fixed(frame.seconds * 1e3, 4) + " ms, " +
                percent(frame.seconds, all));
    constexpr double letter = 7;
    size_t room = size_t(width / letter);
    if (room > 2)
      svg.text(x + 3, y + 14, "start", shortened(name, room));
    for (const auto &[inner, one] : frame.below) {
      draw(inner, one, x, depth + 1,
           isGradient || (depth == 0 && inner == "backward"));
      x += all > 0 ? kWidth * one.seconds / all : 0;
    }
  }

private:
  /// Not within a letter of UTF-8.
  static std::string shortened(const std::string &name, size_t room) {
    if (name.size() <= room)
      return name;
    size_t end = room - 1;
    while (end > 0 && (name[end] & 0xc0) == 0x80)
      --end;
    return name.substr(0, end) + "…";
  }
  static std::string_view colorOf(const std::string &name, bool isGradient) {
    static constexpr std::string_view cold[] = {"#cfe3f5", "#b9d6ef",
                                                "#a9cbe9"},
                                      warm[] = {"#fbd9b5", "#f8c999",
                                                "#f5bb82"};
    unsigned sum = 0; // the same on every machine
    for (char c : name)
      sum = sum * 31 + static_cast<unsigned char>(c);
    return (isGradient ? warm : cold)[sum % 3];
  }

  double all;
  Svg svg;
};
} // namespace

std::string commands::flameGraph(const Json &facts) {
  Frame root;
  for (const Json &launch : facts["launches"]) {
    double seconds = launch["seconds"]["median"];
    std::string pass = launch.value("pass", std::string());
    std::vector<std::string> names = {pass.empty() ? "others" : pass};
    std::string path = launch.value("path", std::string());
    if (path.empty())
      names.push_back(launch.value("where", std::string("(no place)")));
    // Nodes of some formats are called "/layers.3/attn/MatMul".
    char between = path.find('/') == path.npos ? '.' : '/';
    for (size_t begin = 0; begin < path.size();) {
      size_t end = std::min(path.find(between, begin), path.size());
      if (end > begin)
        names.push_back(path.substr(begin, end - begin));
      begin = end + 1;
    }
    names.push_back(launch["kernel"]);
    Frame *frame = &root;
    frame->seconds += seconds;
    for (const std::string &name : names) {
      frame = &frame->at(artifact::printable(name));
      frame->seconds += seconds;
    }
  }
  std::string program = facts["program"];
  Picture picture(root,
                  program + " of " +
                      artifact::printable(facts["source"].get<std::string>()) +
                      ": " + fixed(root.seconds * 1e3, 4) +
                      " ms in launches, each undisturbed (sum of medians)");
  picture.draw(program, root, 0, 0, false);
  return std::move(picture).finish();
}
