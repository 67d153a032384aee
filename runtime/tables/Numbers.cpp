//===- Numbers.cpp - numbers of Arrow's arrays ----------------------------===//
//
// An array came out of a file that anybody may have written; it was validated
// in full, so that offsets of lists are within their values.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/DType.h"
#include "runtime/tables/Formats.h"

#include <algorithm>
#include <cstring>

namespace tandem::tables {

using arrow::Status;
using arrow::Type;
using artifact::DType;

namespace {

constexpr int none = -1;

int elementOf(const arrow::DataType &type) {
  switch (type.id()) {
  case Type::BOOL:
    return int(DType::Bool);
  case Type::INT8:
    return int(DType::I8);
  case Type::UINT8:
    return int(DType::U8);
  case Type::INT16:
    return int(DType::I16);
  case Type::UINT16:
    return int(DType::U16);
  case Type::INT32:
    return int(DType::I32);
  case Type::UINT32:
    return int(DType::U32);
  case Type::INT64:
    return int(DType::I64);
  case Type::UINT64:
    return int(DType::U64);
  case Type::HALF_FLOAT:
    return int(DType::F16);
  case Type::FLOAT:
    return int(DType::F32);
  case Type::DOUBLE:
    return int(DType::F64);
  default:
    return none;
  }
}

/// Tensors of one shape are lists of one length, unless they are permuted.
bool isPlainTensor(const arrow::ExtensionType &type) {
  return type.extension_name() == "arrow.fixed_shape_tensor" &&
         type.Serialize().find("\"permutation\"") == std::string::npos;
}

/// "column 'a', row 3", of an element of rows that have `each` ones.
std::string placeOf(const std::string &name, int64_t first, int64_t element,
                    int64_t each) {
  return "column '" + name + "', row " +
         std::to_string(first + element / std::max<int64_t>(each, 1));
}

/// The values of lists that have `size` ones each. Null where one has another
/// length, of which `bad` is the first.
template <typename List>
std::shared_ptr<arrow::Array> valuesOf(const List &list, int64_t size,
                                       int64_t &bad) {
  int64_t count = list.length();
  for (bad = 0; bad < count; ++bad)
    if (int64_t(list.value_length(bad)) != size)
      return nullptr;
  return list.values()->Slice(count ? int64_t(list.value_offset(0)) : 0,
                              count * size);
}

/// The type says how long these are: there may be 2^58 of 0 values each, which
/// take no bytes of a file.
std::shared_ptr<arrow::Array> valuesOf(const arrow::FixedSizeListArray &list,
                                       int64_t size, int64_t &bad) {
  bad = 0;
  if (list.list_type()->list_size() != size && list.length() > 0)
    return nullptr;
  return list.values()->Slice(list.length() ? int64_t(list.value_offset(0)) : 0,
                              list.length() * size);
}

std::shared_ptr<arrow::Array> valuesOf(const arrow::Array &array, int64_t size,
                                       int64_t &bad) {
  switch (array.type_id()) {
  case Type::LIST:
    return valuesOf(static_cast<const arrow::ListArray &>(array), size, bad);
  case Type::LARGE_LIST:
    return valuesOf(static_cast<const arrow::LargeListArray &>(array), size,
                    bad);
  default:
    return valuesOf(static_cast<const arrow::FixedSizeListArray &>(array), size,
                    bad);
  }
}

int64_t lengthOf(const arrow::Array &array, int64_t row) {
  switch (array.type_id()) {
  case Type::LIST:
    return static_cast<const arrow::ListArray &>(array).value_length(row);
  case Type::LARGE_LIST:
    return static_cast<const arrow::LargeListArray &>(array).value_length(row);
  default:
    return static_cast<const arrow::FixedSizeListArray &>(array).value_length(
        row);
  }
}

bool isList(const arrow::Array &array) {
  Type::type id = array.type_id();
  return id == Type::LIST || id == Type::LARGE_LIST ||
         id == Type::FIXED_SIZE_LIST;
}

std::shared_ptr<arrow::Array> plain(std::shared_ptr<arrow::Array> array) {
  if (array->type_id() == Type::EXTENSION)
    return static_cast<const arrow::ExtensionArray &>(*array).storage();
  return array;
}

/// Copies `rows` rows of `each` elements.
void copyElements(const arrow::Array &array, int64_t rows, int64_t each,
                  const Place &place) {
  if (array.length() == 0)
    return;
  if (array.type_id() == Type::BOOL) {
    const auto &bits = static_cast<const arrow::BooleanArray &>(array);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < each; ++i)
        place.to[row * place.stride + i] =
            std::byte(bits.Value(row * each + i));
    return;
  }
  int64_t width = array.type()->byte_width(), bytes = each * width;
  const auto *from = reinterpret_cast<const std::byte *>(
      array.data()->GetValues<uint8_t>(1, array.offset() * width));
  if (bytes == place.stride) {
    std::memcpy(place.to, from, size_t(rows * bytes));
    return;
  }
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(place.to + row * place.stride, from + row * bytes,
                size_t(bytes));
}

} // namespace

Column numbersOf(const arrow::DataType &type) {
  Column column = {};
  column.element = none;
  const arrow::DataType *at = &type;
  while (true) {
    if (at->id() == Type::EXTENSION) {
      const auto &extension = static_cast<const arrow::ExtensionType &>(*at);
      if (!isPlainTensor(extension))
        return column;
      at = extension.storage_type().get();
      continue;
    }
    bool isFixed = at->id() == Type::FIXED_SIZE_LIST;
    if (!isFixed && at->id() != Type::LIST && at->id() != Type::LARGE_LIST)
      break;
    if (column.rank == kMostDims)
      return column;
    column.sizes[column.rank++] =
        isFixed ? static_cast<const arrow::FixedSizeListType &>(*at).list_size()
                : -1;
    at = static_cast<const arrow::BaseListType &>(*at).value_type().get();
  }
  column.element = elementOf(*at);
  return column;
}

Status copyNumbers(std::shared_ptr<arrow::Array> array, const std::string &name,
                   int64_t first, const Place &place) {
  int64_t rows = array->length(), each = 1;
  for (int depth = 0;; ++depth) {
    array = plain(std::move(array));
    if (array->null_count() != 0)
      for (int64_t i = 0; i < array->length(); ++i)
        if (array->IsNull(i))
          return Status::Invalid(placeOf(name, first, i, each),
                                 ": expected a number, but it is null");
    if (!isList(*array))
      break;
    int64_t bad = 0, size = place.sizes[depth];
    auto values = valuesOf(*array, size, bad);
    if (!values)
      return Status::Invalid(
          placeOf(name, first, bad, each), ": expected a list of ", size,
          " values, as in the first row, but it has ", lengthOf(*array, bad));
    array = std::move(values);
    each *= size;
  }
  copyElements(*array, rows, each, place);
  return Status::OK();
}

Status firstSizes(std::shared_ptr<arrow::Array> array, const std::string &name,
                  Column &column) {
  for (int depth = 0; depth < column.rank; ++depth) {
    array = plain(std::move(array));
    if (!isList(*array))
      return Status::Invalid("column '", name,
                             "' has another type than its "
                             "schema says");
    if (array->length() == 0)
      return Status::OK(); // of an empty list, whose elements have none
    if (array->IsNull(0))
      return Status::Invalid("column '", name,
                             "', row 0: expected a list, but it is null");
    int64_t size = lengthOf(*array, 0), bad = 0;
    if (column.sizes[depth] < 0)
      column.sizes[depth] = size;
    array = valuesOf(*array->Slice(0, 1), size, bad);
  }
  return Status::OK();
}

} // namespace tandem::tables
