//===- EventFile.cpp - training as events of TensorBoard ------------------===//
#include "tools/commands/EventFile.h"

#include "runtime/io/Array.h"

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>

namespace tandem::commands {
namespace {

/// Of Castagnoli's polynomial, its bits reversed.
constexpr std::array<uint32_t, 256> crcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    table[i] = crc;
  }
  return table;
}();

template <typename T> void appendLittle(std::string &to, T value) {
  for (size_t i = 0; i < sizeof value; ++i)
    to += char(value >> 8 * i);
}

void appendVarint(std::string &to, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    to += char(value | 0x80);
  to += char(value);
}

/// Protocol buffers: a key is a field's number and how its value is written.
enum Wire : uint64_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

void appendKey(std::string &to, uint64_t field, Wire wire) {
  appendVarint(to, field << 3 | wire);
}

void appendBytes(std::string &to, uint64_t field, std::string_view bytes) {
  appendKey(to, field, Bytes);
  appendVarint(to, bytes.size());
  to += bytes;
}

// Fields of tensorflow.Event, Summary, Summary.Value and SessionLog.
enum : uint64_t {
  WallTime = 1,
  Step = 2,
  FileVersion = 3,
  SummaryOf = 5,
  Session = 7,
  ValueOf = 1,
  Tag = 1,
  SimpleValue = 2,
  SessionStatus = 1,
  HistogramOf = 5
};

// Fields of tensorflow.HistogramProto.
enum : uint64_t {
  Least = 1,
  Most = 2,
  Count = 3,
  Sum = 4,
  Squares = 5,
  BucketLimit = 6,
  Bucket = 7
};

std::string eventOf(double time, int64_t step) {
  std::string event;
  appendKey(event, WallTime, Fixed64);
  appendLittle(event, std::bit_cast<uint64_t>(time));
  if (step) {
    appendKey(event, Step, Varint);
    appendVarint(event, uint64_t(step));
  }
  return event;
}

uint32_t masked(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

std::string recordOf(const std::string &event) {
  std::string record;
  appendLittle(record, uint64_t(event.size()));
  appendLittle(record, masked(record));
  record += event;
  appendLittle(record, masked(event));
  return record;
}

double now() {
  using namespace std::chrono;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

} // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (char c : bytes)
    crc = crc >> 8 ^ crcTable[(crc ^ uint8_t(c)) & 0xff];
  return ~crc;
}

std::string versionRecord(double time) {
  std::string event = eventOf(time, 0);
  appendBytes(event, FileVersion, "brain.Event:2");
  return recordOf(event);
}

std::string startRecord(double time, int64_t step) {
  constexpr uint64_t start = 1;
  std::string session, event = eventOf(time, step);
  appendKey(session, SessionStatus, Varint);
  appendVarint(session, start);
  appendBytes(event, Session, session);
  return recordOf(event);
}

std::string scalarsRecord(double time, int64_t step,
                          std::span<const Scalar> scalars) {
  std::string summary, event = eventOf(time, step);
  for (const auto &[name, number] : scalars) {
    std::string value;
    appendBytes(value, Tag, name);
    appendKey(value, SimpleValue, Fixed32);
    appendLittle(value, std::bit_cast<uint32_t>(float(number)));
    appendBytes(summary, ValueOf, value);
  }
  appendBytes(event, SummaryOf, summary);
  return recordOf(event);
}

/// Each bucket begins where the one before ends: empty ones are one.
static std::string histogramProto(const Histogram &histogram) {
  std::string limits, counts, proto;
  auto bucket = [&](double limit, int64_t count) {
    appendLittle(limits, std::bit_cast<uint64_t>(limit));
    appendLittle(counts, std::bit_cast<uint64_t>(double(count)));
  };
  double end = NAN;
  for (auto [number, count] : histogram.counts) {
    auto [low, high] = Histogram::boundsOf(number);
    if (low != end)
      bucket(low, 0);
    bucket(high, count);
    end = high;
  }
  auto number = [&](uint64_t field, double value) {
    appendKey(proto, field, Fixed64);
    appendLittle(proto, std::bit_cast<uint64_t>(value));
  };
  number(Least, histogram.least);
  number(Most, histogram.most);
  number(Count, double(histogram.count));
  number(Sum, histogram.sum);
  number(Squares, histogram.squares);
  appendBytes(proto, BucketLimit, limits);
  appendBytes(proto, Bucket, counts);
  return proto;
}

std::string histogramsRecord(double time, int64_t step,
                             const NamedHistograms &histograms) {
  std::string summary, event = eventOf(time, step);
  for (const auto &[name, histogram] : histograms) {
    if (histogram.count == 0) // TensorBoard has no picture of nothing
      continue;
    std::string value;
    appendBytes(value, Tag, name);
    appendBytes(value, HistogramOf, histogramProto(histogram));
    appendBytes(summary, ValueOf, value);
  }
  appendBytes(event, SummaryOf, summary);
  return recordOf(event);
}

Status EventFile::open(const std::string &folder,
                       std::optional<int64_t> goesOnAfter) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder, error))
    return Status::failed("--tensorboard: cannot make the folder " +
                          io::inQuotes(folder) + ": " +
                          (error ? error.message() : "it is a file"));
  // TensorBoard reads files in the order of their names.
  double time = now();
  for (int64_t micros = int64_t(time * 1e6); !isOpen(); ++micros) {
    char name[80];
    std::snprintf(name, sizeof name,
                  "/events.out.tfevents.%010lld.%06lld.tandem",
                  static_cast<long long>(micros / 1000000),
                  static_cast<long long>(micros % 1000000));
    Status status = file_.open(folder + name, /*isNew=*/true);
    if (!isOpen() && errno != EEXIST)
      return status;
  }
  file_.append(versionRecord(time));
  if (goesOnAfter)
    file_.append(startRecord(time, *goesOnAfter + 1));
  return Status::success();
}

void EventFile::write(int64_t step, std::span<const Scalar> scalars) {
  file_.append(scalarsRecord(now(), step, scalars));
}

void EventFile::write(int64_t step, const NamedHistograms &histograms) {
  file_.append(histogramsRecord(now(), step, histograms));
}

} // namespace tandem::commands
