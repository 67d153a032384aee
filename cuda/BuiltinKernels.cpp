//===- BuiltinKernels.cpp - the layer's own kernels -----------------------===//
//
// Each kernel is a loop over i = first thread's index, step the number of
// threads. Sums take 16 bytes at once where all three addresses are multiples
// of 16, then single elements: first those after the last 16 bytes, or all.
// What differs between the element types stands in the tables of `addTypes` and
// `copyTypes`; the text around it is the same.
//
//===----------------------------------------------------------------------===//
#include "cuda/BuiltinKernels.h"

namespace tandem::cuda {

using artifact::DType;

namespace {
/// How elements of a type are added: `op d, x, y` on the words of a 16-byte
/// access, and on one element. bf16 has no sum before sm_90, but x * 1 + y is
/// the same, rounded once.
struct AddType {
  const char *name;
  int shift;                   ///< log2 of the elements in 16 bytes
  const char *word, *words[4]; ///< type of a word; suffixes of its registers
  const char *element;         ///< type of an element's register
  const char *vectorOp, *elementOp;
  const char *one, *elementOne; ///< third operand's text, or empty
};

constexpr AddType addTypes[] = {
    {"f64", 1, "b64", {"0", "1"}, "b64", "add.rn.f64", "add.rn.f64", "", ""},
    {"f32",
     2,
     "b32",
     {"0", "1", "2", "3"},
     "b32",
     "add.rn.f32",
     "add.rn.f32",
     "",
     ""},
    {"f16",
     3,
     "b32",
     {"0", "1", "2", "3"},
     "b16",
     "add.rn.f16x2",
     "add.rn.f16",
     "",
     ""},
    {"bf16",
     3,
     "b32",
     {"0", "1", "2", "3"},
     "b16",
     "fma.rn.bf16x2",
     "fma.rn.bf16",
     "%ones, ",
     "%one, "},
};

/// Replaces every `key` of `text`.
void replace(std::string &text, const std::string &key,
             const std::string &value) {
  for (size_t at = text.find(key); at != std::string::npos;
       at = text.find(key, at + value.size()))
    text.replace(at, key.size(), value);
}

/// The thread's number among all threads, and how many there are.
constexpr char threadNumber[] = R"(
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %nctaid.x;
  cvt.u64.u32 %thread, %r2;
  mul.wide.u32 %t, %r0, %r1;
  add.u64 %thread, %thread, %t;
  mul.wide.u32 %threads, %r1, %r3;
)";

constexpr char addText[] = R"(
.visible .entry tandem_add_TYPE(
  .param .u64 to_, .param .u64 x_, .param .u64 y_, .param .u64 count_)
{
  .reg .pred %p;
  .reg .b16 %one;
  .reg .b32 %r<4>, %ones;
  .reg .b64 %to, %x, %y, %count, %thread, %threads, %t, %i, %end, %xi, %yi, %ti;
  .reg .WORD %a<4>, %b<4>;
  .reg .ELEMENT %ea, %eb;
  ld.param.u64 %to, [to_];
  ld.param.u64 %x, [x_];
  ld.param.u64 %y, [y_];
  ld.param.u64 %count, [count_];
  cvta.to.global.u64 %to, %to;
  cvta.to.global.u64 %x, %x;
  cvta.to.global.u64 %y, %y;
  mov.b16 %one, 0x3F80;
  mov.b32 %ones, 0x3F803F80;
THREAD
  // 16 bytes at once, where all three are aligned to 16.
  mov.u64 %end, 0;
  or.b64 %t, %to, %x;
  or.b64 %t, %t, %y;
  and.b64 %t, %t, 15;
  setp.ne.u64 %p, %t, 0;
  @%p bra singles;
  shr.u64 %end, %count, SHIFT;
  mov.u64 %i, %thread;
vectors:
  setp.ge.u64 %p, %i, %end;
  @%p bra vectorsDone;
  shl.b64 %t, %i, 4;
  add.u64 %xi, %x, %t;
  add.u64 %yi, %y, %t;
  add.u64 %ti, %to, %t;
  ld.global.VECTOR {A}, [%xi];
  ld.global.VECTOR {B}, [%yi];
SUMS  st.global.VECTOR [%ti], {A};
  add.u64 %i, %i, %threads;
  bra vectors;
vectorsDone:
  shl.b64 %end, %end, SHIFT;
singles:
  add.u64 %i, %end, %thread;
next:
  setp.ge.u64 %p, %i, %count;
  @%p bra done;
  mul.lo.u64 %t, %i, BYTES;
  add.u64 %xi, %x, %t;
  add.u64 %yi, %y, %t;
  add.u64 %ti, %to, %t;
  ld.global.ELEMENT %ea, [%xi];
  ld.global.ELEMENT %eb, [%yi];
  ELEMENTOP %ea, %ea, ONE%eb;
  st.global.ELEMENT [%ti], %ea;
  add.u64 %i, %i, %threads;
  bra next;
done:
  ret;
}
)";

constexpr char fillText[] = R"(
.visible .entry tandem_fill_b64(
  .param .u64 to_, .param .u64 bits_, .param .u64 count_)
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .b64 %to, %bits, %count, %thread, %threads, %t, %i;
  ld.param.u64 %to, [to_];
  ld.param.u64 %bits, [bits_];
  ld.param.u64 %count, [count_];
  cvta.to.global.u64 %to, %to;
THREAD
  mov.u64 %i, %thread;
next:
  setp.ge.u64 %p, %i, %count;
  @%p bra done;
  shl.b64 %t, %i, 3;
  add.u64 %t, %to, %t;
  st.global.b64 [%t], %bits;
  add.u64 %i, %i, %threads;
  bra next;
done:
  ret;
}
)";

/// The part of one dimension: its index is the rest of the division by its
/// size; what is left counts the dimensions further out. Divides 32-bit numbers
/// where it can: that is several times faster.
constexpr char dimensionText[] = R"(
  ld.param.u64 %size, [layout_ + SIZEAT];
  ld.param.u64 %ts, [layout_ + TOAT];
  ld.param.u64 %fs, [layout_ + FROMAT];
  or.b64 %t, %rest, %size;
  shr.u64 %t, %t, 32;
  setp.ne.u64 %p, %t, 0;
  @%p bra wideDIM;
  cvt.u32.u64 %r0, %rest;
  cvt.u32.u64 %r1, %size;
  div.u32 %r2, %r0, %r1;
  rem.u32 %r3, %r0, %r1;
  cvt.u64.u32 %rest, %r2;
  cvt.u64.u32 %index, %r3;
  bra placeDIM;
wideDIM:
  rem.u64 %index, %rest, %size;
  div.u64 %rest, %rest, %size;
placeDIM:
  mad.lo.s64 %ti, %index, %ts, %ti;
  mad.lo.s64 %fi, %index, %fs, %fi;
  setp.eq.u64 %p, %rest, 0;
  @%p bra copy;
)";

constexpr char copyText[] = R"(
.visible .entry tandem_copy_TYPE(
  .param .u64 to_, .param .u64 from_, .param .u64 count_,
  .param .align 8 .b8 layout_[LAYOUT])
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .b64 %to, %from, %count, %thread, %threads, %t, %i, %rest, %size, %ts,
    %fs, %index, %ti, %fi;
  .reg .ELEMENT %e;
  ld.param.u64 %to, [to_];
  ld.param.u64 %from, [from_];
  ld.param.u64 %count, [count_];
  cvta.to.global.u64 %to, %to;
  cvta.to.global.u64 %from, %from;
THREAD
  mov.u64 %i, %thread;
next:
  setp.ge.u64 %p, %i, %count;
  @%p bra done;
  mov.u64 %rest, %i;
  mov.u64 %ti, %to;
  mov.u64 %fi, %from;
DIMENSIONS
copy:
  ld.global.TYPE %e, [%fi];
  st.global.TYPE [%ti], %e;
  add.u64 %i, %i, %threads;
  bra next;
done:
  ret;
}
)";

std::string registers(const AddType &type, const char *prefix) {
  std::string list;
  for (const char *word : type.words)
    if (word)
      list += (list.empty() ? "" : ", ") + std::string(prefix) + word;
  return list;
}

std::string addKernel(const AddType &type) {
  std::string sums;
  for (const char *word : type.words)
    if (word)
      sums += std::string("  ") + type.vectorOp + " %a" + word + ", %a" + word +
              ", " + type.one + "%b" + word + ";\n";
  std::string text = addText;
  replace(text, "THREAD", threadNumber);
  replace(text, "SUMS", sums);
  replace(text, "{A}", "{" + registers(type, "%a") + "}");
  replace(text, "{B}", "{" + registers(type, "%b") + "}");
  replace(text, "VECTOR",
          (type.shift == 1 ? "v2." : "v4.") + std::string(type.word));
  replace(text, "ELEMENTOP", type.elementOp);
  replace(text, "ONE", type.elementOne);
  replace(text, "ELEMENT", type.element);
  replace(text, "WORD", type.word);
  replace(text, "SHIFT", std::to_string(type.shift));
  replace(text, "BYTES", std::to_string(16 >> type.shift));
  replace(text, "TYPE", type.name);
  return text;
}

std::string copyKernel(const char *type) {
  std::string dimensions;
  for (int d = 0; d < stridedRank; ++d) {
    std::string one = dimensionText;
    replace(one, "SIZEAT", std::to_string(8 * d));
    replace(one, "TOAT", std::to_string(8 * (stridedRank + d)));
    replace(one, "FROMAT", std::to_string(8 * (2 * stridedRank + d)));
    replace(one, "DIM", std::to_string(d));
    dimensions += one;
  }
  std::string text = copyText;
  replace(text, "THREAD", threadNumber);
  replace(text, "DIMENSIONS", dimensions);
  replace(text, "LAYOUT", std::to_string(sizeof(StridedLayout)));
  // PTX has no registers of 8 bits.
  replace(text, "ELEMENT", std::string(type) == "b8" ? "b16" : type);
  replace(text, "TYPE", type);
  return text;
}

std::string build() {
  std::string text = builtinMark;
  text += "\n.version 7.0\n.target sm_80\n.address_size 64\n";
  for (const AddType &type : addTypes)
    text += addKernel(type);
  std::string fill = fillText;
  replace(fill, "THREAD", threadNumber);
  text += fill;
  for (const char *type : {"b8", "b16", "b32", "b64"})
    text += copyKernel(type);
  return text;
}

} // namespace

const std::string &builtinKernels() {
  static const std::string text = build();
  return text;
}

const char *addKernelName(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return "tandem_add_f64";
  case DType::F32:
    return "tandem_add_f32";
  case DType::F16:
    return "tandem_add_f16";
  case DType::BF16:
    return "tandem_add_bf16";
  default:
    return nullptr;
  }
}

} // namespace tandem::cuda
