//===- ConvolutionKernel.cpp - kernels of convolutions, for tests ---------===//
#include "tests/lower/anchor/ConvolutionKernel.h"

#include "tests/lower/anchor/KernelCheck.h"

using namespace tandem::test;

static std::string list(const std::vector<int64_t> &numbers,
                        const char *between) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i ? between : "") + std::to_string(numbers[i]);
  return text;
}

std::string tandem::test::convolutionKernel(const Convolution &c,
                                            ConvolutionPass pass, bool hasEnd) {
  auto of = [&](const std::string &element, const std::vector<int64_t> &shape) {
    return "tensor<" + list(shape, "x") + "x" + element + ">";
  };
  auto tensor = [&](const std::vector<int64_t> &shape) {
    return of(c.element, shape);
  };
  std::string precision;
  std::vector<int64_t> xs{c.batch, c.channels, c.height, c.width};
  std::vector<int64_t> ws{c.filters, c.channels / c.groups, c.kh, c.kw};
  std::string x = tensor(xs), w = tensor(ws),
              y = tensor({c.batch, c.filters, c.outHeight(), c.outWidth()});
  std::string op = "conv2d %0, %1", a = x, b = w, made = y;
  if (pass == ConvolutionPass::InputGrad) {
    op = "conv2d_input_grad %0, %1 to [" + list(xs, ", ") + "]";
    a = y;
    made = x;
  } else if (pass == ConvolutionPass::FilterGrad) {
    op = "conv2d_filter_grad %0, %1 to [" + list(ws, ", ") + "]";
    b = y;
    made = c.givesSums ? of("f32", ws) : w;
    if (c.givesSums)
      precision = " {precision = \"sums\"}";
  }
  std::string body =
      "%y = tandem." + op + " strides [" +
      list({c.stride[0], c.stride[1]}, ", ") + "] padding [" +
      list({c.padding[0], c.padding[1], c.padding[2], c.padding[3]}, ", ") +
      "] dilation [" + list({c.dilation[0], c.dilation[1]}, ", ") +
      "] groups " + std::to_string(c.groups) + precision + " : " + a + ", " +
      b + " -> " + made;
  if (!hasEnd)
    return kernelModule({a, b}, {made}, body + "\ntandem.yield %y : " + made);
  return kernelModule({a, b, made}, {made},
                      body + "\n%s = tandem.add %y, %2 : " + made +
                          "\n%z = tandem.relu %s : " + made +
                          "\ntandem.yield %z : " + made);
}

double tandem::test::termsOf(const Convolution &c, ConvolutionPass pass) {
  auto taps = static_cast<double>(c.kh * c.kw);
  switch (pass) {
  case ConvolutionPass::Forward:
    return static_cast<double>(c.channels / c.groups) * taps;
  case ConvolutionPass::InputGrad:
    return static_cast<double>(c.filters / c.groups) * taps;
  case ConvolutionPass::FilterGrad:
    return static_cast<double>(c.batch * c.outHeight() * c.outWidth());
  }
  return 0;
}
