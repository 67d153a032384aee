//===- ByteProduct.h - products of casts of 8 bits, for tests -------------===//
#ifndef TANDEM_TESTS_LOWER_CUDA_BYTEPRODUCT_H
#define TANDEM_TESTS_LOWER_CUDA_BYTEPRODUCT_H

#include "tests/lower/cuda/CudaCheck.h"

namespace tandem::test {

struct ByteProduct {
  int64_t M, N, K;
  bool tl = false, tr = true;
  std::string a = "f8E4M3FN", b = "f8E4M3FN", wide = "f32";
  std::string batch = "";
  std::string precision = "tf32";

  static std::string type(const std::string &shape,
                          const std::string &element) {
    return "tensor<" + shape + "x" + element + ">";
  }
  std::string sizes(int64_t rows, int64_t columns) const {
    return batch + std::to_string(rows) + "x" + std::to_string(columns);
  }
  std::string lhs() const { return tl ? sizes(K, M) : sizes(M, K); }
  std::string rhs() const { return tr ? sizes(N, K) : sizes(K, N); }
  std::string y() const { return type(sizes(M, N), wide); }
  /// The casts and the product, `%p`.
  std::string body() const {
    std::string left = type(lhs(), wide), right = type(rhs(), wide);
    std::string attributes = "precision = \"" + precision + "\"";
    if (wide != "f32")
      attributes = "";
    auto add = [&](const std::string &one) {
      attributes += (attributes.empty() ? "" : ", ") + one;
    };
    if (tl)
      add("transpose_lhs");
    if (tr)
      add("transpose_rhs");
    return "%x = tandem.cast %0 : " + type(lhs(), a) + " to " + left +
           "\n%w = tandem.cast %1 : " + type(rhs(), b) + " to " + right +
           "\n%p = tandem.matmul %x, %w {" + attributes + "} : " + left + ", " +
           right + " -> " + y() + "\n";
  }
  std::string module() const {
    return kernelModule({type(lhs(), a), type(rhs(), b)}, {y()},
                        body() + "tandem.yield %p : " + y());
  }
  Tolerance tolerance() const {
    return {a[0] == 'f' ? static_cast<double>(K) : 0};
  }
};

} // namespace tandem::test

#endif
