//===- Report.cpp - facts as one page that opens offline ------------------===//
//
// Names in facts are anybody's: they are in one block of JSON, without `<`, and
// the script shows them as text. The style and the script are ours, and the
// policy names them by their digests.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/Report.h"

#include "runtime/artifact/Text.h"
#include "runtime/io/FileKind.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/SHA256.h"

#include <string_view>

using namespace tandem;

static constexpr std::string_view page =
#include "tools/tandem/report/page.html.inc"
    ;
static constexpr std::string_view style =
#include "tools/tandem/report/page.css.inc"
    ;
// The parts of the script, one after the other.
static constexpr std::string_view script =
#include "tools/tandem/report/script.inc"
    ;

/// "'sha256-...'", as a policy names a script or style between its tags.
static std::string digestOf(std::string_view text) {
  llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(text.data()),
                                text.size());
  return "'sha256-" + llvm::encodeBase64(llvm::SHA256::hash(bytes)) + "'";
}

/// The JSON text without what could end a script or begin a comment, and
/// without the two ends of lines that old readers of scripts stumble over. All
/// of them are in strings alone, so an escape is the same text.
static std::string escaped(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    std::string_view rest = json.substr(i);
    if (rest[0] == '<' || rest[0] == '>' || rest[0] == '&') {
      text += rest[0] == '<'   ? "\\u003c"
              : rest[0] == '>' ? "\\u003e"
                               : "\\u0026";
    } else if (rest.starts_with("\xe2\x80\xa8") ||
               rest.starts_with("\xe2\x80\xa9")) {
      text += rest[2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      text += rest[0];
    }
  }
  return text;
}

std::string commands::reportPage(const nlohmann::ordered_json &facts) {
  using Json = nlohmann::ordered_json;
  std::pair<std::string_view, std::string> parts[] = {
      {"{{begin}}", std::string(io::reportBegin) + TANDEM_VERSION + " -->"},
      {"{{policy}}", "default-src 'none'; script-src " + digestOf(script) +
                         "; style-src " + digestOf(style) +
                         "; base-uri 'none'; form-action 'none'"},
      {"{{style}}", std::string(style)},
      {"{{facts}}",
       escaped(facts.dump(-1, ' ', false, Json::error_handler_t::replace))},
      {"{{script}}", std::string(script)}};
  // What is filled in is not looked at again.
  std::string text;
  std::string_view rest = page;
  for (const auto &[mark, part] : parts) {
    size_t at = rest.find(mark);
    text.append(rest.substr(0, at)).append(part);
    rest.remove_prefix(at + mark.size());
  }
  return text.append(rest);
}

std::string commands::reportPath(const std::string &path, int64_t stage) {
  if (stage == 0)
    return path;
  llvm::StringRef stem = path;
  stem.consume_back(".html");
  return stem.str() + ".stage" + std::to_string(stage) + ".html";
}

Status commands::checkReportFile(std::string_view path) {
  if (path.ends_with(".html"))
    return Status::success();
  return Status::usage("expected the name of a report to end in .html, but "
                       "got " +
                       artifact::inQuotes(path));
}
