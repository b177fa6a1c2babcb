// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/gpu/peers.h"

namespace paceline::train::nccl {

void grow(cuda::Buffer& buffer, cuda::Buffer::Kind kind, std::size_t bytes, cudaStream_t stream) {
  if (buffer.bytes() >= bytes) return;
  wait_for_stream(stream);
  buffer = cuda::Buffer();
  buffer = cuda::Buffer(kind, bytes);
}

void SliceExchange::reduce(NcclComm& peers, const Values& values, cudaStream_t stream) {
  const auto size = static_cast<std::size_t>(peers.size()), rank = static_cast<std::size_t>(peers.rank());
  if (size == 1) return values.divide(stream);
  const Slice own = slice_of(values.count, size, rank);
  const std::size_t bytes = own.count * bytes_of(values.type);
  grow(copies_, cuda::Buffer::Kind::device, bytes * size, stream);
  auto* const copies = copies_.data<std::byte>();
  const ncclDataType_t type = nccl_type(values.type);

  const auto exchange = [&](const char* what, auto&& to_send, auto&& to_receive) {
    peers.group(what, [&](ncclComm_t comm) {
      ncclResult_t result = ncclSuccess;
      const auto keep = [&](ncclResult_t one) {
        if (result == ncclSuccess) result = one;
      };
      for (std::size_t p = 0; p < size; ++p) {
        const int peer = static_cast<int>(p);
        const auto [sent, send_count] = to_send(p);
        const auto [received, receive_count] = to_receive(p);
        if (send_count > 0) keep(ncclSend(sent, send_count, type, peer, comm, stream));
        if (receive_count > 0) keep(ncclRecv(received, receive_count, type, peer, comm, stream));
      }
      return result;
    });
  };
  using Part = std::pair<std::byte*, std::size_t>;
  const auto of_peer = [&](std::size_t p) {
    const Slice slice = slice_of(values.count, size, p);
    return Part(values.at(slice.first), slice.count);
  };
  exchange("exchange of slices", of_peer, [&](std::size_t p) { return Part(copies + p * bytes, own.count); });
  const Values sums{values.type, copies, own.count, values.divisor};
  for (std::size_t p = 1; p < size; ++p) add(values.type, copies, copies + p * bytes, own.count, stream);
  sums.divide(stream);
  exchange(
      "exchange of sums", [&](std::size_t) { return Part(copies, own.count); }, of_peer);
}

}  // namespace paceline::train::nccl
