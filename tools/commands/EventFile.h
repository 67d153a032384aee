//===- EventFile.h - training as events of TensorBoard --------------------===//
//
// A file in the format that TensorBoard reads: records of a length, the masked
// CRC-32C of that, a serialized tensorflow.Event, and the masked CRC-32C of
// that (tensorflow/core/lib/io/record_writer.h, core/util/event.proto). Each
// call of `train` adds a file to its folder.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_EVENTFILE_H
#define TANDEM_TOOLS_COMMANDS_EVENTFILE_H

#include "runtime/artifact/Status.h"
#include "tools/commands/AppendedFile.h"
#include "tools/commands/Histogram.h"

#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace tandem::commands {

/// Returns the CRC-32C (Castagnoli) of the bytes.
uint32_t crc32c(std::string_view bytes);

/// A number and what it is called.
using Scalar = std::pair<std::string, double>;

/// Returns the record of the event with which a file begins. Times are seconds
/// since 1970.
std::string versionRecord(double time);
/// That events of `step` and later, in files before this one, do not count.
std::string startRecord(double time, int64_t step);
std::string scalarsRecord(double time, int64_t step,
                          std::span<const Scalar> scalars);
std::string histogramsRecord(double time, int64_t step,
                             const NamedHistograms &histograms);

class EventFile {
public:
  /// Makes a new file in `folder`, and that too. `goesOnAfter` is the last step
  /// of the training that is resumed.
  Status open(const std::string &folder, std::optional<int64_t> goesOnAfter);
  bool isOpen() const { return file_.isOpen(); }
  void write(int64_t step, std::span<const Scalar> scalars);
  void write(int64_t step, const NamedHistograms &histograms);
  /// As AppendedFile's.
  Status sync() { return file_.sync(); }
  Status close() { return file_.close(); }

private:
  AppendedFile file_;
};

} // namespace tandem::commands

#endif
