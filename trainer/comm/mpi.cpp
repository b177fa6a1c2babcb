// SPDX-License-Identifier: Apache-2.0
// `mpi`: one MPI_Allreduce in place; the MPI library chooses the algorithm. Its halves are MPI_Reduce_scatter_block on
// pieces of bounded length, so that neither we nor the library need a copy of all values, and MPI_Allgatherv in place.
#include <algorithm>
#include <cstring>
#include <vector>

#include "trainer/comm/algorithms.h"

namespace paceline::train {
namespace {

class Mpi : public Allreduce {
 public:
  explicit Mpi(const Ranks& ranks) : ranks_(ranks) {}

  void reduce(const Values& values) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data, static_cast<int>(values.count), values.element.type(),
                  values.element.sum(), ranks_.world);
    values.divide(values.all());
  }

  bool has_halves() const override { return true; }
  Slice own_slice(std::size_t count) const override { return slice(count, ranks_.rank); }

  void reduce_scatter(const Values& values) override {
    const auto ranks = static_cast<std::size_t>(ranks_.size);
    const std::size_t bytes = values.element.bytes(), longest = (values.count + ranks - 1) / ranks;
    const Slice own = own_slice(values.count);
    for (std::size_t done = 0; done < longest; done += piece) {
      // The next numbers of every rank's slice, one slice after the other; zeros where a slice has one number less.
      const std::size_t count = std::min(piece, longest - done);
      const auto part_of = [&](const Slice& whole) {
        return std::min(count, whole.count - std::min(done, whole.count));
      };
      send_.assign(ranks * count * bytes, std::byte{0});
      receive_.resize(count * bytes);
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const Slice whole = slice(values.count, static_cast<int>(rank));
        if (const std::size_t part = part_of(whole); part > 0) {
          std::memcpy(send_.data() + rank * count * bytes, values.at(whole.first + done), part * bytes);
        }
      }
      MPI_Reduce_scatter_block(send_.data(), receive_.data(), static_cast<int>(count), values.element.type(),
                               values.element.sum(), ranks_.world);
      if (const std::size_t part = part_of(own); part > 0) {
        std::memcpy(values.at(own.first + done), receive_.data(), part * bytes);
      }
    }
    values.divide(own);
  }

  void all_gather(const Values& values) override {
    std::vector<int> counts, firsts;
    for (int rank = 0; rank < ranks_.size; ++rank) {
      const Slice whole = slice(values.count, rank);
      counts.push_back(static_cast<int>(whole.count));
      firsts.push_back(static_cast<int>(whole.first));
    }
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values.data, counts.data(), firsts.data(), values.element.type(),
                   ranks_.world);
  }

 private:
  static constexpr std::size_t piece = std::size_t{1} << 18;  // numbers of each rank in a reduce-scatter

  Slice slice(std::size_t count, int rank) const {
    return slice_of(count, static_cast<std::size_t>(ranks_.size), static_cast<std::size_t>(rank));
  }

  const Ranks& ranks_;
  std::vector<std::byte> send_, receive_;
};

}  // namespace

std::unique_ptr<Allreduce> make_mpi(const Ranks& ranks) { return std::make_unique<Mpi>(ranks); }

}  // namespace paceline::train
