//===- Svg.h - the parts of a picture -------------------------------------===//
//
// Units are pixels, from the upper left corner.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_SVG_H
#define TANDEM_TOOLS_COMMANDS_SVG_H

#include <string>
#include <string_view>
#include <vector>

namespace tandem::commands {

/// About `count` round steps that enclose `least` and `most`.
std::vector<double> ticks(double least, double most, int count);

class Svg {
public:
  /// A white picture of this size.
  Svg(double width, double height);

  /// `style` are attributes: `stroke="#ddd"`.
  void line(double x1, double y1, double x2, double y2, std::string_view style);
  /// `anchor` is start, middle or end.
  void text(double x, double y, std::string_view anchor,
            std::string_view words);
  /// `title` is shown where somebody points at it.
  void box(double x, double y, double width, double height,
           std::string_view color, std::string_view title);
  void circle(double x, double y, std::string_view color);
  /// `points` is what `point` made, one after the other.
  void path(const std::string &points, std::string_view color);
  /// Returns the next point of a path, the first one if it `begins`.
  static std::string point(double x, double y, bool begins);

  /// Returns the whole file.
  std::string finish() &&;

private:
  std::string text_;
};

} // namespace tandem::commands

#endif
