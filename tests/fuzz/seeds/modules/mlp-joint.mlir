module @mlp attributes {tandem.graph = "7e6b2ba4d011c518dba2717c3b4d8cae169ad95cdd6e989755647c5da05c903d", tandem.loss = "loss", tandem.optimizer = "sgd:lr=0.1", tandem.phase = "joint", tandem.target = #tandem.target<cpu {arch = "x86-64-v3", features = ["64bit", "avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3"], vector_bits = 256 : i64}>} {
  func.func @joint(%arg0: tensor<4x8xf32> {tandem.role = #tandem.role<input "x">}, %arg1: tensor<4xi64> {tandem.role = #tandem.role<input "labels" {high = 3 : i64}>}, %arg2: tensor<3x8xf32> {tandem.role = #tandem.role<param "w" {init = {high = 2.000000e-01 : f64, kind = "uniform", low = -2.000000e-01 : f64}, requires_grad}>}, %arg3: tensor<3xf32> {tandem.role = #tandem.role<param "b" {init = {kind = "constant", value = 0.000000e+00 : f64}, requires_grad}>}, %arg4: tensor<f32> {tandem.role = #tandem.role<cotangent of "loss">}) -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}, tensor<4x3xf32> {tandem.role = #tandem.role<output "logits">}, tensor<3x8xf32> {tandem.role = #tandem.role<grad of "w">}, tensor<3xf32> {tandem.role = #tandem.role<grad of "b">}) {
    %0 = tandem.constant {tandem.pass = "forward"} dense<1.250000e-01> : tensor<4x8xf32>
    %1 = tandem.mul %arg0, %0 {tandem.pass = "forward"} : tensor<4x8xf32>
    %2 = tandem.matmul %1, %arg2 {tandem.pass = "forward", transpose_rhs} : tensor<4x8xf32>, tensor<3x8xf32> -> tensor<4x3xf32>
    %3 = tandem.broadcast %arg3 to [4, 3] along [1] {tandem.pass = "forward"} : tensor<3xf32> -> tensor<4x3xf32>
    %4 = tandem.add %2, %3 {tandem.pass = "forward"} : tensor<4x3xf32>
    %5 = tandem.relu %4 {tandem.pass = "forward"} : tensor<4x3xf32>
    %6 = tandem.reduce_max %5 over [1] {tandem.pass = "forward"} : tensor<4x3xf32> -> tensor<4xf32>
    %7 = tandem.detach %6 {tandem.pass = "forward"} : tensor<4xf32>
    %8 = tandem.broadcast %7 to [4, 3] along [0] {tandem.pass = "forward"} : tensor<4xf32> -> tensor<4x3xf32>
    %9 = tandem.sub %5, %8 {tandem.pass = "forward"} : tensor<4x3xf32>
    %10 = tandem.iota dim 1 {tandem.pass = "forward"} : tensor<4x3xi64>
    %11 = tandem.broadcast %arg1 to [4, 3] along [0] {tandem.pass = "forward"} : tensor<4xi64> -> tensor<4x3xi64>
    %12 = tandem.compare  eq %10, %11 {tandem.pass = "forward"} : tensor<4x3xi64>
    %13 = tandem.constant {tandem.pass = "forward"} dense<0.000000e+00> : tensor<4x3xf32>
    %14 = tandem.select %12, %9, %13 {tandem.pass = "forward"} : tensor<4x3xi1>, tensor<4x3xf32>
    %15 = tandem.reduce_sum %14 over [1] {tandem.pass = "forward"} : tensor<4x3xf32> -> tensor<4xf32>
    %16 = tandem.exp %9 {tandem.pass = "forward"} : tensor<4x3xf32>
    %17 = tandem.reduce_sum %16 over [1] {tandem.pass = "forward"} : tensor<4x3xf32> -> tensor<4xf32>
    %18 = tandem.log %17 {tandem.pass = "forward"} : tensor<4xf32>
    %19 = tandem.sub %18, %15 {tandem.pass = "forward"} : tensor<4xf32>
    %20 = tandem.constant {tandem.pass = "forward"} dense<0> : tensor<4xi64>
    %21 = tandem.compare  ge %arg1, %20 {tandem.pass = "forward"} : tensor<4xi64>
    %22 = tandem.constant {tandem.pass = "forward"} dense<3> : tensor<4xi64>
    %23 = tandem.compare  lt %arg1, %22 {tandem.pass = "forward"} : tensor<4xi64>
    %24 = tandem.logical_and %21, %23 {tandem.pass = "forward"} : tensor<4xi1>
    %25 = tandem.constant {tandem.pass = "forward"} dense<0x7FC00000> : tensor<4xf32>
    %26 = tandem.select %24, %19, %25 {tandem.pass = "forward"} : tensor<4xi1>, tensor<4xf32>
    %27 = tandem.reduce_sum %26 over [0] {tandem.pass = "forward"} : tensor<4xf32> -> tensor<f32>
    %28 = tandem.constant {tandem.pass = "forward"} dense<4.000000e+00> : tensor<f32>
    %29 = tandem.div %27, %28 {tandem.pass = "forward"} : tensor<f32>
    %30 = tandem.div %arg4, %28 {tandem.pass = "backward"} : tensor<f32>
    %31 = tandem.broadcast %30 to [4] along [] {tandem.pass = "backward"} : tensor<f32> -> tensor<4xf32>
    %32 = tandem.constant {tandem.pass = "backward"} dense<0.000000e+00> : tensor<4xf32>
    %33 = tandem.select %24, %31, %32 {tandem.pass = "backward"} : tensor<4xi1>, tensor<4xf32>
    %34 = tandem.neg %33 {tandem.pass = "backward"} : tensor<4xf32>
    %35 = tandem.div %33, %17 {tandem.pass = "backward"} : tensor<4xf32>
    %36 = tandem.broadcast %35 to [4, 3] along [0] {tandem.pass = "backward"} : tensor<4xf32> -> tensor<4x3xf32>
    %37 = tandem.mul %36, %16 {tandem.pass = "backward"} : tensor<4x3xf32>
    %38 = tandem.broadcast %34 to [4, 3] along [0] {tandem.pass = "backward"} : tensor<4xf32> -> tensor<4x3xf32>
    %39 = tandem.constant {tandem.pass = "backward"} dense<0.000000e+00> : tensor<4x3xf32>
    %40 = tandem.select %12, %38, %39 {tandem.pass = "backward"} : tensor<4x3xi1>, tensor<4x3xf32>
    %41 = tandem.add %37, %40 {tandem.pass = "backward"} : tensor<4x3xf32>
    %42 = tandem.constant {tandem.pass = "backward"} dense<0.000000e+00> : tensor<4x3xf32>
    %43 = tandem.compare  gt %5, %42 {tandem.pass = "backward"} : tensor<4x3xf32>
    %44 = tandem.constant {tandem.pass = "backward"} dense<0.000000e+00> : tensor<4x3xf32>
    %45 = tandem.select %43, %41, %44 {tandem.pass = "backward"} : tensor<4x3xi1>, tensor<4x3xf32>
    %46 = tandem.reduce_sum %45 over [0] {tandem.pass = "backward"} : tensor<4x3xf32> -> tensor<3xf32>
    %47 = tandem.matmul %45, %1 {tandem.pass = "backward", transpose_lhs} : tensor<4x3xf32>, tensor<4x8xf32> -> tensor<3x8xf32>
    return %29, %5, %47, %46 : tensor<f32>, tensor<4x3xf32>, tensor<3x8xf32>, tensor<3xf32>
  }
  func.func @evaluate(%arg0: tensor<4x8xf32> {tandem.role = #tandem.role<input "x">}, %arg1: tensor<4xi64> {tandem.role = #tandem.role<input "labels" {high = 3 : i64}>}, %arg2: tensor<3x8xf32> {tandem.role = #tandem.role<param "w" {init = {high = 2.000000e-01 : f64, kind = "uniform", low = -2.000000e-01 : f64}, requires_grad}>}, %arg3: tensor<3xf32> {tandem.role = #tandem.role<param "b" {init = {kind = "constant", value = 0.000000e+00 : f64}, requires_grad}>}) -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}, tensor<4x3xf32> {tandem.role = #tandem.role<output "logits">}) {
    %0 = tandem.constant dense<1.250000e-01> : tensor<4x8xf32>
    %1 = tandem.mul %arg0, %0 : tensor<4x8xf32>
    %2 = tandem.matmul %1, %arg2 {transpose_rhs} : tensor<4x8xf32>, tensor<3x8xf32> -> tensor<4x3xf32>
    %3 = tandem.broadcast %arg3 to [4, 3] along [1] : tensor<3xf32> -> tensor<4x3xf32>
    %4 = tandem.add %2, %3 : tensor<4x3xf32>
    %5 = tandem.relu %4 : tensor<4x3xf32>
    %6 = tandem.reduce_max %5 over [1] : tensor<4x3xf32> -> tensor<4xf32>
    %7 = tandem.detach %6 : tensor<4xf32>
    %8 = tandem.broadcast %7 to [4, 3] along [0] : tensor<4xf32> -> tensor<4x3xf32>
    %9 = tandem.sub %5, %8 : tensor<4x3xf32>
    %10 = tandem.iota dim 1 : tensor<4x3xi64>
    %11 = tandem.broadcast %arg1 to [4, 3] along [0] : tensor<4xi64> -> tensor<4x3xi64>
    %12 = tandem.compare  eq %10, %11 : tensor<4x3xi64>
    %13 = tandem.constant dense<0.000000e+00> : tensor<4x3xf32>
    %14 = tandem.select %12, %9, %13 : tensor<4x3xi1>, tensor<4x3xf32>
    %15 = tandem.reduce_sum %14 over [1] : tensor<4x3xf32> -> tensor<4xf32>
    %16 = tandem.exp %9 : tensor<4x3xf32>
    %17 = tandem.reduce_sum %16 over [1] : tensor<4x3xf32> -> tensor<4xf32>
    %18 = tandem.log %17 : tensor<4xf32>
    %19 = tandem.sub %18, %15 : tensor<4xf32>
    %20 = tandem.constant dense<0> : tensor<4xi64>
    %21 = tandem.compare  ge %arg1, %20 : tensor<4xi64>
    %22 = tandem.constant dense<3> : tensor<4xi64>
    %23 = tandem.compare  lt %arg1, %22 : tensor<4xi64>
    %24 = tandem.logical_and %21, %23 : tensor<4xi1>
    %25 = tandem.constant dense<0x7FC00000> : tensor<4xf32>
    %26 = tandem.select %24, %19, %25 : tensor<4xi1>, tensor<4xf32>
    %27 = tandem.reduce_sum %26 over [0] : tensor<4xf32> -> tensor<f32>
    %28 = tandem.constant dense<4.000000e+00> : tensor<f32>
    %29 = tandem.div %27, %28 : tensor<f32>
    return %29, %5 : tensor<f32>, tensor<4x3xf32>
  }
}
