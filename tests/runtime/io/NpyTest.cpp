//===- NpyTest.cpp - .npy files against NumPy's own bytes -----------------===//
#include "runtime/io/Npy.h"
#include "tests/runtime/io/Bytes.h"
#include "tests/runtime/io/Fixture.h"

#include <cmath>

namespace tandem::io::test {
namespace {

using Shape = std::vector<int64_t>;

Array readFixture(const std::string &name) {
  auto array = readNpy(fixture(name));
  EXPECT_TRUE(array.ok()) << array.status().message();
  return array ? *array : Array();
}

/// A version 1 file with the given header text.
std::vector<std::byte> npy(std::string header, std::string_view data,
                           char major = 1) {
  std::vector<std::byte> bytes = bytesOf("\x93NUMPY");
  appendInteger<uint8_t>(bytes, uint8_t(major));
  appendInteger<uint8_t>(bytes, 0);
  if (major == 1)
    appendInteger<uint16_t>(bytes, uint16_t(header.size()));
  else
    appendInteger<uint32_t>(bytes, uint32_t(header.size()));
  appendText(bytes, header);
  appendText(bytes, data);
  return bytes;
}

/// Expects `bytes` to be refused with exactly this message.
void expectRefused(Bytes bytes, const std::string &message,
                   Code code = Code::Failed) {
  auto array = parseNpy(bytes);
  ASSERT_FALSE(array.ok());
  EXPECT_EQ(array.status().message(), message);
  EXPECT_EQ(array.status().code(), code);
}

TEST(Npy, readsEveryElementType) {
  const Shape shape = {2, 3};
  Array array = readFixture("bool.npy");
  EXPECT_EQ(array.dtype, DType::Bool);
  EXPECT_EQ(array.shape, shape);
  EXPECT_EQ(elements<uint8_t>(array), (std::vector<uint8_t>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(elements<int8_t>(readFixture("int8.npy")),
            (std::vector<int8_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements<uint8_t>(readFixture("uint8.npy")),
            (std::vector<uint8_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements<int16_t>(readFixture("int16.npy")),
            (std::vector<int16_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements<int32_t>(readFixture("int32.npy")),
            (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements<int64_t>(readFixture("int64.npy")),
            (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements<uint16_t>(readFixture("uint16.npy")),
            (std::vector<uint16_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements<uint16_t>(readFixture("float16.npy")),
            (std::vector<uint16_t>{0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500}));
  EXPECT_EQ(elements<float>(readFixture("float32.npy")),
            (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements<double>(readFixture("float64.npy")),
            (std::vector<double>{0, 1, 2, 3, 4, 5}));
}

TEST(Npy, unsignedIntegersRoundTrip) {
  Folder folder;
  const Array arrays[] = {arrayOf<uint16_t>(DType::U16, {2}, {1, 65535}),
                          arrayOf<uint32_t>(DType::U32, {2}, {1, 4294967295u}),
                          arrayOf<uint64_t>(DType::U64, {2}, {1, UINT64_MAX})};
  for (const Array &array : arrays) {
    ASSERT_TRUE(writeNpy(folder / "a.npy", array).ok());
    auto back = readNpy(folder / "a.npy");
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->dtype, array.dtype);
    EXPECT_EQ(back->bytes, array.bytes);
  }
  // As NumPy writes the types, in both byte orders.
  auto text = [](const char *descr) {
    return std::string("{'descr': '") + descr +
           "', 'fortran_order': False, 'shape': (1,), }";
  };
  auto u32 = parseNpy(npy(text(">u4"), std::string("\x80\0\0\1", 4)));
  ASSERT_TRUE(u32.ok()) << u32.status().message();
  EXPECT_EQ(elements<uint32_t>(*u32), (std::vector<uint32_t>{0x80000001u}));
  auto u64 = parseNpy(npy(text("<u8"), std::string("\1\0\0\0\0\0\0\x80", 8)));
  ASSERT_TRUE(u64.ok()) << u64.status().message();
  EXPECT_EQ(elements<uint64_t>(*u64),
            (std::vector<uint64_t>{0x8000000000000001u}));
}

TEST(Npy, readsBothByteOrders) {
  Array ints = readFixture("big_endian.npy");
  EXPECT_EQ(ints.dtype, DType::I32);
  EXPECT_EQ(elements<int32_t>(ints),
            (std::vector<int32_t>{-3, -2, -1, 0, 1, 2}));
  EXPECT_EQ(elements<double>(readFixture("big_endian_f8.npy")),
            (std::vector<double>{0, 0.25, 0.5, 0.75, 1, 1.25}));
}

TEST(Npy, readsFortranOrderAsRowMajor) {
  Array array = readFixture("fortran.npy");
  EXPECT_EQ(array.shape, (Shape{2, 3, 4}));
  std::vector<float> ramp(24);
  for (size_t i = 0; i < ramp.size(); ++i)
    ramp[i] = float(i);
  EXPECT_EQ(elements<float>(array), ramp);
}

TEST(Npy, readsScalarsVectorsAndEmptyArrays) {
  Array scalar = readFixture("scalar.npy");
  EXPECT_EQ(scalar.shape, Shape());
  EXPECT_EQ(elements<float>(scalar), std::vector<float>{3.5f});
  EXPECT_EQ(readFixture("vector.npy").shape, Shape{3});
  Array empty = readFixture("empty.npy");
  EXPECT_EQ(empty.shape, (Shape{3, 0, 2}));
  EXPECT_TRUE(empty.bytes.empty());
}

TEST(Npy, readsVersions2And3) {
  for (const char *name : {"version2.npy", "version3.npy"})
    EXPECT_EQ(elements<float>(readFixture(name)),
              (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(Npy, writesNumPysBytes) {
  Folder folder;
  for (const char *name :
       {"bool.npy", "int8.npy", "uint8.npy", "int16.npy", "int32.npy",
        "int64.npy", "float16.npy", "float32.npy", "float64.npy", "scalar.npy",
        "vector.npy", "empty.npy"}) {
    Status status = writeNpy(folder / name, readFixture(name));
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(load(folder / name), load(fixture(name))) << name;
  }
}

TEST(Npy, writesBf16AsF32) {
  Folder folder;
  Array array = arrayOf<uint16_t>(DType::BF16, {2}, {0x3f80, 0xc040});
  ASSERT_TRUE(writeNpy(folder / "a.npy", array).ok());
  auto back = readNpy(folder / "a.npy");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->dtype, DType::F32);
  EXPECT_EQ(elements<float>(*back), (std::vector<float>{1, -3}));
}

TEST(Npy, writesFloatsOf8BitsAsF32) {
  Folder folder;
  for (auto [dtype, least] : {std::pair(DType::F8E4M3FN, 0x1p-9f),
                              std::pair(DType::F8E5M2, 0x1p-16f)}) {
    Array array = arrayOf<uint8_t>(
        dtype, {3}, {uint8_t(dtype == DType::F8E5M2 ? 0x3c : 0x38), 0x81, 1});
    ASSERT_TRUE(writeNpy(folder / "a.npy", array).ok());
    auto back = readNpy(folder / "a.npy");
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(elements<float>(*back), (std::vector<float>{1, -least, least}));
  }
}

TEST(Npy, acceptsWhatPythonWouldWrite) {
  auto array = parseNpy(
      npy("{\"shape\": (2L, 1),\n'fortran_order':True,'descr':'=i2'}", "abcd"));
  ASSERT_TRUE(array.ok()) << array.status().message();
  EXPECT_EQ(array->shape, (Shape{2, 1}));
}

TEST(Npy, refusesUnsupportedTypes) {
  const std::string list =
      "; expected one of bool, int8, uint8, int16, uint16, int32, uint32, "
      "int64, uint64, float16, float32, float64";
  for (auto [name, descr] :
       {std::pair("complex.npy", "<c8"), std::pair("text.npy", "<U2")})
    expectRefused(load(fixture(name)),
                  std::string("npy has elements of type '") + descr + "'" +
                      list,
                  Code::Unsupported);
  expectRefused(load(fixture("record.npy")),
                "npy holds records (a structured type)" + list,
                Code::Unsupported);
  expectRefused(npy("", "", 9), "npy has version 9.0; expected 1.0, 2.0 or 3.0",
                Code::Unsupported);
}

TEST(Npy, refusesMalformedHeaders) {
  const std::string at = "malformed npy header at byte ";
  expectRefused(npy("", ""), at + "10: expected '{' but got the header's end");
  expectRefused(npy("{'descr' '<f4'}", ""),
                at + "19: expected ':' but got '''");
  expectRefused(npy("{'descr': 4}", ""),
                at + "20: expected a type in quotes but got '4'");
  expectRefused(npy("{'fortran_order': 0}", ""),
                at + "28: expected True or False but got '0'");
  expectRefused(npy("{'shape': (-1,)}", ""),
                at + "21: expected a dimension between 0 and 2^63 - 1 but got "
                     "'-'");
  expectRefused(npy("{'shape': (99999999999999999999,)}", ""),
                at + "21: expected a dimension between 0 and 2^63 - 1 but got "
                     "'9'");
  expectRefused(npy("{'shape': (1 2)}", ""),
                at + "23: expected ',' or ')' but got '2'");
  expectRefused(npy("{'a': 1}", ""), "npy header has the unknown key 'a'");
  expectRefused(npy("{'shape': (), 'shape': ()}", ""),
                "npy header has 'shape' twice");
  expectRefused(npy("{'descr': '<f4'}", ""),
                "npy header lacks 'fortran_order', 'shape'");
  expectRefused(
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", "0000"),
      at + "64: expected the end of the header but got 'x'");
}

TEST(Npy, refusesWrongAmountsOfData) {
  auto header = [](const char *shape) {
    return std::string("{'descr': '<f4', 'fortran_order': False, 'shape': ") +
           shape + "}";
  };
  expectRefused(npy(header("(3,)"), "01234567"),
                "npy data at byte 65: expected 12 bytes for f32 [3] but got 8");
  expectRefused(npy(header("(1,)"), "01234567"),
                "npy data at byte 65: expected 4 bytes for f32 [1] but got 8");
  expectRefused(npy(header("(4294967296, 4294967296)"), "0000"),
                "npy data at byte 85: expected more bytes than can be "
                "addressed for f32 [4294967296, 4294967296] but got 4");
  // A dimension of zero makes the others harmless.
  EXPECT_TRUE(parseNpy(npy(header("(4294967296, 4294967296, 0)"), "")).ok());
}

TEST(Npy, refusesBoolsThatAreNone) {
  expectRefused(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}",
                    "\x01\x07"),
                "byte 66 is no bool: expected 0 or 1 but got 7");
}

TEST(Npy, refusesEveryTruncation) {
  std::vector<std::byte> whole = load(fixture("float32.npy"));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(parseNpy(Bytes(whole).first(bytes)).ok()) << bytes;
  expectRefused({}, "not an npy file: expected it to begin with "
                    "'\\x93NUMPY' but got an empty file");
}

TEST(Npy, namesTheFile) {
  auto missing = readNpy("/nowhere/a.npy");
  EXPECT_EQ(missing.status().message(),
            "cannot read '/nowhere/a.npy': No such file or directory");
  Folder folder;
  store(folder / "a.npy", bytesOf("PK"));
  EXPECT_EQ(readNpy(folder / "a.npy").status().message(),
            "'" + (folder / "a.npy") +
                "': not an npy file: expected it to begin with "
                "'\\x93NUMPY' but got 'PK'");
  EXPECT_EQ(readNpy(folder.path()).status().message(),
            "cannot read '" + folder.path() + "': Is a directory");
}

} // namespace
} // namespace tandem::io::test
