//===- Svg.cpp - the parts of a picture -----------------------------------===//
#include "tools/commands/Svg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace tandem::commands {

static std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

static std::string escaped(std::string_view words) {
  std::string text;
  for (char c : words)
    text += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return text;
}

std::vector<double> ticks(double least, double most, int count) {
  double raw = std::max(most - least, 1e-12) / count;
  double unit = std::pow(10.0, std::floor(std::log10(raw)));
  double step = unit * 10;
  for (double factor : {1.0, 2.0, 5.0})
    if (unit * factor >= raw * (1 - 1e-9)) {
      step = unit * factor;
      break;
    }
  double first = std::floor(least / step * (1 + 1e-9));
  std::vector<double> all;
  do
    all.push_back(step * (first + double(all.size())));
  while (all.back() < most - step * 1e-9);
  return all;
}

Svg::Svg(double width, double height)
    : text_("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
            number(width) + "\" height=\"" + number(height) +
            "\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n") {}

void Svg::line(double x1, double y1, double x2, double y2,
               std::string_view style) {
  text_ += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" +
           number(x2) + "\" y2=\"" + number(y2) + "\" " + std::string(style) +
           "/>\n";
}

void Svg::text(double x, double y, std::string_view anchor,
               std::string_view words) {
  text_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) +
           "\" text-anchor=\"" + std::string(anchor) + "\">" + escaped(words) +
           "</text>\n";
}

void Svg::box(double x, double y, double width, double height,
              std::string_view color, std::string_view title) {
  text_ += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" +
           number(width) + "\" height=\"" + number(height) + "\" fill=\"" +
           std::string(color) + "\"><title>" + escaped(title) +
           "</title></rect>\n";
}

void Svg::circle(double x, double y, std::string_view color) {
  text_ += "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) +
           "\" r=\"4\" fill=\"" + std::string(color) + "\"/>\n";
}

std::string Svg::point(double x, double y, bool begins) {
  return (begins ? "M" : "L") + number(x) + " " + number(y);
}

void Svg::path(const std::string &points, std::string_view color) {
  text_ += "<path d=\"" + points + "\" fill=\"none\" stroke=\"" +
           std::string(color) + "\"/>\n";
}

std::string Svg::finish() && { return std::move(text_) + "</svg>\n"; }

} // namespace tandem::commands
