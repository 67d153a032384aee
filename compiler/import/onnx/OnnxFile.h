//===- OnnxFile.h - ONNX files as plain data ------------------------------===//
//
// The only door to protobuf. Any bytes give a model or one Status, which names
// everything that is wrong with the form of the file: truncated messages,
// tensors whose bytes are not as many as their shape says, external data that
// is not there or lies outside of the model's folder.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_ONNX_ONNXFILE_H
#define TANDEM_COMPILER_IMPORT_ONNX_ONNXFILE_H

#include "compiler/import/onnx/Graph.h"
#include "runtime/artifact/Status.h"

#include <string_view>

namespace tandem::onnx {

/// Parses a ModelProto. External data is looked for in `folder`; an empty one
/// means that there may be none.
Result<Model> parseModel(std::string_view bytes, const std::string &folder);
/// Reads the file `path`; messages begin with it.
Result<Model> readModelFile(const std::string &path);

/// What a file of test data or of `--value` holds: one tensor, or a list of
/// them that was written as a sequence.
struct FileValue {
  TensorPtr tensor;
  std::vector<FileValue> list;
  bool isList = false;
  bool isAbsent = false; ///< an optional without a value
};
/// Reads a TensorProto, SequenceProto or OptionalProto of the given form.
Result<FileValue> readValueFile(const std::string &path, ValueType::Form form);
Result<FileValue> parseValue(std::string_view bytes, ValueType::Form form);

} // namespace tandem::onnx

#endif
