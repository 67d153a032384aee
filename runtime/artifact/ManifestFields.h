//===- ManifestFields.h - the fields of the manifest, to walk over --------===//
//
// Manifest.def as data: `Fields<T>::visit` calls a function for each field of a
// struct, with what the list says of it and the member that holds it. The
// writer, the reader, the checks, the page and the mutants are such functions.
// Internal to runtime/artifact, its page and its tests.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_MANIFESTFIELDS_H
#define TANDEM_RUNTIME_ARTIFACT_MANIFESTFIELDS_H

#include "runtime/artifact/Manifest.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tandem::artifact {

enum class Presence : uint8_t {
  required,
  written, ///< always, but may be left out
  optional ///< left out where it is the member's initial value
};

/// What a field can say by itself. Of a list, each item; a list of more than
/// `most` items (of names in groups: groups and names) is refused, a text with
/// control characters, and a number that is not finite.
struct Check {
  static constexpr size_t maxItems = 1 << 16; ///< no list has more
  enum class Text : uint8_t {
    Any,
    Name,   ///< not empty
    Symbol, ///< of an object file
    Digest  ///< empty, or a SHA-256 in hexadecimal digits
  };
  int64_t low = INT64_MIN, high = INT64_MAX, multipleOf = 1;
  size_t most = maxItems;
  Text text = Text::Any;
};

/// One row of the list.
struct FieldRow {
  std::string_view key;
  Presence presence;
  int since; ///< the first format that has it
  Check check;
  std::string_view meaning;
};

/// When a field is there: `list` is the name of the field that the object
/// stands in.
template <typename T> struct Where {
  bool (*holds)(const T &object, std::string_view list);
  std::string_view text;
};

/// A row and its member; `Row::says` is the FieldRow, a type of its own for
/// each row, so that what it says is known where code for it is compiled.
/// `where` is null for what is always there.
template <typename T, typename M, typename Row> struct Field {
  static constexpr bool isFlat = false;
  using Member = M;
  static constexpr FieldRow row = Row::says();
  M T::*member;
  const Where<T> *where;

  bool isThere(const T &object, std::string_view list) const {
    return !where || where->holds(object, list);
  }
};

/// A struct, or an optional one, whose fields stand among those of `T`.
template <typename T, typename M> struct FlatField {
  static constexpr bool isFlat = true;
  using Member = M;
  M T::*member;
  std::string_view meaning;
};

/// Of a struct of Manifest.def: `name`, `meaning` and `visit`.
template <typename T> struct Fields;

template <typename T>
concept HasFields = requires {
  Fields<T>::name;
};

/// An enumeration whose values have names: `noun` for messages, `last` value.
/// What is spelled "" cannot stand in JSON.
template <typename E> struct Enumeration;
template <> struct Enumeration<Role> {
  static constexpr std::string_view noun = "role";
  static constexpr Role last = Role::Prepared;
};
template <> struct Enumeration<DType> {
  static constexpr std::string_view noun = "type";
  static constexpr DType last = kLastDType;
};
template <> struct Enumeration<Rows> {
  static constexpr std::string_view noun = "relation of rows";
  static constexpr Rows last = Rows::Mean;
};
template <> struct Enumeration<Init::Kind> {
  static constexpr std::string_view noun = "init";
  static constexpr Init::Kind last = Init::Kind::Seed;
};
template <> struct Enumeration<View::Op> {
  static constexpr std::string_view noun = "view";
  static constexpr View::Op last = View::Op::Detach;
};
template <> struct Enumeration<Collective::Op> {
  static constexpr std::string_view noun = "collective";
  static constexpr Collective::Op last = Collective::Op::Barrier;
};
template <> struct Enumeration<Collective::Reduce> {
  static constexpr std::string_view noun = "reduction";
  static constexpr Collective::Reduce last = Collective::Reduce::Min;
};
template <> struct Enumeration<Buffer::Place> {
  static constexpr std::string_view noun = "place";
  static constexpr Buffer::Place last = Buffer::Place::Host;
};

/// Calls `fn(value, name)` for each value that has a name.
template <typename E, typename Fn> void forEachName(Fn fn) {
  for (int i = 0; i <= static_cast<int>(Enumeration<E>::last); ++i)
    if (std::string_view name = spelling(static_cast<E>(i)); !name.empty())
      fn(static_cast<E>(i), name);
}

// What the rows of Manifest.def say in their columns `check` and `where`.
namespace fields {

inline constexpr int64_t maxWork = int64_t(1) << 60; ///< of ThreadPool::run
/// What a block can have on any GPU so far (sm_90, sm_100: 227 KiB).
inline constexpr int64_t maxSharedBytes = 227 * 1024;

inline constexpr Check any{};
inline constexpr Check name{.text = Check::Text::Name};
inline constexpr Check symbol{.text = Check::Text::Symbol};
inline constexpr Check digest{.text = Check::Text::Digest};
constexpr Check range(int64_t low, int64_t high, int64_t multipleOf = 1) {
  return {.low = low, .high = high, .multipleOf = multipleOf};
}
constexpr Check atMost(size_t items) { return {.most = items}; }

template <typename T> inline constexpr const Where<T> *always = nullptr;

inline constexpr auto kindOf(const Init &init) { return init.kind; }
inline constexpr auto kindOf(const View &view) { return view.op; }
template <typename Kind> struct KindOf;
template <> struct KindOf<Init::Kind> { using Type = Init; };
template <> struct KindOf<View::Op> { using Type = View; };

template <auto kind, typename T = typename KindOf<decltype(kind)>::Type>
inline constexpr Where<T> isKind{
    [](const T &object, std::string_view) { return kindOf(object) == kind; },
    ""};
template <auto kind, typename T = typename KindOf<decltype(kind)>::Type>
inline constexpr const Where<T> *is = &isKind<kind>;

inline constexpr Where<Buffer> whereOutside{
    [](const Buffer &buffer, std::string_view) {
      return buffer.place <= Buffer::Place::Result;
    },
    "`in` is `argument` or `result`"};
inline constexpr const Where<Buffer> *outside = &whereOutside;
inline constexpr Where<Buffer> whereInMemory{
    [](const Buffer &buffer, std::string_view) {
      return buffer.place > Buffer::Place::Result;
    },
    "`in` is `arena`, `constant` or `host`"};
inline constexpr const Where<Buffer> *inMemory = &whereInMemory;

inline constexpr Where<Slot> whereTyped{
    [](const Slot &slot, std::string_view list) {
      return list != "arguments" || slot.role > Role::State;
    },
    "not of an argument with role `input`, `param` or `state`, which has the "
    "type of its value"};
inline constexpr const Where<Slot> *typed = &whereTyped;
inline constexpr Where<Slot> whereUpdateResult{
    [](const Slot &slot, std::string_view list) {
      return list != "arguments" && slot.role == Role::Update;
    },
    "a result with role `update`"};
inline constexpr const Where<Slot> *updateResult = &whereUpdateResult;
inline constexpr Where<Slot> whereSavedResult{
    [](const Slot &slot, std::string_view list) {
      return list != "arguments" && slot.role == Role::Saved;
    },
    "a result with role `saved`"};
inline constexpr const Where<Slot> *savedResult = &whereSavedResult;

inline constexpr Where<Launch> whereOfKernel{
    [](const Launch &launch, std::string_view) { return launch.hasKernel(); },
    "neither of a copy nor of a collective"};
inline constexpr const Where<Launch> *ofKernel = &whereOfKernel;

} // namespace fields

#define MANIFEST_HAS(name) 1
#define STRUCT(Struct, text)                                                   \
  template <> struct Fields<Struct> {                                          \
    using Type = Struct;                                                       \
    static constexpr std::string_view name = #Struct, meaning = text;          \
    template <typename Visitor> static void visit(Visitor &&visitor) {         \
      using namespace fields;
#define END                                                                    \
  }                                                                            \
  }                                                                            \
  ;
#define FIELD(type, member, initial, key, presence, since, check, text)        \
  FIELD_IF(always<Type>, type, member, initial, key, presence, since, check,   \
           text)
#define FIELD_IF(where, type, member, initial, key, presence, since, check,    \
                 text)                                                         \
  {                                                                            \
    struct Row {                                                               \
      static constexpr FieldRow says() {                                       \
        return {key, Presence::presence, since, fields::check, text};          \
      }                                                                        \
    };                                                                         \
    visitor(Field<Type, type, Row>{&Type::member, fields::where});             \
  }
#define CASE(where, member, key, presence, since, check, text)                 \
  FIELD_IF(where, decltype(Type::member), member, , key, presence, since,      \
           check, text)
#define FLAT(type, member, text)                                               \
  visitor(FlatField<Type, type>{&Type::member, text});
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS
#undef FIELD
#undef FLAT

} // namespace tandem::artifact

#endif
