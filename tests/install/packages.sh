#!/bin/bash
# packages.sh BUILD SOURCE - nothing could be installed on another machine. Packs
# BUILD, and trains with what the runtime's package holds in a root that has
# nothing else but the C and C++ libraries.
source "$(dirname "$0")/../cli/expect.sh"
build=$1 source=$2
for tool in dpkg-deb dpkg-shlibdeps cpack; do
  command -v $tool >/dev/null || { echo "$tool is not installed"; exit 77; }
done
cd "$build" || exit 1
expect 0 '' cpack -G DEB -B "$work/packages"
cd "$work" || exit 1
for package in runtime dev compiler; do
  file=$(echo packages/tandem-"${package}"_*.deb)
  [ -e "$file" ] || { fail "no package of $package"; continue; }
  expect 0 "Package: tandem-$package" dpkg-deb --info "$file"
  mkdir -p "$package"
  expect 0 '' dpkg-deb -x "$file" $package
done
expect 0 'Depends:.*libc6.*libstdc' dpkg-deb --info packages/tandem-runtime_*.deb
dpkg-deb --info packages/tandem-runtime_*.deb | grep -q openmpi &&
  fail 'the runtime needs MPI'
if [ -e "$build/lib/libtandem-mpi.so" ]; then
  expect 0 'Depends:.*libopenmpi' dpkg-deb --info packages/tandem-mpi_*.deb
fi
expect 0 'Depends:.*tandem-runtime' dpkg-deb --info packages/tandem-dev_*.deb
expect 0 'Depends:.*tandem-runtime' dpkg-deb --info packages/tandem-nccl_*.deb
expect 0 'Depends:.*libmlir-22' dpkg-deb --info packages/tandem-compiler_*.deb
find runtime dev compiler ! -type d | sed 's|^[^/]*||' | grep -v copyright |
  sort | uniq -d | grep . && fail 'two packages have the same file'

if [ "$(id -u)" -ne 0 ]; then
  echo 'not root: the package was not tried in a root of its own'
  finish
fi
# The root has what the program's own list of libraries names, and the model.
root=$work/root
mkdir -p "$root/proc" "$root/tmp"
cp -r runtime/. "$root/"
ldd runtime/usr/bin/tandem-run | grep -oE '/[^ ]+' | sort -u |
  while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
data=$source/examples/digits/data
cp "$data"/train_*.npy "$root/tmp/"
expect 0 '' "$build/bin/tandem" compile "$source/examples/digits/mlp.mlir" \
  -o "$root/tmp/mlp.tdm" --optimizer=adamw:lr=2e-3
# Code is loaded from a file in memory, which has a name in /proc.
in_root() {
  unshare -m sh -c 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"' \
    "$root" "$@"
}
expect 0 'loss = ' in_root /usr/bin/tandem-run train /tmp/mlp.tdm \
  --data x=@/tmp/train_images.npy --data labels=@/tmp/train_labels.npy \
  --epochs 2 --save /tmp/mlp.safetensors
[ -s "$root/tmp/mlp.safetensors" ] || fail 'nothing was saved'
finish
