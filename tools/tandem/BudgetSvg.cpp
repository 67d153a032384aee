//===- BudgetSvg.cpp - the budget curve as a picture ----------------------===//
//
// Planned peak to the right, time of a step upwards: predicted and measured,
// one mark for each budget. Both axes begin at zero, so that distances are
// ratios.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/BudgetCurve.h"

#include "tools/commands/Print.h"

#include <algorithm>
#include <cmath>

using namespace tandem;
using namespace tandem::commands;

namespace {

constexpr double kWidth = 760, kHeight = 440;
constexpr double kLeft = 80, kRight = 56, kTop = 56, kBottom = 56;

/// About `count` round steps up to at least `most`.
std::vector<double> ticks(double most, int count) {
  double raw = std::max(most, 1e-12) / count;
  double unit = std::pow(10.0, std::floor(std::log10(raw)));
  double step = unit * 10;
  for (double factor : {1.0, 2.0, 5.0})
    if (unit * factor >= raw * (1 - 1e-9)) {
      step = unit * factor;
      break;
    }
  std::vector<double> all{0};
  while (all.back() < most * (1 - 1e-9))
    all.push_back(step * static_cast<double>(all.size()));
  return all;
}

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
  void line(double x1, double y1, double x2, double y2, const char *style);
  void text(double x, double y, const char *anchor, const std::string &words);
  void axes();
  void series(Time time, const char *color, const char *name, double keyX);

  const BudgetCurve &curve;
  std::vector<double> xs, ys;
  std::string svg;
};

} // namespace

static std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

static std::string escaped(const std::string &words) {
  std::string text;
  for (char c : words)
    text += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return text;
}

void Picture::line(double x1, double y1, double x2, double y2,
                   const char *style) {
  svg += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" +
         number(x2) + "\" y2=\"" + number(y2) + "\" " + style + "/>\n";
}

void Picture::text(double x, double y, const char *anchor,
                   const std::string &words) {
  svg += "<text x=\"" + number(x) + "\" y=\"" + number(y) +
         "\" text-anchor=\"" + anchor + "\">" + escaped(words) + "</text>\n";
}

void Picture::axes() {
  for (double bytes : xs) {
    line(x(bytes), y(0), x(bytes), y(ys.back()), "stroke=\"#ddd\"");
    text(x(bytes), y(0) + 18, "middle",
         bytes ? bytesText(static_cast<int64_t>(bytes)) : "0");
  }
  for (double seconds : ys) {
    line(x(0), y(seconds), x(xs.back()), y(seconds), "stroke=\"#ddd\"");
    text(x(0) - 8, y(seconds) + 4, "end",
         seconds ? roundedText(seconds * 1e3) + " ms" : "0");
  }
  line(x(0), y(0), x(xs.back()), y(0), "stroke=\"#333\"");
  line(x(0), y(0), x(0), y(ys.back()), "stroke=\"#333\"");
  text(kLeft, 24, "start",
       "time of a step against its planned peak: " + curve.model + ", " +
           curve.target);
  text((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle",
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
    path += (path.empty() ? "M" : "L") + number(px) + " " + number(py);
    svg += "<circle cx=\"" + number(px) + "\" cy=\"" + number(py) +
           "\" r=\"4\" fill=\"" + color + "\"/>\n";
    // The lowest budget of those that chose the same plan.
    if (std::hypot(px - lastX, py - lastY) > 14)
      text(px + 6, py - 7, "start", number(point.budget));
    lastX = px;
    lastY = py;
  }
  if (path.empty())
    return;
  svg += "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + color + "\"/>\n";
  svg += "<circle cx=\"" + number(keyX) + "\" cy=\"40\" r=\"4\" fill=\"" +
         color + "\"/>\n";
  text(keyX + 10, 44, "start", name);
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
  xs = ticks(mostBytes / unit, 6);
  for (double &bytes : xs)
    bytes *= unit;
  ys = ticks(mostSeconds ? mostSeconds : 1e-3, 5);
  svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(kWidth) +
        "\" height=\"" + number(kHeight) +
        "\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  axes();
  series(&CurvePoint::predicted, "#1f77b4", "predicted", kLeft);
  series(&CurvePoint::measured, "#d62728", "measured", kLeft + 110);
  return svg + "</svg>\n";
}

std::string tandem::toSvg(const BudgetCurve &curve) {
  return Picture(curve).draw();
}
