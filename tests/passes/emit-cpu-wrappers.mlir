// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-emit-cpu-wrappers | FileCheck %s

// The function with the kernel ABI calls the body with the buffers, and says
// what the body said. What overwrites an input has no parameter of its own.
// CHECK-LABEL: module @one
// CHECK: llvm.func internal @sub_0.body({{.*}}) attributes {no_inline}
// CHECK: llvm.func @sub_0(%[[BUFFERS:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64, %[[SCRATCH:.*]]: !llvm.ptr {llvm.dereferenceable = 256 : i64})
// CHECK-SAME: tandem.grain = 2 : i64
// CHECK-SAME: tandem.kernel = #tandem.kernel_facts<{{.*}}items = 4, scratch_bytes = 256
// CHECK: %[[A:.*]] = llvm.load
// CHECK: %[[B:.*]] = llvm.load
// CHECK: llvm.call @sub_0.body(%[[A]], %[[B]], %[[BEGIN]], %[[END]], %[[SCRATCH]])
module @one {
  func.func @update(%w: tensor<8xf32>, %g: tensor<8xf32>) -> tensor<8xf32> {
    %0 = tandem.kernel "sub" (%w, %g) {
    ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
      %1 = tandem.sub %a, %b : tensor<8xf32>
      tandem.yield %1 : tensor<8xf32>
    } {buffers = [#tandem.buffer<argument 0>], in_place = #tandem.in_place<0 over 0>, tandem.function = @cpu::@sub_0} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  module @cpu {
    llvm.func @sub_0.body(%a: !llvm.ptr, %b: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr) attributes {tandem.grain = 2 : i64, tandem.kernel = #tandem.kernel_facts<kind = "pointwise", ops = ["tandem.sub"], type = (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>, items = 4, scratch_bytes = 256>} {
      llvm.return
    }
  }
}

// -----

// The function of a loop calls those of the kernels of its body, whose function
// goes.
// CHECK-LABEL: module @loop
// CHECK-NOT: tandem.regions
// CHECK-NOT: func.func private
// CHECK: llvm.func internal @exp_0.body
// CHECK: llvm.func @exp_0(
// CHECK: llvm.func @loop_0(
// CHECK-SAME: scratch_bytes = {{[1-9]}}
// CHECK: llvm.call @exp_0(
// CHECK: llvm.intr.memcpy
module @loop {
  func.func @evaluate(%x: tensor<8xf32>) -> tensor<8xf32> {
    %y = tandem.kernel "loop" (%x) {
    ^bb0(%i: tensor<8xf32>):
      %0 = tandem.scan 100 carries(%i) inputs() constants() {
      ^bb0(%c: tensor<8xf32>):
        %1 = tandem.exp %c : tensor<8xf32>
        tandem.yield %1 : tensor<8xf32>
      } : (tensor<8xf32>) -> (tensor<8xf32>)
      tandem.yield %0 : tensor<8xf32>
    } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@loop_0, tandem.regions = [@loop.region0]} : (tensor<8xf32>) -> tensor<8xf32>
    return %y : tensor<8xf32>
  }
  func.func private @loop.region0(%x: tensor<8xf32>) -> tensor<8xf32> attributes {tandem.plan = #tandem.plan<arena_bytes = 0, peak_bytes = 0, lower_bound_bytes = 0>} {
    %0 = tandem.kernel "exp" (%x) {
    ^bb0(%a: tensor<8xf32>):
      %1 = tandem.exp %a : tensor<8xf32>
      tandem.yield %1 : tensor<8xf32>
    } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@exp_0} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  module @cpu {
    llvm.func @exp_0.body(%a: !llvm.ptr, %b: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr) attributes {tandem.grain = 1 : i64, tandem.kernel = #tandem.kernel_facts<kind = "pointwise", ops = ["tandem.exp"], type = (tensor<8xf32>) -> tensor<8xf32>, items = 1>} {
      llvm.return
    }
  }
}

// -----

module {
  func.func @evaluate(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @below {{'tandem.kernel' op expected its code in the function 'exp_0.body', with 'tandem.kernel'}}
    %0 = tandem.kernel "exp" (%x) {
    ^bb0(%a: tensor<8xf32>):
      %1 = tandem.exp %a : tensor<8xf32>
      tandem.yield %1 : tensor<8xf32>
    } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@exp_0} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  module @cpu {
  }
}

// -----

// It crashed: the loop's body calls what there is not.
module @without {
  func.func @evaluate(%x: tensor<8xf32>) -> tensor<8xf32> {
    %y = tandem.kernel "loop" (%x) {
    ^bb0(%i: tensor<8xf32>):
      %0 = tandem.scan 100 carries(%i) inputs() constants() {
      ^bb0(%c: tensor<8xf32>):
        %1 = tandem.exp %c : tensor<8xf32>
        tandem.yield %1 : tensor<8xf32>
      } : (tensor<8xf32>) -> (tensor<8xf32>)
      tandem.yield %0 : tensor<8xf32>
    } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@loop_0, tandem.regions = [@loop.region0]} : (tensor<8xf32>) -> tensor<8xf32>
    return %y : tensor<8xf32>
  }
  func.func private @loop.region0(%x: tensor<8xf32>) -> tensor<8xf32> attributes {tandem.plan = #tandem.plan<arena_bytes = 0, peak_bytes = 0, lower_bound_bytes = 0>} {
    // expected-error @below {{'tandem.kernel' op expected its code in the function 'exp_0.body', with 'tandem.kernel'}}
    // expected-error @below {{'tandem.kernel' op expected a function 'exp_0' that says 'tandem.kernel'}}
    %0 = tandem.kernel "exp" (%x) {
    ^bb0(%a: tensor<8xf32>):
      %1 = tandem.exp %a : tensor<8xf32>
      tandem.yield %1 : tensor<8xf32>
    } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@exp_0} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  module @cpu {
  }
}

// -----

module @unplanned {
  func.func @evaluate(%x: tensor<8xf32>) -> tensor<8xf32> {
    %y = tandem.kernel "loop" (%x) {
    ^bb0(%i: tensor<8xf32>):
      %0 = tandem.scan 100 carries(%i) inputs() constants() {
      ^bb0(%c: tensor<8xf32>):
        %1 = tandem.exp %c : tensor<8xf32>
        tandem.yield %1 : tensor<8xf32>
      } : (tensor<8xf32>) -> (tensor<8xf32>)
      tandem.yield %0 : tensor<8xf32>
    } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@loop_0, tandem.regions = [@loop.region0]} : (tensor<8xf32>) -> tensor<8xf32>
    return %y : tensor<8xf32>
  }
  // expected-error @below {{'func.func' op expected 'tandem.plan': plan comes before lower}}
  func.func private @loop.region0(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = tandem.kernel "exp" (%x) {
    ^bb0(%a: tensor<8xf32>):
      %1 = tandem.exp %a : tensor<8xf32>
      tandem.yield %1 : tensor<8xf32>
    } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@exp_0} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  module @cpu {
    llvm.func @exp_0.body(%a: !llvm.ptr, %b: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr) attributes {tandem.grain = 1 : i64, tandem.kernel = #tandem.kernel_facts<kind = "pointwise", ops = ["tandem.exp"], type = (tensor<8xf32>) -> tensor<8xf32>, items = 1>} {
      llvm.return
    }
  }
}

// -----

module @placeless {
  func.func @evaluate(%x: tensor<8xf32>) -> tensor<8xf32> {
    %y = tandem.kernel "loop" (%x) {
    ^bb0(%i: tensor<8xf32>):
      %0 = tandem.scan 100 carries(%i) inputs() constants() {
      ^bb0(%c: tensor<8xf32>):
        %1 = tandem.exp %c : tensor<8xf32>
        tandem.yield %1 : tensor<8xf32>
      } : (tensor<8xf32>) -> (tensor<8xf32>)
      tandem.yield %0 : tensor<8xf32>
    } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@loop_0, tandem.regions = [@loop.region0]} : (tensor<8xf32>) -> tensor<8xf32>
    return %y : tensor<8xf32>
  }
  func.func private @loop.region0(%x: tensor<8xf32>) -> tensor<8xf32> attributes {tandem.plan = #tandem.plan<arena_bytes = 0, peak_bytes = 0, lower_bound_bytes = 0>} {
    // expected-error @below {{'tandem.kernel' op expected 'buffers': plan comes before lower}}
    %0 = tandem.kernel "exp" (%x) {
    ^bb0(%a: tensor<8xf32>):
      %1 = tandem.exp %a : tensor<8xf32>
      tandem.yield %1 : tensor<8xf32>
    } {tandem.function = @cpu::@exp_0} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  module @cpu {
    llvm.func @exp_0.body(%a: !llvm.ptr, %b: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr) attributes {tandem.grain = 1 : i64, tandem.kernel = #tandem.kernel_facts<kind = "pointwise", ops = ["tandem.exp"], type = (tensor<8xf32>) -> tensor<8xf32>, items = 1>} {
      llvm.return
    }
  }
}
