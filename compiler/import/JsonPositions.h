//===- JsonPositions.h - where objects stand in a JSON document -----------===//
#ifndef TANDEM_COMPILER_IMPORT_JSONPOSITIONS_H
#define TANDEM_COMPILER_IMPORT_JSONPOSITIONS_H

#include <map>
#include <string>
#include <string_view>

namespace tandem {

/// Lines and columns, from 1, of the objects of a document, by JSON pointer.
class JsonPositions {
public:
  struct Position {
    unsigned line = 0, column = 0;
    auto operator<=>(const Position &) const = default;
  };

  /// `text` is a document that was parsed.
  explicit JsonPositions(std::string_view text);

  /// Returns zeros for what is no object.
  Position of(const std::string &pointer) const;
  /// Returns the pointer of the object there; empty if there is none.
  std::string pointerAt(Position position) const;

private:
  void value(const std::string &pointer);
  std::string string();
  void skip();
  char peek() const { return at < text.size() ? text[at] : '\0'; }
  void next();

  std::string_view text;
  size_t at = 0;
  Position now{1, 1};
  std::map<std::string, Position> positions;
  std::map<Position, std::string> pointers;
};

} // namespace tandem

#endif
