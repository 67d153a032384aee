// RUN: tandem-opt %s -tandem-choose-methods | FileCheck %s

// All panels share an item's rows of a left factor that is larger than caches,
// which would be read anew for each; of a smaller one each panel has items.
// CHECK-LABEL: module @panels
module @panels attributes {tandem.target = #tandem.target<cpu {vector_bits = 256 : i64}>} {
  func.func @evaluate(%x: tensor<12544x384xf32> {tandem.role = #tandem.role<input "x">}, %s: tensor<1254x384xf32> {tandem.role = #tandem.role<input "s">}, %w: tensor<384x96xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<12544x96xf32> {tandem.role = #tandem.role<output "y">}, tensor<1254x96xf32> {tandem.role = #tandem.role<output "z">}) {
    // CHECK: schedule = #tandem.schedule<chosen(method = gemm, rows = {{[0-9]+}}, vectors = {{[0-9]+}}, block = {{[0-9]+}}, columns = 96, packs = true)>
    %y = tandem.kernel "y" (%x, %w) {
    ^bb0(%a: tensor<12544x384xf32>, %b: tensor<384x96xf32>):
      %0 = tandem.matmul %a, %b : tensor<12544x384xf32>, tensor<384x96xf32> -> tensor<12544x96xf32>
      tandem.yield %0 : tensor<12544x96xf32>
    } : (tensor<12544x384xf32>, tensor<384x96xf32>) -> tensor<12544x96xf32>
    // CHECK: schedule = #tandem.schedule<chosen(method = gemm, rows = {{[0-9]+}}, vectors = {{[0-9]+}}, block = {{[0-9]+}}, columns = {{16|24|32|48}}, packs = true)>
    %z = tandem.kernel "z" (%s, %w) {
    ^bb0(%a: tensor<1254x384xf32>, %b: tensor<384x96xf32>):
      %0 = tandem.matmul %a, %b : tensor<1254x384xf32>, tensor<384x96xf32> -> tensor<1254x96xf32>
      tandem.yield %0 : tensor<1254x96xf32>
    } : (tensor<1254x384xf32>, tensor<384x96xf32>) -> tensor<1254x96xf32>
    return %y, %z : tensor<12544x96xf32>, tensor<1254x96xf32>
  }
}
