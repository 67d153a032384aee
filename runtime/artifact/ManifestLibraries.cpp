//===- ManifestLibraries.cpp - launches that a library may compute --------===//
//
// Checks that a library stays within the launch's buffers: what it is told
// about sizes, strides and leading dimensions.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ManifestRules.h"

#include <algorithm>

namespace tandem::artifact {

namespace {

class Checker {
public:
  Checker(const Program &program, const Launch &launch, std::string at,
          ManifestProblems &problems)
      : program(program), launch(launch), call(*launch.library),
        at(std::move(at)), problems(problems) {}

  void check(bool isCuda) {
    if (!isCuda)
      problems.add(at, "expected it for the target 'cuda' only");
    if (!isFloat(call.dtype))
      problems.add(at + "/dtype", "expected a floating point type but got '" +
                                      std::string(spelling(call.dtype)) + "'");
    if (call.tf32 && call.dtype != DType::F32)
      problems.add(at + "/tf32", "expected it for the type 'f32' only");
    if (call.workspace) {
      if (*call.workspace < 0 ||
          *call.workspace >= static_cast<int64_t>(program.buffers.size()) ||
          program.buffers[*call.workspace].place != Buffer::Place::Arena)
        problems.add(at + "/workspace", "expected a buffer in the arena");
      else
        checkApart();
    }
    if (call.isMatmul())
      checkMatmul();
    else if (call.op == "conv2d" || call.op == "conv2d_input_grad" ||
             call.op == "conv2d_filter_grad")
      checkConvolution();
    else
      problems.add(at + "/op", "unknown op '" + call.op + "'");
  }

private:
  using Numbers = std::vector<int64_t>;

  bool hasCount(const char *name, const Numbers &list, size_t count) {
    if (list.size() == count)
      return true;
    problems.add(at + "/" + name, "expected " + std::to_string(count) +
                                      " numbers but got " +
                                      std::to_string(list.size()));
    return false;
  }

  static bool has(const Numbers &list, int64_t number) {
    return std::find(list.begin(), list.end(), number) != list.end();
  }

  /// The program's buffer at a position of the launch; null if there is none.
  const Buffer *bufferAt(int64_t position) const {
    if (position < 0 || position >= static_cast<int64_t>(launch.buffers.size()))
      return nullptr;
    int64_t buffer = launch.buffers[position];
    if (buffer < 0 || buffer >= static_cast<int64_t>(program.buffers.size()))
      return nullptr;
    return &program.buffers[buffer];
  }

  int64_t bytesOf(const Buffer &buffer) const {
    auto ofSlot = [&](const std::vector<Slot> &slots) {
      if (buffer.index < 0 ||
          buffer.index >= static_cast<int64_t>(slots.size()))
        return int64_t(0);
      const Slot &slot = slots[buffer.index];
      return tensorBytes(slot.dtype, slot.shape).value_or(0);
    };
    if (buffer.place == Buffer::Place::Argument)
      return ofSlot(program.arguments);
    if (buffer.place == Buffer::Place::Result)
      return ofSlot(program.results);
    return buffer.bytes;
  }

  static bool overlap(const Buffer &one, const Buffer &other) {
    if (one.place != other.place || one.place == Buffer::Place::Constant)
      return false;
    if (one.place != Buffer::Place::Arena)
      return one.index == other.index;
    // Offsets may be anything in a manifest.
    __int128 distance = __int128(one.offset) - other.offset;
    return one.bytes > 0 && other.bytes > 0 && distance < other.bytes &&
           -distance < one.bytes;
  }

  /// What the call may use as it likes is none of the launch's other memory.
  void checkApart() {
    const Buffer &own = program.buffers[*call.workspace];
    for (int64_t number : launch.buffers) {
      if (number < 0 || number >= static_cast<int64_t>(program.buffers.size()))
        continue;
      if (overlap(own, program.buffers[number]))
        problems.add(at + "/workspace",
                     "expected no buffer of the launch to overlap it");
    }
  }

  /// The operand at `index` is at a position of its own, is written exactly if
  /// it is the result, and has at least this many elements.
  void checkOperand(size_t index, bool isResult, __int128 elements) {
    int64_t position = call.operands[index];
    std::string item = child(at + "/operands", static_cast<int64_t>(index));
    const Buffer *buffer = bufferAt(position);
    if (!buffer) {
      problems.add(item,
                   "expected a position in the launch's buffers but got " +
                       std::to_string(position));
      return;
    }
    if (has(launch.writes, position) != isResult ||
        (!isResult && !has(launch.reads, position)))
      problems.add(item, isResult ? "expected it among the writes"
                                  : "expected it among the reads alone");
    if (elements * byteSize(call.dtype) > bytesOf(*buffer))
      problems.add(item, "expected a buffer of at least " +
                             std::to_string(static_cast<int64_t>(
                                 elements * byteSize(call.dtype))) +
                             " bytes but got " +
                             std::to_string(bytesOf(*buffer)));
  }

  /// A result of the launch that the call does not write would be lost, and a
  /// library reads its operands at any time.
  void checkWrites(int64_t result) {
    if (launch.writes != Numbers{result})
      problems.add(at, "expected the launch to write its result alone");
    const Buffer *written = bufferAt(result);
    for (int64_t operand : call.operands)
      if (const Buffer *read = bufferAt(operand);
          written && read && operand != result && overlap(*written, *read))
        problems.add(at, "expected a result that overlaps no operand");
  }

  void checkMatmul() {
    bool hasBias = call.operands.size() == 4;
    bool ok = hasBias || hasCount("operands", call.operands, 3);
    ok &= hasCount("sizes", call.sizes, 4);
    ok &= hasCount("lds", call.lds, 3);
    ok &= hasCount("batch_strides", call.batchStrides, 3);
    ok &= hasCount("transposes", call.transposes, 2);
    ok &= hasCount("strides", call.strides, 0);
    ok &= hasCount("padding", call.padding, 0);
    ok &= hasCount("dilation", call.dilation, 0);
    if (!ok)
      return;
    int64_t m = call.sizes[1], n = call.sizes[2], k = call.sizes[3];
    const int64_t rows[] = {call.transposes[0] ? k : m,
                            call.transposes[1] ? n : k, m};
    const int64_t columns[] = {call.transposes[0] ? m : k,
                               call.transposes[1] ? k : n, n};
    for (size_t i = 0; i < 3; ++i) {
      auto item = static_cast<int64_t>(i);
      if (call.lds[i] < columns[i])
        problems.add(child(at + "/lds", item),
                     "expected at least " + std::to_string(columns[i]) +
                         " but got " + std::to_string(call.lds[i]));
      __int128 one = __int128(rows[i] - 1) * call.lds[i] + columns[i];
      if (i == 2 && call.sizes[0] > 1 && call.batchStrides[i] < one)
        problems.add(child(at + "/batch_strides", item),
                     "expected results that do not overlap");
      checkOperand(i, i == 2,
                   __int128(call.sizes[0] - 1) * call.batchStrides[i] + one);
    }
    if (hasBias)
      checkOperand(3, false, n);
    checkWrites(call.operands[2]);
  }

  void checkConvolution() {
    bool ok = hasCount("operands", call.operands, 3);
    ok &= hasCount("sizes", call.sizes, Sizes);
    ok &= hasCount("strides", call.strides, 2);
    ok &= hasCount("padding", call.padding, 2);
    ok &= hasCount("dilation", call.dilation, 2);
    ok &= hasCount("lds", call.lds, 0);
    ok &= hasCount("batch_strides", call.batchStrides, 0);
    ok &= hasCount("transposes", call.transposes, 0);
    if (call.relu)
      problems.add(at + "/relu", "expected it of a 'matmul' only");
    if (!ok)
      return;
    const Numbers &s = call.sizes;
    if (s[C] % s[Groups] || s[O] % s[Groups]) {
      problems.add(at + "/sizes", "expected channels and filters in groups");
      return;
    }
    for (size_t d = 0; d < 2; ++d) {
      int64_t seen = s[H + d] + 2 * call.padding[d] -
                     (s[KH + d] - 1) * call.dilation[d] - 1;
      if (seen < 0 || seen / call.strides[d] + 1 != s[OH + d])
        problems.add(child(at + "/sizes", static_cast<int64_t>(OH + d)),
                     "expected the size that the window gives but got " +
                         std::to_string(s[OH + d]));
    }
    // Each size is below 2^31, so that a product of four fits 128 bits.
    const __int128 elements[] = {__int128(s[N]) * s[C] * s[H] * s[W],
                                 __int128(s[O]) * (s[C] / s[Groups]) * s[KH] *
                                     s[KW],
                                 __int128(s[N]) * s[O] * s[OH] * s[OW]};
    size_t result = call.op == "conv2d"              ? 2
                    : call.op == "conv2d_input_grad" ? 0
                                                     : 1;
    for (size_t i = 0; i < 3; ++i)
      checkOperand(i, i == result, elements[i]);
    checkWrites(call.operands[result]);
  }

  const Program &program;
  const Launch &launch;
  const LibraryCall &call;
  std::string at;
  ManifestProblems &problems;
};

} // namespace

void checkLibraries(const Manifest &manifest, const Program &program,
                    const std::string &at, ManifestProblems &problems) {
  for (size_t i = 0; i < program.launches.size(); ++i)
    if (program.launches[i].library)
      Checker(program, program.launches[i],
              child(at + "/launches", static_cast<int64_t>(i)) + "/library",
              problems)
          .check(manifest.target.kind == "cuda");
}

} // namespace tandem::artifact
