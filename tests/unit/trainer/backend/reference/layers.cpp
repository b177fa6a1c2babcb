// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/trainer/backend/reference/layers.h"

#include <algorithm>
#include <cmath>

namespace paceline::train::reference {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// Calls visit(n, c, y, x) for every element.
template <class Visit>
void each(const Tensor& t, Visit visit) {
  for (std::int64_t n = 0; n < t.samples; ++n)
    for (std::int64_t c = 0; c < t.shape.channels; ++c)
      for (std::int64_t y = 0; y < t.shape.height; ++y)
        for (std::int64_t x = 0; x < t.shape.width; ++x) visit(n, c, y, x);
}

// Calls visit(iy, ix) for the input pixels under the window of output pixel (y, x).
template <class Visit>
void window(const Layer& layer, std::int64_t y, std::int64_t x, Visit visit) {
  for (std::int64_t ky = 0; ky < layer.kernel; ++ky) {
    for (std::int64_t kx = 0; kx < layer.kernel; ++kx) {
      const std::int64_t iy = y * layer.stride + ky - layer.padding;
      const std::int64_t ix = x * layer.stride + kx - layer.padding;
      if (iy >= 0 && iy < layer.in.height && ix >= 0 && ix < layer.in.width) visit(iy, ix);
    }
  }
}

// Calls visit(o, i, w, y, iy, x0, x1, kx) for each weight w and row of output pixels x0 … x1 it contributes to, so that
// the innermost loop of a convolution is along a row.
template <class Visit>
void taps(const Layer& layer, Visit visit) {
  for (std::int64_t o = 0; o < layer.out.channels; ++o) {
    for (std::int64_t i = 0; i < layer.in.channels; ++i) {
      for (std::int64_t ky = 0; ky < layer.kernel; ++ky) {
        for (std::int64_t kx = 0; kx < layer.kernel; ++kx) {
          const std::int64_t w = ((o * layer.in.channels + i) * layer.kernel + ky) * layer.kernel + kx;
          for (std::int64_t y = 0; y < layer.out.height; ++y) {
            const std::int64_t iy = y * layer.stride + ky - layer.padding;
            if (iy < 0 || iy >= layer.in.height) continue;
            std::int64_t first = 0, last = layer.out.width;
            while (first < last && first * layer.stride + kx < layer.padding) ++first;
            while (first < last && (last - 1) * layer.stride + kx - layer.padding >= layer.in.width) --last;
            visit(o, i, index(w), y, iy, first, last, kx - layer.padding);
          }
        }
      }
    }
  }
}

}  // namespace

Tensor convolution(const Layer& layer, const Tensor& x, const Values& weight, const Values& bias) {
  Tensor y(x.samples, layer.out);
  for (std::int64_t n = 0; n < x.samples; ++n) {
    taps(layer, [&](auto o, auto i, auto w, auto row, auto iy, auto first, auto last, auto shift) {
      if (first == last) return;
      double* out = y.row(n, o, row);
      const double* in = x.row(n, i, iy);
      const double value = weight[w];
      for (std::int64_t p = first; p < last; ++p) out[p] += value * in[p * layer.stride + shift];
    });
  }
  if (!bias.empty()) each(y, [&](auto n, auto c, auto r, auto p) { y.at(n, c, r, p) += bias[index(c)]; });
  return y;
}

Tensor convolution_backward(const Layer& layer, const Tensor& x, const Values& weight, const Tensor& dy,
                            Values& weight_gradient, Values& bias_gradient) {
  Tensor dx(x.samples, layer.in);
  weight_gradient.assign(weight.size(), 0.0);
  bias_gradient.assign(index(layer.out.channels), 0.0);
  for (std::int64_t n = 0; n < x.samples; ++n) {
    taps(layer, [&](auto o, auto i, auto w, auto row, auto iy, auto first, auto last, auto shift) {
      double sum = 0;
      for (std::int64_t p = first; p < last; ++p) {
        const double gradient = dy.at(n, o, row, p);
        sum += gradient * x.at(n, i, iy, p * layer.stride + shift);
        dx.at(n, i, iy, p * layer.stride + shift) += gradient * weight[w];
      }
      weight_gradient[w] += sum;
    });
  }
  each(dy, [&](auto n, auto c, auto r, auto p) { bias_gradient[index(c)] += dy.at(n, c, r, p); });
  return dx;
}

Moments moments(const Tensor& x, const SumOverRanks& sum) {
  const auto channels = index(x.shape.channels);
  Moments m{Values(channels, 0.0), Values(channels, 0.0)};
  double count = 0;
  const auto average = [&](Values& sums) {
    sums.push_back(static_cast<double>(x.samples * x.shape.height * x.shape.width));
    if (sum) sum(sums);
    count = sums.back();
    sums.pop_back();
    for (double& value : sums) value /= count;
  };
  each(x, [&](auto n, auto c, auto r, auto p) { m.mean[index(c)] += x.at(n, c, r, p); });
  average(m.mean);
  each(x, [&](auto n, auto c, auto r, auto p) {
    const double d = x.at(n, c, r, p) - m.mean[index(c)];
    m.variance[index(c)] += d * d;
  });
  average(m.variance);
  return m;
}

Tensor batch_norm(const Tensor& x, const Moments& m, const Values& scale, const Values& shift) {
  Tensor y(x.samples, x.shape);
  each(x, [&](auto n, auto c, auto r, auto p) {
    const double normalised = (x.at(n, c, r, p) - m.mean[index(c)]) / std::sqrt(m.variance[index(c)] + epsilon);
    y.at(n, c, r, p) = scale[index(c)] * normalised + shift[index(c)];
  });
  return y;
}

// Ioffe and Szegedy, arXiv 1502.03167, section 3, simplified: with x̂ the normalised input,
// dx = scale ÷ deviation × (dy − mean(dy) − x̂ × mean(dy × x̂)).
Tensor batch_norm_backward(const Tensor& x, const Moments& m, bool frozen, const Values& scale, const Tensor& dy,
                           Values& scale_gradient, Values& shift_gradient, const SumOverRanks& sum) {
  const std::size_t channels = scale.size();
  scale_gradient.assign(scale.size(), 0.0);
  shift_gradient.assign(scale.size(), 0.0);
  const auto normalised = [&](auto n, auto c, auto r, auto p) {
    return (x.at(n, c, r, p) - m.mean[index(c)]) / std::sqrt(m.variance[index(c)] + epsilon);
  };
  each(x, [&](auto n, auto c, auto r, auto p) {
    scale_gradient[index(c)] += dy.at(n, c, r, p) * normalised(n, c, r, p);
    shift_gradient[index(c)] += dy.at(n, c, r, p);
  });
  Values sums = shift_gradient;  // Σdy, Σ(dy × x̂), count
  sums.insert(sums.end(), scale_gradient.begin(), scale_gradient.end());
  sums.push_back(static_cast<double>(x.samples * x.shape.height * x.shape.width));
  if (sum && !frozen) sum(sums);
  Tensor dx(x.samples, x.shape);
  each(x, [&](auto n, auto c, auto r, auto p) {
    double d = dy.at(n, c, r, p);
    if (!frozen) {
      d -= sums[index(c)] / sums.back() + normalised(n, c, r, p) * sums[channels + index(c)] / sums.back();
    }
    dx.at(n, c, r, p) = d * scale[index(c)] / std::sqrt(m.variance[index(c)] + epsilon);
  });
  return dx;
}

Tensor relu(const Tensor& x) {
  Tensor y = x;
  for (double& value : y.values) value = std::max(0.0, value);
  return y;
}

Tensor relu_backward(const Tensor& y, const Tensor& dy) {
  Tensor dx = dy;
  for (std::size_t i = 0; i < dx.values.size(); ++i) dx.values[i] = y.values[i] > 0 ? dy.values[i] : 0;
  return dx;
}

Tensor add(const Tensor& a, const Tensor& b) {
  Tensor sum = a;
  for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += b.values[i];
  return sum;
}

Tensor max_pool(const Layer& layer, const Tensor& x) {
  Tensor y(x.samples, layer.out);
  each(y, [&](auto n, auto c, auto r, auto p) {
    double top = -INFINITY;
    window(layer, r, p, [&](auto iy, auto ix) { top = std::max(top, x.at(n, c, iy, ix)); });
    y.at(n, c, r, p) = top;
  });
  return y;
}

Tensor max_pool_backward(const Layer& layer, const Tensor& x, const Tensor& dy) {
  Tensor dx(x.samples, layer.in);
  each(dy, [&](auto n, auto c, auto r, auto p) {
    double top = -INFINITY;
    std::int64_t top_y = 0, top_x = 0;
    window(layer, r, p, [&](auto iy, auto ix) {
      if (x.at(n, c, iy, ix) <= top) return;
      top = x.at(n, c, iy, ix);
      top_y = iy;
      top_x = ix;
    });
    dx.at(n, c, top_y, top_x) += dy.at(n, c, r, p);
  });
  return dx;
}

Tensor average_pool(const Layer& layer, const Tensor& x) {
  Tensor y(x.samples, layer.out);
  const auto area = static_cast<double>(layer.kernel * layer.kernel);
  each(y, [&](auto n, auto c, auto r, auto p) {
    window(layer, r, p, [&](auto iy, auto ix) { y.at(n, c, r, p) += x.at(n, c, iy, ix) / area; });
  });
  return y;
}

Tensor average_pool_backward(const Layer& layer, const Tensor& x, const Tensor& dy) {
  Tensor dx(x.samples, layer.in);
  const auto area = static_cast<double>(layer.kernel * layer.kernel);
  each(dy, [&](auto n, auto c, auto r, auto p) {
    window(layer, r, p, [&](auto iy, auto ix) { dx.at(n, c, iy, ix) += dy.at(n, c, r, p) / area; });
  });
  return dx;
}

Tensor linear(const Layer& layer, const Tensor& x, const Values& weight, const Values& bias) {
  const std::int64_t in = layer.in.size();
  Tensor y(x.samples, layer.out);
  each(y, [&](auto n, auto o, auto r, auto p) {
    double sum = bias.empty() ? 0 : bias[index(o)];
    for (std::int64_t i = 0; i < in; ++i) sum += weight[index(o * in + i)] * x.values[index(n * in + i)];
    y.at(n, o, r, p) = sum;
  });
  return y;
}

Tensor linear_backward(const Layer& layer, const Tensor& x, const Values& weight, const Tensor& dy,
                       Values& weight_gradient, Values& bias_gradient) {
  const std::int64_t in = layer.in.size();
  Tensor dx(x.samples, layer.in);
  weight_gradient.assign(weight.size(), 0.0);
  bias_gradient.assign(index(layer.out.channels), 0.0);
  each(dy, [&](auto n, auto o, auto r, auto p) {
    const double gradient = dy.at(n, o, r, p);
    bias_gradient[index(o)] += gradient;
    for (std::int64_t i = 0; i < in; ++i) {
      weight_gradient[index(o * in + i)] += gradient * x.values[index(n * in + i)];
      dx.values[index(n * in + i)] += gradient * weight[index(o * in + i)];
    }
  });
  return dx;
}

double cross_entropy(const Tensor& logits, std::span<const std::int32_t> labels) {
  double loss = 0;
  for (std::int64_t n = 0; n < logits.samples; ++n) {
    double sum = 0;
    for (std::int64_t c = 0; c < logits.shape.channels; ++c) sum += std::exp(logits.at(n, c, 0, 0));
    loss += std::log(sum) - logits.at(n, labels[index(n)], 0, 0);
  }
  return loss;
}

Tensor cross_entropy_backward(const Tensor& logits, std::span<const std::int32_t> labels, double scale) {
  Tensor gradient(logits.samples, logits.shape);
  for (std::int64_t n = 0; n < logits.samples; ++n) {
    double sum = 0;
    for (std::int64_t c = 0; c < logits.shape.channels; ++c) sum += std::exp(logits.at(n, c, 0, 0));
    for (std::int64_t c = 0; c < logits.shape.channels; ++c) {
      gradient.at(n, c, 0, 0) = scale * (std::exp(logits.at(n, c, 0, 0)) / sum - (c == labels[index(n)] ? 1 : 0));
    }
  }
  return gradient;
}

}  // namespace paceline::train::reference
