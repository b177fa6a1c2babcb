// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/slice_exchange.h"

namespace paceline::train {

SliceTable::SliceTable(std::size_t count, int parts) {
  for (int part = 0; part < parts; ++part) {
    const Slice slice = slice_of(count, static_cast<std::size_t>(parts), static_cast<std::size_t>(part));
    counts.push_back(static_cast<int>(slice.count));
    firsts.push_back(static_cast<int>(slice.first));
  }
}

void SliceExchange::reduce(MPI_Comm comm, const Values& values) {
  int rank = 0, size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (size == 1) return values.divide(values.all());
  const SliceTable slices(values.count, size);
  const Slice own = slice_of(values.count, static_cast<std::size_t>(size), static_cast<std::size_t>(rank));
  const std::size_t bytes = own.count * values.element.bytes();
  if (copies_.size() < bytes * static_cast<std::size_t>(size)) copies_.resize(bytes * static_cast<std::size_t>(size));

  std::vector<int> own_counts(slices.counts.size(), static_cast<int>(own.count)), firsts(slices.counts.size());
  for (std::size_t i = 1; i < firsts.size(); ++i) firsts[i] = firsts[i - 1] + own_counts[i - 1];
  const MPI_Datatype type = values.element.type();
  MPI_Alltoallv(values.data, slices.counts.data(), slices.firsts.data(), type, copies_.data(), own_counts.data(),
                firsts.data(), type, comm);

  const Values sums{values.element, copies_.data(), own.count, values.divisor};
  for (int from = 1; from < size; ++from) sums.add(sums.all(), copies_.data() + bytes * static_cast<std::size_t>(from));
  sums.divide(sums.all());

  const std::vector<int> from_the_start(slices.counts.size());  // every rank gets the same values
  MPI_Alltoallv(copies_.data(), own_counts.data(), from_the_start.data(), type, values.data, slices.counts.data(),
                slices.firsts.data(), type, comm);
}

}  // namespace paceline::train
