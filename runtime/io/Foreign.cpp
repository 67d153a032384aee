//===- Foreign.cpp - files of other programs ------------------------------===//
#include "runtime/io/Foreign.h"

namespace tandem::io {
namespace {

constexpr std::string_view
    pickled = "; a PyTorch file holds pickled objects, which are not read: in "
              "Python, 'safetensors.torch.save_file({\"NAME\": tensor}, "
              "\"F.safetensors\")' or 'numpy.save(\"F.npy\", tensor.numpy())' "
              "writes what is",
    image = "; images are not decoded: in Python, 'numpy.save(\"F.npy\", "
            "numpy.stack([numpy.asarray(PIL.Image.open(f)) for f in files]))' "
            "writes what is read",
    idx = "; IDX files are not read: in Python, 'numpy.save(\"F.npy\", "
          "numpy.frombuffer(bytes, numpy.uint8, offset=16).reshape(-1, 1, 28, "
          "28))' writes what is (offset=8 and no reshape for labels)",
    table = "; it is Parquet or Arrow, whose files are named '.parquet', "
            "'.arrow' or '.feather'",
    packed = "; unpack it first";

struct Known {
  std::string_view mark, advice;
};

} // namespace

std::string adviceFor(std::string_view path) {
  constexpr Known ends[] = {
      {".pt", pickled},  {".pth", pickled}, {".ckpt", pickled},
      {".pkl", pickled}, {".png", image},   {".jpg", image},
      {".jpeg", image},  {"-ubyte", idx},   {".idx", idx},
      {".gz", packed},   {".zip", packed}};
  for (const Known &known : ends)
    if (path.ends_with(known.mark))
      return std::string(known.advice);
  return "";
}

std::string adviceFor(Bytes file) {
  constexpr Known begins[] = {{"PK\x03\x04", pickled},
                              {"\x80\x02", pickled},
                              {"\x89PNG", image},
                              {"\xff\xd8\xff", image},
                              {"\x1f\x8b", packed},
                              {"PAR1", table},
                              {"ARROW1", table},
                              {"\x93NUMPY", "; it is an npy file"},
                              {"TANDEM\r\n", "; it is an artifact"}};
  for (const Known &known : begins)
    if (asText(file).starts_with(known.mark))
      return std::string(known.advice);
  return "";
}

} // namespace tandem::io
