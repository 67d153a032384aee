// RUN: tandem-opt %s --tandem-lower-to-cpu | FileCheck %s

// Whole schedules that no table would choose are what code is made of, by a
// method of each family: their numbers come out as they went in, and kernels
// have the items that they say.
// CHECK-LABEL: module @cpu
// CHECK: llvm.func @product_0({{.*}}items = 24{{.*}}schedule = <method = gemm, rows = 6, vectors = 4, block = 12, columns = 64, packs = true>
// CHECK: llvm.func @dots_0({{.*}}items = 8{{.*}}schedule = <method = dots, columns = 12>
// CHECK: llvm.func @direct_0({{.*}}items = 4{{.*}}schedule = <method = direct, rows = 5, vectors = 2, block = 32>
// CHECK: llvm.func @windows_0({{.*}}items = 16{{.*}}schedule = <method = windows, rows = 4, vectors = 2, block = 8, columns = 32, packs = true>
// CHECK: llvm.func @pixels_0({{.*}}items = 4{{.*}}schedule = <method = pixels, block = 48>
// CHECK: llvm.func @winograd_0({{.*}}items = 8{{.*}}schedule = <method = winograd, rows = 4, vectors = 2, block = 8, columns = 32>
// CHECK: llvm.func @one_by_one_0({{.*}}items = 4{{.*}}schedule = <method = pointwise, rows = 4, vectors = 2, block = 32, columns = 64>
// CHECK: llvm.func @attention_0({{.*}}items = 10{{.*}}schedule = <method = tiles, vectors = 1>
// CHECK: llvm.func @scatter_0({{.*}}items = 10{{.*}}schedule = <method = indexed, block = 10>
// CHECK: llvm.func @loop_0({{.*}}items = 8{{.*}}schedule = <method = pointwise, vectors = 2, block = 512>
// CHECK: llvm.func @columns_0({{.*}}items = 5{{.*}}schedule = <method = columns, columns = 32>
module @cpu attributes {tandem.phase = "plan", tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  func.func @evaluate(%x0: tensor<64x300xf32> {tandem.role = #tandem.role<input "x0">}, %x1: tensor<300x200xf32> {tandem.role = #tandem.role<input "x1">}, %x2: tensor<4x1024xf32> {tandem.role = #tandem.role<input "x2">}, %x3: tensor<96x1024xf32> {tandem.role = #tandem.role<input "x3">}, %x4: tensor<2x16x12x12xf32> {tandem.role = #tandem.role<input "x4">}, %x5: tensor<32x16x5x5xf32> {tandem.role = #tandem.role<input "x5">}, %x6: tensor<2x16x12x12xf32> {tandem.role = #tandem.role<input "x6">}, %x7: tensor<32x16x5x5xf32> {tandem.role = #tandem.role<input "x7">}, %x8: tensor<2x16x12x12xf32> {tandem.role = #tandem.role<input "x8">}, %x9: tensor<4x16x5x5xf32> {tandem.role = #tandem.role<input "x9">}, %x10: tensor<2x64x16x16xf32> {tandem.role = #tandem.role<input "x10">}, %x11: tensor<64x64x3x3xf32> {tandem.role = #tandem.role<input "x11">}, %x12: tensor<2x64x8x8xf32> {tandem.role = #tandem.role<input "x12">}, %x13: tensor<64x64x1x1xf32> {tandem.role = #tandem.role<input "x13">}, %x14: tensor<150x20xf32> {tandem.role = #tandem.role<input "x14">}, %x15: tensor<150x20xf32> {tandem.role = #tandem.role<input "x15">}, %x16: tensor<150x20xf32> {tandem.role = #tandem.role<input "x16">}, %x17: tensor<30x8xf32> {tandem.role = #tandem.role<input "x17">}, %x18: tensor<30xi32> {tandem.role = #tandem.role<input "x18">}, %x19: tensor<64x64xf32> {tandem.role = #tandem.role<input "x19">}, %x20: tensor<61x130xf32> {tandem.role = #tandem.role<input "x20">})
      attributes {tandem.plan = #tandem.plan<arena_bytes = 100352, peak_bytes = 100352, lower_bound_bytes = 100352>} {
    %y_product = tandem.kernel "product" (%x0, %x1) {
    ^bb0(%a0: tensor<64x300xf32>, %a1: tensor<300x200xf32>):
      %y = tandem.matmul %a0, %a1 : tensor<64x300xf32>, tensor<300x200xf32> -> tensor<64x200xf32>
      tandem.yield %y : tensor<64x200xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = gemm, rows = 6, vectors = 4, block = 12, columns = 64, packs = true>} : (tensor<64x300xf32>, tensor<300x200xf32>) -> tensor<64x200xf32>
    %y_dots = tandem.kernel "dots" (%x2, %x3) {
    ^bb0(%a0: tensor<4x1024xf32>, %a1: tensor<96x1024xf32>):
      %y = tandem.matmul %a0, %a1 {transpose_rhs} : tensor<4x1024xf32>, tensor<96x1024xf32> -> tensor<4x96xf32>
      tandem.yield %y : tensor<4x96xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = dots, columns = 12>} : (tensor<4x1024xf32>, tensor<96x1024xf32>) -> tensor<4x96xf32>
    %y_direct = tandem.kernel "direct" (%x4, %x5) {
    ^bb0(%a0: tensor<2x16x12x12xf32>, %a1: tensor<32x16x5x5xf32>):
      %y = tandem.conv2d %a0, %a1 : tensor<2x16x12x12xf32>, tensor<32x16x5x5xf32> -> tensor<2x32x8x8xf32>
      tandem.yield %y : tensor<2x32x8x8xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = direct, rows = 5, vectors = 2, block = 32>} : (tensor<2x16x12x12xf32>, tensor<32x16x5x5xf32>) -> tensor<2x32x8x8xf32>
    %y_windows = tandem.kernel "windows" (%x6, %x7) {
    ^bb0(%a0: tensor<2x16x12x12xf32>, %a1: tensor<32x16x5x5xf32>):
      %y = tandem.conv2d %a0, %a1 : tensor<2x16x12x12xf32>, tensor<32x16x5x5xf32> -> tensor<2x32x8x8xf32>
      tandem.yield %y : tensor<2x32x8x8xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = windows, rows = 4, vectors = 2, block = 8, columns = 32, packs = true>} : (tensor<2x16x12x12xf32>, tensor<32x16x5x5xf32>) -> tensor<2x32x8x8xf32>
    %y_pixels = tandem.kernel "pixels" (%x8, %x9) {
    ^bb0(%a0: tensor<2x16x12x12xf32>, %a1: tensor<4x16x5x5xf32>):
      %y = tandem.conv2d %a0, %a1 : tensor<2x16x12x12xf32>, tensor<4x16x5x5xf32> -> tensor<2x4x8x8xf32>
      tandem.yield %y : tensor<2x4x8x8xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = pixels, block = 48>} : (tensor<2x16x12x12xf32>, tensor<4x16x5x5xf32>) -> tensor<2x4x8x8xf32>
    %y_winograd = tandem.kernel "winograd" (%x10, %x11) {
    ^bb0(%a0: tensor<2x64x16x16xf32>, %a1: tensor<64x64x3x3xf32>):
      %y = tandem.conv2d %a0, %a1 : tensor<2x64x16x16xf32>, tensor<64x64x3x3xf32> -> tensor<2x64x14x14xf32>
      tandem.yield %y : tensor<2x64x14x14xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = winograd, rows = 4, vectors = 2, block = 8, columns = 32>} : (tensor<2x64x16x16xf32>, tensor<64x64x3x3xf32>) -> tensor<2x64x14x14xf32>
    %y_one_by_one = tandem.kernel "one_by_one" (%x12, %x13) {
    ^bb0(%a0: tensor<2x64x8x8xf32>, %a1: tensor<64x64x1x1xf32>):
      %y = tandem.conv2d %a0, %a1 : tensor<2x64x8x8xf32>, tensor<64x64x1x1xf32> -> tensor<2x64x8x8xf32>
      tandem.yield %y : tensor<2x64x8x8xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = pointwise, rows = 4, vectors = 2, block = 32, columns = 64>} : (tensor<2x64x8x8xf32>, tensor<64x64x1x1xf32>) -> tensor<2x64x8x8xf32>
    %y_attention = tandem.kernel "attention" (%x14, %x15, %x16) {
    ^bb0(%a0: tensor<150x20xf32>, %a1: tensor<150x20xf32>, %a2: tensor<150x20xf32>):
      %y, %l = tandem.attention_forward %a0, %a1, %a2 {scale = 0.5 : f64} : (tensor<150x20xf32>, tensor<150x20xf32>, tensor<150x20xf32>) -> (tensor<150x20xf32>, tensor<150xf32>)
      tandem.yield %y : tensor<150x20xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = tiles, vectors = 1>} : (tensor<150x20xf32>, tensor<150x20xf32>, tensor<150x20xf32>) -> tensor<150x20xf32>
    %y_scatter = tandem.kernel "scatter" (%x17, %x18) {
    ^bb0(%a0: tensor<30x8xf32>, %a1: tensor<30xi32>):
      %y = tandem.take_grad %a0, %a1 to [100, 8] : tensor<30x8xf32>, tensor<30xi32> -> tensor<100x8xf32>
      tandem.yield %y : tensor<100x8xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = indexed, block = 10>} : (tensor<30x8xf32>, tensor<30xi32>) -> tensor<100x8xf32>
    %y_loop = tandem.kernel "loop" (%x19) {
    ^bb0(%a0: tensor<64x64xf32>):
      %y = tandem.exp %a0 : tensor<64x64xf32>
      tandem.yield %y : tensor<64x64xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = pointwise, vectors = 2, block = 512>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %y_columns = tandem.kernel "columns" (%x20) {
    ^bb0(%a0: tensor<61x130xf32>):
      %y = tandem.reduce_sum %a0 over [0] : tensor<61x130xf32> -> tensor<130xf32>
      tandem.yield %y : tensor<130xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = columns, columns = 32>} : (tensor<61x130xf32>) -> tensor<130xf32>
    return
  }
}
