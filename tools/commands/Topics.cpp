//===- Topics.cpp - pages of help that are of no single command -----------===//
#include "tools/commands/Commands.h"
#include "tools/commands/Help.h"

namespace tandem::commands {
namespace {

std::string arrays() {
  return "Where an option takes NAME=@FILE, NAME is an input, output, param or "
         "state of the\nmodel, and FILE one of\n\n"
         "  F.npy                    an array\n"
         "  F.npz, F.npz:MEMBER      an archive of arrays\n"
         "  F.safetensors, F.safetensors:TENSOR\n"
         "  F.csv, F.csv:COLUMNS     a table: a..c,label or -label\n"
         "  F.bin:u16, F.bin:u32     tokens, as rows of 'train' and 'predict'; "
         "with ,shift=1\n                           each row begins a token "
         "later\n"
         "  FOLDER/, FOLDER/:resize=N, FOLDER/:labels\n"
         "                           PNG and JPEG, as such rows; folders in it "
         "are classes\n"
         "  F-{000..003}.tar:ENDING  samples of WebDataset, as such rows: jpg, "
         "jpeg, png,\n                           cls or npy\n"
         "  F-{0..3}.parquet:COLUMNS, F.arrow:COLUMNS, F.feather:COLUMNS\n"
         "                           tables, with columns as of F.csv\n\n"
         "Without a member, an archive gives its array NAME or its only one. "
         "To "
         "read,\nNAME=3.5 is a scalar. Elements of other types than the "
         "model's are converted\nwhere nothing is lost by it, f64 is rounded "
         "to f32, "
         "and --cast allows more.\n";
}

std::string devices() {
  return "--device says where a model lives and runs:\n\n"
         "  cpu           this machine's processors\n"
         "  cuda[:N]      an NVIDIA GPU, number N (0)\n"
         "  cuda-emu[:N]  the emulated GPU: the same kernels on the CPU, "
         "slowly\n\n"
         "Without it that is the CPU if the artifact has code for it, else "
         "cuda.\nAn artifact has code for what 'compile --target' named.\n";
}

} // namespace

std::span<const Topic> runtimeTopics() {
  static constexpr Topic topics[] = {
      {"arrays", "how arrays are given: NAME=@FILE", arrays},
      {"devices", "what --device can be", devices},
      {"exit-codes", "what exit codes mean", exitCodesText}};
  return topics;
}

} // namespace tandem::commands
