//===- JsonReader.h - typed, complaining access to a JSON document --------===//
//
// Every getter checks what it finds; what is wrong becomes a line of `problems`
// that begins with the JSON pointer, and a neutral value is returned so that
// reading goes on and finds the rest.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_JSONREADER_H
#define TANDEM_COMPILER_IMPORT_JSONREADER_H

#include "runtime/artifact/Status.h"

#include "nlohmann/json.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

using Json = nlohmann::ordered_json;

/// Parses a document; rejects repeated keys. Errors name line and column.
Result<Json> parseJson(std::string_view text);

/// The lines of everything that is wrong.
using Problems = std::vector<std::string>;

/// A place in a document.
class JsonPlace {
public:
  JsonPlace(const Json &json, std::string pointer, Problems &problems)
      : json(json), pointer(std::move(pointer)), problems(problems) {}

  /// Reports that something is wrong here.
  void wrong(const std::string &message) const;
  /// Checks that this is an object with no keys but `known`.
  bool isObject(const std::vector<std::string_view> &known) const;
  bool has(const char *key) const {
    return json.is_object() && json.contains(key);
  }
  /// The member `key`; call only if there is one.
  JsonPlace at(const std::string &key) const;

  /// The member `key` as a string; reported if it is not one, or missing.
  std::string text(const char *key) const;
  /// The members of the list `key`; none if it is missing.
  std::vector<JsonPlace> list(const char *key) const;
  bool flag(const char *key) const;
  /// A list of sizes, of at least 0.
  std::vector<int64_t> shape(const char *key) const;
  std::optional<double> number(const char *key) const;
  /// This as an integer; reported if it is none, or is too large.
  std::optional<int64_t> integer() const;

  const Json &json;
  std::string pointer;
  Problems &problems;
};

} // namespace tandem

#endif
