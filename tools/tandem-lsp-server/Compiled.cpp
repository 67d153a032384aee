//===- Compiled.cpp - what the compiler makes of a file, for an editor ----===//
#include "tools/tandem-lsp-server/Compiled.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <csignal>

using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

namespace tandem::editor {
namespace {

/// An editor's user waits no longer.
constexpr std::chrono::seconds kLongest(300);
/// Between two looks at the process.
constexpr std::chrono::milliseconds kPause(50);

std::string readAll(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// A file for temporary data, which goes with the object.
struct TemporaryFile {
  TemporaryFile() {
    if (llvm::sys::fs::createTemporaryFile("tandem-lsp", "json", path))
      path.clear();
  }
  TemporaryFile(const TemporaryFile &) = delete;
  ~TemporaryFile() {
    if (!path.empty())
      llvm::sys::fs::remove(path);
  }
  llvm::SmallString<128> path;
};

std::string withUnit(double seconds) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (seconds < 1e-3)
    out << llvm::format("%.1f us", seconds * 1e6);
  else
    out << llvm::format("%.2f ms", seconds * 1e3);
  return text;
}

/// The first element of a list in a list, as the sizes and targets of
/// `inspect`.
const Object *firstObject(const Value *value) {
  while (value && value->getAsArray()) {
    const Array &list = *value->getAsArray();
    value = list.empty() ? nullptr : &list.front();
  }
  return value ? value->getAsObject() : nullptr;
}

/// "f32[32, 128]", of a slot of a program.
std::string typeOf(const Object &slot) {
  std::string text = slot.getString("dtype").value_or("?").str() + "[";
  const Array *shape = slot.getArray("shape");
  for (const Value &size : shape ? *shape : Array())
    text += (text.back() == '[' ? "" : ", ") +
            std::to_string(size.getAsInteger().value_or(-1));
  return text + "]";
}

/// The places that speak of one op.
struct Asked {
  unsigned line, column;
  /// "model.mlir:30:15" of any file.
  bool isAt(std::optional<StringRef> where) const {
    if (!where)
      return false;
    auto [before, last] = where->rsplit(':');
    unsigned l = 0, c = 0;
    return !before.rsplit(':').second.getAsInteger(10, l) &&
           !last.getAsInteger(10, c) && l == line && c == column;
  }
};

/// Reads what an object of `inspect --json` says, and nothing where a field is
/// another than expected.
class Describer {
public:
  Describer(const Object &root, Asked asked)
      : manifest(firstObject(root.get("manifests"))),
        summary(firstObject(root.get("summaries"))),
        planned(firstObject(root.get("planned"))), asked(asked), out(text) {}

  std::string describe() {
    if (!manifest || !planned)
      return text;
    if (const Array *programs = planned->getArray("programs"))
      for (size_t p = 0; p < programs->size(); ++p)
        if (const Object *program = (*programs)[p].getAsObject())
          describeProgram(*program, p);
    describeSaved();
    return text;
  }

private:
  /// The kernel of a launch: its number, or nothing for copies.
  std::optional<int64_t> kernelOf(size_t program, int64_t launch) const {
    const Array *programs = manifest->getArray("programs");
    if (!programs || program >= programs->size())
      return {};
    const Object *found = (*programs)[program].getAsObject();
    const Array *launches = found ? found->getArray("launches") : nullptr;
    if (!launches || launch < 0 || launch >= int64_t(launches->size()))
      return {};
    const Object *one = (*launches)[size_t(launch)].getAsObject();
    return one ? one->getInteger("kernel") : std::nullopt;
  }

  void describeProgram(const Object &program, size_t number) {
    const Array *ops = program.getArray("ops");
    if (!ops)
      return;
    // Ops of one launch, in their order; -1: in no kernel.
    std::map<int64_t, std::string> launches;
    for (const Value &value : *ops) {
      const Object *op = value.getAsObject();
      if (!op || !asked.isAt(op->getString("where")))
        continue;
      std::string &list = launches[op->getInteger("launch").value_or(-1)];
      if (!list.empty())
        list += ", ";
      list += "`" + op->getString("op").value_or("").str() + "`";
      if (auto of = op->getString("gradient_of"))
        list += " (of " + of->str() + ")";
    }
    for (const auto &[launch, list] : launches)
      describeLaunch(program.getString("name").value_or(""), number, launch,
                     list);
  }

  void describeLaunch(StringRef name, size_t program, int64_t launch,
                      StringRef ops) {
    out << "- **" << name << "**: " << ops;
    std::optional<int64_t> kernel = kernelOf(program, launch);
    const Array *kernels = manifest->getArray("kernels");
    if (kernel && kernels && *kernel >= 0 && *kernel < int64_t(kernels->size()))
      if (const Object *facts = (*kernels)[size_t(*kernel)].getAsObject()) {
        out << " in `" << facts->getString("symbol").value_or("?")
            << "`, launch " << launch;
        describeTime(size_t(*kernel));
      }
    out << "\n";
  }

  void describeTime(size_t kernel) {
    const Array *kernels = summary ? summary->getArray("kernels") : nullptr;
    const Object *facts = kernels && kernel < kernels->size()
                              ? (*kernels)[kernel].getAsObject()
                              : nullptr;
    if (auto seconds = facts ? facts->getNumber("seconds") : std::nullopt)
      out << ", predicted " << withUnit(*seconds) << ", bound by "
          << facts->getString("bound").value_or("?");
  }

  void describeSaved() {
    const Object *partition = manifest->getObject("partition");
    if (!partition)
      return;
    if (const Array *saved = partition->getArray("saved"))
      for (const Value &value : *saved)
        if (const Object *one = value.getAsObject();
            one && asked.isAt(one->getString("where")))
          describeSaved(*one);
    if (const Array *repeated = partition->getArray("repeated"))
      for (const Value &value : *repeated)
        if (const Object *one = value.getAsObject();
            one && asked.isAt(one->getString("where")))
          out << "- computed again in the backward: `"
              << one->getString("op").value_or("?") << "`, "
              << one->getString("reason").value_or("") << "\n";
  }

  void describeSaved(const Object &saved) {
    StringRef name = saved.getString("name").value_or("?");
    out << "- **saved** for the backward: `" << name << "`";
    const Array *programs = manifest->getArray("programs");
    for (const Value &value : programs ? *programs : Array()) {
      const Object *program = value.getAsObject();
      const Array *results =
          program && program->getString("name") == StringRef("forward")
              ? program->getArray("results")
              : nullptr;
      for (const Value &result : results ? *results : Array())
        if (const Object *one = result.getAsObject();
            one && one->getString("name") == name)
          out << " " << typeOf(*one) << ", "
              << one->getString("reason").value_or("");
    }
    if (auto seconds = saved.getNumber("seconds"))
      out << "; making it again would take " << withUnit(*seconds);
    out << "\n";
  }

  const Object *manifest, *summary, *planned;
  Asked asked;
  std::string text;
  llvm::raw_string_ostream out;
};

} // namespace

std::string describeOp(const Value &inspected, unsigned line, unsigned column) {
  const Object *root = inspected.getAsObject();
  return root ? Describer(*root, {line, column}).describe() : std::string();
}

Compiled::Compiled(std::string tandem)
    : tandem(std::move(tandem)), thread([this] { serve(); }) {}

void Compiled::end() {
  {
    std::lock_guard lock(mutex);
    isOver = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

void Compiled::setOptions(std::vector<std::string> given) {
  std::lock_guard lock(mutex);
  options = std::move(given);
}

std::string Compiled::describe(const std::string &file, const std::string &text,
                               unsigned line, unsigned column) {
  if (readAll(file) != text)
    return "Save the file to see what Tandem compiles it to.\n";
  std::lock_guard lock(mutex);
  auto found = known.find(file);
  if (found == known.end() || found->second.text != text) {
    wanted = file;
    changed.notify_all();
    return "Tandem compiles the file: look again.\n";
  }
  const Facts &facts = found->second;
  return facts.error.empty() ? describeOp(facts.json, line, column)
                             : "It does not compile: " + facts.error + "\n";
}

void Compiled::serve() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return isOver || !wanted.empty(); });
    if (isOver)
      return;
    std::string file = wanted;
    lock.unlock();
    Facts facts = compile(file);
    lock.lock();
    known.insert_or_assign(file, std::move(facts));
    if (wanted == file)
      wanted.clear();
  }
}

// Not by llvm::sys::Wait's own limit, whose alarm any thread may get.
int Compiled::wait(const llvm::sys::ProcessInfo &process, std::string &reason) {
  auto end = std::chrono::steady_clock::now() + kLongest;
  while (true) {
    auto ended = llvm::sys::Wait(process, /*SecondsToWait=*/0, &reason,
                                 /*ProcStat=*/nullptr, /*Polling=*/true);
    if (ended.Pid == process.Pid)
      return ended.ReturnCode;
    bool isLate = std::chrono::steady_clock::now() > end;
    std::unique_lock lock(mutex);
    if (isLate || changed.wait_for(lock, kPause, [&] { return isOver; })) {
      ::kill(process.Pid, SIGKILL);
      llvm::sys::Wait(process, std::nullopt);
      reason =
          "it took more than " + std::to_string(kLongest.count()) + " seconds";
      return -1;
    }
  }
}

Compiled::Facts Compiled::compile(const std::string &file) {
  Facts facts;
  facts.text = readAll(file);
  TemporaryFile result, errors;
  std::vector<std::string> words = {tandem, "inspect", file, "--json"};
  {
    std::lock_guard lock(mutex);
    words.insert(words.end(), options.begin(), options.end());
  }
  std::vector<StringRef> arguments(words.begin(), words.end());
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(result.path),
                                          StringRef(errors.path)};
  std::string reason;
  auto process = llvm::sys::ExecuteNoWait(
      tandem, arguments, std::nullopt, redirects, /*MemoryLimit=*/0, &reason);
  int code = process.Pid ? wait(process, reason) : -1;
  if (code != 0) {
    facts.error = reason.empty() ? readAll(errors.path) : reason;
    facts.error = StringRef(facts.error).rtrim().str();
    if (facts.error.empty())
      facts.error = "'" + tandem + "' ended with " + std::to_string(code);
    return facts;
  }
  if (readAll(file) != facts.text)
    return {}; // of neither text
  auto json = llvm::json::parse(readAll(result.path));
  if (json)
    facts.json = std::move(*json);
  else
    facts.error = llvm::toString(json.takeError());
  return facts;
}

} // namespace tandem::editor
