// RUN: tandem-opt %s -tandem-narrow-inputs -tandem-check-plan | FileCheck %s

// Two kernels that each read one slice of what a third one made: the slices are
// parts of its place in the arena, and the kernels are equal. What is sliced of
// an argument, and what does not begin at a multiple of 64 bytes, stays.
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: %[[X:[a-z0-9]+]]:
// CHECK: %[[A:.*]] = tandem.kernel "make"
// CHECK: %[[P:.*]] = tandem.slice %[[A]] from [4, 0] to [6, 16] step [1, 1]
// CHECK: tandem.kernel "part"(%[[P]], %[[X]])
// CHECK-NEXT: ^bb0(%[[I:[a-z0-9]+]]: tensor<2x16xf32>, %[[B:[a-z0-9]+]]: tensor<8x16xf32>
// CHECK-NEXT: %[[C:.*]] = tandem.slice %[[B]] from [0, 0] to [1, 16]
// CHECK-NEXT: %[[V:.*]] = tandem.reshape %[[C]] to [16]
// CHECK-NEXT: %[[R:.*]] = tandem.broadcast %[[V]] to [2, 16] along [1]
// CHECK-NEXT: %[[S:.*]] = tandem.add %[[I]], %[[R]]
// CHECK: schedule = #tandem.schedule<chosen(method = pointwise, vectors = 4)>
// CHECK: %[[Q:.*]] = tandem.slice %[[A]] from [6, 0] to [8, 16] step [1, 1]
// CHECK: tandem.kernel "part"(%[[Q]], %[[X]])
// CHECK: tandem.kernel "odd"(%[[A]])
module {
  func.func @evaluate(%x: tensor<8x16xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<2x16xf32> {tandem.role = #tandem.role<output "y">}, tensor<2x16xf32> {tandem.role = #tandem.role<output "z">},
          tensor<8xf32> {tandem.role = #tandem.role<output "o">})
      attributes {tandem.plan = #tandem.plan<arena_bytes = 512, peak_bytes = 512, lower_bound_bytes = 512>} {
    %a = tandem.kernel "make"(%x) {
      ^bb0(%i: tensor<8x16xf32>):
        %t = tandem.exp %i : tensor<8x16xf32>
        tandem.yield %t : tensor<8x16xf32>
    } {buffers = [#tandem.buffer<arena 0>]} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %y = tandem.kernel "part"(%a, %x) {
      ^bb0(%i: tensor<8x16xf32>, %b: tensor<8x16xf32>):
        %c = tandem.slice %b from [0, 0] to [1, 16] step [1, 1] : tensor<8x16xf32> -> tensor<1x16xf32>
        %v = tandem.reshape %c to [16] : tensor<1x16xf32> -> tensor<16xf32>
        %r = tandem.broadcast %v to [8, 16] along [1] : tensor<16xf32> -> tensor<8x16xf32>
        %s = tandem.add %i, %r : tensor<8x16xf32>
        %q = tandem.reshape %s to [4, 2, 16] : tensor<8x16xf32> -> tensor<4x2x16xf32>
        %p = tandem.slice %q from [2, 0, 0] to [3, 2, 16] step [1, 1, 1] : tensor<4x2x16xf32> -> tensor<1x2x16xf32>
        %o = tandem.reshape %p to [2, 16] : tensor<1x2x16xf32> -> tensor<2x16xf32>
        tandem.yield %o : tensor<2x16xf32>
    } {buffers = [#tandem.buffer<result 0>], schedule = #tandem.schedule<chosen(method = pointwise, vectors = 4, ahead = true)>} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<2x16xf32>
    %z = tandem.kernel "part"(%a, %x) {
      ^bb0(%i: tensor<8x16xf32>, %b: tensor<8x16xf32>):
        %c = tandem.slice %b from [0, 0] to [1, 16] step [1, 1] : tensor<8x16xf32> -> tensor<1x16xf32>
        %v = tandem.reshape %c to [16] : tensor<1x16xf32> -> tensor<16xf32>
        %r = tandem.broadcast %v to [8, 16] along [1] : tensor<16xf32> -> tensor<8x16xf32>
        %s = tandem.add %i, %r : tensor<8x16xf32>
        %q = tandem.reshape %s to [4, 2, 16] : tensor<8x16xf32> -> tensor<4x2x16xf32>
        %p = tandem.slice %q from [3, 0, 0] to [4, 2, 16] step [1, 1, 1] : tensor<4x2x16xf32> -> tensor<1x2x16xf32>
        %o = tandem.reshape %p to [2, 16] : tensor<1x2x16xf32> -> tensor<2x16xf32>
        tandem.yield %o : tensor<2x16xf32>
    } {buffers = [#tandem.buffer<result 1>]} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<2x16xf32>
    %o = tandem.kernel "odd"(%a) {
      ^bb0(%i: tensor<8x16xf32>):
        %f = tandem.reshape %i to [128] : tensor<8x16xf32> -> tensor<128xf32>
        %p = tandem.slice %f from [8] to [16] step [1] : tensor<128xf32> -> tensor<8xf32>
        tandem.yield %p : tensor<8xf32>
    } {buffers = [#tandem.buffer<result 2>]} : (tensor<8x16xf32>) -> tensor<8xf32>
    return %y, %z, %o : tensor<2x16xf32>, tensor<2x16xf32>, tensor<8xf32>
  }
}
