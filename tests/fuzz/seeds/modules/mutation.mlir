module @a02 attributes {tandem.phase = "capture"} {
  func.func @graph(%v: tensor<4xf32> {tandem.role = #tandem.role<input "v">})
      -> (!tandem.ref<2x2xf32> {tandem.role = #tandem.role<output "a">},
          !tandem.ref<4xf32> {tandem.role = #tandem.role<output "b">},
          !tandem.ref<4xf32> {tandem.role = #tandem.role<output "c">}) {
    %n = tandem.exp %v : tensor<4xf32>
    %x = tandem.make_ref %n : tensor<4xf32>
    %b = tandem.reshape %x to [2, 2] : !tandem.ref<4xf32> -> !tandem.ref<2x2xf32>
    return %b, %x, %x : !tandem.ref<2x2xf32>, !tandem.ref<4xf32>, !tandem.ref<4xf32>
  }
}
