//===- Machines.h - tables of devices and of links ------------------------===//
//
// What data sheets say of devices and of the links between them, with where the
// numbers are from: Machines.json beside this file, which is compiled in. A
// file of the same form adds rows to it, or replaces them (docs/SIMULATION.md).
//
// Passes read the rates (Rates.h), which must be the same on every machine that
// compiles; what a device achieves of its rates is for simulations alone.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_TARGET_MACHINES_H
#define TANDEM_PASSES_TARGET_MACHINES_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

/// A row of the table of devices. Rates are of data sheets, in a second.
struct DeviceRow {
  std::string name;
  std::string target;  ///< what is compiled for it: `cpu`, `cuda:sm_90`
  double memory = 0;   ///< bytes moved to or from memory
  double capacity = 0; ///< bytes of memory
  double host = 0;     ///< bytes copied to the host's memory, or from it
  double launches = 0; ///< kernels that start
  /// Flops of dense products in f32, and in tf32, f16 and bf16. Of a processor
  /// 0: they follow from its cores and its vectors.
  double f32 = 0, narrow = 0;
  double multiprocessors = 0; ///< of a GPU, if it is known
  /// Of a processor: cores, cycles in a second, vector units of a core.
  double cores = 0, clock = 0, vectorUnits = 0;
  /// Seconds until it comes to another one of its ranks, where it has several.
  double turn = 0;
  /// The part of a rate that programs see: of products, of attention, of the
  /// memory's bytes.
  double achievedProducts = 1, achievedAttention = 1, achievedMemory = 1;
  std::string links; ///< the link between devices of one machine, where no
                     ///< other is asked for
  std::string source;

  bool isCpu() const { return target == "cpu"; }
};

/// A row of the table of links.
struct LinkRow {
  std::string name;
  double rate = 0;     ///< bytes in a second, each way
  double latency = 0;  ///< seconds of a message without bytes
  double achieved = 1; ///< the part of `rate` that programs see
  /// Inside of a machine: how many ranks one has. 0: the link is between
  /// machines.
  int64_t ranks = 0;
  /// `rate` is that of all ranks of a machine together; else each has its own.
  bool isShared = false;
  std::string device; ///< that has it, where there is one
  std::string source;
};

class Machines {
public:
  /// Those of Machines.json.
  static const Machines &builtin();

  /// Adds the rows of a file, and replaces those of the same names. False if
  /// something is wrong with it: `error` says what, and where, and nothing is
  /// changed.
  bool add(std::string_view json, std::string &error);

  /// Null if there is no such row; then `error` names those that there are.
  const DeviceRow *device(std::string_view name, std::string &error) const;
  const LinkRow *link(std::string_view name, std::string &error) const;

  /// By their names.
  const std::map<std::string, DeviceRow, std::less<>> &devices() const {
    return devices_;
  }
  const std::map<std::string, LinkRow, std::less<>> &links() const {
    return links_;
  }

private:
  std::map<std::string, DeviceRow, std::less<>> devices_;
  std::map<std::string, LinkRow, std::less<>> links_;
};

} // namespace tandem

#endif
