// What the parameters of each MPI function mean: the table that all wrappers are generated from (mpi_wrap_c.cpp,
// mpi_wrap_fortran.cpp), and that says what is recorded of a call (mpi_call.cpp). Numbers, names and kinds of the
// functions are in profiler/format/mpi_functions.h.
//
// X(number of parameters, name, name in Fortran, one letter a parameter); T likewise, for functions with texts, for
// which Fortran adds hidden lengths; P for persistent collectives, which Open MPI 4 has under names with MPIX_. L and Q
// are X and P for functions of which MPI 4 has a second form, MPI_…_c, whose counts are MPI_Count.
//
//   how much   n count   t type of it (the first Buffer's or the target's)
//              k count of the block for one rank of the communicator   j count of the block for one neighbour
//              N counts[] one for each rank   L … for each rank of the own group   V … for each neighbour
//              T types[], for N or V          l a further factor, MPI_Count
//              b the buffer that n or k and t belong to; where it is MPI_IN_PLACE, m (count) and u (type) do
//   with whom  p peer or target   g tag   r root   c communicator
//   made       C communicator   D … once its request is complete   q request   P persistent request   W window   H file
//   used       e request*   E requests[], a of them   w window   h file   s text   z bytes, MPI_Aint   d offset
//   freed      O communicator*   X window*   J file*
//   told       f flag*   i index*   o number of indices*   I indices[]
//   .          anything else
#pragma once

#define PACELINE_MPI_COLLECTIVE(X, P, parameters, with_request, with_info, Name, name, letters) \
  X(parameters, Name, name, letters)                                                            \
  X(with_request, I##name, i##name, letters "q")                                                \
  P(with_info, Name##_init, name##_init, letters ".P")

// The order of the standard's chapters.
#define PACELINE_MPI_SIGNATURES(X, T, P, L, Q)                                                  \
  L(6, Send, send, "bntpgc")                                                                    \
  L(6, Bsend, bsend, "bntpgc")                                                                  \
  L(6, Ssend, ssend, "bntpgc")                                                                  \
  L(6, Rsend, rsend, "bntpgc")                                                                  \
  L(7, Recv, recv, "bntpgc.")                                                                   \
  L(12, Sendrecv, sendrecv, "bntpg.....c.")                                                     \
  L(9, Sendrecv_replace, sendrecv_replace, "bntpg..c.")                                         \
  L(7, Isend, isend, "bntpgcq")                                                                 \
  L(7, Ibsend, ibsend, "bntpgcq")                                                               \
  L(7, Issend, issend, "bntpgcq")                                                               \
  L(7, Irsend, irsend, "bntpgcq")                                                               \
  L(7, Irecv, irecv, "bntpgcq")                                                                 \
  L(12, Isendrecv, isendrecv, "bntpg.....cq")                                                   \
  L(9, Isendrecv_replace, isendrecv_replace, "bntpg..cq")                                       \
  X(4, Probe, probe, "pgc.")                                                                    \
  X(5, Iprobe, iprobe, "pgc..")                                                                 \
  X(5, Mprobe, mprobe, "pgc..")                                                                 \
  X(6, Improbe, improbe, "pgc...")                                                              \
  L(5, Mrecv, mrecv, "bnt..")                                                                   \
  L(5, Imrecv, imrecv, "bnt.q")                                                                 \
  L(7, Send_init, send_init, "bntpgcP")                                                         \
  L(7, Bsend_init, bsend_init, "bntpgcP")                                                       \
  L(7, Ssend_init, ssend_init, "bntpgcP")                                                       \
  L(7, Rsend_init, rsend_init, "bntpgcP")                                                       \
  L(7, Recv_init, recv_init, "bntpgcP")                                                         \
  X(9, Psend_init, psend_init, "bnltpgc.P")                                                     \
  X(9, Precv_init, precv_init, "bnltpgc.P")                                                     \
  X(2, Pready, pready, "..")                                                                    \
  X(3, Pready_range, pready_range, "...")                                                       \
  X(3, Pready_list, pready_list, "...")                                                         \
  X(3, Parrived, parrived, "...")                                                               \
  X(1, Start, start, "e")                                                                       \
  X(2, Startall, startall, "aE")                                                                \
  X(1, Cancel, cancel, "e")                                                                     \
  X(1, Request_free, request_free, "e")                                                         \
  X(2, Wait, wait, "e.")                                                                        \
  X(3, Waitall, waitall, "aE.")                                                                 \
  X(4, Waitany, waitany, "aEi.")                                                                \
  X(5, Waitsome, waitsome, "aEoI.")                                                             \
  X(3, Test, test, "ef.")                                                                       \
  X(4, Testall, testall, "aEf.")                                                                \
  X(5, Testany, testany, "aEif.")                                                               \
  X(5, Testsome, testsome, "aEoI.")                                                             \
  X(3, Request_get_status, request_get_status, "...")                                           \
  PACELINE_MPI_COLLECTIVE(X, P, 1, 2, 3, Barrier, barrier, "c")                                 \
  PACELINE_MPI_COLLECTIVE(L, Q, 5, 6, 7, Bcast, bcast, "bntrc")                                 \
  PACELINE_MPI_COLLECTIVE(L, Q, 8, 9, 10, Gather, gather, "bkt.murc")                           \
  PACELINE_MPI_COLLECTIVE(L, Q, 9, 10, 11, Gatherv, gatherv, "bnt...urc")                       \
  PACELINE_MPI_COLLECTIVE(L, Q, 8, 9, 10, Scatter, scatter, ".mubktrc")                         \
  PACELINE_MPI_COLLECTIVE(L, Q, 9, 10, 11, Scatterv, scatterv, "...ubntrc")                     \
  PACELINE_MPI_COLLECTIVE(L, Q, 7, 8, 9, Allgather, allgather, "....ktc")                       \
  PACELINE_MPI_COLLECTIVE(L, Q, 8, 9, 10, Allgatherv, allgatherv, "....N.tc")                   \
  PACELINE_MPI_COLLECTIVE(L, Q, 7, 8, 9, Alltoall, alltoall, "....ktc")                         \
  PACELINE_MPI_COLLECTIVE(L, Q, 9, 10, 11, Alltoallv, alltoallv, ".....N.tc")                   \
  PACELINE_MPI_COLLECTIVE(L, Q, 9, 10, 11, Alltoallw, alltoallw, ".....N.Tc")                   \
  PACELINE_MPI_COLLECTIVE(L, Q, 6, 7, 8, Allreduce, allreduce, "..nt.c")                        \
  PACELINE_MPI_COLLECTIVE(L, Q, 7, 8, 9, Reduce, reduce, "..nt.rc")                             \
  PACELINE_MPI_COLLECTIVE(L, Q, 6, 7, 8, Reduce_scatter, reduce_scatter, "..Lt.c")              \
  PACELINE_MPI_COLLECTIVE(L, Q, 6, 7, 8, Reduce_scatter_block, reduce_scatter_block, "..kt.c")  \
  PACELINE_MPI_COLLECTIVE(L, Q, 6, 7, 8, Scan, scan, "..nt.c")                                  \
  PACELINE_MPI_COLLECTIVE(L, Q, 6, 7, 8, Exscan, exscan, "..nt.c")                              \
  PACELINE_MPI_COLLECTIVE(L, Q, 7, 8, 9, Neighbor_allgather, neighbor_allgather, ".jt...c")     \
  PACELINE_MPI_COLLECTIVE(L, Q, 8, 9, 10, Neighbor_allgatherv, neighbor_allgatherv, ".jt....c") \
  PACELINE_MPI_COLLECTIVE(L, Q, 7, 8, 9, Neighbor_alltoall, neighbor_alltoall, ".jt...c")       \
  PACELINE_MPI_COLLECTIVE(L, Q, 9, 10, 11, Neighbor_alltoallv, neighbor_alltoallv, ".V.t....c") \
  PACELINE_MPI_COLLECTIVE(L, Q, 9, 10, 11, Neighbor_alltoallw, neighbor_alltoallw, ".V.T....c") \
  X(2, Comm_dup, comm_dup, "cC")                                                                \
  X(3, Comm_dup_with_info, comm_dup_with_info, "c.C")                                           \
  X(3, Comm_idup, comm_idup, "cDq")                                                             \
  X(4, Comm_idup_with_info, comm_idup_with_info, "c.Dq")                                        \
  X(4, Comm_split, comm_split, "c..C")                                                          \
  X(5, Comm_split_type, comm_split_type, "c...C")                                               \
  X(3, Comm_create, comm_create, "c.C")                                                         \
  X(4, Comm_create_group, comm_create_group, "c.gC")                                            \
  X(1, Comm_free, comm_free, "O")                                                               \
  X(1, Comm_disconnect, comm_disconnect, "O")                                                   \
  T(2, Comm_set_name, comm_set_name, "cs")                                                      \
  X(6, Cart_create, cart_create, "c....C")                                                      \
  X(3, Cart_sub, cart_sub, "c.C")                                                               \
  X(6, Graph_create, graph_create, "c....C")                                                    \
  X(9, Dist_graph_create, dist_graph_create, "c.......C")                                       \
  X(10, Dist_graph_create_adjacent, dist_graph_create_adjacent, "c........C")                   \
  X(6, Intercomm_create, intercomm_create, "c...gC")                                            \
  X(3, Intercomm_merge, intercomm_merge, "c.C")                                                 \
  T(8, Comm_spawn, comm_spawn, ".....cC.")                                                      \
  T(9, Comm_spawn_multiple, comm_spawn_multiple, "......cC.")                                   \
  T(5, Comm_accept, comm_accept, "...cC")                                                       \
  T(5, Comm_connect, comm_connect, "...cC")                                                     \
  X(2, Comm_join, comm_join, ".C")                                                              \
  X(1, Comm_get_parent, comm_get_parent, "C")                                                   \
  X(1, Session_finalize, session_finalize, ".")                                                 \
  T(5, Comm_create_from_group, comm_create_from_group, "....C")                                 \
  T(8, Intercomm_create_from_groups, intercomm_create_from_groups, ".......C")                  \
  X(2, Abort, abort, "..")                                                                      \
  L(6, Win_create, win_create, ".z..cW")                                                        \
  L(6, Win_allocate, win_allocate, "z..c.W")                                                    \
  L(6, Win_allocate_shared, win_allocate_shared, "z..c.W")                                      \
  X(3, Win_create_dynamic, win_create_dynamic, ".cW")                                           \
  X(3, Win_attach, win_attach, "w.z")                                                           \
  X(2, Win_detach, win_detach, "w.")                                                            \
  X(1, Win_free, win_free, "X")                                                                 \
  X(2, Win_fence, win_fence, ".w")                                                              \
  X(4, Win_lock, win_lock, ".p.w")                                                              \
  X(2, Win_unlock, win_unlock, "pw")                                                            \
  X(2, Win_lock_all, win_lock_all, ".w")                                                        \
  X(1, Win_unlock_all, win_unlock_all, "w")                                                     \
  X(2, Win_flush, win_flush, "pw")                                                              \
  X(1, Win_flush_all, win_flush_all, "w")                                                       \
  X(2, Win_flush_local, win_flush_local, "pw")                                                  \
  X(1, Win_flush_local_all, win_flush_local_all, "w")                                           \
  X(1, Win_sync, win_sync, "w")                                                                 \
  X(3, Win_post, win_post, "..w")                                                               \
  X(3, Win_start, win_start, "..w")                                                             \
  X(1, Win_complete, win_complete, "w")                                                         \
  X(1, Win_wait, win_wait, "w")                                                                 \
  X(2, Win_test, win_test, "w.")                                                                \
  L(8, Put, put, "...p.ntw")                                                                    \
  L(8, Get, get, "...p.ntw")                                                                    \
  L(9, Accumulate, accumulate, "...p.nt.w")                                                     \
  L(12, Get_accumulate, get_accumulate, "......p.nt.w")                                         \
  X(7, Fetch_and_op, fetch_and_op, "..tp..w")                                                   \
  X(7, Compare_and_swap, compare_and_swap, "...tp.w")                                           \
  L(9, Rput, rput, "...p.ntwq")                                                                 \
  L(9, Rget, rget, "...p.ntwq")                                                                 \
  L(10, Raccumulate, raccumulate, "...p.nt.wq")                                                 \
  L(13, Rget_accumulate, rget_accumulate, "......p.nt.wq")                                      \
  T(5, File_open, file_open, "cs..H")                                                           \
  X(1, File_close, file_close, "J")                                                             \
  T(2, File_delete, file_delete, "..")                                                          \
  T(6, File_set_view, file_set_view, "h.....")                                                  \
  X(2, File_set_size, file_set_size, "h.")                                                      \
  X(2, File_preallocate, file_preallocate, "h.")                                                \
  X(2, File_get_size, file_get_size, "h.")                                                      \
  X(1, File_sync, file_sync, "h")                                                               \
  X(3, File_seek, file_seek, "h..")                                                             \
  X(3, File_seek_shared, file_seek_shared, "h..")                                               \
  X(2, File_get_position, file_get_position, "h.")                                              \
  X(2, File_get_position_shared, file_get_position_shared, "h.")                                \
  X(3, File_get_byte_offset, file_get_byte_offset, "h..")                                       \
  T(5, File_get_view, file_get_view, "h....")                                                   \
  X(2, File_set_info, file_set_info, "h.")                                                      \
  X(2, File_get_info, file_get_info, "h.")                                                      \
  X(2, File_set_atomicity, file_set_atomicity, "h.")                                            \
  X(2, File_get_atomicity, file_get_atomicity, "h.")                                            \
  X(2, File_get_amode, file_get_amode, "h.")                                                    \
  X(2, File_get_group, file_get_group, "h.")                                                    \
  L(3, File_get_type_extent, file_get_type_extent, "h..")                                       \
  PACELINE_MPI_TRANSFER(X, L, read)                                                             \
  PACELINE_MPI_TRANSFER(X, L, write)

// Reading and writing are alike.
#define PACELINE_MPI_TRANSFER(X, L, name)                                \
  L(5, File_##name, file_##name, "h.nt.")                                \
  L(5, File_##name##_all, file_##name##_all, "h.nt.")                    \
  L(6, File_##name##_at, file_##name##_at, "hd.nt.")                     \
  L(6, File_##name##_at_all, file_##name##_at_all, "hd.nt.")             \
  L(5, File_##name##_shared, file_##name##_shared, "h.nt.")              \
  L(5, File_##name##_ordered, file_##name##_ordered, "h.nt.")            \
  L(5, File_i##name, file_i##name, "h.ntq")                              \
  L(5, File_i##name##_all, file_i##name##_all, "h.ntq")                  \
  L(6, File_i##name##_at, file_i##name##_at, "hd.ntq")                   \
  L(6, File_i##name##_at_all, file_i##name##_at_all, "hd.ntq")           \
  L(5, File_i##name##_shared, file_i##name##_shared, "h.ntq")            \
  L(4, File_##name##_all_begin, file_##name##_all_begin, "h.nt")         \
  X(3, File_##name##_all_end, file_##name##_all_end, "h..")              \
  L(5, File_##name##_at_all_begin, file_##name##_at_all_begin, "hd.nt")  \
  X(3, File_##name##_at_all_end, file_##name##_at_all_end, "h..")        \
  L(4, File_##name##_ordered_begin, file_##name##_ordered_begin, "h.nt") \
  X(3, File_##name##_ordered_end, file_##name##_ordered_end, "h..")
