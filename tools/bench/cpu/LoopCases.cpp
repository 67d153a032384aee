//===- LoopCases.cpp - what moves memory ----------------------------------===//
//
// Softmax, layer norm, gelu and cross entropy of [4096, 1024], their gradients,
// and optimizers. A gradient is that of sum(y * dy), so that dy is what arrives
// from above.
//
//===----------------------------------------------------------------------===//
#include "tools/bench/cpu/Dnnl.h"

#include <cmath>

using namespace tandem;
using namespace tandem::bench;

namespace {

constexpr int64_t kRows = 4096, kColumns = 1024;
constexpr double kEpsilon = 1e-5;

using Inputs = std::vector<Tensor>;

/// For each library, with the layouts of [rows, columns] and [rows].
template <typename Make> Peer peer(Make make) {
  return [make](const Inputs &inputs, const Inputs &outputs, int) {
    std::vector<Contender> all;
    for (const auto &dnnl : dnnlLibraries())
      if (dnnl->problem.empty())
        for (Contender &contender :
             make(*dnnl, dnnl->dense({kRows, kColumns}), inputs, outputs))
          all.push_back(std::move(contender));
    return all;
  };
}

Operand matrix(const std::string &name) {
  return {name, {kRows, kColumns}, DType::F32, -2, 2};
}

/// With the text and bytes that follow from its operands.
Case finished(Case c, const std::string &body) {
  c.program = programText(c.inputs, c.outputs, body);
  c.bytes = allBytes(c);
  return c;
}

double cell(const Tensor &x, int64_t row, int64_t column) {
  return read(x, row * kColumns + column);
}

double sumOfExp(const Tensor &x, int64_t row) {
  double sum = 0;
  for (int64_t j = 0; j < kColumns; ++j)
    sum += std::exp(cell(x, row, j));
  return sum;
}

Case softmax() {
  Case c;
  c.name = "softmax";
  c.inputs = {matrix("x")};
  c.outputs = {matrix("y")};
  c.expected = [](const Inputs &in, int, int64_t element) {
    return std::exp(read(in[0], element)) / sumOfExp(in[0], element / kColumns);
  };
  c.peers = {peer([](const Dnnl &dnnl, const DnnlDesc &x, const Inputs &in,
                     const Inputs &out) {
    return dnnl.contenders("", dnnl.softmax(DnnlPass::Forward, false, x),
                           {{kSrc, x, in[0]}, {kDst, x, out[0], true}}, out);
  })};
  return finished(c, "%y = tandem.softmax %x dim 1 : " + c.inputs[0].type());
}

/// The loss, and the gradient of the logits.
Case crossEntropy() {
  Case c;
  c.name = "cross-entropy-and-gradient";
  c.inputs = {matrix("x"), {"labels", {kRows}, DType::I64, 0, kColumns}};
  c.outputs = {{"mean", {}}, matrix("dx")};
  c.expected = [](const Inputs &in, int output, int64_t element) {
    auto loss = [&](int64_t row) {
      return std::log(sumOfExp(in[0], row)) -
             cell(in[0], row, in[1].data<int64_t>()[row]);
    };
    if (output == 1) {
      int64_t row = element / kColumns;
      double p = std::exp(read(in[0], element)) / sumOfExp(in[0], row);
      bool isLabel = in[1].data<int64_t>()[row] == element % kColumns;
      return (p - isLabel) / kRows;
    }
    double sum = 0;
    for (int64_t row = 0; row < kRows; ++row)
      sum += loss(row);
    return sum / kRows;
  };
  c.special = [](const Inputs &in, int output) {
    std::vector<int64_t> elements; // of labels
    for (int64_t row = 0; output == 1 && row < kRows; row += 100)
      elements.push_back(row * kColumns + in[1].data<int64_t>()[row]);
    return elements;
  };
  // The log of softmax, its gradient, and between them the labels' elements.
  c.peers = {peer([](const Dnnl &dnnl, const DnnlDesc &x, const Inputs &in,
                     const Inputs &out) -> std::vector<Contender> {
    Tensor logs = *Tensor::zeros(DType::F32, in[0].shape());
    Tensor above = *Tensor::zeros(DType::F32, in[0].shape());
    const auto *labels = in[1].data<int64_t>();
    for (int64_t row = 0; row < kRows; ++row)
      above.mutableData<float>()[row * kColumns + labels[row]] = -1.0F / kRows;
    auto forward =
        dnnl.contenders("", dnnl.softmax(DnnlPass::Forward, true, x),
                        {{kSrc, x, in[0]}, {kDst, x, logs, true}}, out);
    auto backward = dnnl.contenders(
        "", dnnl.softmax(DnnlPass::BackwardData, true, x),
        {{kDst, x, logs}, {kDiffDst, x, above}, {kDiffSrc, x, out[1], true}},
        out);
    if (forward.size() != 1 || backward.size() != 1)
      return {};
    Contender both = forward[0];
    both.call = [first = forward[0].call, second = backward[0].call, logs,
                 labels, loss = out[0]]() mutable {
      first();
      double sum = 0;
      for (int64_t row = 0; row < kRows; ++row)
        sum -= logs.data<float>()[row * kColumns + labels[row]];
      *loss.mutableData<float>() = static_cast<float>(sum / kRows);
      second();
    };
    return {both};
  })};
  std::string x = c.inputs[0].type();
  return finished(c, "%mean = tandem.cross_entropy %x, %labels : " + x + ", " +
                         c.inputs[1].type() + " -> tensor<f32>\n" +
                         "%dx = tandem.grad %mean wrt (%x) : tensor<f32>, " +
                         x + " -> " + x);
}

//===----------------------------------------------------------------------===//
// Gelu
//===----------------------------------------------------------------------===//

double gelu(double x, bool isTanh) {
  double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + (isTanh ? std::tanh(inner) : std::erf(x / M_SQRT2)));
}

double geluSlope(double x, bool isTanh) {
  constexpr double kStep = 1e-5;
  return (gelu(x + kStep, isTanh) - gelu(x - kStep, isTanh)) / (2 * kStep);
}

std::string geluText(bool isTanh) {
  return std::string("%y = tandem.gelu %x {approximate = \"") +
         (isTanh ? "tanh" : "none") + "\"} : " + matrix("x").type();
}

Case geluForward(bool isTanh) {
  Case c;
  c.name = std::string("gelu-") + (isTanh ? "tanh" : "erf") + "-forward";
  c.inputs = {matrix("x")};
  c.outputs = {matrix("y")};
  c.expected = [=](const Inputs &in, int, int64_t element) {
    return gelu(read(in[0], element), isTanh);
  };
  c.peers = {peer([=](const Dnnl &dnnl, const DnnlDesc &x, const Inputs &in,
                      const Inputs &out) {
    return dnnl.contenders("", dnnl.gelu(DnnlPass::Forward, isTanh, x),
                           {{kSrc, x, in[0]}, {kDst, x, out[0], true}}, out);
  })};
  return finished(c, geluText(isTanh));
}

/// The gradients of sum(y * dy) with respect to some inputs.
std::string gradText(const std::vector<Operand> &inputs,
                     const std::vector<Operand> &outputs) {
  std::string x = matrix("x").type(), names, wrt, types, results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string comma = i ? ", " : "";
    names += comma + "%" + outputs[i].name;
    wrt += comma + "%" + inputs[i].name;
    types += ", " + inputs[i].type();
    results += comma + outputs[i].type();
  }
  return "\n%product = tandem.mul %y, %dy : " + x + "\n" + names +
         " = tandem.grad %product wrt (" + wrt + ") : " + x + types + " -> " +
         results;
}

Case geluBackward(bool isTanh) {
  Case c;
  c.name = std::string("gelu-") + (isTanh ? "tanh" : "erf") + "-backward";
  c.inputs = {matrix("x"), matrix("dy")};
  c.outputs = {matrix("dx")};
  c.expected = [=](const Inputs &in, int, int64_t element) {
    return geluSlope(read(in[0], element), isTanh) * read(in[1], element);
  };
  c.peers = {peer([=](const Dnnl &dnnl, const DnnlDesc &x, const Inputs &in,
                      const Inputs &out) {
    return dnnl.contenders(
        "", dnnl.gelu(DnnlPass::BackwardData, isTanh, x),
        {{kSrc, x, in[0]}, {kDiffDst, x, in[1]}, {kDiffSrc, x, out[0], true}},
        out);
  })};
  return finished(c, geluText(isTanh) + gradText(c.inputs, c.outputs));
}

//===----------------------------------------------------------------------===//
// Layer norm
//===----------------------------------------------------------------------===//

struct Moments {
  double mean, variance;
  double normalized(double x) const {
    return (x - mean) / std::sqrt(variance + kEpsilon);
  }
};

Moments moments(const Tensor &x, int64_t row) {
  double sum = 0, squares = 0;
  for (int64_t j = 0; j < kColumns; ++j)
    sum += cell(x, row, j);
  double mean = sum / kColumns;
  for (int64_t j = 0; j < kColumns; ++j)
    squares += std::pow(cell(x, row, j) - mean, 2);
  return {mean, squares / kColumns};
}

std::string layerNormText() {
  std::string x = matrix("x").type(), row = "tensor<1024xf32>";
  return "%y = tandem.layer_norm %x, %scale, %bias axis 1 {epsilon = 1.0e-5 : "
         "f64} : " +
         x + ", " + row + ", " + row + " -> " + x;
}

Case layerNormForward() {
  Case c;
  c.name = "layer-norm-forward";
  c.inputs = {matrix("x"), {"scale", {kColumns}}, {"bias", {kColumns}}};
  c.outputs = {matrix("y")};
  c.expected = [](const Inputs &in, int, int64_t element) {
    int64_t column = element % kColumns;
    double x =
        moments(in[0], element / kColumns).normalized(read(in[0], element));
    return x * read(in[1], column) + read(in[2], column);
  };
  c.peers = {peer([](const Dnnl &dnnl, const DnnlDesc &x, const Inputs &in,
                     const Inputs &out) {
    auto column = dnnl.dense({kColumns});
    return dnnl.contenders(
        "", dnnl.layerNorm(DnnlPass::Forward, x, dnnl.dense({kRows}), kEpsilon),
        {{kSrc, x, in[0]},
         {kScale, column, in[1]},
         {kShift, column, in[2]},
         {kDst, x, out[0], true}},
        out);
  })};
  return finished(c, layerNormText());
}

/// An element of the gradient of x, scale or bias.
double layerNormGrad(const Inputs &in, int output, int64_t element) {
  const Tensor &x = in[0], &scale = in[1], &dy = in[3];
  if (output == 0) {
    int64_t row = element / kColumns;
    Moments m = moments(x, row);
    double plain = 0, weighted = 0;
    for (int64_t j = 0; j < kColumns; ++j) {
      double g = cell(dy, row, j) * read(scale, j);
      plain += g;
      weighted += g * m.normalized(cell(x, row, j));
    }
    double g = read(dy, element) * read(scale, element % kColumns);
    double xhat = m.normalized(read(x, element));
    return (g - plain / kColumns - xhat * weighted / kColumns) /
           std::sqrt(m.variance + kEpsilon);
  }
  static std::vector<Moments> all; // of the one x that there is
  for (int64_t row = static_cast<int64_t>(all.size()); row < kRows; ++row)
    all.push_back(moments(x, row));
  double sum = 0;
  for (int64_t row = 0; row < kRows; ++row)
    sum += cell(dy, row, element) *
           (output == 1 ? all[row].normalized(cell(x, row, element)) : 1);
  return sum;
}

/// oneDNN gets the moments of the rows from its forward.
std::vector<Contender> dnnlLayerNormBackward(const Dnnl &dnnl,
                                             const DnnlDesc &x,
                                             const Inputs &in,
                                             const Inputs &out) {
  Tensor mean = *Tensor::zeros(DType::F32, std::vector<int64_t>{kRows});
  Tensor variance = *Tensor::zeros(DType::F32, std::vector<int64_t>{kRows});
  for (int64_t row = 0; row < kRows; ++row) {
    Moments m = moments(in[0], row);
    mean.mutableData<float>()[row] = static_cast<float>(m.mean);
    variance.mutableData<float>()[row] = static_cast<float>(m.variance);
  }
  auto rows = dnnl.dense({kRows}), column = dnnl.dense({kColumns});
  return dnnl.contenders(
      "", dnnl.layerNorm(DnnlPass::BackwardData, x, rows, kEpsilon),
      {{kSrc, x, in[0]},
       {kMean, rows, mean},
       {kVariance, rows, variance},
       {kScale, column, in[1]},
       {kShift, column, in[2]},
       {kDiffDst, x, in[3]},
       {kDiffSrc, x, out[0], true},
       {kDiffScale, column, out[1], true},
       {kDiffShift, column, out[2], true}},
      out);
}

Case layerNormBackward() {
  Case c;
  c.name = "layer-norm-backward";
  c.inputs = {
      matrix("x"), {"scale", {kColumns}}, {"bias", {kColumns}}, matrix("dy")};
  c.outputs = {matrix("dx"), {"dscale", {kColumns}}, {"dbias", {kColumns}}};
  c.expected = layerNormGrad;
  c.peers = {peer(dnnlLayerNormBackward)};
  return finished(c, layerNormText() + gradText(c.inputs, c.outputs));
}

//===----------------------------------------------------------------------===//
// Optimizers
//===----------------------------------------------------------------------===//

constexpr int64_t kParameters = 4 << 20;

/// The update of a parameter; `arrays` are read or written in it.
Case update(const std::string &name, const std::string &optimizer,
            double arrays, double (*updated)(double w, double g)) {
  Case c;
  c.name = name;
  c.optimizer = optimizer;
  c.inputs = {{"g", {kParameters}}, {"initial", {kParameters}}};
  c.outputs = {{"w", {kParameters}}};
  std::string w = c.outputs[0].type();
  c.program =
      "module @bench attributes {tandem.phase = \"functionalize\"} {\n"
      "func.func @graph(%w: " +
      w +
      " {tandem.role = #tandem.role<param \"w\" {requires_grad, init = {kind = "
      "\"constant\", value = 0.0}}>}) -> (tensor<f32> {tandem.role = "
      "#tandem.role<output \"loss\">}) {\n"
      "%squares = tandem.mul %w, %w : " +
      w + "\n%loss = tandem.reduce_sum %squares over [0] : " + w +
      " -> tensor<f32>\nreturn %loss : tensor<f32>\n}\n}\n";
  c.bytes = arrays * 4 * kParameters;
  c.expected = [updated](const Inputs &in, int, int64_t element) {
    return updated(read(in[1], element), read(in[0], element));
  };
  return c;
}

} // namespace

void bench::addLoops(std::vector<Case> &cases) {
  cases.push_back(softmax());
  cases.push_back(layerNormForward());
  cases.push_back(layerNormBackward());
  for (bool isTanh : {true, false}) {
    cases.push_back(geluForward(isTanh));
    cases.push_back(geluBackward(isTanh));
  }
  cases.push_back(crossEntropy());
  // In the first step the moments cancel but for the gradient's sign.
  cases.push_back(update(
      "adamw", "adamw:lr=1e-2,weight_decay=0.1", 7, [](double w, double g) {
        return w * (1 - 1e-3) - 1e-2 * g / (std::fabs(g) + 1e-8);
      }));
  cases.push_back(update("momentum", "momentum:lr=1e-2,momentum=0.9", 5,
                         [](double w, double g) { return w - 1e-2 * g; }));
}
