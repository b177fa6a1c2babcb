// SPDX-License-Identifier: Apache-2.0
// The MPI functions that are recorded: the values of the `function` field of the mpi_* events (events_mpi.h).
//
// An id never changes its meaning; new functions get new ids. The recorder's wrappers
// (profiler/inject/sources/mpi/signatures.h) and the analysis both read this list.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace paceline::format {

enum class MpiKind : std::uint8_t {
  management,      // start-up, end, making and freeing communicators
  point_to_point,  // one message, or the start of one
  wait,            // waits or tests for operations that were started before
  collective,      // all ranks of the communicator take part; carries its sequence number
  one_sided,       // remote memory access
  file,            // MPI-IO
};

// X(id, name without "MPI_", kind, nonblocking): nonblocking calls return before their work is done.
#define PACELINE_MPI_FUNCTIONS(X)                        \
  X(1, Init, management, false)                          \
  X(2, Init_thread, management, false)                   \
  X(3, Finalize, management, false)                      \
  X(4, Abort, management, false)                         \
  X(5, Comm_dup, management, false)                      \
  X(6, Comm_dup_with_info, management, false)            \
  X(7, Comm_idup, management, true)                      \
  X(8, Comm_split, management, false)                    \
  X(9, Comm_split_type, management, false)               \
  X(10, Comm_create, management, false)                  \
  X(11, Comm_create_group, management, false)            \
  X(12, Comm_free, management, false)                    \
  X(13, Comm_disconnect, management, false)              \
  X(14, Cart_create, management, false)                  \
  X(15, Cart_sub, management, false)                     \
  X(16, Graph_create, management, false)                 \
  X(17, Dist_graph_create, management, false)            \
  X(18, Dist_graph_create_adjacent, management, false)   \
  X(19, Intercomm_create, management, false)             \
  X(20, Intercomm_merge, management, false)              \
  X(21, Comm_spawn, management, false)                   \
  X(22, Comm_spawn_multiple, management, false)          \
  X(23, Comm_accept, management, false)                  \
  X(24, Comm_connect, management, false)                 \
  X(25, Comm_join, management, false)                    \
  X(26, Comm_get_parent, management, false)              \
  X(27, Comm_set_name, management, false)                \
  X(28, Comm_idup_with_info, management, true)           \
  X(29, Session_init, management, false)                 \
  X(30, Session_finalize, management, false)             \
  X(31, Comm_create_from_group, management, false)       \
  X(32, Intercomm_create_from_groups, management, false) \
  X(64, Send, point_to_point, false)                     \
  X(65, Bsend, point_to_point, false)                    \
  X(66, Ssend, point_to_point, false)                    \
  X(67, Rsend, point_to_point, false)                    \
  X(68, Recv, point_to_point, false)                     \
  X(69, Sendrecv, point_to_point, false)                 \
  X(70, Sendrecv_replace, point_to_point, false)         \
  X(71, Isend, point_to_point, true)                     \
  X(72, Ibsend, point_to_point, true)                    \
  X(73, Issend, point_to_point, true)                    \
  X(74, Irsend, point_to_point, true)                    \
  X(75, Irecv, point_to_point, true)                     \
  X(76, Probe, point_to_point, false)                    \
  X(77, Iprobe, point_to_point, true)                    \
  X(78, Mprobe, point_to_point, false)                   \
  X(79, Improbe, point_to_point, true)                   \
  X(80, Mrecv, point_to_point, false)                    \
  X(81, Imrecv, point_to_point, true)                    \
  X(82, Start, point_to_point, true)                     \
  X(83, Startall, point_to_point, true)                  \
  X(84, Send_init, point_to_point, true)                 \
  X(85, Bsend_init, point_to_point, true)                \
  X(86, Ssend_init, point_to_point, true)                \
  X(87, Rsend_init, point_to_point, true)                \
  X(88, Recv_init, point_to_point, true)                 \
  X(89, Isendrecv, point_to_point, true)                 \
  X(90, Isendrecv_replace, point_to_point, true)         \
  X(91, Psend_init, point_to_point, true)                \
  X(92, Precv_init, point_to_point, true)                \
  X(93, Pready, point_to_point, true)                    \
  X(94, Pready_range, point_to_point, true)              \
  X(95, Pready_list, point_to_point, true)               \
  X(96, Parrived, point_to_point, true)                  \
  X(97, Cancel, point_to_point, true)                    \
  X(98, Request_free, point_to_point, true)              \
  X(128, Wait, wait, false)                              \
  X(129, Waitall, wait, false)                           \
  X(130, Waitany, wait, false)                           \
  X(131, Waitsome, wait, false)                          \
  X(132, Test, wait, true)                               \
  X(133, Testall, wait, true)                            \
  X(134, Testany, wait, true)                            \
  X(135, Testsome, wait, true)                           \
  X(136, Request_get_status, wait, true)                 \
  X(192, Barrier, collective, false)                     \
  X(193, Bcast, collective, false)                       \
  X(194, Gather, collective, false)                      \
  X(195, Gatherv, collective, false)                     \
  X(196, Scatter, collective, false)                     \
  X(197, Scatterv, collective, false)                    \
  X(198, Allgather, collective, false)                   \
  X(199, Allgatherv, collective, false)                  \
  X(200, Alltoall, collective, false)                    \
  X(201, Alltoallv, collective, false)                   \
  X(202, Alltoallw, collective, false)                   \
  X(203, Allreduce, collective, false)                   \
  X(204, Reduce, collective, false)                      \
  X(205, Reduce_scatter, collective, false)              \
  X(206, Reduce_scatter_block, collective, false)        \
  X(207, Scan, collective, false)                        \
  X(208, Exscan, collective, false)                      \
  X(209, Neighbor_allgather, collective, false)          \
  X(210, Neighbor_alltoall, collective, false)           \
  X(211, Neighbor_allgatherv, collective, false)         \
  X(212, Neighbor_alltoallv, collective, false)          \
  X(213, Neighbor_alltoallw, collective, false)          \
  X(224, Ibarrier, collective, true)                     \
  X(225, Ibcast, collective, true)                       \
  X(226, Igather, collective, true)                      \
  X(227, Igatherv, collective, true)                     \
  X(228, Iscatter, collective, true)                     \
  X(229, Iscatterv, collective, true)                    \
  X(230, Iallgather, collective, true)                   \
  X(231, Iallgatherv, collective, true)                  \
  X(232, Ialltoall, collective, true)                    \
  X(233, Ialltoallv, collective, true)                   \
  X(234, Ialltoallw, collective, true)                   \
  X(235, Iallreduce, collective, true)                   \
  X(236, Ireduce, collective, true)                      \
  X(237, Ireduce_scatter, collective, true)              \
  X(238, Ireduce_scatter_block, collective, true)        \
  X(239, Iscan, collective, true)                        \
  X(240, Iexscan, collective, true)                      \
  X(241, Ineighbor_allgather, collective, true)          \
  X(242, Ineighbor_alltoall, collective, true)           \
  X(243, Ineighbor_allgatherv, collective, true)         \
  X(244, Ineighbor_alltoallv, collective, true)          \
  X(245, Ineighbor_alltoallw, collective, true)          \
  X(256, Win_create, one_sided, false)                   \
  X(257, Win_allocate, one_sided, false)                 \
  X(258, Win_free, one_sided, false)                     \
  X(259, Win_fence, one_sided, false)                    \
  X(260, Win_lock, one_sided, false)                     \
  X(261, Win_unlock, one_sided, false)                   \
  X(262, Win_lock_all, one_sided, false)                 \
  X(263, Win_unlock_all, one_sided, false)               \
  X(264, Win_flush, one_sided, false)                    \
  X(265, Win_flush_all, one_sided, false)                \
  X(266, Put, one_sided, true)                           \
  X(267, Get, one_sided, true)                           \
  X(268, Accumulate, one_sided, true)                    \
  X(269, Get_accumulate, one_sided, true)                \
  X(270, Fetch_and_op, one_sided, true)                  \
  X(271, Compare_and_swap, one_sided, true)              \
  X(272, Rput, one_sided, true)                          \
  X(273, Rget, one_sided, true)                          \
  X(274, Raccumulate, one_sided, true)                   \
  X(275, Rget_accumulate, one_sided, true)               \
  X(276, Win_allocate_shared, one_sided, false)          \
  X(277, Win_create_dynamic, one_sided, false)           \
  X(278, Win_attach, one_sided, false)                   \
  X(279, Win_detach, one_sided, false)                   \
  X(280, Win_flush_local, one_sided, false)              \
  X(281, Win_flush_local_all, one_sided, false)          \
  X(282, Win_sync, one_sided, false)                     \
  X(283, Win_post, one_sided, true)                      \
  X(284, Win_start, one_sided, true)                     \
  X(285, Win_complete, one_sided, false)                 \
  X(286, Win_wait, one_sided, false)                     \
  X(287, Win_test, one_sided, true)                      \
  X(320, File_open, file, false)                         \
  X(321, File_close, file, false)                        \
  X(322, File_read, file, false)                         \
  X(323, File_read_all, file, false)                     \
  X(324, File_read_at, file, false)                      \
  X(325, File_read_at_all, file, false)                  \
  X(326, File_write, file, false)                        \
  X(327, File_write_all, file, false)                    \
  X(328, File_write_at, file, false)                     \
  X(329, File_write_at_all, file, false)                 \
  X(330, File_iread, file, true)                         \
  X(331, File_iread_all, file, true)                     \
  X(332, File_iread_at, file, true)                      \
  X(333, File_iread_at_all, file, true)                  \
  X(334, File_iwrite, file, true)                        \
  X(335, File_iwrite_all, file, true)                    \
  X(336, File_iwrite_at, file, true)                     \
  X(337, File_iwrite_at_all, file, true)                 \
  X(338, File_read_shared, file, false)                  \
  X(339, File_write_shared, file, false)                 \
  X(340, File_iread_shared, file, true)                  \
  X(341, File_iwrite_shared, file, true)                 \
  X(342, File_read_ordered, file, false)                 \
  X(343, File_write_ordered, file, false)                \
  X(344, File_read_all_begin, file, true)                \
  X(345, File_read_all_end, file, false)                 \
  X(346, File_read_at_all_begin, file, true)             \
  X(347, File_read_at_all_end, file, false)              \
  X(348, File_read_ordered_begin, file, true)            \
  X(349, File_read_ordered_end, file, false)             \
  X(350, File_write_all_begin, file, true)               \
  X(351, File_write_all_end, file, false)                \
  X(352, File_write_at_all_begin, file, true)            \
  X(353, File_write_at_all_end, file, false)             \
  X(354, File_write_ordered_begin, file, true)           \
  X(355, File_write_ordered_end, file, false)            \
  X(356, File_set_view, file, false)                     \
  X(357, File_set_size, file, false)                     \
  X(358, File_preallocate, file, false)                  \
  X(359, File_sync, file, false)                         \
  X(360, File_seek, file, false)                         \
  X(361, File_seek_shared, file, false)                  \
  X(362, File_delete, file, false)                       \
  X(363, File_get_size, file, false)                     \
  X(364, File_get_position, file, false)                 \
  X(365, File_get_position_shared, file, false)          \
  X(366, File_get_byte_offset, file, false)              \
  X(367, File_get_view, file, false)                     \
  X(368, File_set_info, file, false)                     \
  X(369, File_get_info, file, false)                     \
  X(370, File_set_atomicity, file, false)                \
  X(371, File_get_atomicity, file, false)                \
  X(372, File_get_amode, file, false)                    \
  X(373, File_get_group, file, false)                    \
  X(374, File_get_type_extent, file, false)              \
  X(384, Barrier_init, collective, true)                 \
  X(385, Bcast_init, collective, true)                   \
  X(386, Gather_init, collective, true)                  \
  X(387, Gatherv_init, collective, true)                 \
  X(388, Scatter_init, collective, true)                 \
  X(389, Scatterv_init, collective, true)                \
  X(390, Allgather_init, collective, true)               \
  X(391, Allgatherv_init, collective, true)              \
  X(392, Alltoall_init, collective, true)                \
  X(393, Alltoallv_init, collective, true)               \
  X(394, Alltoallw_init, collective, true)               \
  X(395, Allreduce_init, collective, true)               \
  X(396, Reduce_init, collective, true)                  \
  X(397, Reduce_scatter_init, collective, true)          \
  X(398, Reduce_scatter_block_init, collective, true)    \
  X(399, Scan_init, collective, true)                    \
  X(400, Exscan_init, collective, true)                  \
  X(401, Neighbor_allgather_init, collective, true)      \
  X(402, Neighbor_alltoall_init, collective, true)       \
  X(403, Neighbor_allgatherv_init, collective, true)     \
  X(404, Neighbor_alltoallv_init, collective, true)      \
  X(405, Neighbor_alltoallw_init, collective, true)

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

// The function with this id, or nullptr if this version does not know it. Cost: one table look-up.
constexpr const MpiFunction* find_mpi_function(std::uint32_t id) {
  constexpr auto index = [] {
    std::array<std::uint16_t, 512> at{};
    std::uint16_t position = 0;
    for (const MpiFunction& function : mpi_functions) at[static_cast<std::size_t>(function.id)] = ++position;
    return at;
  }();
  if (id >= index.size() || index[id] == 0) return nullptr;
  return &mpi_functions[index[id] - 1];
}

}  // namespace paceline::format
