module @shardy attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 2 : i64}]}}
  func.func public @main(%x: tensor<4x0xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>}) -> tensor<4x0xf32> {
    %0 = sdy.sharding_constraint %x <@mesh, [{"data"}, {"model":(1)2p1}]> : tensor<4x0xf32>
    %1 = stablehlo.cosine %0 : tensor<4x0xf32>
    return %1 : tensor<4x0xf32>
  }
}
