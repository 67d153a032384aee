module @mlp attributes {tandem.graph = "7e6b2ba4d011c518dba2717c3b4d8cae169ad95cdd6e989755647c5da05c903d", tandem.loss = "loss", tandem.optimizer = "sgd:lr=0.1", tandem.partition = {repeated = [{bytes = 4 : i64, op = "tandem.compare", path = "", reason = "a kernel of the backward is expected to take it in", seconds = 2.0833333333333332E-11 : f64, where = "mlp.mlir:12:13"}, {bytes = 4 : i64, op = "tandem.compare", path = "", reason = "a kernel of the backward is expected to take it in", seconds = 2.0833333333333332E-11 : f64, where = "mlp.mlir:12:13"}, {bytes = 4 : i64, op = "tandem.logical_and", path = "", reason = "a kernel of the backward is expected to take it in", seconds = 2.0833333333333332E-11 : f64, where = "mlp.mlir:12:13"}, {bytes = 48 : i64, op = "tandem.broadcast", path = "", reason = "it moves elements of what is there", seconds = 0.000000e+00 : f64, where = "mlp.mlir:12:13"}, {bytes = 48 : i64, op = "tandem.sub", path = "", reason = "a kernel of the backward is expected to take it in", seconds = 6.250000e-11 : f64, where = "mlp.mlir:12:13"}, {bytes = 48 : i64, op = "tandem.exp", path = "", reason = "a kernel of the backward is expected to take it in", seconds = 1.250000e-09 : f64, where = "mlp.mlir:12:13"}, {bytes = 96 : i64, op = "tandem.iota", path = "", reason = "it needs nothing large from memory", seconds = 0.000000e+00 : f64, where = "mlp.mlir:12:13"}, {bytes = 96 : i64, op = "tandem.broadcast", path = "", reason = "it moves elements of what is there", seconds = 0.000000e+00 : f64, where = "mlp.mlir:12:13"}, {bytes = 12 : i64, op = "tandem.compare", path = "", reason = "a kernel of the backward is expected to take it in", seconds = 6.250000e-11 : f64, where = "mlp.mlir:12:13"}], saved = [{name = "mul.0", op = "tandem.mul", path = "", seconds = 3.3666666666666666E-9 : f64, where = "mlp.mlir:9:11"}, {name = "relu.0", op = "tandem.relu", path = "", seconds = 1.007825E-6 : f64, where = "mlp.mlir:11:15"}, {name = "reduce_max.0", op = "tandem.reduce_max", path = "", seconds = 1.262500e-09 : f64, where = "mlp.mlir:12:13"}, {name = "reduce_sum.1", op = "tandem.reduce_sum", path = "", seconds = 1.262500e-09 : f64, where = "mlp.mlir:12:13"}]}, tandem.phase = "plan", tandem.step_memory = {arena = 320 : i64, constants = 0 : i64, gradients = 0 : i64, inputs = 192 : i64, outputs = 128 : i64, parameters = 192 : i64, saved = 0 : i64, scratch = 832 : i64, staged = 0 : i64, states = 64 : i64}, tandem.target = #tandem.target<cpu {arch = "x86-64-v3", features = ["64bit", "avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3"], vector_bits = 256 : i64}>} {
  func.func @forward(%arg0: tensor<4x8xf32> {tandem.role = #tandem.role<input "x">}, %arg1: tensor<4xi64> {tandem.role = #tandem.role<input "labels" {high = 3 : i64}>}, %arg2: tensor<3x8xf32> {tandem.role = #tandem.role<param "w" {init = {high = 2.000000e-01 : f64, kind = "uniform", low = -2.000000e-01 : f64}, requires_grad}>}, %arg3: tensor<3xf32> {tandem.role = #tandem.role<param "b" {init = {kind = "constant", value = 0.000000e+00 : f64}, requires_grad}>}) -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}, tensor<4x3xf32> {tandem.role = #tandem.role<output "logits">}, tensor<4x8xf32> {tandem.role = #tandem.role<saved "mul.0" {reason = "the smallest cut goes through it", where = "'tandem.matmul' at mlp.mlir:10:10"}>}, tensor<4x3xf32> {tandem.role = #tandem.role<saved "relu.0" {alias = {output = "logits", views = []}, reason = "the smallest cut goes through it", where = "'tandem.sub' at mlp.mlir:12:13"}>}, tensor<4xf32> {tandem.role = #tandem.role<saved "reduce_max.0" {reason = "reducing again would read more", where = "'tandem.broadcast' at mlp.mlir:12:13"}>}, tensor<4xf32> {tandem.role = #tandem.role<saved "reduce_sum.1" {reason = "reducing again would read more", where = "'tandem.log' at mlp.mlir:12:13"}>}) attributes {tandem.plan = #tandem.plan<arena_bytes = 64, peak_bytes = 64, lower_bound_bytes = 16>} {
    %0 = tandem.kernel "mul"(%arg0) {
    ^bb0(%arg4: tensor<4x8xf32>):
      %4 = tandem.constant dense<1.250000e-01> : tensor<4x8xf32>
      %5 = tandem.mul %arg4, %4 : tensor<4x8xf32>
      tandem.yield %5 : tensor<4x8xf32>
    } {buffers = [#tandem.buffer<result 2>], schedule = #tandem.schedule<chosen(method = pointwise, vectors = 1, block = 4096)>, scratch_bytes = 0 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = tandem.kernel "matmul_add_relu"(%0, %arg2, %arg3) {
    ^bb0(%arg4: tensor<4x8xf32>, %arg5: tensor<3x8xf32>, %arg6: tensor<3xf32>):
      %4 = tandem.matmul %arg4, %arg5 {transpose_rhs} : tensor<4x8xf32>, tensor<3x8xf32> -> tensor<4x3xf32>
      %5 = tandem.broadcast %arg6 to [4, 3] along [1] : tensor<3xf32> -> tensor<4x3xf32>
      %6 = tandem.add %4, %5 : tensor<4x3xf32>
      %7 = tandem.relu %6 : tensor<4x3xf32>
      tandem.yield %7 : tensor<4x3xf32>
    } {buffers = [#tandem.buffer<result 1>], schedule = #tandem.schedule<chosen(method = gemm, rows = 4, vectors = 1, block = 4, columns = 8, packs = true)>, scratch_bytes = 832 : i64} : (tensor<4x8xf32>, tensor<3x8xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    %2:3 = tandem.kernel "fused_reduce_max_sub_compare_select_reduce_sum"(%1, %arg1) {
    ^bb0(%arg4: tensor<4x3xf32>, %arg5: tensor<4xi64>):
      %4 = tandem.constant dense<0.000000e+00> : tensor<4x3xf32>
      %5 = tandem.reduce_max %arg4 over [1] : tensor<4x3xf32> -> tensor<4xf32>
      %6 = tandem.broadcast %5 to [4, 3] along [0] : tensor<4xf32> -> tensor<4x3xf32>
      %7 = tandem.sub %arg4, %6 : tensor<4x3xf32>
      %8 = tandem.iota dim 1 : tensor<4x3xi64>
      %9 = tandem.broadcast %arg5 to [4, 3] along [0] : tensor<4xi64> -> tensor<4x3xi64>
      %10 = tandem.compare  eq %8, %9 : tensor<4x3xi64>
      %11 = tandem.select %10, %7, %4 : tensor<4x3xi1>, tensor<4x3xf32>
      %12 = tandem.reduce_sum %11 over [1] : tensor<4x3xf32> -> tensor<4xf32>
      %13 = tandem.exp %7 : tensor<4x3xf32>
      %14 = tandem.reduce_sum %13 over [1] : tensor<4x3xf32> -> tensor<4xf32>
      tandem.yield %5, %12, %14 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    } {buffers = [#tandem.buffer<result 4>, #tandem.buffer<arena 0>, #tandem.buffer<result 5>], schedule = #tandem.schedule<chosen(method = rows)>, scratch_bytes = 0 : i64} : (tensor<4x3xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    %3 = tandem.kernel "fused_log_sub_compare_compare_logical_and"(%2#2, %2#1, %arg1) {
    ^bb0(%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xi64>):
      %4 = tandem.constant dense<4.000000e+00> : tensor<f32>
      %5 = tandem.constant dense<0x7FC00000> : tensor<4xf32>
      %6 = tandem.constant dense<3> : tensor<4xi64>
      %7 = tandem.constant dense<0> : tensor<4xi64>
      %8 = tandem.log %arg4 : tensor<4xf32>
      %9 = tandem.sub %8, %arg5 : tensor<4xf32>
      %10 = tandem.compare  ge %arg6, %7 : tensor<4xi64>
      %11 = tandem.compare  lt %arg6, %6 : tensor<4xi64>
      %12 = tandem.logical_and %10, %11 : tensor<4xi1>
      %13 = tandem.select %12, %9, %5 : tensor<4xi1>, tensor<4xf32>
      %14 = tandem.reduce_sum %13 over [0] : tensor<4xf32> -> tensor<f32>
      %15 = tandem.div %14, %4 : tensor<f32>
      tandem.yield %15 : tensor<f32>
    } {buffers = [#tandem.buffer<result 0>], schedule = #tandem.schedule<chosen(method = rows)>, scratch_bytes = 0 : i64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xi64>) -> tensor<f32>
    return %3, %1, %0, %1, %2#0, %2#2 : tensor<f32>, tensor<4x3xf32>, tensor<4x8xf32>, tensor<4x3xf32>, tensor<4xf32>, tensor<4xf32>
  }
  func.func @backward(%arg0: tensor<4xi64> {tandem.role = #tandem.role<input "labels" {high = 3 : i64, where = "'tandem.compare' at mlp.mlir:12:13"}>}, %arg1: tensor<4x8xf32> {tandem.role = #tandem.role<saved "mul.0" {reason = "the smallest cut goes through it", where = "'tandem.matmul' at mlp.mlir:10:10"}>}, %arg2: tensor<4x3xf32> {tandem.role = #tandem.role<saved "relu.0" {alias = {output = "logits", views = []}, reason = "the smallest cut goes through it", where = "'tandem.sub' at mlp.mlir:12:13"}>}, %arg3: tensor<4xf32> {tandem.role = #tandem.role<saved "reduce_max.0" {reason = "reducing again would read more", where = "'tandem.broadcast' at mlp.mlir:12:13"}>}, %arg4: tensor<4xf32> {tandem.role = #tandem.role<saved "reduce_sum.1" {reason = "reducing again would read more", where = "'tandem.log' at mlp.mlir:12:13"}>}, %arg5: tensor<f32> {tandem.role = #tandem.role<cotangent of "loss">}) -> (tensor<3x8xf32> {tandem.role = #tandem.role<grad of "w">}, tensor<3xf32> {tandem.role = #tandem.role<grad of "b">}) attributes {tandem.plan = #tandem.plan<arena_bytes = 64, peak_bytes = 64, lower_bound_bytes = 48>} {
    %0:2 = tandem.kernel "fused_div_compare_compare_logical_and_select"(%arg5, %arg0, %arg4, %arg3, %arg2) {
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<4xi64>, %arg8: tensor<4xf32>, %arg9: tensor<4xf32>, %arg10: tensor<4x3xf32>):
      %2 = tandem.constant dense<0.000000e+00> : tensor<4xf32>
      %3 = tandem.constant dense<4.000000e+00> : tensor<f32>
      %4 = tandem.div %arg6, %3 : tensor<f32>
      %5 = tandem.broadcast %4 to [4] along [] : tensor<f32> -> tensor<4xf32>
      %6 = tandem.constant dense<3> : tensor<4xi64>
      %7 = tandem.constant dense<0> : tensor<4xi64>
      %8 = tandem.compare  ge %arg7, %7 : tensor<4xi64>
      %9 = tandem.compare  lt %arg7, %6 : tensor<4xi64>
      %10 = tandem.logical_and %8, %9 : tensor<4xi1>
      %11 = tandem.select %10, %5, %2 : tensor<4xi1>, tensor<4xf32>
      %12 = tandem.neg %11 : tensor<4xf32>
      %13 = tandem.div %11, %arg8 : tensor<4xf32>
      %14 = tandem.broadcast %13 to [4, 3] along [0] : tensor<4xf32> -> tensor<4x3xf32>
      %15 = tandem.broadcast %arg9 to [4, 3] along [0] : tensor<4xf32> -> tensor<4x3xf32>
      %16 = tandem.sub %arg10, %15 : tensor<4x3xf32>
      %17 = tandem.exp %16 : tensor<4x3xf32>
      %18 = tandem.mul %14, %17 : tensor<4x3xf32>
      %19 = tandem.broadcast %12 to [4, 3] along [0] : tensor<4xf32> -> tensor<4x3xf32>
      %20 = tandem.constant dense<0.000000e+00> : tensor<4x3xf32>
      %21 = tandem.iota dim 1 : tensor<4x3xi64>
      %22 = tandem.broadcast %arg7 to [4, 3] along [0] : tensor<4xi64> -> tensor<4x3xi64>
      %23 = tandem.compare  eq %21, %22 : tensor<4x3xi64>
      %24 = tandem.select %23, %19, %20 : tensor<4x3xi1>, tensor<4x3xf32>
      %25 = tandem.add %18, %24 : tensor<4x3xf32>
      %26 = tandem.compare  gt %arg10, %20 : tensor<4x3xf32>
      %27 = tandem.select %26, %25, %20 : tensor<4x3xi1>, tensor<4x3xf32>
      %28 = tandem.reduce_sum %27 over [0] : tensor<4x3xf32> -> tensor<3xf32>
      tandem.yield %27, %28 : tensor<4x3xf32>, tensor<3xf32>
    } {buffers = [#tandem.buffer<arena 0>, #tandem.buffer<result 1>], schedule = #tandem.schedule<chosen(method = columns, columns = 16)>, scratch_bytes = 0 : i64} : (tensor<f32>, tensor<4xi64>, tensor<4xf32>, tensor<4xf32>, tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>)
    %1 = tandem.kernel "matmul"(%0#0, %arg1) {
    ^bb0(%arg6: tensor<4x3xf32>, %arg7: tensor<4x8xf32>):
      %2 = tandem.matmul %arg6, %arg7 {transpose_lhs} : tensor<4x3xf32>, tensor<4x8xf32> -> tensor<3x8xf32>
      tandem.yield %2 : tensor<3x8xf32>
    } {buffers = [#tandem.buffer<result 0>], schedule = #tandem.schedule<chosen(method = gemm, rows = 3, vectors = 1, block = 3, columns = 8, packs = false)>, scratch_bytes = 0 : i64} : (tensor<4x3xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    return %1, %0#1 : tensor<3x8xf32>, tensor<3xf32>
  }
  func.func @update(%arg0: tensor<3x8xf32> {tandem.role = #tandem.role<param "w" {init = {high = 2.000000e-01 : f64, kind = "uniform", low = -2.000000e-01 : f64}, requires_grad}>}, %arg1: tensor<3xf32> {tandem.role = #tandem.role<param "b" {init = {kind = "constant", value = 0.000000e+00 : f64}, requires_grad}>}, %arg2: tensor<3x8xf32> {tandem.role = #tandem.role<grad of "w">}, %arg3: tensor<3xf32> {tandem.role = #tandem.role<grad of "b">}, %arg4: tensor<f32> {tandem.role = #tandem.role<state "sgd.lr" {init = {kind = "constant", value = 1.000000e-01 : f64}}>}) -> (tensor<3x8xf32> {tandem.role = #tandem.role<update of "w" {in_place, needs = [["w"]]}>}, tensor<3xf32> {tandem.role = #tandem.role<update of "b" {in_place, needs = [["b"]]}>}) attributes {tandem.plan = #tandem.plan<arena_bytes = 0, peak_bytes = 0, lower_bound_bytes = 0>} {
    %0 = tandem.kernel "fused_mul_sub"(%arg4, %arg2, %arg0) {
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<3x8xf32>, %arg7: tensor<3x8xf32>):
      %2 = tandem.broadcast %arg5 to [3, 8] along [] : tensor<f32> -> tensor<3x8xf32>
      %3 = tandem.mul %2, %arg6 : tensor<3x8xf32>
      %4 = tandem.sub %arg7, %3 : tensor<3x8xf32>
      tandem.yield %4 : tensor<3x8xf32>
    } {buffers = [#tandem.buffer<argument 0>], in_place = #tandem.in_place<0 over 2>, needs = [["w"]], schedule = #tandem.schedule<chosen(method = pointwise, vectors = 1, block = 4096)>, scratch_bytes = 0 : i64} : (tensor<f32>, tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %1 = tandem.kernel "fused_mul_sub"(%arg4, %arg3, %arg1) {
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<3xf32>, %arg7: tensor<3xf32>):
      %2 = tandem.broadcast %arg5 to [3] along [] : tensor<f32> -> tensor<3xf32>
      %3 = tandem.mul %2, %arg6 : tensor<3xf32>
      %4 = tandem.sub %arg7, %3 : tensor<3xf32>
      tandem.yield %4 : tensor<3xf32>
    } {buffers = [#tandem.buffer<argument 1>], in_place = #tandem.in_place<0 over 2>, needs = [["b"]], schedule = #tandem.schedule<chosen(method = pointwise, vectors = 1, block = 4096)>, scratch_bytes = 0 : i64} : (tensor<f32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    return %0, %1 : tensor<3x8xf32>, tensor<3xf32>
  }
  func.func @step(%arg0: tensor<4x8xf32> {tandem.role = #tandem.role<input "x">}, %arg1: tensor<4xi64> {tandem.role = #tandem.role<input "labels" {high = 3 : i64}>}, %arg2: tensor<3x8xf32> {tandem.role = #tandem.role<param "w" {init = {high = 2.000000e-01 : f64, kind = "uniform", low = -2.000000e-01 : f64}, requires_grad}>}, %arg3: tensor<3xf32> {tandem.role = #tandem.role<param "b" {init = {kind = "constant", value = 0.000000e+00 : f64}, requires_grad}>}, %arg4: tensor<f32> {tandem.role = #tandem.role<state "sgd.lr" {init = {kind = "constant", value = 1.000000e-01 : f64}}>}) -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}, tensor<4x3xf32> {tandem.role = #tandem.role<output "logits">}, tensor<3x8xf32> {tandem.role = #tandem.role<update of "w" {in_place}>}, tensor<3xf32> {tandem.role = #tandem.role<update of "b" {in_place}>}) attributes {tandem.plan = #tandem.plan<arena_bytes = 320, peak_bytes = 320, lower_bound_bytes = 208>} {
    %0 = tandem.kernel "mul"(%arg0) {
    ^bb0(%arg5: tensor<4x8xf32>):
      %6 = tandem.constant dense<1.250000e-01> : tensor<4x8xf32>
      %7 = tandem.mul %arg5, %6 : tensor<4x8xf32>
      tandem.yield %7 : tensor<4x8xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<chosen(method = pointwise, vectors = 1, block = 4096)>, scratch_bytes = 0 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = tandem.kernel "matmul_add_relu"(%0, %arg2, %arg3) {
    ^bb0(%arg5: tensor<4x8xf32>, %arg6: tensor<3x8xf32>, %arg7: tensor<3xf32>):
      %6 = tandem.matmul %arg5, %arg6 {transpose_rhs} : tensor<4x8xf32>, tensor<3x8xf32> -> tensor<4x3xf32>
      %7 = tandem.broadcast %arg7 to [4, 3] along [1] : tensor<3xf32> -> tensor<4x3xf32>
      %8 = tandem.add %6, %7 : tensor<4x3xf32>
      %9 = tandem.relu %8 : tensor<4x3xf32>
      tandem.yield %9 : tensor<4x3xf32>
    } {buffers = [#tandem.buffer<result 1>], schedule = #tandem.schedule<chosen(method = gemm, rows = 4, vectors = 1, block = 4, columns = 8, packs = true)>, scratch_bytes = 832 : i64} : (tensor<4x8xf32>, tensor<3x8xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    %2:3 = tandem.kernel "fused_reduce_max_sub_compare_select_reduce_sum"(%1, %arg1) {
    ^bb0(%arg5: tensor<4x3xf32>, %arg6: tensor<4xi64>):
      %6 = tandem.constant dense<0.000000e+00> : tensor<4x3xf32>
      %7 = tandem.reduce_max %arg5 over [1] : tensor<4x3xf32> -> tensor<4xf32>
      %8 = tandem.broadcast %7 to [4, 3] along [0] : tensor<4xf32> -> tensor<4x3xf32>
      %9 = tandem.sub %arg5, %8 : tensor<4x3xf32>
      %10 = tandem.iota dim 1 : tensor<4x3xi64>
      %11 = tandem.broadcast %arg6 to [4, 3] along [0] : tensor<4xi64> -> tensor<4x3xi64>
      %12 = tandem.compare  eq %10, %11 : tensor<4x3xi64>
      %13 = tandem.select %12, %9, %6 : tensor<4x3xi1>, tensor<4x3xf32>
      %14 = tandem.reduce_sum %13 over [1] : tensor<4x3xf32> -> tensor<4xf32>
      %15 = tandem.exp %9 : tensor<4x3xf32>
      %16 = tandem.reduce_sum %15 over [1] : tensor<4x3xf32> -> tensor<4xf32>
      tandem.yield %7, %14, %16 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    } {buffers = [#tandem.buffer<arena 128>, #tandem.buffer<arena 192>, #tandem.buffer<arena 256>], schedule = #tandem.schedule<chosen(method = rows)>, scratch_bytes = 0 : i64} : (tensor<4x3xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    %3 = tandem.kernel "fused_log_sub_compare_compare_logical_and"(%2#2, %2#1, %arg1) {
    ^bb0(%arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<4xi64>):
      %6 = tandem.constant dense<4.000000e+00> : tensor<f32>
      %7 = tandem.constant dense<0x7FC00000> : tensor<4xf32>
      %8 = tandem.constant dense<3> : tensor<4xi64>
      %9 = tandem.constant dense<0> : tensor<4xi64>
      %10 = tandem.log %arg5 : tensor<4xf32>
      %11 = tandem.sub %10, %arg6 : tensor<4xf32>
      %12 = tandem.compare  ge %arg7, %9 : tensor<4xi64>
      %13 = tandem.compare  lt %arg7, %8 : tensor<4xi64>
      %14 = tandem.logical_and %12, %13 : tensor<4xi1>
      %15 = tandem.select %14, %11, %7 : tensor<4xi1>, tensor<4xf32>
      %16 = tandem.reduce_sum %15 over [0] : tensor<4xf32> -> tensor<f32>
      %17 = tandem.div %16, %6 : tensor<f32>
      tandem.yield %17 : tensor<f32>
    } {buffers = [#tandem.buffer<result 0>], schedule = #tandem.schedule<chosen(method = rows)>, scratch_bytes = 0 : i64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xi64>) -> tensor<f32>
    %4:2 = tandem.kernel "fused_div_compare_compare_logical_and_select"(%arg1, %2#2, %2#0, %1, %arg4, %arg3) {
    ^bb0(%arg5: tensor<4xi64>, %arg6: tensor<4xf32>, %arg7: tensor<4xf32>, %arg8: tensor<4x3xf32>, %arg9: tensor<f32>, %arg10: tensor<3xf32>):
      %6 = tandem.constant dense<0.000000e+00> : tensor<4xf32>
      %7 = tandem.constant dense<1.000000e+00> : tensor<f32>
      %8 = tandem.constant dense<4.000000e+00> : tensor<f32>
      %9 = tandem.constant dense<3> : tensor<4xi64>
      %10 = tandem.constant dense<0> : tensor<4xi64>
      %11 = tandem.constant dense<0.000000e+00> : tensor<4x3xf32>
      %12 = tandem.div %7, %8 : tensor<f32>
      %13 = tandem.broadcast %12 to [4] along [] : tensor<f32> -> tensor<4xf32>
      %14 = tandem.compare  ge %arg5, %10 : tensor<4xi64>
      %15 = tandem.compare  lt %arg5, %9 : tensor<4xi64>
      %16 = tandem.logical_and %14, %15 : tensor<4xi1>
      %17 = tandem.select %16, %13, %6 : tensor<4xi1>, tensor<4xf32>
      %18 = tandem.neg %17 : tensor<4xf32>
      %19 = tandem.div %17, %arg6 : tensor<4xf32>
      %20 = tandem.broadcast %19 to [4, 3] along [0] : tensor<4xf32> -> tensor<4x3xf32>
      %21 = tandem.broadcast %arg7 to [4, 3] along [0] : tensor<4xf32> -> tensor<4x3xf32>
      %22 = tandem.sub %arg8, %21 : tensor<4x3xf32>
      %23 = tandem.exp %22 : tensor<4x3xf32>
      %24 = tandem.mul %20, %23 : tensor<4x3xf32>
      %25 = tandem.broadcast %18 to [4, 3] along [0] : tensor<4xf32> -> tensor<4x3xf32>
      %26 = tandem.iota dim 1 : tensor<4x3xi64>
      %27 = tandem.broadcast %arg5 to [4, 3] along [0] : tensor<4xi64> -> tensor<4x3xi64>
      %28 = tandem.compare  eq %26, %27 : tensor<4x3xi64>
      %29 = tandem.select %28, %25, %11 : tensor<4x3xi1>, tensor<4x3xf32>
      %30 = tandem.add %24, %29 : tensor<4x3xf32>
      %31 = tandem.compare  gt %arg8, %11 : tensor<4x3xf32>
      %32 = tandem.select %31, %30, %11 : tensor<4x3xi1>, tensor<4x3xf32>
      %33 = tandem.reduce_sum %32 over [0] : tensor<4x3xf32> -> tensor<3xf32>
      %34 = tandem.broadcast %arg9 to [3] along [] : tensor<f32> -> tensor<3xf32>
      %35 = tandem.mul %34, %33 : tensor<3xf32>
      %36 = tandem.sub %arg10, %35 : tensor<3xf32>
      tandem.yield %32, %36 : tensor<4x3xf32>, tensor<3xf32>
    } {buffers = [#tandem.buffer<arena 192>, #tandem.buffer<argument 3>], in_place = #tandem.in_place<1 over 5>, schedule = #tandem.schedule<chosen(method = columns, columns = 16)>, scratch_bytes = 0 : i64} : (tensor<4xi64>, tensor<4xf32>, tensor<4xf32>, tensor<4x3xf32>, tensor<f32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>)
    %5 = tandem.kernel "matmul_mul_sub"(%4#0, %0, %arg4, %arg2) {
    ^bb0(%arg5: tensor<4x3xf32>, %arg6: tensor<4x8xf32>, %arg7: tensor<f32>, %arg8: tensor<3x8xf32>):
      %6 = tandem.matmul %arg5, %arg6 {transpose_lhs} : tensor<4x3xf32>, tensor<4x8xf32> -> tensor<3x8xf32>
      %7 = tandem.broadcast %arg7 to [3, 8] along [] : tensor<f32> -> tensor<3x8xf32>
      %8 = tandem.mul %7, %6 : tensor<3x8xf32>
      %9 = tandem.sub %arg8, %8 : tensor<3x8xf32>
      tandem.yield %9 : tensor<3x8xf32>
    } {buffers = [#tandem.buffer<argument 2>], in_place = #tandem.in_place<0 over 3>, schedule = #tandem.schedule<chosen(method = gemm, rows = 3, vectors = 1, block = 3, columns = 8, packs = false)>, scratch_bytes = 192 : i64} : (tensor<4x3xf32>, tensor<4x8xf32>, tensor<f32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    return %3, %1, %5, %4#1 : tensor<f32>, tensor<4x3xf32>, tensor<3x8xf32>, tensor<3xf32>
  }
  func.func @evaluate(%arg0: tensor<4x8xf32> {tandem.role = #tandem.role<input "x">}, %arg1: tensor<4xi64> {tandem.role = #tandem.role<input "labels" {high = 3 : i64}>}, %arg2: tensor<3x8xf32> {tandem.role = #tandem.role<param "w" {init = {high = 2.000000e-01 : f64, kind = "uniform", low = -2.000000e-01 : f64}, requires_grad}>}, %arg3: tensor<3xf32> {tandem.role = #tandem.role<param "b" {init = {kind = "constant", value = 0.000000e+00 : f64}, requires_grad}>}) -> (tensor<f32> {tandem.role = #tandem.role<output "loss" {inputs = ["x", "labels"], rows = "mean"}>}, tensor<4x3xf32> {tandem.role = #tandem.role<output "logits" {inputs = ["x"], rows = "each"}>}) attributes {tandem.plan = #tandem.plan<arena_bytes = 128, peak_bytes = 128, lower_bound_bytes = 128>} {
    %0 = tandem.kernel "mul"(%arg0) {
    ^bb0(%arg4: tensor<4x8xf32>):
      %4 = tandem.constant dense<1.250000e-01> : tensor<4x8xf32>
      %5 = tandem.mul %arg4, %4 : tensor<4x8xf32>
      tandem.yield %5 : tensor<4x8xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<chosen(method = pointwise, vectors = 1, block = 4096)>, scratch_bytes = 0 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = tandem.kernel "matmul_add_relu"(%0, %arg2, %arg3) {
    ^bb0(%arg4: tensor<4x8xf32>, %arg5: tensor<3x8xf32>, %arg6: tensor<3xf32>):
      %4 = tandem.matmul %arg4, %arg5 {transpose_rhs} : tensor<4x8xf32>, tensor<3x8xf32> -> tensor<4x3xf32>
      %5 = tandem.broadcast %arg6 to [4, 3] along [1] : tensor<3xf32> -> tensor<4x3xf32>
      %6 = tandem.add %4, %5 : tensor<4x3xf32>
      %7 = tandem.relu %6 : tensor<4x3xf32>
      tandem.yield %7 : tensor<4x3xf32>
    } {buffers = [#tandem.buffer<result 1>], schedule = #tandem.schedule<chosen(method = gemm, rows = 4, vectors = 1, block = 4, columns = 8, packs = true)>, scratch_bytes = 832 : i64} : (tensor<4x8xf32>, tensor<3x8xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    %2:2 = tandem.kernel "fused_reduce_max_sub_compare_select_reduce_sum"(%1, %arg1) {
    ^bb0(%arg4: tensor<4x3xf32>, %arg5: tensor<4xi64>):
      %4 = tandem.constant dense<0.000000e+00> : tensor<4x3xf32>
      %5 = tandem.reduce_max %arg4 over [1] : tensor<4x3xf32> -> tensor<4xf32>
      %6 = tandem.broadcast %5 to [4, 3] along [0] : tensor<4xf32> -> tensor<4x3xf32>
      %7 = tandem.sub %arg4, %6 : tensor<4x3xf32>
      %8 = tandem.iota dim 1 : tensor<4x3xi64>
      %9 = tandem.broadcast %arg5 to [4, 3] along [0] : tensor<4xi64> -> tensor<4x3xi64>
      %10 = tandem.compare  eq %8, %9 : tensor<4x3xi64>
      %11 = tandem.select %10, %7, %4 : tensor<4x3xi1>, tensor<4x3xf32>
      %12 = tandem.reduce_sum %11 over [1] : tensor<4x3xf32> -> tensor<4xf32>
      %13 = tandem.exp %7 : tensor<4x3xf32>
      %14 = tandem.reduce_sum %13 over [1] : tensor<4x3xf32> -> tensor<4xf32>
      tandem.yield %12, %14 : tensor<4xf32>, tensor<4xf32>
    } {buffers = [#tandem.buffer<arena 0>, #tandem.buffer<arena 64>], schedule = #tandem.schedule<chosen(method = rows)>, scratch_bytes = 0 : i64} : (tensor<4x3xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
    %3 = tandem.kernel "fused_log_sub_compare_compare_logical_and"(%2#1, %2#0, %arg1) {
    ^bb0(%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xi64>):
      %4 = tandem.constant dense<4.000000e+00> : tensor<f32>
      %5 = tandem.constant dense<0x7FC00000> : tensor<4xf32>
      %6 = tandem.constant dense<3> : tensor<4xi64>
      %7 = tandem.constant dense<0> : tensor<4xi64>
      %8 = tandem.log %arg4 : tensor<4xf32>
      %9 = tandem.sub %8, %arg5 : tensor<4xf32>
      %10 = tandem.compare  ge %arg6, %7 : tensor<4xi64>
      %11 = tandem.compare  lt %arg6, %6 : tensor<4xi64>
      %12 = tandem.logical_and %10, %11 : tensor<4xi1>
      %13 = tandem.select %12, %9, %5 : tensor<4xi1>, tensor<4xf32>
      %14 = tandem.reduce_sum %13 over [0] : tensor<4xf32> -> tensor<f32>
      %15 = tandem.div %14, %4 : tensor<f32>
      tandem.yield %15 : tensor<f32>
    } {buffers = [#tandem.buffer<result 0>], schedule = #tandem.schedule<chosen(method = rows)>, scratch_bytes = 0 : i64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xi64>) -> tensor<f32>
    return %3, %1 : tensor<f32>, tensor<4x3xf32>
  }
}
