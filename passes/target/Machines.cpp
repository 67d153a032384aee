//===- Machines.cpp - tables of devices and of links ----------------------===//
#include "passes/target/Machines.h"

#include "ir/Nearest.h"
#include "ir/UserText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace tandem;
using llvm::StringRef;
namespace json = llvm::json;

static constexpr char text[] =
#include "passes/target/Machines.json.inc"
    ;

namespace {

/// Reads the fields of one row; collects everything that is wrong with it.
class RowReader {
public:
  RowReader(const json::Object &row, std::string place,
            std::vector<std::string> &wrong)
      : row(row), place(std::move(place)), wrong(wrong) {}

  void number(StringRef key, double &to, bool isRequired, double most = 1e30) {
    known.push_back(key);
    const json::Value *value = row.get(key);
    if (!value) {
      if (isRequired)
        wrong.push_back(place + ": expected a number '" + key.str() + "'");
      return;
    }
    std::optional<double> read = value->getAsNumber();
    if (read && *read > 0 && *read <= most) {
      to = *read;
      return;
    }
    std::string bound = most < 1e30 ? llvm::formatv("{0}", most).str() : "1e30";
    wrong.push_back(place + "." + key.str() +
                    ": expected a number above 0, at most " + bound +
                    ", but got " + llvm::formatv("{0}", *value).str());
  }
  void name(StringRef key, std::string &to, bool isRequired) {
    known.push_back(key);
    const json::Value *value = row.get(key);
    std::optional<StringRef> read = value ? value->getAsString() : std::nullopt;
    if (read && !read->empty())
      to = read->str();
    else if (value || isRequired)
      wrong.push_back(place + ": expected a text '" + key.str() + "'");
  }
  void flag(StringRef key, bool &to) {
    known.push_back(key);
    const json::Value *value = row.get(key);
    if (value && value->getAsBoolean())
      to = *value->getAsBoolean();
    else if (value)
      wrong.push_back(place + "." + key.str() + ": expected true or false");
  }
  const json::Object *object(StringRef key) {
    known.push_back(key);
    const json::Value *value = row.get(key);
    if (value && !value->getAsObject())
      wrong.push_back(place + "." + key.str() + ": expected an object");
    return value ? value->getAsObject() : nullptr;
  }
  /// What nobody read is misspelt.
  void finish() {
    for (const auto &[key, value] : row)
      if (!llvm::is_contained(known, StringRef(key)))
        wrong.push_back(place + ": unknown field '" + StringRef(key).str() +
                        "'; known are '" + llvm::join(known, "', '") + "'");
  }

private:
  const json::Object &row;
  std::string place;
  std::vector<std::string> &wrong;
  std::vector<StringRef> known;
};

} // namespace

static DeviceRow deviceOf(StringRef name, const json::Object &object,
                          std::vector<std::string> &wrong) {
  DeviceRow row;
  row.name = name.str();
  std::string place = "devices." + row.name;
  RowReader reader(object, place, wrong);
  reader.name("target", row.target, true);
  bool isCuda = StringRef(row.target).starts_with("cuda:sm_");
  if (!row.target.empty() && !row.isCpu() && !isCuda)
    wrong.push_back(place +
                    ".target: expected 'cpu' or 'cuda:sm_N', but got '" +
                    row.target + "'");
  reader.number("memory", row.memory, true);
  reader.number("capacity", row.capacity, true);
  reader.number("host", row.host, true);
  reader.number("launches", row.launches, true);
  reader.number("f32", row.f32, isCuda);
  reader.number("narrow", row.narrow, isCuda);
  reader.number("multiprocessors", row.multiprocessors, false, 4096);
  reader.number("cores", row.cores, row.isCpu());
  reader.number("clock", row.clock, row.isCpu());
  reader.number("vector_units", row.vectorUnits, row.isCpu());
  reader.number("turn", row.turn, false);
  if (const json::Object *achieves = reader.object("achieves")) {
    RowReader part(*achieves, place + ".achieves", wrong);
    part.number("products", row.achievedProducts, false, 1);
    part.number("attention", row.achievedAttention, false, 1);
    part.number("memory", row.achievedMemory, false, 1);
    part.finish();
  }
  reader.name("links", row.links, true);
  reader.name("source", row.source, true);
  reader.finish();
  return row;
}

static LinkRow linkOf(StringRef name, const json::Object &object,
                      std::vector<std::string> &wrong) {
  LinkRow row;
  row.name = name.str();
  RowReader reader(object, "links." + row.name, wrong);
  double ranks = 0;
  reader.number("rate", row.rate, true);
  reader.number("latency", row.latency, true);
  reader.number("achieves", row.achieved, false, 1);
  reader.number("ranks", ranks, false, 1 << 20);
  row.ranks = static_cast<int64_t>(ranks);
  reader.flag("shared", row.isShared);
  reader.name("device", row.device, false);
  reader.name("source", row.source, true);
  reader.finish();
  return row;
}

bool Machines::add(std::string_view text, std::string &error) {
  auto parsed = parseUserJson(StringRef(text.data(), text.size()));
  if (!parsed) {
    error = llvm::toString(parsed.takeError());
    return false;
  }
  const json::Object *root = parsed->getAsObject();
  std::vector<std::string> wrong;
  Machines made = *this;
  if (!root)
    wrong.emplace_back("expected an object with 'devices' and 'links'");
  for (const auto &[key, table] : root ? *root : json::Object()) {
    StringRef name = key;
    const json::Object *rows = table.getAsObject();
    if ((name != "devices" && name != "links") || !rows) {
      wrong.push_back("expected the objects 'devices' and 'links', but got '" +
                      name.str() + "'");
      continue;
    }
    for (const auto &[row, value] : *rows) {
      const json::Object *object = value.getAsObject();
      std::string is = StringRef(row).str();
      if (!object || is.empty() || StringRef(is).contains('+'))
        wrong.push_back(name.str() + "." + is +
                        ": expected an object, and a name without '+'");
      else if (name == "devices")
        made.devices_[is] = deviceOf(is, *object, wrong);
      else
        made.links_[is] = linkOf(is, *object, wrong);
    }
  }
  // Rows speak of each other.
  for (const auto &[name, row] : made.devices_)
    if (!row.links.empty() && !made.links_.count(row.links))
      wrong.push_back("devices." + name + ".links: there is no link '" +
                      row.links + "'");
  for (const auto &[name, row] : made.links_)
    if (!row.device.empty() && !made.devices_.count(row.device))
      wrong.push_back("links." + name + ".device: there is no device '" +
                      row.device + "'");
  llvm::sort(wrong); // A JSON object has no order.
  error = llvm::join(wrong, "; ");
  if (!wrong.empty())
    return false;
  *this = std::move(made);
  return true;
}

const Machines &Machines::builtin() {
  static const Machines machines = [] {
    Machines made;
    std::string error;
    // The test Machines.TheTableIsRight reads it, too.
    if (!made.add(text, error))
      llvm::report_fatal_error(StringRef("Machines.json: " + error));
    return made;
  }();
  return machines;
}

template <typename Rows>
static const auto *find(const Rows &rows, const char *kind,
                        std::string_view name, std::string &error) {
  auto it = rows.find(name);
  if (it != rows.end())
    return &it->second;
  std::vector<StringRef> names;
  for (const auto &row : rows)
    names.push_back(row.first);
  error = "unknown " + std::string(kind) + " '" + std::string(name) + "'" +
          didYouMean(StringRef(name.data(), name.size()), names) +
          "; known are '" + llvm::join(names, "', '") + "'";
  return static_cast<decltype(&it->second)>(nullptr);
}

const DeviceRow *Machines::device(std::string_view name,
                                  std::string &error) const {
  return find(devices_, "device", name, error);
}

const LinkRow *Machines::link(std::string_view name, std::string &error) const {
  return find(links_, "link", name, error);
}
