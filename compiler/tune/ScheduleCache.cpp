//===- ScheduleCache.cpp - schedules that were found by measuring ---------===//
#include "compiler/tune/ScheduleCache.h"
#include "compiler/CacheFolder.h"
#include "ir/ScheduleMethods.h"
#include "passes/lower/common/ScheduleOverride.h"
#include "runtime/artifact/AtomicFile.h"
#include "runtime/artifact/DeviceFiles.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <nlohmann/json.hpp>

#include <cstdlib>

using namespace mlir;
using namespace tandem;
using nlohmann::json;

static constexpr const char *kFormat = "tandem schedules";
static constexpr int kVersion = 1;

/// What came out of a file, for a message.
static std::string shown(StringRef key) {
  std::string text;
  llvm::raw_string_ostream(text).write_escaped(key.take_front(64),
                                               /*UseHexEscapes=*/true);
  return text;
}

/// What was asked for of the tables; the rest they choose again.
static json toJson(ScheduleAttr schedule) {
  json object = json::object();
  ScheduleAttr asked = schedule ? schedule.getAsked() : ScheduleAttr();
  if (!asked)
    return object;
  for (const ScheduleEntry &entry : asked.getEntries()) {
    const ScheduleKeyRow &row = rowOf(entry.key);
    json &value = object[row.name.str()];
    switch (row.kind) {
    case ScheduleKeyRow::Method:
      value = stringifyScheduleMethod(*asked.getMethod()).str();
      break;
    case ScheduleKeyRow::Flag:
      value = entry.value != 0;
      break;
    case ScheduleKeyRow::Number:
      value = entry.value;
    }
  }
  return object;
}

/// Reads a value of a schedule; says what is wrong with it, or nothing.
static std::string readValue(const std::string &key, const json &value,
                             lower::ScheduleOverride &asked) {
  const ScheduleKeyRow *row = scheduleKeyOf(key);
  if (!row || row->target == ScheduleKeyRow::Cuda)
    return "expected a schedule to have no '" + shown(key) + "'";
  switch (row->kind) {
  case ScheduleKeyRow::Method: {
    std::optional<ScheduleMethod> method;
    if (value.is_string())
      method = symbolizeScheduleMethod(value.get<std::string>());
    if (!method)
      return "expected 'method' of a schedule to be " + listOf(methodNames()) +
             ", but got " + shown(value.dump());
    asked.setMethod(*method);
    return "";
  }
  case ScheduleKeyRow::Flag:
    if (!value.is_boolean())
      return "expected '" + key + "' of a schedule to be true or false";
    asked.set(row->key, value.get<bool>());
    return "";
  case ScheduleKeyRow::Number:
    break;
  }
  int64_t number = value.is_number_integer() ? value.get<int64_t>() : 0;
  if (number < 1 || number > row->most)
    return "expected '" + key + "' of a schedule to be 1 to " +
           std::to_string(row->most) + ", but got " + shown(value.dump());
  asked.set(row->key, number);
  return "";
}

/// Reads an entry; says what is wrong with it, or nothing.
static std::string readEntry(const json &object, MLIRContext *context,
                             TunedSchedule &entry) {
  if (!object.is_object())
    return "expected an object";
  auto text = [&](const char *name, std::string &to) {
    auto at = object.find(name);
    bool isFine = at != object.end() && at->is_string();
    if (isFine)
      to = at->get<std::string>();
    return isFine;
  };
  auto number = [&](const char *name, double &to) {
    auto at = object.find(name);
    bool isFine = at != object.end() && at->is_number();
    if (isFine)
      to = at->get<double>();
    return isFine;
  };
  if (!text("kernel", entry.kernel) || !text("machine", entry.machine))
    return "expected 'kernel' and 'machine' to be strings";
  double threads = 0;
  if (!number("threads", threads) || !(threads >= 1 && threads <= 1 << 20) ||
      !number("seconds", entry.seconds) ||
      !number("model_seconds", entry.modelSeconds))
    return "expected 'threads', 'seconds' and 'model_seconds' to be numbers";
  entry.threads = static_cast<int>(threads);
  auto schedule = object.find("schedule");
  if (schedule == object.end() || !schedule->is_object())
    return "expected 'schedule' to be an object";
  lower::ScheduleOverride asked;
  for (const auto &[key, value] : schedule->items())
    if (std::string why = readValue(key, value, asked); !why.empty())
      return why;
  entry.schedule = asked.attribute(context);
  return "";
}

Result<ScheduleCache> ScheduleCache::read(const std::string &path,
                                          MLIRContext *context) {
  if (!llvm::sys::fs::exists(path))
    return ScheduleCache();
  if (Status status = artifact::expectNoDevice(path); !status)
    return status;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return Status::failed("cannot read '" + path +
                          "': " + buffer.getError().message());
  return parse((*buffer)->getBuffer(), path, context);
}

Result<ScheduleCache> ScheduleCache::parse(StringRef text,
                                           const std::string &path,
                                           MLIRContext *context) {
  ScheduleCache cache;
  auto wrong = [&](const std::string &why) {
    return Status::failed("'" + path + "' is not a cache of schedules (" + why +
                          "); remove it, or name another file with "
                          "--tune-cache");
  };
  json file = json::parse(text.begin(), text.end(), /*cb=*/nullptr,
                          /*allow_exceptions=*/false);
  if (file.is_discarded())
    return wrong("it is no JSON");
  auto format = file.find("format");
  if (!file.is_object() || format == file.end() || *format != kFormat)
    return wrong("expected 'format' to be '" + std::string(kFormat) + "'");
  auto version = file.find("version");
  if (version == file.end() || *version != kVersion)
    return wrong("expected 'version' to be " + std::to_string(kVersion));
  auto entries = file.find("entries");
  if (entries == file.end() || !entries->is_object())
    return wrong("expected 'entries' to be an object");
  for (const auto &[key, value] : entries->items()) {
    TunedSchedule entry;
    if (std::string why = readEntry(value, context, entry); !why.empty())
      return wrong("entry '" + shown(key) + "': " + why);
    cache.entries.emplace(key, std::move(entry));
  }
  return cache;
}

const TunedSchedule *ScheduleCache::find(const std::string &key) const {
  auto at = entries.find(key);
  return at == entries.end() ? nullptr : &at->second;
}

void ScheduleCache::set(const std::string &key, TunedSchedule schedule) {
  entries[key] = std::move(schedule);
}

std::string ScheduleCache::text() const {
  json list = json::object();
  for (const auto &[key, entry] : entries)
    list[key] = {
        {"kernel", entry.kernel},   {"machine", entry.machine},
        {"threads", entry.threads}, {"schedule", toJson(entry.schedule)},
        {"seconds", entry.seconds}, {"model_seconds", entry.modelSeconds}};
  json file = {{"format", kFormat}, {"version", kVersion}, {"entries", list}};
  // What a name of a kernel holds may be no UTF-8.
  return file.dump(/*indent=*/1, ' ', /*ensure_ascii=*/false,
                   json::error_handler_t::replace) +
         '\n';
}

Status ScheduleCache::write(const std::string &path,
                            MLIRContext *context) const {
  StringRef folder = llvm::sys::path::parent_path(path);
  if (!folder.empty())
    if (std::error_code error = llvm::sys::fs::create_directories(folder))
      return Status::failed("cannot make '" + folder.str() +
                            "': " + error.message());
  // Held until what was read is written again. The file itself is replaced, so
  // another one is locked; it stays, since someone may wait for it.
  std::error_code error;
  llvm::raw_fd_ostream lockFile(path + ".lock", error,
                                llvm::sys::fs::CD_OpenAlways);
  if (error)
    return Status::failed("cannot write '" + path +
                          "': its lock: " + error.message());
  auto lock = lockFile.lock();
  if (!lock)
    return Status::failed("cannot write '" + path +
                          "': its lock: " + llvm::toString(lock.takeError()));

  auto now = read(path, context);
  if (!now)
    return now.status();
  for (const auto &[key, entry] : entries)
    now->entries[key] = entry;
  std::string text = now->text();
  auto out = artifact::AtomicFile::create(path);
  if (!out)
    return out.status();
  if (Status s = out->write(text.data(), text.size()); !s)
    return s;
  return out->commit();
}

std::string tandem::defaultCachePath() {
  return inCacheFolder("schedules.json");
}
