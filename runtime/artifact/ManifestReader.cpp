//===- ManifestReader.cpp - the manifest from its JSON text ---------------===//
//
// The format first: what a newer compiler wrote is refused as that, before
// anything is said of fields that this runtime does not know. Then the fields
// of Manifest.def (FieldReader.h). What they mean together is checked by
// ManifestValidation.cpp.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/FieldReader.h"
#include "runtime/artifact/FormatVersion.h"
#include "runtime/artifact/JsonText.h"
#include "runtime/artifact/ManifestRules.h"

namespace tandem::artifact {

using Json = nlohmann::json;

namespace {

/// The bytes of a text; its lists lie in one another at most 9 deep, and no
/// object has more than 25 members, which are looked for one after the other.
constexpr size_t mostText = size_t(1) << 28;
constexpr JsonLimits limits{32, 64};

/// The number that the text itself says.
Result<int64_t> formatOf(const Json &json) {
  ManifestProblems problems;
  int64_t format = 0;
  ManifestPath top;
  auto found = json.find("format");
  if (found == json.end())
    problems.add("", "expected the field 'format' but got none");
  else
    FieldReader(formatVersion, problems)
        .read(*found, ManifestPath(top, std::string_view("format")), "",
              format);
  if (!problems.none())
    return problems.status();
  return format;
}

} // namespace

Status checkFormat(const char *what, int64_t format) {
  if (format >= oldestFormat && format <= formatVersion)
    return Status::success();
  return Status::unsupported(
      std::string(what) + " has format " + std::to_string(format) +
      ", but this runtime (" TANDEM_VERSION ") reads " +
      std::to_string(oldestFormat) + " to " + std::to_string(formatVersion));
}

Result<Manifest> fromJson(std::string_view text,
                          std::optional<int64_t> fileFormat) {
  if (text.size() > mostText)
    return Status::failed("manifest: expected at most " +
                          std::to_string(mostText) + " bytes but got " +
                          std::to_string(text.size()));
  JsonDocument<Json> document;
  Json &json = document.json;
  if (auto problem = parseJsonText(text, json, limits))
    return Status::failed("manifest: " +
                          (problem->byte
                               ? "expected JSON but got an error at byte " +
                                     std::to_string(problem->byte)
                               : problem->what));
  if (!json.is_object())
    return Status::failed(std::string("manifest: expected an object but got ") +
                          json.type_name());
  Result<int64_t> format = formatOf(json);
  if (!format)
    return std::move(format).status();
  if (Status status = checkFormat("manifest", *format); !status)
    return status;
  if (fileFormat && *fileFormat != *format)
    return Status::failed("/format: expected that of the file, " +
                          std::to_string(*fileFormat) + ", but got " +
                          std::to_string(*format));
  Manifest manifest;
  ManifestProblems problems;
  FieldReader(*format, problems)
      .read(json, ManifestPath(), "", manifest, {"format"});
  if (!problems.none())
    return problems.status();
  resolveSizes(manifest);
  return manifest;
}

} // namespace tandem::artifact
