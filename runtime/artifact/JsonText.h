//===- JsonText.h - a JSON text that may be anything ----------------------===//
//
// The one way from a file's bytes to a JSON document: a key that is repeated in
// an object, which the document alone would hide, nesting beyond a limit and
// objects with more members than a format has are found while the text is read,
// and end it. What the document means is the reader's.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_JSONTEXT_H
#define TANDEM_RUNTIME_ARTIFACT_JSONTEXT_H

#include "runtime/artifact/Text.h"

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::artifact {

/// What a text may have at most.
struct JsonLimits {
  int depth = 200;          ///< of lists and objects in one another
  size_t members = 1 << 16; ///< of one object
};

/// What is wrong with a text: at a byte (from 1 on) where it is no JSON, else
/// as a whole.
struct JsonProblem {
  std::string what;
  size_t byte = 0;
};

/// Empties a document from its leaves on. What a list or an object with members
/// does when it ends asks for memory, and a destructor cannot say that there is
/// none: the process would end.
template <typename Json> void emptyJson(Json &json) {
  if (!json.is_structured())
    return;
  for (Json &member : json)
    emptyJson(member);
  json.clear();
}

/// A document that ends without asking for memory.
template <typename Json> struct JsonDocument {
  Json json;

  JsonDocument() = default;
  JsonDocument(JsonDocument &&) = default;
  ~JsonDocument() { emptyJson(json); }
};

/// Parses `text` into `json` (nlohmann::json, which is read without a copy of a
/// part, or ordered_json); returns what is
/// wrong with it, or nothing.
template <typename Json>
std::optional<JsonProblem> parseJsonText(std::string_view text, Json &json,
                                         const JsonLimits &limits = {}) {
  std::vector<std::set<std::string>> open;
  auto watch = [&](int depth, typename Json::parse_event_t event,
                   Json &parsed) {
    using Event = typename Json::parse_event_t;
    // A list or object at depth 0 is the document.
    bool opens = event == Event::object_start || event == Event::array_start;
    if (opens && depth >= limits.depth)
      throw JsonProblem{"expected at most " + std::to_string(limits.depth) +
                        " levels of lists and objects"};
    if (event == Event::object_start)
      open.emplace_back();
    else if (event == Event::object_end)
      open.pop_back();
    if (event != Event::key)
      return true;
    auto key = parsed.template get<std::string>();
    if (!open.back().insert(key).second)
      throw JsonProblem{"key " + inQuotes(key) + " is there twice"};
    if (open.back().size() > limits.members)
      throw JsonProblem{"expected objects of at most " +
                        std::to_string(limits.members) + " members"};
    return true;
  };
  // "[json.exception.parse_error.101] parse error at ...": what comes last may
  // be a text of any length.
  auto problemOf = [](std::string_view what, size_t byte) {
    if (size_t colon = what.find("] "); colon != what.npos)
      what.remove_prefix(colon + 2);
    return JsonProblem{printable(what.substr(0, 300)), byte};
  };
  try {
    json = Json::parse(text.begin(), text.end(), watch);
    return std::nullopt;
  } catch (const JsonProblem &problem) {
    return problem;
  } catch (const typename Json::parse_error &error) {
    return problemOf(error.what(), std::max<size_t>(error.byte, 1));
  } catch (const std::bad_alloc &) {
    throw; // says nothing of the text
  } catch (const std::exception &error) {
    return problemOf(error.what(), 0);
  }
}

} // namespace tandem::artifact

#endif
