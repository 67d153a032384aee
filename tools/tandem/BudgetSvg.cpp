//===- BudgetSvg.cpp - the budget curve as a picture ----------------------===//
//
// Planned peak to the right, time of a step upwards: predicted and measured,
// one mark for each budget. Both axes begin at zero, so that distances are
// ratios.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/BudgetCurve.h"

#include "tools/commands/Print.h"
#include "tools/commands/Svg.h"

#include <algorithm>
#include <cmath>
#include <utility>

using namespace tandem;
using namespace tandem::commands;

namespace {

constexpr double kWidth = 760, kHeight = 440;
constexpr double kLeft = 80, kRight = 56, kTop = 56, kBottom = 56;

class Picture {
public:
  explicit Picture(const BudgetCurve &curve) : curve(curve) {}
  std::string draw();

private:
  using Time = std::optional<double> CurvePoint::*;

  double x(double bytes) const {
    return kLeft + bytes / xs.back() * (kWidth - kLeft - kRight);
  }
  double y(double seconds) const {
    return kHeight - kBottom - seconds / ys.back() * (kHeight - kTop - kBottom);
  }
  void axes();
  void series(Time time, const char *color, const char *name, double keyX);

  const BudgetCurve &curve;
  std::vector<double> xs, ys;
  Svg svg{kWidth, kHeight};
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

} // namespace

void Picture::axes() {
  for (double bytes : xs) {
    svg.line(x(bytes), y(0), x(bytes), y(ys.back()), "stroke=\"#ddd\"");
    svg.text(x(bytes), y(0) + 18, "middle",
             bytes ? bytesText(static_cast<int64_t>(bytes)) : "0");
  }
  for (double seconds : ys) {
    svg.line(x(0), y(seconds), x(xs.back()), y(seconds), "stroke=\"#ddd\"");
    svg.text(x(0) - 8, y(seconds) + 4, "end",
             seconds ? roundedText(seconds * 1e3) + " ms" : "0");
  }
  svg.line(x(0), y(0), x(xs.back()), y(0), "stroke=\"#333\"");
  svg.line(x(0), y(0), x(0), y(ys.back()), "stroke=\"#333\"");
  svg.text(kLeft, 24, "start",
           "time of a step against its planned peak: " + curve.model + ", " +
               curve.target);
  svg.text((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle",
           "planned peak of a step");
}

void Picture::series(Time time, const char *color, const char *name,
                     double keyX) {
  std::string path;
  double lastX = -100, lastY = -100;
  for (const CurvePoint &point : curve.points) {
    if (!(point.*time))
      continue;
    double px = x(static_cast<double>(point.peak)), py = y(*(point.*time));
    path += Svg::point(px, py, path.empty());
    svg.circle(px, py, color);
    // The lowest budget of those that chose the same plan.
    if (std::hypot(px - lastX, py - lastY) > 14)
      svg.text(px + 6, py - 7, "start", number(point.budget));
    lastX = px;
    lastY = py;
  }
  if (path.empty())
    return;
  svg.path(path, color);
  svg.circle(keyX, 40, color);
  svg.text(keyX + 10, 44, "start", name);
}

std::string Picture::draw() {
  double mostBytes = 1, mostSeconds = 0;
  for (const CurvePoint &point : curve.points) {
    mostBytes = std::max(mostBytes, static_cast<double>(point.peak));
    mostSeconds = std::max(
        {mostSeconds, point.predicted.value_or(0), point.measured.value_or(0)});
  }
  double unit = 1;
  while (mostBytes / unit >= 1024)
    unit *= 1024;
  xs = ticks(0, mostBytes / unit, 6);
  for (double &bytes : xs)
    bytes *= unit;
  ys = ticks(0, mostSeconds ? mostSeconds : 1e-3, 5);
  axes();
  series(&CurvePoint::predicted, "#1f77b4", "predicted", kLeft);
  series(&CurvePoint::measured, "#d62728", "measured", kLeft + 110);
  return std::move(svg).finish();
}

std::string tandem::toSvg(const BudgetCurve &curve) {
  return Picture(curve).draw();
}
