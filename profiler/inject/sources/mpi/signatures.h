// SPDX-License-Identifier: Apache-2.0
// The table that all wrappers of MPI functions are generated from (wrap_c.cpp, wrap_fortran.cpp): for each function the
// roles of its parameters (roles.h), which decide what is recorded of a call (call.cpp). Numbers, names and kinds of
// the functions are in profiler/format/mpi_functions.h.
//
//   X(name, name in Fortran, roles…)
//   T  for functions with texts, for which Fortran adds hidden lengths
//   P  for persistent collectives, which Open MPI 4 has under names with MPIX_
//   L  and Q are X and P for functions of which MPI 4 has a second form, MPI_…_c, whose counts are MPI_Count
#pragma once

#define PACELINE_MPI_COLLECTIVE(X, P, Name, name, ...) \
  X(Name, name, __VA_ARGS__)                           \
  X(I##name, i##name, __VA_ARGS__, new_request)        \
  P(Name##_init, name##_init, __VA_ARGS__, _, new_persistent)

// In the order of the standard's chapters.
#define PACELINE_MPI_SIGNATURES(X, T, P, L, Q)                                                                         \
  L(Send, send, buffer, count, type, peer, tag, comm)                                                                  \
  L(Bsend, bsend, buffer, count, type, peer, tag, comm)                                                                \
  L(Ssend, ssend, buffer, count, type, peer, tag, comm)                                                                \
  L(Rsend, rsend, buffer, count, type, peer, tag, comm)                                                                \
  L(Recv, recv, buffer, count, type, peer, tag, comm, _)                                                               \
  L(Sendrecv, sendrecv, buffer, count, type, peer, tag, _, _, _, _, _, comm, _)                                        \
  L(Sendrecv_replace, sendrecv_replace, buffer, count, type, peer, tag, _, _, comm, _)                                 \
  L(Isend, isend, buffer, count, type, peer, tag, comm, new_request)                                                   \
  L(Ibsend, ibsend, buffer, count, type, peer, tag, comm, new_request)                                                 \
  L(Issend, issend, buffer, count, type, peer, tag, comm, new_request)                                                 \
  L(Irsend, irsend, buffer, count, type, peer, tag, comm, new_request)                                                 \
  L(Irecv, irecv, buffer, count, type, peer, tag, comm, new_request)                                                   \
  L(Isendrecv, isendrecv, buffer, count, type, peer, tag, _, _, _, _, _, comm, new_request)                            \
  L(Isendrecv_replace, isendrecv_replace, buffer, count, type, peer, tag, _, _, comm, new_request)                     \
  X(Probe, probe, peer, tag, comm, _)                                                                                  \
  X(Iprobe, iprobe, peer, tag, comm, _, _)                                                                             \
  X(Mprobe, mprobe, peer, tag, comm, _, _)                                                                             \
  X(Improbe, improbe, peer, tag, comm, _, _, _)                                                                        \
  L(Mrecv, mrecv, buffer, count, type, _, _)                                                                           \
  L(Imrecv, imrecv, buffer, count, type, _, new_request)                                                               \
  L(Send_init, send_init, buffer, count, type, peer, tag, comm, new_persistent)                                        \
  L(Bsend_init, bsend_init, buffer, count, type, peer, tag, comm, new_persistent)                                      \
  L(Ssend_init, ssend_init, buffer, count, type, peer, tag, comm, new_persistent)                                      \
  L(Rsend_init, rsend_init, buffer, count, type, peer, tag, comm, new_persistent)                                      \
  L(Recv_init, recv_init, buffer, count, type, peer, tag, comm, new_persistent)                                        \
  X(Psend_init, psend_init, buffer, count, partitions, type, peer, tag, comm, _, new_persistent)                       \
  X(Precv_init, precv_init, buffer, count, partitions, type, peer, tag, comm, _, new_persistent)                       \
  X(Pready, pready, _, _)                                                                                              \
  X(Pready_range, pready_range, _, _, _)                                                                               \
  X(Pready_list, pready_list, _, _, _)                                                                                 \
  X(Parrived, parrived, _, _, _)                                                                                       \
  X(Start, start, request)                                                                                             \
  X(Startall, startall, request_count, requests)                                                                       \
  X(Cancel, cancel, request)                                                                                           \
  X(Request_free, request_free, request)                                                                               \
  X(Wait, wait, request, _)                                                                                            \
  X(Waitall, waitall, request_count, requests, _)                                                                      \
  X(Waitany, waitany, request_count, requests, index, _)                                                               \
  X(Waitsome, waitsome, request_count, requests, index_count, indices, _)                                              \
  X(Test, test, request, flag, _)                                                                                      \
  X(Testall, testall, request_count, requests, flag, _)                                                                \
  X(Testany, testany, request_count, requests, index, flag, _)                                                         \
  X(Testsome, testsome, request_count, requests, index_count, indices, _)                                              \
  X(Request_get_status, request_get_status, _, _, _)                                                                   \
  PACELINE_MPI_COLLECTIVE(X, P, Barrier, barrier, comm)                                                                \
  PACELINE_MPI_COLLECTIVE(L, Q, Bcast, bcast, buffer, count, type, root, comm)                                         \
  PACELINE_MPI_COLLECTIVE(L, Q, Gather, gather, buffer, block, type, _, other_count, other_type, root, comm)           \
  PACELINE_MPI_COLLECTIVE(L, Q, Gatherv, gatherv, buffer, count, type, _, _, _, other_type, root, comm)                \
  PACELINE_MPI_COLLECTIVE(L, Q, Scatter, scatter, _, other_count, other_type, buffer, block, type, root, comm)         \
  PACELINE_MPI_COLLECTIVE(L, Q, Scatterv, scatterv, _, _, _, other_type, buffer, count, type, root, comm)              \
  PACELINE_MPI_COLLECTIVE(L, Q, Allgather, allgather, _, _, _, _, block, type, comm)                                   \
  PACELINE_MPI_COLLECTIVE(L, Q, Allgatherv, allgatherv, _, _, _, _, counts, _, type, comm)                             \
  PACELINE_MPI_COLLECTIVE(L, Q, Alltoall, alltoall, _, _, _, _, block, type, comm)                                     \
  PACELINE_MPI_COLLECTIVE(L, Q, Alltoallv, alltoallv, _, _, _, _, _, counts, _, type, comm)                            \
  PACELINE_MPI_COLLECTIVE(L, Q, Alltoallw, alltoallw, _, _, _, _, _, counts, _, types, comm)                           \
  PACELINE_MPI_COLLECTIVE(L, Q, Allreduce, allreduce, _, _, count, type, _, comm)                                      \
  PACELINE_MPI_COLLECTIVE(L, Q, Reduce, reduce, _, _, count, type, _, root, comm)                                      \
  PACELINE_MPI_COLLECTIVE(L, Q, Reduce_scatter, reduce_scatter, _, _, group_counts, type, _, comm)                     \
  PACELINE_MPI_COLLECTIVE(L, Q, Reduce_scatter_block, reduce_scatter_block, _, _, block, type, _, comm)                \
  PACELINE_MPI_COLLECTIVE(L, Q, Scan, scan, _, _, count, type, _, comm)                                                \
  PACELINE_MPI_COLLECTIVE(L, Q, Exscan, exscan, _, _, count, type, _, comm)                                            \
  PACELINE_MPI_COLLECTIVE(L, Q, Neighbor_allgather, neighbor_allgather, _, neighbor_block, type, _, _, _, comm)        \
  PACELINE_MPI_COLLECTIVE(L, Q, Neighbor_allgatherv, neighbor_allgatherv, _, neighbor_block, type, _, _, _, _, comm)   \
  PACELINE_MPI_COLLECTIVE(L, Q, Neighbor_alltoall, neighbor_alltoall, _, neighbor_block, type, _, _, _, comm)          \
  PACELINE_MPI_COLLECTIVE(L, Q, Neighbor_alltoallv, neighbor_alltoallv, _, neighbor_counts, _, type, _, _, _, _, comm) \
  PACELINE_MPI_COLLECTIVE(L, Q, Neighbor_alltoallw, neighbor_alltoallw, _, neighbor_counts, _, types, _, _, _, _,      \
                          comm)                                                                                        \
  X(Comm_dup, comm_dup, comm, new_comm)                                                                                \
  X(Comm_dup_with_info, comm_dup_with_info, comm, _, new_comm)                                                         \
  X(Comm_idup, comm_idup, comm, later_comm, new_request)                                                               \
  X(Comm_idup_with_info, comm_idup_with_info, comm, _, later_comm, new_request)                                        \
  X(Comm_split, comm_split, comm, _, _, new_comm)                                                                      \
  X(Comm_split_type, comm_split_type, comm, _, _, _, new_comm)                                                         \
  X(Comm_create, comm_create, comm, _, new_comm)                                                                       \
  X(Comm_create_group, comm_create_group, comm, _, tag, new_comm)                                                      \
  X(Comm_free, comm_free, freed_comm)                                                                                  \
  X(Comm_disconnect, comm_disconnect, freed_comm)                                                                      \
  T(Comm_set_name, comm_set_name, comm, text)                                                                          \
  X(Cart_create, cart_create, comm, _, _, _, _, new_comm)                                                              \
  X(Cart_sub, cart_sub, comm, _, new_comm)                                                                             \
  X(Graph_create, graph_create, comm, _, _, _, _, new_comm)                                                            \
  X(Dist_graph_create, dist_graph_create, comm, _, _, _, _, _, _, _, new_comm)                                         \
  X(Dist_graph_create_adjacent, dist_graph_create_adjacent, comm, _, _, _, _, _, _, _, _, new_comm)                    \
  X(Intercomm_create, intercomm_create, comm, _, _, _, tag, new_comm)                                                  \
  X(Intercomm_merge, intercomm_merge, comm, _, new_comm)                                                               \
  T(Comm_spawn, comm_spawn, _, _, _, _, _, comm, new_comm, _)                                                          \
  T(Comm_spawn_multiple, comm_spawn_multiple, _, _, _, _, _, _, comm, new_comm, _)                                     \
  T(Comm_accept, comm_accept, _, _, _, comm, new_comm)                                                                 \
  T(Comm_connect, comm_connect, _, _, _, comm, new_comm)                                                               \
  X(Comm_join, comm_join, _, new_comm)                                                                                 \
  X(Comm_get_parent, comm_get_parent, new_comm)                                                                        \
  X(Session_finalize, session_finalize, _)                                                                             \
  T(Comm_create_from_group, comm_create_from_group, _, _, _, _, new_comm)                                              \
  T(Intercomm_create_from_groups, intercomm_create_from_groups, _, _, _, _, _, _, _, new_comm)                         \
  X(Abort, abort, _, _)                                                                                                \
  L(Win_create, win_create, _, size, _, _, comm, new_window)                                                           \
  L(Win_allocate, win_allocate, size, _, _, comm, _, new_window)                                                       \
  L(Win_allocate_shared, win_allocate_shared, size, _, _, comm, _, new_window)                                         \
  X(Win_create_dynamic, win_create_dynamic, _, comm, new_window)                                                       \
  X(Win_attach, win_attach, window, _, size)                                                                           \
  X(Win_detach, win_detach, window, _)                                                                                 \
  X(Win_free, win_free, freed_window)                                                                                  \
  X(Win_fence, win_fence, _, window)                                                                                   \
  X(Win_lock, win_lock, _, peer, _, window)                                                                            \
  X(Win_unlock, win_unlock, peer, window)                                                                              \
  X(Win_lock_all, win_lock_all, _, window)                                                                             \
  X(Win_unlock_all, win_unlock_all, window)                                                                            \
  X(Win_flush, win_flush, peer, window)                                                                                \
  X(Win_flush_all, win_flush_all, window)                                                                              \
  X(Win_flush_local, win_flush_local, peer, window)                                                                    \
  X(Win_flush_local_all, win_flush_local_all, window)                                                                  \
  X(Win_sync, win_sync, window)                                                                                        \
  X(Win_post, win_post, _, _, window)                                                                                  \
  X(Win_start, win_start, _, _, window)                                                                                \
  X(Win_complete, win_complete, window)                                                                                \
  X(Win_wait, win_wait, window)                                                                                        \
  X(Win_test, win_test, window, _)                                                                                     \
  L(Put, put, _, _, _, peer, _, count, type, window)                                                                   \
  L(Get, get, _, _, _, peer, _, count, type, window)                                                                   \
  L(Accumulate, accumulate, _, _, _, peer, _, count, type, _, window)                                                  \
  L(Get_accumulate, get_accumulate, _, _, _, _, _, _, peer, _, count, type, _, window)                                 \
  X(Fetch_and_op, fetch_and_op, _, _, type, peer, _, _, window)                                                        \
  X(Compare_and_swap, compare_and_swap, _, _, _, type, peer, _, window)                                                \
  L(Rput, rput, _, _, _, peer, _, count, type, window, new_request)                                                    \
  L(Rget, rget, _, _, _, peer, _, count, type, window, new_request)                                                    \
  L(Raccumulate, raccumulate, _, _, _, peer, _, count, type, _, window, new_request)                                   \
  L(Rget_accumulate, rget_accumulate, _, _, _, _, _, _, peer, _, count, type, _, window, new_request)                  \
  T(File_open, file_open, comm, text, _, _, new_file)                                                                  \
  X(File_close, file_close, freed_file)                                                                                \
  T(File_delete, file_delete, _, _)                                                                                    \
  T(File_set_view, file_set_view, file, _, _, _, _, _)                                                                 \
  X(File_set_size, file_set_size, file, _)                                                                             \
  X(File_preallocate, file_preallocate, file, _)                                                                       \
  X(File_get_size, file_get_size, file, _)                                                                             \
  X(File_sync, file_sync, file)                                                                                        \
  X(File_seek, file_seek, file, _, _)                                                                                  \
  X(File_seek_shared, file_seek_shared, file, _, _)                                                                    \
  X(File_get_position, file_get_position, file, _)                                                                     \
  X(File_get_position_shared, file_get_position_shared, file, _)                                                       \
  X(File_get_byte_offset, file_get_byte_offset, file, _, _)                                                            \
  T(File_get_view, file_get_view, file, _, _, _, _)                                                                    \
  X(File_set_info, file_set_info, file, _)                                                                             \
  X(File_get_info, file_get_info, file, _)                                                                             \
  X(File_set_atomicity, file_set_atomicity, file, _)                                                                   \
  X(File_get_atomicity, file_get_atomicity, file, _)                                                                   \
  X(File_get_amode, file_get_amode, file, _)                                                                           \
  X(File_get_group, file_get_group, file, _)                                                                           \
  L(File_get_type_extent, file_get_type_extent, file, _, _)                                                            \
  PACELINE_MPI_TRANSFER(X, L, read)                                                                                    \
  PACELINE_MPI_TRANSFER(X, L, write)

// Reading and writing have the same parameters.
#define PACELINE_MPI_TRANSFER(X, L, name)                                                    \
  L(File_##name, file_##name, file, _, count, type, _)                                       \
  L(File_##name##_all, file_##name##_all, file, _, count, type, _)                           \
  L(File_##name##_at, file_##name##_at, file, offset, _, count, type, _)                     \
  L(File_##name##_at_all, file_##name##_at_all, file, offset, _, count, type, _)             \
  L(File_##name##_shared, file_##name##_shared, file, _, count, type, _)                     \
  L(File_##name##_ordered, file_##name##_ordered, file, _, count, type, _)                   \
  L(File_i##name, file_i##name, file, _, count, type, new_request)                           \
  L(File_i##name##_all, file_i##name##_all, file, _, count, type, new_request)               \
  L(File_i##name##_at, file_i##name##_at, file, offset, _, count, type, new_request)         \
  L(File_i##name##_at_all, file_i##name##_at_all, file, offset, _, count, type, new_request) \
  L(File_i##name##_shared, file_i##name##_shared, file, _, count, type, new_request)         \
  L(File_##name##_all_begin, file_##name##_all_begin, file, _, count, type)                  \
  X(File_##name##_all_end, file_##name##_all_end, file, _, _)                                \
  L(File_##name##_at_all_begin, file_##name##_at_all_begin, file, offset, _, count, type)    \
  X(File_##name##_at_all_end, file_##name##_at_all_end, file, _, _)                          \
  L(File_##name##_ordered_begin, file_##name##_ordered_begin, file, _, count, type)          \
  X(File_##name##_ordered_end, file_##name##_ordered_end, file, _, _)
