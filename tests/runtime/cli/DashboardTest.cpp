//===- DashboardTest.cpp - a training in a browser ------------------------===//
//
// Who is refused stands in tests/cli/dashboard.sh.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/Dashboard.h"

#include <arpa/inet.h>
#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

namespace tandem::commands::test {
namespace {

using Json = nlohmann::json;

std::unique_ptr<Dashboard> opened() {
  auto dashboard = Dashboard::open("127.0.0.1:0", "<b>&model");
  EXPECT_TRUE(dashboard.ok()) << dashboard.status().message();
  return std::move(*dashboard);
}

/// A browser that has asked for a part of the page.
class Browser {
public:
  Browser(const std::string &url, const std::string &part) {
    size_t colon = url.rfind(':'), slash = url.find('/', colon);
    std::string port = url.substr(colon + 1, slash - colon - 1);
    socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(uint16_t(std::stoi(port)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr *>(&address),
                        sizeof address),
              0);
    std::string request = "GET " + url.substr(slash) + part +
                          " HTTP/1.1\r\nHost: 127.0.0.1:" + port + "\r\n\r\n";
    EXPECT_EQ(::send(socket, request.data(), request.size(), 0),
              ssize_t(request.size()));
  }
  ~Browser() { ::close(socket); }

  /// All that comes until `mark` does, or the end.
  std::string until(std::string_view mark) {
    char bytes[4096];
    while (text.find(mark) == text.npos) {
      ssize_t count = ::recv(socket, bytes, sizeof bytes, 0);
      if (count <= 0)
        break;
      text.append(bytes, size_t(count));
    }
    return text;
  }

private:
  int socket;
  std::string text;
};

/// The points that the events of `text` leave.
Json pointsOf(const std::string &text) {
  Json points = Json::array();
  for (size_t at = 0; (at = text.find("event: ", at)) != text.npos; ++at) {
    std::string name = text.substr(at + 7, text.find('\n', at) - at - 7);
    size_t data = text.find("data: ", at) + 6;
    std::string line = text.substr(data, text.find('\n', data) - data);
    if (name == "all")
      points = Json::parse(line);
    else if (name == "steps")
      for (const Json &point : Json::parse(line))
        points.push_back(point);
  }
  return points;
}

TEST(Dashboard, ShowsEachStepAndTheEnd) {
  auto dashboard = opened();
  Browser browser(dashboard->url(), "events");
  browser.until("event: all");
  for (int i = 1; i <= 100; ++i)
    dashboard->step({double(i), 1, i == 50 ? NAN : 1.0 / i, NAN, 10, 1e6, 0.5});
  dashboard->evaluation(100, {{"a \"name\"", 0.25}, {"none", NAN}});
  dashboard->end("all is done");
  dashboard->end("what comes later does not count");
  dashboard.reset();
  std::string text = browser.until("never");
  Json points = pointsOf(text);
  ASSERT_EQ(points.size(), 100u);
  for (int i = 1; i <= 100; ++i) {
    EXPECT_EQ(points[i - 1][0], i);
    if (i == 50)
      EXPECT_TRUE(points[i - 1][2].is_null());
    else
      EXPECT_EQ(double(points[i - 1][2]), 1.0 / i);
    EXPECT_TRUE(points[i - 1][3].is_null());
  }
  EXPECT_NE(
      text.find("data: {\"step\":100,\"numbers\":{\"a \\\"name\\\"\":0.25,"
                "\"none\":null}}\n"),
      text.npos)
      << text;
  EXPECT_NE(text.find("event: end\ndata: \"all is done\"\n\n"), text.npos);
}

Histogram histogramOf(std::vector<float> values) {
  int64_t count = int64_t(values.size());
  return Histogram::of(*runtime::Tensor::copyOf(
      values.data(), artifact::DType::F32, std::span(&count, 1)));
}

TEST(Histogram, BucketsAreQuartersOfOctaves) {
  for (int number = 1; number <= Histogram::kBuckets; ++number) {
    auto [low, high] = Histogram::boundsOf(number);
    EXPECT_EQ(Histogram::bucketOf(low), number);
    EXPECT_EQ(Histogram::bucketOf(std::nextafter(high, 0.0)), number);
    EXPECT_EQ(Histogram::bucketOf(-low), -number);
    EXPECT_EQ(Histogram::boundsOf(-number), std::pair(-high, -low));
    EXPECT_EQ(Histogram::bucketOf(std::nextafter(low, 0.0)), number - 1);
  }
  EXPECT_EQ(Histogram::bucketOf(-0.0), 0);
  EXPECT_EQ(Histogram::bucketOf(5e-324), 0);
  EXPECT_EQ(Histogram::bucketOf(1e300), Histogram::kBuckets);
}

TEST(Histogram, CountsWhatIsFinite) {
  Histogram made = histogramOf({1, 1.2f, -3, 0, NAN, INFINITY, -INFINITY});
  EXPECT_EQ(made.count, 4);
  EXPECT_EQ(made.nonFinite, 3);
  EXPECT_EQ(made.least, -3);
  EXPECT_EQ(made.most, 1.2f);
  EXPECT_TRUE(jsonOf(made).starts_with(
      "{\"count\": 4, \"nonfinite\": 3, \"min\": -3, \"max\": 1.2"))
      << jsonOf(made);
  EXPECT_NE(jsonOf(made).find("\"buckets\": [[-3.5, -3, 1], "
                              "[-9.094947017729282e-13, "
                              "9.094947017729282e-13, 1], [1, 1.25, 2]]"),
            std::string::npos)
      << jsonOf(made);
  EXPECT_EQ(jsonOf(histogramOf({NAN})),
            "{\"count\": 0, \"nonfinite\": 1, \"min\": 0, \"max\": 0, "
            "\"sum\": 0, \"squares\": 0, \"buckets\": []}");
}

TEST(Dashboard, ShowsHistogramsAlsoToWhoComesLate) {
  auto dashboard = opened();
  Browser early(dashboard->url(), "events");
  early.until("event: all");
  NamedHistograms one = {{"grad/\"w\"", histogramOf({1, -0.25f, 0, 0, NAN})}};
  dashboard->histograms(7, one);
  std::string wanted =
      "event: histograms\ndata: "
      "{\"step\":7,\"histograms\":{\"grad/\\\"w\\\"\":{\"octaves\":[[-39,1],"
      "[0,2],[41,1]],\"min\":-0.25,\"max\":1,\"mean\":0.1875,"
      "\"deviation\":" +
      std::to_string(std::sqrt(1.0625 / 4 - 0.1875 * 0.1875)).substr(0, 6);
  EXPECT_NE(early.until("nonfinite\":1}}}\n\n").find(wanted), std::string::npos)
      << early.until("}");
  // Of many, what a late browser gets is thinned out; first and last stay.
  std::vector<float> many;
  for (int i = -60; i < 60; ++i)
    many.push_back(float(std::ldexp(i < 0 ? -1 : 1, i / 2)));
  NamedHistograms all;
  for (int i = 0; i < 300; ++i)
    all.emplace_back("h" + std::to_string(1000 + i), histogramOf(many));
  for (int step = 8; step <= 20; ++step) {
    dashboard->histograms(step, all);
    early.until("{\"step\":" + std::to_string(step) + ",\"h");
  }
  Browser late(dashboard->url(), "events");
  std::string text = late.until("{\"step\":20,\"histograms\"");
  EXPECT_NE(text.find("{\"step\":20,\"histograms\""), text.npos);
  EXPECT_NE(text.find("{\"step\":7,\"histograms\""), text.npos);
  EXPECT_LT(text.size(), 600u << 10);
  dashboard.reset();
  EXPECT_EQ(late.until("never").find("h1200"), text.npos);
}

TEST(Dashboard, KeepsMeansOfALongTraining) {
  auto dashboard = opened();
  Browser browser(dashboard->url(), "events");
  browser.until("event: all");
  for (int i = 0; i < 5000; ++i) {
    dashboard->step({double(i), 1, double(i % 2), 0.1, 10, 1e6, 0.5});
    if (i % 1000 == 999) // the server has seen what the ring holds
      browser.until("[" + std::to_string(i) + ",");
  }
  dashboard.reset();
  Json points = pointsOf(browser.until("never"));
  EXPECT_GT(points.size(), 1000u);
  EXPECT_LT(points.size(), 2000u);
  for (const Json &point : points)
    EXPECT_EQ(double(point[2]), 0.5);
}

TEST(Dashboard, WaitsForNobody) {
  auto dashboard = opened();
  Browser deaf(dashboard->url(), "events"); // reads nothing, ever
  std::string name(10000, 'x');
  for (int i = 0; i < 2000; ++i) {
    dashboard->step({double(i), 1, 1, 0.1, 10, 1e6, 0.5});
    dashboard->evaluation(i, {{name, 1}});
    if (i % 100 == 0)
      ::usleep(10000);
  }
  Browser other(dashboard->url(), "events");
  EXPECT_NE(other.until("event: all").find("event: all"), std::string::npos);
}

TEST(Dashboard, ShowsNamesAsText) {
  auto dashboard = opened();
  std::string page = Browser(dashboard->url(), "").until("</html>");
  EXPECT_NE(page.find("<h1>&lt;b>&amp;model</h1>"), page.npos) << page;
}

TEST(Dashboard, SaysThatItsPortIsTaken) {
  auto dashboard = opened();
  const std::string &url = dashboard->url();
  std::string address = url.substr(7, url.find('/', 7) - 7);
  auto second = Dashboard::open(address, "another");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().message(), "--dashboard: cannot listen on " +
                                           address +
                                           ": Address already in use");
}

} // namespace
} // namespace tandem::commands::test
