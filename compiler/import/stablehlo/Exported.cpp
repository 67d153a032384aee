//===- Exported.cpp - what jax.export serializes --------------------------===//
//
// The fields that are read, with their numbers in the schema of JAX
// (jax/_src/export/serialization.fbs), to which versions 2 to 11 only added:
//
//     table Exported {
//       function_name: string;                    // 1
//       nr_devices_short: short;                  // 6, before version 5
//       platforms: [string];                      // 9
//       mlir_module_serialized: [byte];           // 13
//       calling_convention_version: short;        // 14
//       vjp: Exported;                            // 17
//       nr_devices: int;                          // 18
//     }
//
// All of it is verified before any of it is read.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/stablehlo/Exported.h"
#include "compiler/import/stablehlo/Portable.h"
#include "runtime/artifact/Text.h"

#include <flatbuffers/flatbuffers.h>

using namespace tandem;
using namespace tandem::stablehlo;
using llvm::StringRef;

namespace {

constexpr flatbuffers::voffset_t fieldOf(int number) { return 4 + 2 * number; }

constexpr auto kFunction = fieldOf(1), kDevicesShort = fieldOf(6),
               kPlatforms = fieldOf(9), kModule = fieldOf(13),
               kConvention = fieldOf(14), kBackward = fieldOf(17),
               kDevices = fieldOf(18);
/// Those that JAX has written since it had the format, with the last one that
/// changed what a module's arguments are.
constexpr int kOldest = 9, kNewest = 10;

using Bytes = flatbuffers::Vector<uint8_t>;
using Strings = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;

/// What a verifier calls, as one that flatc generates.
struct ExportedTable : private flatbuffers::Table {
  std::string function() const {
    auto name = GetPointer<const flatbuffers::String *>(kFunction);
    return name ? artifact::printable(name->str()) : "";
  }
  const Bytes *module() const { return GetPointer<const Bytes *>(kModule); }
  const Strings *platforms() const {
    return GetPointer<const Strings *>(kPlatforms);
  }
  int convention() const { return GetField<uint16_t>(kConvention, 0); }
  int64_t devices() const {
    int64_t count = GetField<int32_t>(kDevices, 0);
    return count ? count : GetField<int16_t>(kDevicesShort, 1);
  }
  bool hasBackward() const { return CheckField(kBackward); }

  bool Verify(flatbuffers::Verifier &verifier) const {
    return VerifyTableStart(verifier) && VerifyOffset(verifier, kFunction) &&
           verifier.VerifyString(
               GetPointer<const flatbuffers::String *>(kFunction)) &&
           VerifyField<int16_t>(verifier, kDevicesShort, 2) &&
           VerifyField<int32_t>(verifier, kDevices, 4) &&
           VerifyOffset(verifier, kPlatforms) &&
           verifier.VerifyVector(platforms()) &&
           verifier.VerifyVectorOfStrings(platforms()) &&
           VerifyOffsetRequired(verifier, kModule) &&
           verifier.VerifyVector(module()) &&
           VerifyField<uint16_t>(verifier, kConvention, 2) &&
           verifier.EndTable();
  }
};

} // namespace

Result<Exported> stablehlo::readExported(StringRef bytes) {
  auto wrong = [](const std::string &why) {
    return Status::failed(
        "expected what 'serialize()' of jax.export gives, but " + why);
  };
  auto *data = reinterpret_cast<const uint8_t *>(bytes.data());
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return wrong("it is larger than any flatbuffer");
  flatbuffers::Verifier verifier(data, bytes.size());
  if (!verifier.VerifyBuffer<ExportedTable>(nullptr))
    return wrong("it is not whole, or something else");
  const auto *table = flatbuffers::GetRoot<ExportedTable>(data);
  Exported made;
  made.module =
      StringRef(reinterpret_cast<const char *>(table->module()->data()),
                table->module()->size());
  if (!isBytecode(made.module))
    return wrong("there is no bytecode of MLIR in it");
  made.function = table->function();
  made.devices = table->devices();
  made.hasBackward = table->hasBackward();
  int convention = table->convention();
  if (convention < kOldest || convention > kNewest)
    return Status::unsupported("unsupported: JAX's calling convention " +
                               std::to_string(convention) + "; those from " +
                               std::to_string(kOldest) + " to " +
                               std::to_string(kNewest) + " are known");
  if (const Strings *list = table->platforms())
    for (const flatbuffers::String *name : *list)
      made.platforms.push_back(artifact::printable(name->str()));
  return made;
}
