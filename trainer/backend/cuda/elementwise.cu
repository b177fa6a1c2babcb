// SPDX-License-Identifier: Apache-2.0
// Kernels on values, windows and images, with independent channels.
#include "trainer/backend/cuda/quads.cuh"

namespace paceline::train::cuda {
namespace {

struct ReluBody {
  Storage s;
  const void *a, *b;
  void* y;
  bool relu;
  __device__ void operator()(std::size_t i) const {
    float4 v = load4(a, s, i);
    if (b != nullptr) v = v + load4(b, s, i);
    store4(y, s, i, relu ? positive(v) : v);
  }
};

struct ReluBackwardBody {
  Storage s;
  const void *y, *dy, *other;
  void* dx;
  __device__ void operator()(std::size_t i) const {
    float4 gradient = load4(dy, s, i);
    if (other != nullptr) gradient = gradient + load4(other, s, i);
    store4(dx, s, i, where_positive(load4(y, s, i), gradient));
  }
};

// SplitMix64's i-th value from `seed`, as a number from 0 to 1 of 24 bits.
__device__ float uniform(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed + 0x9e3779b97f4a7c15u * (i + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<float>(z >> 40) * 0x1p-24f;
}

struct DropoutBody {
  Storage s;
  const void* x;
  void* y;
  float drop;
  std::uint64_t layer;
  const Step* step;
  __device__ void operator()(std::size_t i) const {
    const std::uint64_t seed = step->dropout + layer * 0xd1342543de82ef95u;
    const float keep = 1 / (1 - drop);
    const float4 v = load4(x, s, i);
    const auto masked = [&](float value, int k) { return uniform(seed, 4 * i + k) < drop ? 0.0f : value * keep; };
    store4(y, s, i, make_float4(masked(v.x, 0), masked(v.y, 1), masked(v.z, 2), masked(v.w, 3)));
  }
};

struct NarrowBody {
  Storage s;
  const float* from;
  void* to;
  __device__ void operator()(std::size_t i) const { store4(to, s, i, reinterpret_cast<const float4*>(from)[i]); }
};

__device__ bool finite(float4 v) { return isfinite(v.x) && isfinite(v.y) && isfinite(v.z) && isfinite(v.w); }

struct TakeGradientBody {
  Storage s;
  const void* from;
  float* to;
  Step* step;
  __device__ void operator()(std::size_t i) const {
    const float unscale = step->unscale;
    const float4 v = map(load4(from, s, i), [=](float value) { return value * unscale; });
    if (!finite(v)) step->overflow = 1;
    reinterpret_cast<float4*>(to)[i] = v;
  }
};

struct NonfiniteBody {
  Storage s;
  const void* values;
  unsigned* flag;
  __device__ void operator()(std::size_t i) const {
    if (!finite(load4(values, s, i))) *flag = 1;
  }
};

// ---- pooling ----

struct PoolIndex {
  unsigned quad, x, y, sample;
  __device__ PoolIndex(std::size_t i, unsigned quads, unsigned width, unsigned height) {
    const auto at = static_cast<unsigned>(i);
    quad = at % quads;
    x = at / quads % width;
    y = at / quads / width % height;
    sample = at / quads / width / height;
  }
};

struct MaxPoolBody {
  Storage s;
  const void* in;
  void* out;
  uchar4* where;
  kernels::Pool p;
  __device__ void operator()(std::size_t i) const {
    const auto quads = static_cast<unsigned>(p.channels / 4);
    const PoolIndex at(i, quads, p.out_width, p.out_height);
    float4 best{};
    uchar4 position{};
    bool first = true;
    for (int ky = 0; ky < p.kernel; ++ky) {
      const std::int64_t y = at.y * p.stride + ky - p.padding;
      if (y < 0 || y >= p.height) continue;
      for (int kx = 0; kx < p.kernel; ++kx) {
        const std::int64_t x = at.x * p.stride + kx - p.padding;
        if (x < 0 || x >= p.width) continue;
        const float4 v = load4(in, s, ((at.sample * p.height + y) * p.width + x) * quads + at.quad);
        const auto here = static_cast<unsigned char>(ky * p.kernel + kx);
        const auto take = [&](float value, float& most, unsigned char& where_most) {
          if (first || (!(value <= most) && most == most)) most = value, where_most = here;  // keeps NaN
        };
        take(v.x, best.x, position.x), take(v.y, best.y, position.y);
        take(v.z, best.z, position.z), take(v.w, best.w, position.w);
        first = false;
      }
    }
    store4(out, s, i, best);
    where[i] = position;
  }
};

// Adds the gradients of the windows whose maximum is this pixel.
struct MaxPoolBackwardBody {
  Storage s;
  const void* dy;
  const uchar4* where;
  void* dx;
  kernels::Pool p;
  __device__ void operator()(std::size_t i) const {
    const auto quads = static_cast<unsigned>(p.channels / 4);
    const PoolIndex at(i, quads, p.width, p.height);
    const auto first = [&](std::int64_t pixel) {
      const std::int64_t least = pixel + p.padding - p.kernel + 1;
      return least <= 0 ? 0 : (least + p.stride - 1) / p.stride;
    };
    float4 sum{};
    for (std::int64_t oy = first(at.y); oy < p.out_height && oy * p.stride <= at.y + p.padding; ++oy) {
      for (std::int64_t ox = first(at.x); ox < p.out_width && ox * p.stride <= at.x + p.padding; ++ox) {
        const auto here = static_cast<unsigned char>((at.y + p.padding - oy * p.stride) * p.kernel + at.x + p.padding -
                                                     ox * p.stride);
        const std::size_t window = ((at.sample * p.out_height + oy) * p.out_width + ox) * quads + at.quad;
        const uchar4 most = where[window];
        const float4 v = load4(dy, s, window);
        sum = sum + make_float4(most.x == here ? v.x : 0, most.y == here ? v.y : 0, most.z == here ? v.z : 0,
                                most.w == here ? v.w : 0);
      }
    }
    store4(dx, s, i, sum);
  }
};

struct AveragePoolBody {
  Storage s;
  const void* in;
  void* out;
  kernels::Pool p;
  __device__ void operator()(std::size_t i) const {
    const auto quads = static_cast<unsigned>(p.channels / 4);
    const PoolIndex at(i, quads, p.out_width, p.out_height);
    float4 sum{};
    for (int ky = 0; ky < p.kernel; ++ky) {
      for (int kx = 0; kx < p.kernel; ++kx) {
        const std::int64_t y = at.y * p.kernel + ky, x = at.x * p.kernel + kx;
        sum = sum + load4(in, s, ((at.sample * p.height + y) * p.width + x) * quads + at.quad);
      }
    }
    const auto values = static_cast<float>(p.kernel * p.kernel);
    store4(out, s, i, map(sum, [=](float v) { return v / values; }));
  }
};

struct AveragePoolBackwardBody {
  Storage s;
  const void* dy;
  void* dx;
  kernels::Pool p;
  __device__ void operator()(std::size_t i) const {
    const auto quads = static_cast<unsigned>(p.channels / 4);
    const PoolIndex at(i, quads, p.width, p.height);
    const std::int64_t oy = at.y / p.kernel, ox = at.x / p.kernel;
    float4 v{};  // rows and columns that no window reaches have no gradient
    if (oy < p.out_height && ox < p.out_width) {
      v = load4(dy, s, ((at.sample * p.out_height + oy) * p.out_width + ox) * quads + at.quad);
    }
    const auto values = static_cast<float>(p.kernel * p.kernel);
    store4(dx, s, i, map(v, [=](float value) { return value / values; }));
  }
};

// ---- input: value(sample, channel, pixel), four channels at a time ----

template <class Value>
struct RowsBody {
  Storage s;
  void* rows;
  std::int64_t channels, stored_channels, pixels;
  Value value;
  __device__ void operator()(std::size_t i) const {
    const auto quads = static_cast<std::size_t>(stored_channels / 4);
    const std::size_t pixel_of_all = i / quads;
    const auto first = static_cast<std::int64_t>(i % quads) * 4;
    const auto sample = static_cast<std::int64_t>(pixel_of_all / pixels);
    const auto pixel = static_cast<std::int64_t>(pixel_of_all % pixels);
    const auto get = [&](std::int64_t c) { return c < channels ? value(sample, c, pixel) : 0.0f; };
    store4(rows, s, i, make_float4(get(first), get(first + 1), get(first + 2), get(first + 3)));
  }
};

struct PlaneValue {
  const float* planes;
  std::int64_t channels, pixels;
  __device__ float operator()(std::int64_t sample, std::int64_t c, std::int64_t pixel) const {
    return planes[(sample * channels + c) * pixels + pixel];
  }
};

struct ByteValue {
  kernels::ByteImages in;
  __device__ float operator()(std::int64_t sample, std::int64_t c, std::int64_t pixel) const {
    const ImageCut cut = in.cuts[sample];
    const std::int64_t column = pixel % in.size;
    const std::int64_t y = pixel / in.size + cut.shift_y;
    const std::int64_t x = (cut.flip ? in.size - 1 - column : column) + cut.shift_x;
    if (y < 0 || y >= in.size || x < 0 || x >= in.size) return 0;
    const float byte = in.planes[((sample * in.channels + c) * in.size + y) * in.size + x];
    return (byte - in.mean[c]) * in.scale[c];
  }
};

}  // namespace

namespace kernels {

void relu(cudaStream_t stream, Storage s, const void* x, void* y, std::size_t count) {
  each_quad(stream, quads_of(count), ReluBody{s, x, nullptr, y, true});
}

void add_relu(cudaStream_t stream, Storage s, const void* a, const void* b, void* y, std::size_t count) {
  each_quad(stream, quads_of(count), ReluBody{s, a, b, y, true});
}

void add(cudaStream_t stream, Storage s, const void* a, const void* b, void* sum, std::size_t count) {
  each_quad(stream, quads_of(count), ReluBody{s, a, b, sum, false});
}

void relu_backward(cudaStream_t stream, Storage s, const void* y, const void* dy, const void* other, void* dx,
                   std::size_t count) {
  each_quad(stream, quads_of(count), ReluBackwardBody{s, y, dy, other, dx});
}

void dropout(cudaStream_t stream, Storage s, const void* x, void* y, std::size_t count, float drop, std::uint64_t layer,
             const Step* step) {
  each_quad(stream, quads_of(count), DropoutBody{s, x, y, drop, layer, step});
}

void narrow(cudaStream_t stream, Storage s, const float* from, void* to, std::size_t count) {
  each_quad(stream, quads_of(count), NarrowBody{s, from, to});
}

void take_gradient(cudaStream_t stream, Storage s, const void* from, float* to, std::size_t count, Step* step) {
  each_quad(stream, quads_of(count), TakeGradientBody{s, from, to, step});
}

void find_nonfinite(cudaStream_t stream, Storage s, const void* values, std::size_t count, unsigned* flag) {
  each_quad(stream, quads_of(count), NonfiniteBody{s, values, flag});
}

namespace {
std::size_t quads_in(const Pool& p) {
  return static_cast<std::size_t>(p.samples * p.height * p.width * p.channels / 4);
}
std::size_t quads_out(const Pool& p) {
  return static_cast<std::size_t>(p.samples * p.out_height * p.out_width * p.channels / 4);
}
}  // namespace

void max_pool(cudaStream_t stream, Storage s, const void* x, void* y, std::uint8_t* where, const Pool& p) {
  each_quad(stream, quads_out(p), MaxPoolBody{s, x, y, reinterpret_cast<uchar4*>(where), p});
}

void max_pool_backward(cudaStream_t stream, Storage s, const void* dy, const std::uint8_t* where, void* dx,
                       const Pool& p) {
  each_quad(stream, quads_in(p), MaxPoolBackwardBody{s, dy, reinterpret_cast<const uchar4*>(where), dx, p});
}

void average_pool(cudaStream_t stream, Storage s, const void* x, void* y, const Pool& p) {
  each_quad(stream, quads_out(p), AveragePoolBody{s, x, y, p});
}

void average_pool_backward(cudaStream_t stream, Storage s, const void* dy, void* dx, const Pool& p) {
  each_quad(stream, quads_in(p), AveragePoolBackwardBody{s, dy, dx, p});
}

void planes_to_rows(cudaStream_t stream, Storage s, const float* planes, void* rows, std::int64_t samples,
                    std::int64_t channels, std::int64_t stored_channels, std::int64_t pixels) {
  each_quad(stream, static_cast<std::size_t>(samples * pixels * stored_channels / 4),
            RowsBody<PlaneValue>{s, rows, channels, stored_channels, pixels, {planes, channels, pixels}});
}

void bytes_to_rows(cudaStream_t stream, Storage s, const ByteImages& in, void* rows, std::int64_t stored_channels) {
  each_quad(stream, static_cast<std::size_t>(in.samples * in.size * in.size * stored_channels / 4),
            RowsBody<ByteValue>{s, rows, in.channels, stored_channels, in.size * in.size, {in}});
}

}  // namespace kernels
}  // namespace paceline::train::cuda
