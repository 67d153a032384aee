//===- ConvolutionCases.cpp - convolutions and their gradients ------------===//
#include "tools/bench/cpu/Dnnl.h"

using namespace tandem;
using namespace tandem::bench;

namespace {

/// Square windows of images [N, C, H, W], padded by half of the window.
struct Shape {
  int64_t images, channels, size, filters, window, stride, groups = 1;

  int64_t pad() const { return window / 2; }
  int64_t out() const { return (size + 2 * pad() - window) / stride + 1; }
  int64_t groupChannels() const { return channels / groups; }
  std::vector<int64_t> x() const { return {images, channels, size, size}; }
  std::vector<int64_t> w() const {
    return {filters, groupChannels(), window, window};
  }
  std::vector<int64_t> y() const { return {images, filters, out(), out()}; }
  std::string name() const;
};

std::string Shape::name() const {
  auto text = [](int64_t n) { return std::to_string(n); };
  return text(images) + "x" + text(channels) + "x" + text(size) + "-" +
         text(filters) + "-k" + text(window) + "s" + text(stride) +
         (groups > 1 ? "-dw" : "");
}

int64_t at(const std::vector<int64_t> &sizes, int64_t a, int64_t b, int64_t c,
           int64_t d) {
  return ((a * sizes[1] + b) * sizes[2] + c) * sizes[3] + d;
}

/// x[n, c, oh * stride - pad + kh, ...], 0 outside.
double input(const Shape &s, const Tensor &x, int64_t n, int64_t c, int64_t h,
             int64_t w) {
  if (h < 0 || w < 0 || h >= s.size || w >= s.size)
    return 0;
  return read(x, at(s.x(), n, c, h, w));
}

double forward(const Shape &s, const Tensor &x, const Tensor &w,
               int64_t element) {
  int64_t out = s.out(), ow = element % out, oh = element / out % out;
  int64_t o = element / (out * out) % s.filters;
  int64_t n = element / (out * out * s.filters);
  int64_t first = o / (s.filters / s.groups) * s.groupChannels();
  double sum = 0;
  for (int64_t c = 0; c < s.groupChannels(); ++c)
    for (int64_t kh = 0; kh < s.window; ++kh)
      for (int64_t kw = 0; kw < s.window; ++kw)
        sum += input(s, x, n, first + c, oh * s.stride - s.pad() + kh,
                     ow * s.stride - s.pad() + kw) *
               read(w, at(s.w(), o, c, kh, kw));
  return sum;
}

double inputGrad(const Shape &s, const Tensor &dy, const Tensor &w,
                 int64_t element) {
  int64_t column = element % s.size, row = element / s.size % s.size;
  int64_t c = element / (s.size * s.size) % s.channels;
  int64_t n = element / (s.size * s.size * s.channels);
  int64_t groupFilters = s.filters / s.groups;
  int64_t first = c / s.groupChannels() * groupFilters;
  double sum = 0;
  for (int64_t kh = 0; kh < s.window; ++kh)
    for (int64_t kw = 0; kw < s.window; ++kw) {
      int64_t oh = row + s.pad() - kh, ow = column + s.pad() - kw;
      if (oh < 0 || ow < 0 || oh % s.stride || ow % s.stride ||
          oh / s.stride >= s.out() || ow / s.stride >= s.out())
        continue;
      for (int64_t o = first; o < first + groupFilters; ++o)
        sum += read(dy, at(s.y(), n, o, oh / s.stride, ow / s.stride)) *
               read(w, at(s.w(), o, c % s.groupChannels(), kh, kw));
    }
  return sum;
}

double filterGrad(const Shape &s, const Tensor &x, const Tensor &dy,
                  int64_t element) {
  int64_t kw = element % s.window, kh = element / s.window % s.window;
  int64_t c = element / (s.window * s.window) % s.groupChannels();
  int64_t o = element / (s.window * s.window * s.groupChannels());
  int64_t first = o / (s.filters / s.groups) * s.groupChannels();
  double sum = 0;
  for (int64_t n = 0; n < s.images; ++n)
    for (int64_t oh = 0; oh < s.out(); ++oh)
      for (int64_t ow = 0; ow < s.out(); ++ow)
        sum += input(s, x, n, first + c, oh * s.stride - s.pad() + kh,
                     ow * s.stride - s.pad() + kw) *
               read(dy, at(s.y(), n, o, oh, ow));
  return sum;
}

/// Every algorithm in every layout of every library; or the direct one alone.
Peer dnnlConvolution(const Shape &s, DnnlPass pass, bool isDirect) {
  return [=](const std::vector<Tensor> &inputs,
             const std::vector<Tensor> &outputs, int) {
    std::vector<Contender> all;
    for (const auto &dnnl : dnnlLibraries()) {
      if (!dnnl->problem.empty())
        continue;
      auto last = [&](const std::vector<int64_t> &sizes) {
        return dnnl->dense(
            sizes, DType::F32,
            {sizes[1] * sizes[2] * sizes[3], 1, sizes[1] * sizes[3], sizes[1]});
      };
      std::vector<int64_t> filters = s.w();
      if (s.groups > 1)
        filters = {s.groups, s.filters / s.groups, s.groupChannels(), s.window,
                   s.window};
      auto x = dnnl->dense(s.x()), w = dnnl->dense(filters),
           y = dnnl->dense(s.y());
      bool isForward = pass == DnnlPass::Forward;
      bool isData = pass == DnnlPass::BackwardData;
      std::vector<DnnlOperand> operands = {
          {isData ? kDiffSrc : kSrc, x, isData ? outputs[0] : inputs[0],
           isData},
          {pass == DnnlPass::BackwardWeights ? kDiffWeights : kWeights, w,
           pass == DnnlPass::BackwardWeights ? outputs[0] : inputs[1],
           pass == DnnlPass::BackwardWeights},
          {isForward ? kDst : kDiffDst, y,
           isForward ? outputs[0] : inputs[isData ? 0 : 1], isForward}};
      Dnnl::Window window{
          {s.stride, s.stride}, {s.pad(), s.pad()}, {s.pad(), s.pad()}};
      auto anyW = dnnl->any(filters);
      struct {
        const char *name;
        bool isWinograd;
        DnnlDesc x, w, y;
      } variants[] = {
          {"-nchw", false, x, w, y},
          {"-nhwc", false, last(s.x()), anyW, last(s.y())},
          {"-blocked", false, dnnl->any(s.x()), anyW, dnnl->any(s.y())},
          {"-wino", true, dnnl->any(s.x()), anyW, dnnl->any(s.y())}};
      for (const auto &v : variants) {
        if (v.isWinograd && isDirect)
          continue;
        for (Contender &contender : dnnl->contenders(
                 v.name,
                 dnnl->convolution(pass, v.isWinograd, v.x, v.w, v.y, window),
                 operands, outputs))
          all.push_back(std::move(contender));
      }
    }
    return all;
  };
}

std::string list(const std::vector<int64_t> &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "[" : ", ") + std::to_string(number);
  return text + "]";
}

Case convolution(const Shape &s, DnnlPass pass, bool isDirect) {
  Operand x{"x", s.x()}, w{"w", s.w()}, y{"y", s.y()};
  std::string geometry =
      " strides " + list({s.stride, s.stride}) + " padding " +
      list({s.pad(), s.pad(), s.pad(), s.pad()}) +
      (s.groups > 1 ? " groups " + std::to_string(s.groups) : "");
  Case c;
  std::string op;
  switch (pass) {
  case DnnlPass::Forward:
    c.name = "conv-forward-";
    c.inputs = {x, w};
    c.outputs = {y};
    op = "%y = tandem.conv2d %x, %w" + geometry;
    c.expected = [s](const std::vector<Tensor> &inputs, int, int64_t element) {
      return forward(s, inputs[0], inputs[1], element);
    };
    break;
  case DnnlPass::BackwardData:
    c.name = "conv-data-";
    c.inputs = {y, w};
    c.outputs = {x};
    op = "%x = tandem.conv2d_input_grad %y, %w to " + list(s.x()) + geometry;
    c.expected = [s](const std::vector<Tensor> &inputs, int, int64_t element) {
      return inputGrad(s, inputs[0], inputs[1], element);
    };
    break;
  case DnnlPass::BackwardWeights:
    c.name = "conv-weight-";
    c.inputs = {x, y};
    c.outputs = {w};
    op = "%w = tandem.conv2d_filter_grad %x, %y to " + list(s.w()) + geometry;
    c.expected = [s](const std::vector<Tensor> &inputs, int, int64_t element) {
      return filterGrad(s, inputs[0], inputs[1], element);
    };
  }
  c.name += s.name() + (isDirect ? "-direct" : "");
  c.isDirect = isDirect;
  c.program =
      programText(c.inputs, c.outputs,
                  op + " : " + c.inputs[0].type() + ", " + c.inputs[1].type() +
                      " -> " + c.outputs[0].type());
  c.flops = 2.0 * static_cast<double>(s.images * s.filters * s.out() * s.out() *
                                      s.groupChannels() * s.window * s.window);
  c.bytes = allBytes(c);
  c.peers = {dnnlConvolution(s, pass, isDirect)};
  return c;
}

} // namespace

void bench::addConvolutions(std::vector<Case> &cases) {
  const Shape shapes[] = {
      // Of a residual network for images of 32 x 32: its blocks, and between
      // them the steps to half the size.
      {32, 64, 32, 64, 3, 1},
      {32, 128, 16, 128, 3, 1},
      {32, 256, 8, 256, 3, 1},
      {32, 512, 4, 512, 3, 1},
      {32, 64, 32, 128, 3, 2},
      {32, 128, 16, 256, 3, 2},
      {32, 256, 8, 512, 3, 2},
      {32, 64, 32, 128, 1, 2},
      {32, 128, 16, 256, 1, 2},
      {32, 256, 8, 512, 1, 2},
      // For images of 224 x 224.
      {8, 64, 56, 64, 3, 1},
      {8, 64, 56, 256, 1, 1},
      {8, 256, 56, 64, 1, 1},
      {8, 3, 224, 64, 7, 2},
      {8, 128, 56, 128, 3, 1, 128},
  };
  for (const Shape &s : shapes)
    for (DnnlPass pass : {DnnlPass::Forward, DnnlPass::BackwardData,
                          DnnlPass::BackwardWeights}) {
      cases.push_back(convolution(s, pass, false));
      if (s.window == 3 && s.stride == 1 && s.groups == 1)
        cases.push_back(convolution(s, pass, true));
    }
}
