// RUN: tandem-opt %s --tandem-lower-to-cpu --split-input-file --verify-diagnostics | FileCheck %s

// What a kernel asks for stays with its function; kernels that ask for
// different schedules have functions of their own.
// CHECK-LABEL: module @asks
// CHECK: launch @cpu::@matmul_0
// CHECK: launch @cpu::@matmul_1
// CHECK: llvm.func @matmul_0({{.*}}schedule = {rows = 3 : i64, vectors = 2 : i64}
// CHECK: llvm.func @matmul_1({{.*}}schedule = {packs = false}
module @asks attributes {tandem.phase = "plan"} {
  func.func @evaluate(%a: tensor<4x4xf32>) {
    %0 = tandem.kernel "matmul" (%a) {
    ^bb0(%x: tensor<4x4xf32>):
      %y = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      tandem.yield %y : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = {rows = 3, vectors = 2}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = tandem.kernel "matmul" (%a) {
    ^bb0(%x: tensor<4x4xf32>):
      %y = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      tandem.yield %y : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<arena 64>], schedule = {packs = false}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return
  }
}

// -----

module @wrong attributes {tandem.phase = "plan"} {
  func.func @evaluate(%a: tensor<4x4xf32>) {
    // expected-error @+1 {{expected 'rows' of its schedule to be an i64 of 1 to 32, but got 33 : i64}}
    %0 = tandem.kernel "matmul" (%a) {
    ^bb0(%x: tensor<4x4xf32>):
      %y = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      tandem.yield %y : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = {rows = 33}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error @+1 {{expected 'block' of its schedule to be an i64 of 1 to 1099511627776, but got true}}
    %1 = tandem.kernel "matmul" (%a) {
    ^bb0(%x: tensor<4x4xf32>):
      %y = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      tandem.yield %y : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = {block = true}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error @+1 {{expected 'method' of its schedule to be "winograd", "direct" or "windows", but got "fft"}}
    %2 = tandem.kernel "matmul" (%a) {
    ^bb0(%x: tensor<4x4xf32>):
      %y = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      tandem.yield %y : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = {method = "fft"}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error @+1 {{expected 'packs' of its schedule to be true or false, but got 1 : i64}}
    %3 = tandem.kernel "matmul" (%a) {
    ^bb0(%x: tensor<4x4xf32>):
      %y = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      tandem.yield %y : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = {packs = 1}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error @+1 {{expected its schedule to have 'method', 'rows', 'vectors', 'block', 'columns', 'packs' and 'ahead', but got 'width'}}
    %4 = tandem.kernel "matmul" (%a) {
    ^bb0(%x: tensor<4x4xf32>):
      %y = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      tandem.yield %y : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = {width = 1}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error @+1 {{expected 'ahead' of its schedule to be true or false, but got 0 : i64}}
    %6 = tandem.kernel "loop" (%a) {
    ^bb0(%x: tensor<4x4xf32>):
      %y = tandem.exp %x : tensor<4x4xf32>
      tandem.yield %y : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = {ahead = 0}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error @+1 {{expected 'schedule' to be a dictionary, but got 3 : i64}}
    %5 = tandem.kernel "matmul" (%a) {
    ^bb0(%x: tensor<4x4xf32>):
      %y = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      tandem.yield %y : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = 3} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return
  }
}
