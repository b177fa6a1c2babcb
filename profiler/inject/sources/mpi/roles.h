// SPDX-License-Identifier: Apache-2.0
// The roles of the parameters of MPI functions, for the parameters that the recorder reads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::inject {

enum class MpiRole : std::uint8_t {
  _,  // a parameter that the recorder does not read

  // How much. The type is that of the first buffer or of the target.
  buffer,           // described by `count` or `block` and by `type`; if it is MPI_IN_PLACE, other_… describe the data
  count,            // number of elements
  type,             // MPI_Datatype
  block,            // number of elements for each rank of the communicator
  neighbor_block,   // number of elements for each neighbour
  other_count,      // see buffer
  other_type,       // see buffer
  counts,           // counts[], one for each rank
  group_counts,     // counts[], one for each rank of the own group
  neighbor_counts,  // counts[], one for each neighbour
  types,            // MPI_Datatype[], for `counts` or `neighbor_counts`
  partitions,       // a further factor, MPI_Count

  // With whom.
  peer,  // rank of the other side, or of the target
  tag,
  root,
  comm,  // MPI_Comm

  // What the call creates. All are pointers.
  new_comm,
  later_comm,  // exists once the request is complete
  new_request,
  new_persistent,
  new_window,
  new_file,

  // What the call works on.
  request,   // MPI_Request*
  requests,  // MPI_Request[request_count]
  request_count,
  window,  // MPI_Win
  file,    // MPI_File
  text,    // const char*
  size,    // bytes, MPI_Aint
  offset,  // MPI_Offset

  // What the call frees. All are pointers.
  freed_comm,
  freed_window,
  freed_file,

  // What the call returns. All are pointers.
  flag,
  index,
  index_count,
  indices,
};
inline constexpr std::size_t mpi_roles = static_cast<std::size_t>(MpiRole::indices) + 1;

}  // namespace paceline::inject
