#!/bin/bash
# tables-missing.sh BIN - where Apache Arrow was not found, a table of Parquet or Arrow is an
# error that names the file and what is missing, and says how else to go on.
source "$(dirname "$0")/expect.sh"
bin=$1
cd "$work" || exit 1
cat >model.mlir <<'MODEL'
module attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<2x4xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<2x4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.neg %x : tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
}
MODEL
expect 0 '' "$bin/tandem" compile model.mlir -o model.tdm --inference
for file in t.parquet t.arrow:a,b t.feather 't-{0..3}.parquet:a'; do
  name=${file%:*}
  expect 3 "'${name//[\{\}]/.}': .*libtandem-arrow.so, which is built where Apache Arrow.*docs/INSTALL.md.*numpy.save" \
    "$bin/tandem-run" predict model.tdm --data "x=@$file" --output y=@y.npy
done
finish
