#!/bin/bash
# projects.sh BUILD SOURCE CXX CC - `cmake --install` wrote nothing and said
# nothing; no project could find Tandem. Installs BUILD to a prefix with a space
# in its path, and builds projects there that use the runtime and the compiler.
source "$(dirname "$0")/../cli/expect.sh"
build=$1 source=$2 cxx=$3 cc=$4
here=$source/tests/install
prefix="$work/a prefix"
cd "$work" || exit 1

for component in runtime dev compiler; do
  expect 0 '' cmake --install "$build" --prefix "$prefix" --strip \
    --component $component
done
for file in bin/tandem bin/tandem-run include/tandem/tandem.h \
  include/tandem/compiler/trace/Trace.h share/doc/tandem-runtime/copyright \
  share/man/man1/tandem-run-train.1 share/man/man1/tandem-compile.1 \
  share/bash-completion/completions/tandem; do
  [ -e "$prefix/$file" ] || fail "'$file' was not installed"
done
lib=$(dirname "$(find "$prefix" -name libtandem.so.1)")
[ -e "$lib/libtandem.so" ] || fail 'libtandem.so has no link for the linker'
[ -e "$lib/cmake/tandem/tandemConfig.cmake" ] || fail 'no CMake package'
grep -rlF "$source" "$prefix/include" "$lib/cmake" "$lib/pkgconfig" &&
  fail 'installed files name the folder that they were built in'
expect 0 "^tandem [0-9.]+" "$prefix/bin/tandem" version
expect 0 "^tandem-run [0-9.]+" "$prefix/bin/tandem-run" version

for kind in runtime compiler; do
  expect 0 '' cmake -G Ninja -S "$here/$kind" -B $kind \
    "-DCMAKE_PREFIX_PATH=$prefix" "-DEXAMPLES=$source/examples" \
    "-DCMAKE_CXX_COMPILER=$cxx" "-DCMAKE_C_COMPILER=$cc" \
    -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld
  expect 0 '' cmake --build $kind
done
expect 0 '^tandem 0' runtime/wrapper

# A traced model is compiled by the installed command, and by the library.
expect 0 '' compiler/digits-cnn cnn.mlir
expect 0 '' compiler/compiles cnn.mlir cnn.tdm
expect 0 'step' "$prefix/bin/tandem" inspect cnn.tdm
expect 0 '' "$prefix/bin/tandem" compile "$source/examples/digits/mlp.mlir" \
  -o mlp.tdm --optimizer=adamw:lr=2e-3
data=$source/examples/digits/data
tail -c +129 "$data/train_images.npy" >images
tail -c +129 "$data/train_labels.npy" >labels
expect 0 'unseen digits right' runtime/embed mlp.tdm images labels

# The example by itself, as somebody takes it: it wanted a header of the source.
cp -r "$source/examples/embed" taken
expect 0 '' cmake -G Ninja -S taken -B alone "-DCMAKE_PREFIX_PATH=$prefix" \
  "-DCMAKE_C_COMPILER=$cc"
expect 0 '' cmake --build alone
expect 0 'unseen digits right' alone/embed mlp.tdm images labels

# Without CMake: pkg-config, and a compiler of its own choice.
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$lib/pkgconfig
  expect 0 '^0\.' pkg-config --modversion tandem
  eval "flags=($(pkg-config --cflags --libs tandem))"
  expect 0 '' "$cc" "$source/examples/embed/embed.c" "${flags[@]}" -o by-hand
  expect 0 'unseen digits right' env "LD_LIBRARY_PATH=$lib" ./by-hand mlp.tdm \
    images labels
  for example in parameter_server.3 split_model.2; do
    expect 0 '' "$cxx" -std=c++20 \
      "$source/examples/distributed/${example%.*}.cpp" "${flags[@]}" -pthread \
      -o "${example%.*}"
    expect 0 '' env "LD_LIBRARY_PATH=$lib" "./${example%.*}" \
      --threads="${example#*.}"
  done
else
  echo 'pkg-config is not installed: tandem.pc was not tried'
fi

# What is missing is said where it is asked for.
rm "$lib"/cmake/tandem/tandemCompiler*.cmake
expect 1 "component 'compiler' of tandem is not" cmake -G Ninja \
  -S "$here/compiler" -B missing "-DCMAKE_PREFIX_PATH=$prefix" \
  "-DEXAMPLES=$source/examples" "-DCMAKE_CXX_COMPILER=$cxx"
finish
