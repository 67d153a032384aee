// RUN: tandem-opt %s -split-input-file -tandem-outline-regions | FileCheck %s

// The body of a loop becomes a private function that is planned. Equal loops
// share it; another loop of the same name has its own.
// CHECK-LABEL: module @loops
module @loops attributes {tandem.phase = "plan", tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  // CHECK-LABEL: func.func @evaluate
  func.func @evaluate(%x: tensor<16x16xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<16x16xf32> {tandem.role = #tandem.role<output "y">})
      attributes {tandem.plan = #tandem.plan<arena_bytes = 2048, peak_bytes = 2048, lower_bound_bytes = 2048>} {
    // CHECK: tandem.regions = [@loop.region0]}
    %a = tandem.kernel "loop" (%x) {
    ^bb0(%i: tensor<16x16xf32>):
      %0 = tandem.scan 100 carries(%i) inputs() constants() {
      ^bb0(%c: tensor<16x16xf32>):
        %1 = tandem.exp %c : tensor<16x16xf32>
        tandem.yield %1 : tensor<16x16xf32>
      } : (tensor<16x16xf32>) -> (tensor<16x16xf32>)
      tandem.yield %0 : tensor<16x16xf32>
    } {buffers = [#tandem.buffer<arena 0>]} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    // CHECK: tandem.regions = [@loop.region0]}
    %b = tandem.kernel "loop" (%a) {
    ^bb0(%i: tensor<16x16xf32>):
      %0 = tandem.scan 100 carries(%i) inputs() constants() {
      ^bb0(%c: tensor<16x16xf32>):
        %1 = tandem.exp %c : tensor<16x16xf32>
        tandem.yield %1 : tensor<16x16xf32>
      } : (tensor<16x16xf32>) -> (tensor<16x16xf32>)
      tandem.yield %0 : tensor<16x16xf32>
    } {buffers = [#tandem.buffer<arena 1024>]} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    // CHECK: tandem.regions = [@loop.region0_0]}
    %y = tandem.kernel "loop" (%b) {
    ^bb0(%i: tensor<16x16xf32>):
      %0 = tandem.scan 100 carries(%i) inputs() constants() {
      ^bb0(%c: tensor<16x16xf32>):
        %1 = tandem.sin %c : tensor<16x16xf32>
        tandem.yield %1 : tensor<16x16xf32>
      } : (tensor<16x16xf32>) -> (tensor<16x16xf32>)
      tandem.yield %0 : tensor<16x16xf32>
    } {buffers = [#tandem.buffer<result 0>]} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    return %y : tensor<16x16xf32>
  }
  // CHECK: func.func private @loop.region0(%arg0: tensor<16x16xf32> {tandem.role = #tandem.role<input "argument 0">}) -> (tensor<16x16xf32> {{.*}}) attributes {tandem.plan = #tandem.plan<
  // CHECK: tandem.kernel "exp"(%arg0)
  // CHECK: buffers = [#tandem.buffer<result 0>]
  // CHECK: func.func private @loop.region0_0(
  // CHECK: tandem.kernel "sin"(%arg0)
  // CHECK-NOT: func.func
}
