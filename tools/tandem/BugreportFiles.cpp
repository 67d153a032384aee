//===- BugreportFiles.cpp - what a report of a bug is made of -------------===//
#include "tools/tandem/BugreportFiles.h"
#include "tools/tandem/CompileFlags.h"
#include "tools/tandem/RunProcess.h"
#include "tools/tandem/Session.h"
#include "tools/tandem/WriteText.h"

#include "ir/Ops.h"
#include "runtime/io/Array.h"

#include "llvm/Support/Allocator.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/StringSaver.h"
#include "llvm/Support/TarWriter.h"

#include <algorithm>
#include <cstring>
#include <zlib.h>

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;

static Status interrupted() {
  return Status::failed("interrupted: no report was written");
}

Result<RunOutcome> commands::runTandem(const std::vector<std::string> &words,
                                       const std::string &output,
                                       int64_t seconds) {
  std::vector<std::string> line = {"tandem"};
  line.insert(line.end(), words.begin(), words.end());
  // A program that is replaced while it runs is still this one.
  auto end = runProcess("/proc/self/exe", line, output, seconds);
  if (!end)
    return end.status();
  if (end->isStopped)
    return interrupted();
  if (end->isTooLate)
    return RunOutcome{-1, "did not end within " + std::to_string(seconds) +
                              " s (--timeout) and was ended"};
  if (end->signal)
    return RunOutcome{-end->signal,
                      std::string("crashed: ") + ::strsignal(end->signal)};
  return RunOutcome{end->code,
                    "ended with exit code " + std::to_string(end->code)};
}

std::vector<std::string> commands::splitWords(const std::string &line) {
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver(allocator);
  SmallVector<const char *> words;
  llvm::cl::TokenizeGNUCommandLine(line, saver, words);
  return std::vector<std::string>(words.begin(), words.end());
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

/// Makes constants of more than 1 KiB zeros; says which.
static std::string elideConstants(ModuleOp module) {
  constexpr int64_t kMost = 1024;
  std::string said;
  module.walk([&](ConstantOp op) {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!type || splat || byteSize(type) <= kMost)
      return;
    OpBuilder builder(op);
    auto zero = dyn_cast_or_null<ElementsAttr>(builder.getZeroAttr(type));
    if (!zero)
      return;
    auto put = ConstantOp::create(builder, op.getLoc(), zero);
    llvm::raw_string_ostream(said)
        << "// a constant of " << byteSize(type)
        << " bytes was left out and is zeros here: " << type << "\n";
    op.getResult().replaceAllUsesWith(put.getResult());
    op->erase();
  });
  return said;
}

/// In the process that writes the model.
static Status writeModelHere(const std::string &path,
                             const CompileOptions &options,
                             const std::string &output, bool withConstants) {
  Session session(options);
  auto module = session.read(path);
  if (!module)
    return session.status();
  std::string text = withConstants ? "" : elideConstants(*module);
  llvm::raw_string_ostream out(text);
  module->print(out, OpPrintingFlags().enableDebugInfo());
  return writeText(output, text + "\n");
}

Status commands::writeModel(const std::string &path, const CompileFlags &flags,
                            const std::string &output, bool withConstants,
                            int64_t seconds, std::string &notes) {
  CompileOptions options;
  if (Status s = flags.finish(options); !s)
    return s;
  // A model that cannot be read may end the process.
  auto end = runCopy(
      [&] {
        return writeModelHere(path, options, output, withConstants) ? 0 : 1;
      },
      seconds);
  if (!end)
    return end.status();
  if (end->isStopped)
    return interrupted();
  if (!end->isZero()) {
    notes +=
        std::string("  the model is not in the report: it cannot be read") +
        (end->isTooLate ? " in time" : "") + "\n";
    return Status::success();
  }
  auto written = llvm::MemoryBuffer::getFile(output, /*IsText=*/true);
  size_t left = written ? (*written)->getBuffer().count("was left out") : 0;
  if (left)
    notes += "  constants of more than 1 KiB that are zeros in model.mlir: " +
             std::to_string(left) + "\n";
  return Status::success();
}

//===----------------------------------------------------------------------===//
// The archive
//===----------------------------------------------------------------------===//

Result<std::vector<ReportFile>> commands::filesIn(const std::string &folder) {
  std::vector<ReportFile> files;
  std::error_code error;
  llvm::sys::fs::recursive_directory_iterator it(folder, error), end;
  for (; it != end && !error; it.increment(error)) {
    uint64_t bytes = 0;
    if (llvm::sys::fs::is_directory(it->path()) ||
        llvm::sys::fs::file_size(it->path(), bytes))
      continue;
    files.push_back({it->path().substr(folder.size() + 1), bytes});
  }
  if (error)
    return Status::failed("cannot read " + io::inQuotes(folder) + ": " +
                          error.message());
  std::sort(files.begin(), files.end(),
            [](const auto &a, const auto &b) { return a.name < b.name; });
  return files;
}

Status commands::copyFiles(const std::string &folder,
                           const std::vector<ReportFile> &files,
                           const std::string &output) {
  for (const ReportFile &file : files) {
    std::string to = output + "/" + file.name;
    std::error_code error =
        llvm::sys::fs::create_directories(llvm::sys::path::parent_path(to));
    if (!error)
      error = llvm::sys::fs::copy_file(folder + "/" + file.name, to);
    if (error)
      return Status::failed("cannot write " + io::inQuotes(to) + ": " +
                            error.message());
  }
  return Status::success();
}

/// `text` in the format of gzip.
static Result<std::string> gzip(StringRef text) {
  z_stream stream = {};
  constexpr int kGzip = 16, kWindow = 15, kMemory = 8;
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kWindow + kGzip,
                   kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return Status::failed("not enough memory");
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef *>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  bool isDone = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (!isDone)
    return Status::failed("the report cannot be packed");
  return packed;
}

Status commands::pack(const std::string &folder,
                      const std::vector<ReportFile> &files,
                      const std::string &output, const std::string &root) {
  std::string path = folder + "/report.tar";
  auto tar = llvm::TarWriter::create(path, root);
  if (!tar)
    return Status::failed("cannot write '" + path +
                          "': " + llvm::toString(tar.takeError()));
  for (const ReportFile &file : files) {
    auto text = llvm::MemoryBuffer::getFile(folder + "/" + file.name);
    if (!text)
      return Status::failed("cannot read '" + file.name +
                            "': " + text.getError().message());
    (*tar)->append(file.name, (*text)->getBuffer());
  }
  tar->reset(); // Writes its end.
  auto whole = llvm::MemoryBuffer::getFile(path);
  if (!whole)
    return Status::failed("cannot read '" + path +
                          "': " + whole.getError().message());
  if ((*whole)->getBufferSize() >> 32)
    return Status::unsupported("a report of more than 4 GiB is not packed: "
                               "expected -o to name a folder");
  auto packed = gzip((*whole)->getBuffer());
  return packed ? writeText(output, *packed) : packed.status();
}
