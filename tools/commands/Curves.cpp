//===- Curves.cpp - a training's log as a picture -------------------------===//
#include "tools/commands/Curves.h"

#include "runtime/artifact/AtomicFile.h"
#include "runtime/io/File.h"
#include "tools/commands/Log.h"
#include "tools/commands/Print.h"
#include "tools/commands/Svg.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem::commands {
namespace {

constexpr double kWidth = 760, kPanel = 260;
constexpr double kLeft = 80, kRight = 24, kTop = 48, kBottom = 32;
constexpr int64_t kColumns = 600; ///< of a panel, at most one point each

struct Point {
  int64_t step;
  double value;
};

struct Series {
  std::string name;
  std::vector<Point> points;
};

class Picture {
public:
  explicit Picture(const std::string &loss) : loss_("eval." + loss) {}

  void take(const std::vector<Scalar> &scalars);
  std::string draw();

private:
  using Names = std::vector<const Series *>;
  void panel(Svg &svg, double top, const char *title, const Names &series);
  void curve(Svg &svg, const Series &series, std::string_view color,
             const std::vector<double> &ys, double top) const;
  double x(double step) const {
    return kLeft + (step - xs_.front()) / (xs_.back() - xs_.front()) *
                       (kWidth - kLeft - kRight);
  }
  static double y(double value, const std::vector<double> &ys, double top) {
    return top + kPanel - kBottom -
           (value - ys.front()) / (ys.back() - ys.front()) *
               (kPanel - kTop - kBottom);
  }

  std::string loss_;
  std::vector<Series> all_;
  std::vector<double> xs_;
  int64_t last_ = 0;
};

void Picture::take(const std::vector<Scalar> &scalars) {
  auto step = std::ranges::find(scalars, "step", &Scalar::first);
  if (step == scalars.end())
    return;
  auto now = int64_t(step->second);
  if (now < last_)
    for (Series &series : all_)
      while (!series.points.empty() && series.points.back().step >= now)
        series.points.pop_back();
  last_ = now;
  for (const auto &[name, value] : scalars) {
    if (name != "loss" && name != "lr" && !name.starts_with("eval."))
      continue;
    auto found = std::ranges::find(all_, name, &Series::name);
    if (found == all_.end())
      found = all_.insert(found, Series{name, {}});
    if (found->points.empty() || found->points.back().step < now)
      found->points.push_back({now, value});
    else
      found->points.back().value = value;
  }
}

void Picture::curve(Svg &svg, const Series &series, std::string_view color,
                    const std::vector<double> &ys, double top) const {
  std::string path;
  bool begins = true;
  const std::vector<Point> &points = series.points;
  size_t each = (points.size() + kColumns - 1) / kColumns, drawn = 0;
  double lastX = 0, lastY = 0;
  for (size_t i = 0; i < points.size(); i += each) {
    double steps = 0, values = 0, count = 0;
    for (size_t j = i; j < std::min(i + each, points.size()); ++j)
      if (std::isfinite(points[j].value)) {
        steps += double(points[j].step);
        values += points[j].value;
        ++count;
      }
    if (count > 0) {
      lastX = x(steps / count);
      lastY = y(values / count, ys, top);
      path += Svg::point(lastX, lastY, begins);
      ++drawn;
    }
    begins = count == 0;
  }
  if (drawn == 1)
    svg.circle(lastX, lastY, color);
  else if (drawn > 1)
    svg.path(path, color);
}

void Picture::panel(Svg &svg, double top, const char *title,
                    const Names &series) {
  double least = INFINITY, most = -INFINITY;
  for (const Series *one : series)
    for (const Point &point : one->points)
      if (std::isfinite(point.value)) {
        least = std::min(least, point.value);
        most = std::max(most, point.value);
      }
  if (!(most - least > 1e-9 * std::max(std::fabs(most), 1e-300))) {
    double around = std::isfinite(most) && most != 0 ? std::fabs(most) / 2 : 1;
    most = (std::isfinite(most) ? most : 0) + around;
    least = most - 2 * around;
  }
  std::vector<double> ys = ticks(least, most, 4);
  for (double value : ys) {
    double at = y(value, ys, top);
    svg.line(kLeft, at, kWidth - kRight, at, "stroke=\"#ddd\"");
    bool isZero = std::fabs(value) < 1e-9 * (ys.back() - ys.front());
    svg.text(kLeft - 8, at + 4, "end", isZero ? "0" : roundedText(value));
  }
  for (double step : xs_) {
    double at = x(step);
    svg.line(at, y(ys.front(), ys, top), at, y(ys.back(), ys, top),
             "stroke=\"#ddd\"");
    svg.text(at, top + kPanel - 14, "middle",
             std::to_string(int64_t(std::llround(step))));
  }
  svg.text(kLeft, top + 20, "start", title);
  constexpr std::string_view colors[] = {"#1f77b4", "#d62728", "#2ca02c",
                                         "#9467bd", "#ff7f0e", "#8c564b",
                                         "#e377c2", "#17becf"};
  double key = kLeft;
  for (size_t i = 0; i < series.size(); ++i) {
    std::string_view color = colors[i % std::size(colors)];
    curve(svg, *series[i], color, ys, top);
    svg.circle(key + 4, top + 34, color);
    svg.text(key + 14, top + 38, "start", series[i]->name);
    key += 34 + 7 * double(series[i]->name.size());
  }
}

std::string Picture::draw() {
  Names losses, metrics, rates;
  double first = INFINITY, last = 1;
  for (const Series &series : all_) {
    if (series.points.empty() || series.name == "eval.rows")
      continue;
    first = std::min(first, double(series.points.front().step));
    last = std::max(last, double(series.points.back().step));
    (series.name == "lr"                             ? rates
     : series.name == "loss" || series.name == loss_ ? losses
                                                     : metrics)
        .push_back(&series);
  }
  first = std::min(first, last - 1);
  xs_ = ticks(first, last, 6);
  // Steps are whole numbers.
  if (xs_[1] - xs_[0] < 1)
    xs_ = {std::floor(first), std::ceil(last)};
  std::pair<const char *, const Names *> panels[] = {
      {"loss", &losses}, {"evaluation", &metrics}, {"learning rate", &rates}};
  auto count = std::ranges::count_if(
      panels, [](const auto &one) { return !one.second->empty(); });
  Svg svg(kWidth, kPanel * double(std::max<int64_t>(count, 1)));
  double top = 0;
  for (const auto &[title, series] : panels)
    if (!series->empty()) {
      panel(svg, top, title, *series);
      top += kPanel;
    }
  return std::move(svg).finish();
}

/// Returns the cells of a line; a name may be in quotes, in which a quote is
/// doubled.
std::vector<std::string> cellsOf(std::string_view line) {
  std::vector<std::string> cells(1);
  bool isQuoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    bool isDoubled = isQuoted && line.substr(i).starts_with("\"\"");
    if (line[i] == '"' && !isDoubled)
      isQuoted = !isQuoted;
    else if (line[i] == ',' && !isQuoted)
      cells.emplace_back();
    else
      cells.back() += line[i];
    i += isDoubled;
  }
  return cells;
}

} // namespace

std::string curvesOf(std::string_view log, bool isTable,
                     const std::string &loss) {
  Picture picture(loss);
  std::vector<std::string> columns;
  while (!log.empty()) {
    size_t end = std::min(log.find('\n'), log.size());
    std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (!isTable) {
      picture.take(scalarsOf(line));
    } else if (columns.empty()) {
      columns = cellsOf(line);
    } else {
      std::vector<Scalar> scalars;
      auto cells = cellsOf(line);
      for (size_t i = 0; i < std::min(cells.size(), columns.size()); ++i)
        if (!cells[i].empty())
          scalars.emplace_back(columns[i],
                               std::strtod(cells[i].c_str(), nullptr));
      picture.take(scalars);
    }
  }
  return picture.draw();
}

Status drawCurves(const std::string &from, const std::string &to,
                  const std::string &loss) {
  auto log = io::readFile(from);
  if (!log)
    return std::move(log).status();
  std::string svg = curvesOf(io::asText(*log), from.ends_with(".csv"), loss);
  auto file = artifact::AtomicFile::create(to);
  if (!file)
    return std::move(file).status();
  if (Status status = file->write(svg.data(), svg.size()); !status)
    return status;
  return file->commit();
}

} // namespace tandem::commands
