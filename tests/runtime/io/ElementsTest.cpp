//===- ElementsTest.cpp - exact conversions, scalars, f16 and bf16 --------===//
#include "runtime/io/Elements.h"
#include "runtime/io/Npy.h"
#include "tests/runtime/io/Bytes.h"
#include "tests/runtime/io/Fixture.h"

#include <cmath>

namespace tandem::io::test {
namespace {

template <typename To> std::vector<To> converted(const Array &array, DType to) {
  auto result = convertExactly(array, to);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result ? elements<To>(*result) : std::vector<To>();
}

std::string problem(const Array &array, DType to) {
  auto result = convertExactly(array, to);
  return result ? "" : result.status().message();
}

TEST(Elements, convertsLabelsAndPixels) {
  Array labels = arrayOf<int64_t>(DType::I64, {3}, {0, -1, 2147483647});
  EXPECT_EQ(converted<int32_t>(labels, DType::I32),
            (std::vector<int32_t>{0, -1, 2147483647}));
  Array pixels = arrayOf<uint8_t>(DType::U8, {2}, {0, 255});
  EXPECT_EQ(converted<float>(pixels, DType::F32), (std::vector<float>{0, 255}));
  Array counts = arrayOf<double>(DType::F64, {2}, {-3, 1e6});
  EXPECT_EQ(converted<int32_t>(counts, DType::I32),
            (std::vector<int32_t>{-3, 1000000}));
}

TEST(Elements, namesTheElementThatDoesNotFit) {
  EXPECT_EQ(
      problem(arrayOf<int64_t>(DType::I64, {2, 2}, {0, 1, 2, 300}), DType::U8),
      "element [1, 1] of i64 is 300, which u8 cannot hold exactly");
  EXPECT_EQ(problem(arrayOf<double>(DType::F64, {1}, {0.1}), DType::F32),
            "element [0] of f64 is 0.1, which f32 cannot hold exactly");
  EXPECT_EQ(problem(arrayOf<int32_t>(DType::I32, {1}, {2}), DType::Bool),
            "element [0] of i32 is 2, which bool cannot hold exactly");
  EXPECT_EQ(problem(arrayOf<float>(DType::F32, {}, {-0.5f}), DType::I8),
            "element [] of f32 is -0.5, which i8 cannot hold exactly");
  EXPECT_EQ(problem(arrayOf<float>(DType::F32, {}, {NAN}), DType::I64),
            "element [] of f32 is nan, which i64 cannot hold exactly");
  EXPECT_EQ(problem(arrayOf<int64_t>(DType::I64, {}, {INT64_MAX}), DType::F64),
            "element [] of i64 is 9223372036854775807, which f64 cannot hold "
            "exactly");
  EXPECT_EQ(problem(arrayOf<double>(DType::F64, {}, {9223372036854775808.0}),
                    DType::I64),
            "element [] of f64 is 9223372036854775808, which i64 cannot hold "
            "exactly");
}

TEST(Elements, unsignedOf64Bits) {
  constexpr uint64_t top = UINT64_MAX, bit = uint64_t(1) << 63;
  Array large = arrayOf<uint64_t>(DType::U64, {2}, {bit, top});
  EXPECT_EQ(elementAsDouble(DType::U64, large.bytes.data(), 0), 0x1p63);
  EXPECT_EQ(elementAsInteger(DType::U64, large.bytes.data(), 1), INT64_MAX);
  EXPECT_EQ(integerText(DType::U64, large.bytes.data(), 1),
            "18446744073709551615");
  EXPECT_EQ(problem(large, DType::I64),
            "element [0] of u64 is 9223372036854775808, which i64 cannot hold "
            "exactly");
  EXPECT_EQ(problem(large, DType::F64),
            "element [1] of u64 is 18446744073709551615, which f64 cannot hold "
            "exactly");
  EXPECT_EQ(converted<uint64_t>(arrayOf<double>(DType::F64, {1}, {0x1p63}),
                                DType::U64),
            (std::vector<uint64_t>{bit}));
  EXPECT_EQ(problem(arrayOf<double>(DType::F64, {1}, {0x1p64}), DType::U64),
            "element [0] of f64 is 18446744073709551616, which u64 cannot hold "
            "exactly");
  EXPECT_EQ(problem(arrayOf<int64_t>(DType::I64, {1}, {-1}), DType::U64),
            "element [0] of i64 is -1, which u64 cannot hold exactly");
  auto scalar = parseScalar("18446744073709551615", DType::U64);
  ASSERT_TRUE(scalar.ok()) << scalar.status().message();
  EXPECT_EQ(elements<uint64_t>(*scalar), (std::vector<uint64_t>{top}));
  for (auto [text, dtype] :
       {std::pair("18446744073709551616", DType::U64),
        std::pair("-1", DType::U64), std::pair("65536", DType::U16),
        std::pair("9223372036854775808", DType::I64)})
    EXPECT_FALSE(parseScalar(text, dtype).ok()) << text;
}

TEST(Elements, unsignedOf16And32Bits) {
  Array edge = arrayOf<int64_t>(DType::I64, {2}, {65535, 65536});
  EXPECT_EQ(problem(edge, DType::U16),
            "element [1] of i64 is 65536, which u16 cannot hold exactly");
  EXPECT_EQ(converted<uint32_t>(edge, DType::U32),
            (std::vector<uint32_t>{65535, 65536}));
  EXPECT_EQ(
      problem(arrayOf<uint32_t>(DType::U32, {1}, {4294967295u}), DType::I32),
      "element [0] of u32 is 4294967295, which i32 cannot hold exactly");
}

TEST(Elements, floatsOf8Bits) {
  for (DType dtype : {DType::F8E4M3FN, DType::F8E5M2}) {
    Array all{dtype, {256}, {}};
    for (int i = 0; i < 256; ++i)
      appendInteger<uint8_t>(all.bytes, uint8_t(i));
    auto wide = convertExactly(all, DType::F64);
    ASSERT_TRUE(wide.ok());
    auto back = convertExactly(*wide, dtype);
    ASSERT_TRUE(back.ok());
    for (int i = 0; i < 256; ++i)
      if (!std::isnan(elementAsDouble(dtype, all.bytes.data(), i))) {
        ASSERT_EQ(uint8_t(back->bytes[size_t(i)]), i);
      }
  }
  auto bits = [](const char *text, DType dtype) {
    return loadInteger<uint8_t>(parseScalar(text, dtype)->bytes, 0);
  };
  // The largest is 448; infinity is none of its numbers.
  EXPECT_EQ(bits("448", DType::F8E4M3FN), 0x7e);
  EXPECT_EQ(bits("464", DType::F8E4M3FN), 0x7e); // halfway, to even
  EXPECT_EQ(bits("464.01", DType::F8E4M3FN), 0x7f);
  EXPECT_EQ(bits("-inf", DType::F8E4M3FN), 0xff);
  EXPECT_EQ(bits("17", DType::F8E4M3FN), 0x58);        // halfway, to even
  EXPECT_EQ(bits("0.0009765625", DType::F8E4M3FN), 0); // half of the least
  EXPECT_EQ(bits("0.00098", DType::F8E4M3FN), 1);
  EXPECT_EQ(bits("57344", DType::F8E5M2), 0x7b);
  EXPECT_EQ(bits("61439", DType::F8E5M2), 0x7b);
  EXPECT_EQ(bits("61440", DType::F8E5M2), 0x7c);
  EXPECT_EQ(bits("-inf", DType::F8E5M2), 0xfc);
  EXPECT_EQ(
      problem(arrayOf<float>(DType::F32, {1}, {INFINITY}), DType::F8E4M3FN),
      "element [0] of f32 is inf, which f8E4M3FN cannot hold exactly");
}

TEST(Elements, keepsNaNAndInfinity) {
  Array array = arrayOf<double>(DType::F64, {2}, {NAN, -INFINITY});
  for (DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    auto result = convertExactly(array, dtype);
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(std::isnan(elementAsDouble(dtype, result->bytes.data(), 0)));
    EXPECT_EQ(elementAsDouble(dtype, result->bytes.data(), 1), -INFINITY);
    EXPECT_TRUE(firstNonFinite(*result).has_value());
  }
  EXPECT_FALSE(
      firstNonFinite(arrayOf<float>(DType::F32, {1}, {3})).has_value());
}

TEST(Elements, readsNumPysHalves) {
  auto array = readNpy(fixture("half_values.npy"));
  ASSERT_TRUE(array.ok());
  const double expected[] = {0,        -0.0,     1,       -2,
                             65504,    0x1p-24,  0x1p-14, 0.333251953125,
                             INFINITY, -INFINITY};
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(elementAsDouble(DType::F16, array->bytes.data(), i), expected[i]);
}

TEST(Elements, everyHalfSurvivesAnF64) {
  for (DType dtype : {DType::F16, DType::BF16}) {
    Array all{dtype, {65536}, {}};
    for (int i = 0; i < 65536; ++i)
      appendInteger<uint16_t>(all.bytes, uint16_t(i));
    auto wide = convertExactly(all, DType::F64);
    ASSERT_TRUE(wide.ok());
    auto back = convertExactly(*wide, dtype);
    ASSERT_TRUE(back.ok());
    for (int i = 0; i < 65536; ++i) {
      if (std::isnan(elementAsDouble(dtype, all.bytes.data(), i)))
        continue; // a NaN stays one, but not its payload
      ASSERT_EQ(loadInteger<uint16_t>(back->bytes, size_t(i) * 2), uint16_t(i));
    }
  }
}

TEST(Elements, roundsScalarsToNearestEven) {
  auto half = [](const char *text) {
    return loadInteger<uint16_t>(parseScalar(text, DType::F16)->bytes, 0);
  };
  EXPECT_EQ(half("1"), 0x3c00);
  EXPECT_EQ(half("2049"), 0x6800);    // halfway, to even
  EXPECT_EQ(half("2051"), 0x6802);    // halfway, to even
  EXPECT_EQ(half("65519"), 0x7bff);   // below the middle
  EXPECT_EQ(half("65520"), 0x7c00);   // infinity
  EXPECT_EQ(half("2.98e-8"), 0x0000); // just below half the smallest
  EXPECT_EQ(half("3e-8"), 0x0001);
  auto brain = [](const char *text) {
    return loadInteger<uint16_t>(parseScalar(text, DType::BF16)->bytes, 0);
  };
  EXPECT_EQ(brain("-3"), 0xc040);
  EXPECT_EQ(brain("257"), 0x4380);            // halfway, to even
  EXPECT_EQ(brain("257.0000000001"), 0x4381); // rounded once, not twice
  EXPECT_EQ(brain("1e39"), 0x7f80);
}

TEST(Elements, parsesScalars) {
  EXPECT_EQ(elements<float>(*parseScalar("3.5", DType::F32)),
            std::vector<float>{3.5f});
  EXPECT_EQ(elements<float>(*parseScalar("+1e-3", DType::F32)),
            std::vector<float>{1e-3f});
  EXPECT_EQ(elements<int32_t>(*parseScalar("-7", DType::I32)),
            std::vector<int32_t>{-7});
  EXPECT_EQ(elements<uint8_t>(*parseScalar("true", DType::Bool)),
            std::vector<uint8_t>{1});
  EXPECT_TRUE(std::isnan(elements<double>(*parseScalar("nan", DType::F64))[0]));
  for (auto [text, dtype] :
       {std::pair("256", DType::U8), std::pair("1.5", DType::I32),
        std::pair("", DType::F32), std::pair("3x", DType::F32),
        std::pair("2", DType::Bool), std::pair("+", DType::I64),
        std::pair("1e999", DType::F64)})
    EXPECT_FALSE(parseScalar(text, dtype).ok()) << text;
  EXPECT_EQ(parseScalar("256", DType::U8).status().message(),
            "expected a value of type u8 but got '256'");
}

} // namespace
} // namespace tandem::io::test
