// SPDX-License-Identifier: Apache-2.0
// The passes of Winograd's algorithm over a batch: which thread computes what, in which order. winograd_code.h includes
// this file for each kind of vector, inside that code's namespace.
//
// Speed is decided by the caches, not by the arithmetic: matrices that one thread has written and another one reads, or
// that leave the second-level cache, cost more than their multiplication. Hence
// - convolutions with at least as many tiles as output channels transform all weights first. Then each thread takes a
//   group of tiles from the pixels to the output, in memory of its own;
// - those with fewer tiles transform a chunk of the source first. Then each thread takes a piece of the output channels
//   and transforms the weights of that piece;
// - gradients of weights transform a chunk of source and gradient first. With at least as many tiles as output
// channels,
//   each thread then takes matrices, 36 to choose from, and adds the products of the whole chunk. With fewer tiles it
//   takes a piece of the output channels, as above.

// Transforms the tiles [begin, begin + tiles) of one block of channels, from `channel` on. It goes along the tiles of a
// block, because the processor then fetches the next pixels ahead.
void transform_source_tiles(const Shape& s, const Tiling& tiling, const Planes& planes, const Number* source,
                            std::size_t channel, std::size_t begin, std::size_t tiles, float* to) {
  const Number* const plane = source + channel * s.height * s.width;
  for (std::size_t t = 0; t < tiles; ++t) {
    transform_source(s, planes.matrix(), plane, place_of(s, tiling, s.in, begin + t), to + t * planes.row() + channel);
  }
}

// A group of tiles times a piece of the weights, transformed back into the output.
struct GroupOfTiles {
  std::size_t begin, tiles;
  const float* planes;
};

void multiply_piece(const Shape& s, const Tiling& tiling, const Planes& planes, const GroupOfTiles& of,
                    std::size_t piece, const float* weights, const float* bias, float* products, Number* output) {
  const int vectors = vectors_of(s.out, piece);
  for (std::size_t f = 0; f < 36; ++f) {
    multiply(of.tiles, vectors,
             {of.planes + f * planes.matrix(), planes.row(), 1, weights + f * weights_matrix(s.in), lanes, s.in},
             products + f * products_matrix, false);
  }
  for (std::size_t v = 0; v < static_cast<std::size_t>(vectors); ++v) {
    const std::size_t channel = piece * lanes + v * block;
    for (std::size_t t = 0; t < of.tiles; ++t) {
      transform_output(s, place_of(s, tiling, s.out, of.begin + t), products + t * lanes + v * block,
                       bias == nullptr ? nullptr : bias + channel, output + channel * s.height * s.width);
    }
  }
}

// Threads that share groups or pieces divide them into equal parts. The sizes do not change any result.
std::size_t equal_part(std::size_t total, std::size_t most, std::size_t threads, std::size_t multiple) {
  const std::size_t parts = divide_up(divide_up(total, most), threads) * threads;
  return divide_up(divide_up(total, parts), multiple) * multiple;
}

// Work memory of convolutions by tiles: all weights, then each thread's planes and products.
struct TilesWork {
  Planes planes;
  std::size_t weights, piece, thread, total;
  TilesWork(const Shape& s, int threads)
      : planes{s.in, group, 36},
        weights(0),
        piece(36 * weights_matrix(s.in)),
        thread(planes.size() + 36 * products_matrix),
        total(0) {
    weights = pieces_of(s.out) * piece;
    total = weights + static_cast<std::size_t>(threads) * thread;
  }
};

template <class Transform>
void convolve_by_tiles(const Shape& s, const Number* source, const float* bias, Number* output, float* work,
                       int threads, Transform transform) {
  const Tiling tiling(s);
  const TilesWork sizes(s, threads);
  const auto all = static_cast<std::size_t>(threads);
  const std::size_t pieces = pieces_of(s.out), tiles = equal_part(tiling.total, group, all, fewer_rows);
  const std::size_t groups = divide_up(tiling.total, tiles);
  // With few groups, several threads transform the same tiles and share their pieces of the output channels.
  const std::size_t sharing = std::clamp(2 * all / groups, std::size_t{1}, pieces);
#pragma omp parallel num_threads(threads)
  {
    float* const planes = work + sizes.weights + static_cast<std::size_t>(this_thread()) * sizes.thread;
    float* const products = planes + sizes.planes.size();
#pragma omp for schedule(static)
    for (std::size_t p = 0; p < pieces; ++p) transform(p * lanes, vectors_of(s.out, p), work + p * sizes.piece);
#pragma omp for schedule(dynamic)
    for (std::size_t item = 0; item < groups * sharing; ++item) {
      const std::size_t begin = item / sharing * tiles;
      const GroupOfTiles of{begin, std::min(tiles, tiling.total - begin), planes};
      for (std::size_t c = 0; c < s.in; c += block) {
        transform_source_tiles(s, tiling, sizes.planes, source, c, begin, of.tiles, planes);
      }
      for (std::size_t p = item % sharing; p < pieces; p += sharing) {
        multiply_piece(s, tiling, sizes.planes, of, p, work + p * sizes.piece, bias, products, output);
      }
    }
  }
}

// Work memory of convolutions by output channels: the planes of a chunk, then each thread's weights and products.
constexpr std::size_t most_groups = 2;  // of a chunk: few fit the caches, many make the transforms of the weights rarer
struct ChannelsWork {
  Planes planes;
  std::size_t groups, weights, thread, total;
  ChannelsWork(const Shape& s, const Tiling& tiling, int threads)
      : planes{s.in, group, 36},
        groups(std::min(most_groups, divide_up(tiling.total, group))),
        weights(36 * weights_matrix(s.in)),
        thread(weights + 36 * products_matrix),
        total(groups * planes.size() + static_cast<std::size_t>(threads) * thread) {}
};

template <class Transform>
void convolve_by_channels(const Shape& s, const Number* source, const float* bias, Number* output, float* work,
                          int threads, Transform transform) {
  const Tiling tiling(s);
  const ChannelsWork sizes(s, tiling, threads);
  const Planes& planes = sizes.planes;
  const std::size_t pieces = pieces_of(s.out), blocks = s.in / block;
  // With few pieces, several threads transform the same weights and share the chunk's groups.
  const std::size_t sharing = static_cast<std::size_t>(threads) > pieces ? sizes.groups : 1;
#pragma omp parallel num_threads(threads)
  {
    float* const weights = work + sizes.groups * planes.size() + static_cast<std::size_t>(this_thread()) * sizes.thread;
    float* const products = weights + sizes.weights;
    for (std::size_t begin = 0; begin < tiling.total; begin += sizes.groups * group) {
      const std::size_t groups = std::min(sizes.groups, divide_up(tiling.total - begin, group));
      const auto group_at = [&](std::size_t g) {
        const std::size_t first = begin + g * group;
        return GroupOfTiles{first, std::min(group, tiling.total - first), work + g * planes.size()};
      };
#pragma omp for schedule(static)
      for (std::size_t item = 0; item < groups * blocks; ++item) {
        const GroupOfTiles of = group_at(item / blocks);
        transform_source_tiles(s, tiling, planes, source, item % blocks * block, of.begin, of.tiles,
                               work + item / blocks * planes.size());
      }
#pragma omp for schedule(dynamic)
      for (std::size_t item = 0; item < pieces * sharing; ++item) {
        const std::size_t piece = item / sharing;
        transform(piece * lanes, vectors_of(s.out, piece), weights);
        for (std::size_t g = item % sharing; g < groups; g += sharing) {
          multiply_piece(s, tiling, planes, group_at(g), piece, weights, bias, products, output);
        }
      }
    }
  }
}

bool goes_by_tiles(const Shape& s) { return Tiling(s).total >= s.out; }

std::size_t convolution_work(const Shape& s, int threads) {
  return goes_by_tiles(s) ? TilesWork(s, threads).total : ChannelsWork(s, Tiling(s), threads).total;
}

// output = source convolved with the weights that transform(first output channel, vectors, to) gives.
template <class Transform>
void convolve(const Shape& s, const Number* source, const float* bias, Number* output, float* work, int threads,
              Transform transform) {
  goes_by_tiles(s) ? convolve_by_tiles(s, source, bias, output, work, threads, transform)
                   : convolve_by_channels(s, source, bias, output, work, threads, transform);
}

// Work memory of the weights' gradient: source and gradient of a chunk of tiles, then products: of all threads
// together, or by channels, of each thread.
struct GradientWork {
  std::size_t channels;  // output channels that are computed at once
  std::size_t tiles;     // of a chunk
  Planes sources, gradients;
  std::size_t piece, total;
  GradientWork(const Shape& s, int threads)
      : channels(s.out), tiles(0), sources{}, gradients{}, piece(36 * weights_matrix(s.in)), total(0) {
    constexpr std::size_t kept = 2'400'000, chunk = 1'000'000, least_tiles = 96;  // numbers: 14 MB together
    const std::size_t all_tiles = Tiling(s).total;
    std::size_t pieces = static_cast<std::size_t>(threads);
    if (goes_by_tiles(s)) {
      channels = std::min(channels, std::max(kept / piece, std::size_t{1}) * lanes);
      pieces = pieces_of(channels);
    }
    tiles = equal_part(all_tiles, std::max(chunk / 36 / (s.in + channels), least_tiles), 1, 1);
    sources = {s.in, tiles, 36};
    gradients = {channels, tiles, 37};
    total = sources.size() + gradients.size() + pieces * piece;
  }
};

void backward_weights(const Shape& s, const void* source_numbers, const void* gradient_numbers, float* weights_gradient,
                      float* bias_gradient, float* work, int threads) {
  const auto *const source = static_cast<const Number*>(source_numbers), *const output_gradient =
                                                                             static_cast<const Number*>(
                                                                                 gradient_numbers);
  const Tiling tiling(s);
  const GradientWork sizes(s, threads);
  const Planes &sources = sizes.sources, &gradients = sizes.gradients;
  float* const of_gradient = work + sources.size();
  float* const products = of_gradient + gradients.size();
  const bool by_matrices = goes_by_tiles(s);
  const std::size_t blocks = s.in / block;
  // Up to nine threads find enough work in 36 matrices. Otherwise each thread also takes a part of the inputs only.
  const auto all = static_cast<std::size_t>(threads);
  const std::size_t sharing = by_matrices ? divide_up(all, 9) : divide_up(all, pieces_of(s.out));
  const std::size_t inputs = equal_part(s.in, s.in, sharing, block), parts = divide_up(s.in, inputs);
#pragma omp parallel num_threads(threads)
  for (std::size_t first = 0; first < s.out; first += sizes.channels) {
    const std::size_t channels = std::min(sizes.channels, s.out - first), pieces = pieces_of(channels);
    for (std::size_t begin = 0; begin < tiling.total; begin += sizes.tiles) {
      const std::size_t tiles = std::min(sizes.tiles, tiling.total - begin);
      const std::size_t groups = divide_up(tiles, group);
#pragma omp for schedule(dynamic)
      for (std::size_t item = 0; item < groups * (blocks + channels / block); ++item) {
        const std::size_t at = item % groups * group, of = std::min(group, tiles - at);
        if (item / groups < blocks) {
          transform_source_tiles(s, tiling, sources, source, item / groups * block, begin + at, of,
                                 work + at * sources.row());
        } else {
          const std::size_t channel = (item / groups - blocks) * block;
          const Number* const plane = output_gradient + (first + channel) * s.height * s.width;
          for (std::size_t t = at; t < at + of; ++t) {
            transform_gradient(s, gradients.matrix(), plane, place_of(s, tiling, s.out, begin + t),
                               of_gradient + t * gradients.row() + channel);
          }
        }
      }
      const auto multiply_matrix = [&](std::size_t f, std::size_t piece, std::size_t input, float* to, bool add) {
        const float* const gradient = of_gradient + f * gradients.matrix() + piece * lanes;
        multiply(std::min(inputs, s.in - input), vectors_of(channels, piece),
                 {work + f * sources.matrix() + input, 1, sources.row(), gradient, gradients.row(), tiles},
                 to + f * weights_matrix(s.in) + input * lanes, add);
      };
      if (by_matrices) {
#pragma omp for schedule(dynamic)
        for (std::size_t item = 0; item < 36 * parts; ++item) {
          for (std::size_t piece = 0; piece < pieces; ++piece) {
            multiply_matrix(item / parts, piece, item % parts * inputs, products + piece * sizes.piece, begin > 0);
          }
        }
      } else {
        float* const own = products + static_cast<std::size_t>(this_thread()) * sizes.piece;
#pragma omp for schedule(dynamic)
        for (std::size_t item = 0; item < pieces * parts; ++item) {
          const std::size_t piece = item / parts, input = item % parts * inputs;
          for (std::size_t f = 0; f < 36; ++f) multiply_matrix(f, piece, input, own, false);
          for (std::size_t i = input; i < std::min(input + inputs, s.in); i += block) {
            transform_weights_gradient(own, s.in, i, piece * lanes, vectors_of(channels, piece), begin > 0,
                                       weights_gradient);
          }
        }
      }
      if (bias_gradient != nullptr) {
#pragma omp single
        add_rows(tiles, channels, of_gradient + 36 * gradients.matrix(), gradients.row(), bias_gradient + first,
                 begin > 0);
      }
    }
    if (!by_matrices) continue;
#pragma omp for schedule(static)
    for (std::size_t item = 0; item < pieces * blocks; ++item) {
      const std::size_t piece = item / blocks;
      transform_weights_gradient(products + piece * sizes.piece, s.in, item % blocks * block, first + piece * lanes,
                                 vectors_of(channels, piece), false, weights_gradient);
    }
  }
}
