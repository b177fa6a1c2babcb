// The MPI functions that are recorded: the closed list behind the `function` field of the mpi_* events (event.h).
//
// An id, once given, keeps its meaning; new functions get new ids. The recorder's wrappers
// (profiler/inject/mpi_wrap.cpp) and the analysis both read this list.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace paceline::format {

enum class MpiKind : std::uint8_t {
  management,      // start-up, end, making and freeing communicators
  point_to_point,  // one message, or the start of one
  wait,            // waiting or testing for what was started before
  collective,      // all ranks of the communicator take part; carries its sequence number
  one_sided,       // remote memory access
  file,            // MPI-IO
};

// X(id, name without "MPI_", kind, nonblocking): nonblocking calls return before their work is done.
#define PACELINE_MPI_FUNCTIONS(X)                      \
  X(1, Init, management, false)                        \
  X(2, Init_thread, management, false)                 \
  X(3, Finalize, management, false)                    \
  X(4, Abort, management, false)                       \
  X(5, Comm_dup, management, false)                    \
  X(6, Comm_dup_with_info, management, false)          \
  X(7, Comm_idup, management, true)                    \
  X(8, Comm_split, management, false)                  \
  X(9, Comm_split_type, management, false)             \
  X(10, Comm_create, management, false)                \
  X(11, Comm_create_group, management, false)          \
  X(12, Comm_free, management, false)                  \
  X(13, Comm_disconnect, management, false)            \
  X(14, Cart_create, management, false)                \
  X(15, Cart_sub, management, false)                   \
  X(16, Graph_create, management, false)               \
  X(17, Dist_graph_create, management, false)          \
  X(18, Dist_graph_create_adjacent, management, false) \
  X(19, Intercomm_create, management, false)           \
  X(20, Intercomm_merge, management, false)            \
  X(64, Send, point_to_point, false)                   \
  X(65, Bsend, point_to_point, false)                  \
  X(66, Ssend, point_to_point, false)                  \
  X(67, Rsend, point_to_point, false)                  \
  X(68, Recv, point_to_point, false)                   \
  X(69, Sendrecv, point_to_point, false)               \
  X(70, Sendrecv_replace, point_to_point, false)       \
  X(71, Isend, point_to_point, true)                   \
  X(72, Ibsend, point_to_point, true)                  \
  X(73, Issend, point_to_point, true)                  \
  X(74, Irsend, point_to_point, true)                  \
  X(75, Irecv, point_to_point, true)                   \
  X(76, Probe, point_to_point, false)                  \
  X(77, Iprobe, point_to_point, true)                  \
  X(78, Mprobe, point_to_point, false)                 \
  X(79, Improbe, point_to_point, true)                 \
  X(80, Mrecv, point_to_point, false)                  \
  X(81, Imrecv, point_to_point, true)                  \
  X(82, Start, point_to_point, true)                   \
  X(83, Startall, point_to_point, true)                \
  X(128, Wait, wait, false)                            \
  X(129, Waitall, wait, false)                         \
  X(130, Waitany, wait, false)                         \
  X(131, Waitsome, wait, false)                        \
  X(132, Test, wait, true)                             \
  X(133, Testall, wait, true)                          \
  X(134, Testany, wait, true)                          \
  X(135, Testsome, wait, true)                         \
  X(192, Barrier, collective, false)                   \
  X(193, Bcast, collective, false)                     \
  X(194, Gather, collective, false)                    \
  X(195, Gatherv, collective, false)                   \
  X(196, Scatter, collective, false)                   \
  X(197, Scatterv, collective, false)                  \
  X(198, Allgather, collective, false)                 \
  X(199, Allgatherv, collective, false)                \
  X(200, Alltoall, collective, false)                  \
  X(201, Alltoallv, collective, false)                 \
  X(202, Alltoallw, collective, false)                 \
  X(203, Allreduce, collective, false)                 \
  X(204, Reduce, collective, false)                    \
  X(205, Reduce_scatter, collective, false)            \
  X(206, Reduce_scatter_block, collective, false)      \
  X(207, Scan, collective, false)                      \
  X(208, Exscan, collective, false)                    \
  X(209, Neighbor_allgather, collective, false)        \
  X(210, Neighbor_alltoall, collective, false)         \
  X(224, Ibarrier, collective, true)                   \
  X(225, Ibcast, collective, true)                     \
  X(226, Igather, collective, true)                    \
  X(227, Igatherv, collective, true)                   \
  X(228, Iscatter, collective, true)                   \
  X(229, Iscatterv, collective, true)                  \
  X(230, Iallgather, collective, true)                 \
  X(231, Iallgatherv, collective, true)                \
  X(232, Ialltoall, collective, true)                  \
  X(233, Ialltoallv, collective, true)                 \
  X(234, Ialltoallw, collective, true)                 \
  X(235, Iallreduce, collective, true)                 \
  X(236, Ireduce, collective, true)                    \
  X(237, Ireduce_scatter, collective, true)            \
  X(238, Ireduce_scatter_block, collective, true)      \
  X(239, Iscan, collective, true)                      \
  X(240, Iexscan, collective, true)                    \
  X(241, Ineighbor_allgather, collective, true)        \
  X(242, Ineighbor_alltoall, collective, true)         \
  X(256, Win_create, one_sided, false)                 \
  X(257, Win_allocate, one_sided, false)               \
  X(258, Win_free, one_sided, false)                   \
  X(259, Win_fence, one_sided, false)                  \
  X(260, Win_lock, one_sided, false)                   \
  X(261, Win_unlock, one_sided, false)                 \
  X(262, Win_lock_all, one_sided, false)               \
  X(263, Win_unlock_all, one_sided, false)             \
  X(264, Win_flush, one_sided, false)                  \
  X(265, Win_flush_all, one_sided, false)              \
  X(266, Put, one_sided, true)                         \
  X(267, Get, one_sided, true)                         \
  X(268, Accumulate, one_sided, true)                  \
  X(320, File_open, file, false)                       \
  X(321, File_close, file, false)                      \
  X(322, File_read, file, false)                       \
  X(323, File_read_all, file, false)                   \
  X(324, File_read_at, file, false)                    \
  X(325, File_read_at_all, file, false)                \
  X(326, File_write, file, false)                      \
  X(327, File_write_all, file, false)                  \
  X(328, File_write_at, file, false)                   \
  X(329, File_write_at_all, file, false)

// MPI's own spelling: MpiId::Allreduce is MPI_Allreduce.
enum class MpiId : std::uint16_t {
#define PACELINE_MPI_ENUMERATOR(id, name, kind, nonblocking) name = id,
  PACELINE_MPI_FUNCTIONS(PACELINE_MPI_ENUMERATOR)
#undef PACELINE_MPI_ENUMERATOR
};

struct MpiFunction {
  MpiId id;
  std::string_view name;  // "MPI_Allreduce"
  MpiKind kind;
  bool nonblocking;
};

inline constexpr MpiFunction mpi_functions[] = {
#define PACELINE_MPI_ENTRY(id, name, kind, nonblocking) {MpiId::name, "MPI_" #name, MpiKind::kind, nonblocking},
    PACELINE_MPI_FUNCTIONS(PACELINE_MPI_ENTRY)
#undef PACELINE_MPI_ENTRY
};

// The function with this id as recorded, or nullptr where this version does not know it. Cost: one table look-up.
constexpr const MpiFunction* find_mpi_function(std::uint32_t id) {
  constexpr auto index = [] {
    std::array<std::uint8_t, 384> at{};
    std::uint8_t position = 0;
    for (const MpiFunction& function : mpi_functions) at[static_cast<std::size_t>(function.id)] = ++position;
    return at;
  }();
  if (id >= index.size() || index[id] == 0) return nullptr;
  return &mpi_functions[index[id] - 1];
}

}  // namespace paceline::format
