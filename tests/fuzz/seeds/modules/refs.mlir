module @restored attributes {tandem.phase = "capture"} {
  func.func @graph(
      %s: !tandem.ref<4xf32> {tandem.role = #tandem.role<state "s">},
      %t: !tandem.ref<4xf32> {tandem.role = #tandem.role<state "t">},
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}) {
    %0 = tandem.read %s : !tandem.ref<4xf32>
    tandem.write %0 into %s : tensor<4xf32>, !tandem.ref<4xf32>
    %1 = tandem.read %t : !tandem.ref<4xf32>
    tandem.write %x into %t : tensor<4xf32>, !tandem.ref<4xf32>
    tandem.write %1 into %t : tensor<4xf32>, !tandem.ref<4xf32>
    return
  }
}
