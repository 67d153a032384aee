#!/bin/bash
# embed.sh BIN EXAMPLES - the C program that links the runtime alone trains the
# digits and predicts unseen ones.
source "$(dirname "$0")/expect.sh"
bin=$1 data=$2/digits/data
cd "$work" || exit 1
[ "$(wc -l <"$2/embed/embed.c")" -lt 100 ] || fail 'embed.c has 100 lines'
expect 0 '' "$bin/tandem" compile "$2/digits/mlp.mlir" -o mlp.tdm \
  --optimizer=adamw:lr=2e-3
# The bytes after the header of a u8 npy file (128 bytes) are the elements.
tail -c +129 "$data/train_images.npy" >images
tail -c +129 "$data/train_labels.npy" >labels
expect 0 '(2[89]|3[0-2]) of 32 unseen digits right' \
  "$bin/embed" mlp.tdm images labels
printf '%s\n' "$out"
readelf -d "$bin/embed" | grep NEEDED | grep -E 'LLVM|MLIR' &&
  fail 'embed needs the compiler'
expect 1 'cannot read' "$bin/embed" mlp.tdm nowhere labels
# Another program's library finds the emulator beside itself, not beside the program.
if [ -e "$bin/../lib/libtandem-cuda-emulator.so" ] && command -v python3 >/dev/null; then
  cat >emulated.py <<'PYTHON'
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.tdm_last_error.restype = ctypes.c_char_p
size, made = (ctypes.c_int64 * 1)(2), ctypes.c_void_p()
status = library.tdm_tensor_zeros_on(b"cuda-emu", 1, 1, size, ctypes.byref(made))
print(status, library.tdm_last_error())
sys.exit(status)
PYTHON
  expect 0 '' env -u TANDEM_CUDA_EMULATOR python3 emulated.py "$bin/../lib/libtandem.so.1"
fi
finish
