// MPI as an event source: this library defines the functions of MPI in the program's place (PMPI, MPI standard chapter
// 14), records the call, and calls the real one under its PMPI name. Fortran's bindings call PMPI by themselves, so
// they are wrapped too, of mpif.h and of the modules mpi and mpi_f08.
#include <type_traits>

#include "profiler/inject/control.h"
#include "profiler/inject/mpi_call.h"
#include "profiler/inject/mpi_session.h"
#include "profiler/inject/say.h"

namespace paceline::inject {
namespace {

constexpr int mpi_error = 16;  // MPI_ERR_OTHER of Open MPI

template <class Signature>
struct Wrapper;

template <class... Parameters>
struct Wrapper<int(Parameters...)> {
  using Function = int (*)(Parameters...);

  template <MpiId id>
  static int call(std::atomic<void*>& place, const char* symbol, Parameters... arguments) {
    const auto real = reinterpret_cast<Function>(find_once(place, symbol));
    if (real == nullptr) return mpi_error;
    const auto facts = [&] {
      CallFacts taken;
      (taken.take(arguments), ...);
      return taken;
    };
    before<id>(arguments...);
    const int result = recorded_call<id>(facts, [&] { return real(arguments...); });
    if (result == 0) after<id>(arguments...);
    return result;
  }

  // Fortran passes everything by reference, with the error code at the end. Open MPI's mpi_f08 handles are one integer
  // in a structure, so they look the same.
  template <MpiId id, class... Pointers>
  static void fortran_call(std::atomic<void*>& place, const char* symbol, Pointers... pointers) {
    const auto real = reinterpret_cast<void (*)(Pointers...)>(find_once(place, symbol));
    if (real == nullptr) return;
    void* const all[] = {pointers...};
    const auto facts = [&] {
      CallFacts taken;
      int at = 0;
      (take_fortran<Parameters>(taken, all[at++]), ...);
      return taken;
    };
    if (mpi_depth.load(std::memory_order_relaxed) == MpiDepth::full) {
      int at = 0;
      (before_fortran<id, Parameters>(all[at++]), ...);
    }
    recorded_call<id>(facts, [&] {
      real(pointers...);
      return 0;
    });
    if constexpr (makes_communicator) {
      if (mpi_depth.load(std::memory_order_relaxed) == MpiDepth::full && mpi_nesting == 0) {
        const CallFacts taken = facts();
        int at = 0;
        (note_fortran<id, Parameters>(taken, all[at++]), ...);
      }
    }
  }

 private:
  static constexpr bool makes_communicator = (std::is_same_v<Parameters, NewComm> || ...);

  static void* find_once(std::atomic<void*>& place, const char* symbol) {
    void* found = place.load(std::memory_order_acquire);
    if (found == nullptr) {
      found = find_in_mpi(symbol);
      place.store(found, std::memory_order_release);
      if (found == nullptr) say("the program calls %s, which no MPI library that it loaded has", symbol);
    }
    return found;
  }

  template <MpiId id>
  static void before(Parameters... arguments) {
    (before_one(arguments), ...);
  }
  template <class Parameter>
  static void before_one(Parameter) {}
  static void before_one(OldComm freed) {
    if (mpi_depth.load(std::memory_order_relaxed) == MpiDepth::full) {
      forget_communicator(*reinterpret_cast<Comm*>(freed));
    }
  }

  template <MpiId id>
  static void after([[maybe_unused]] Parameters... arguments) {
    if constexpr (makes_communicator && id != MpiId::Comm_idup) {
      if (mpi_depth.load(std::memory_order_relaxed) != MpiDepth::full || mpi_nesting != 0) return;
      CallFacts taken;
      (taken.take(arguments), ...);
      (note_one<id>(taken, arguments), ...);
    }
  }
  template <MpiId id, class Parameter>
  static void note_one(const CallFacts&, Parameter) {}
  template <MpiId id>
  static void note_one(const CallFacts& facts, NewComm made) {
    note_communicator(facts.comm, *reinterpret_cast<Comm*>(made), id, facts.tag);
  }

  template <class Parameter>
  static void take_fortran(CallFacts& facts, void* pointer) {
    if constexpr (std::is_same_v<Parameter, Comm>) {
      facts.take(mpi.comm_f2c(*static_cast<int*>(pointer)));
    } else if constexpr (std::is_same_v<Parameter, Type>) {
      // Types that MPI ignores are not looked at either: see CallFacts.
      facts.take(mpi.type_f2c(*static_cast<int*>(pointer)));
    } else if constexpr (std::is_same_v<Parameter, OtherType>) {
      facts.other_type = mpi.type_f2c(*static_cast<int*>(pointer));
    } else if constexpr (std::is_same_v<Parameter, OtherCount>) {
      facts.other_count = *static_cast<int*>(pointer);
    } else if constexpr (std::is_same_v<Parameter, Buf>) {
      const bool in_its_place = pointer != nullptr && pointer == mpi.fortran_in_place;
      facts.buffer = in_its_place ? in_place : pointer;
    } else if constexpr (std::is_enum_v<Parameter> && !std::is_same_v<Parameter, Aint>) {
      facts.take(static_cast<Parameter>(*static_cast<int*>(pointer)));
    } else if constexpr (std::is_same_v<Parameter, Counts>) {
      facts.take(static_cast<Counts>(pointer));
    }
  }
  template <MpiId id, class Parameter>
  static void before_fortran([[maybe_unused]] void* pointer) {
    if constexpr (std::is_same_v<Parameter, OldComm>) forget_communicator(mpi.comm_f2c(*static_cast<int*>(pointer)));
  }
  template <MpiId id, class Parameter>
  static void note_fortran([[maybe_unused]] const CallFacts& facts, [[maybe_unused]] void* pointer) {
    if constexpr (std::is_same_v<Parameter, NewComm> && id != MpiId::Comm_idup) {
      note_communicator(facts.comm, mpi.comm_f2c(*static_cast<int*>(pointer)), id, facts.tag);
    }
  }
};

}  // namespace
}  // namespace paceline::inject

#define PACELINE_EXPORT extern "C" __attribute__((visibility("default")))

// Parameter lists and argument lists by number of parameters.
#define PARAMS_1(A) A a
#define PARAMS_2(A, B) A a, B b
#define PARAMS_3(A, B, C) A a, B b, C c
#define PARAMS_4(A, B, C, D) A a, B b, C c, D d
#define PARAMS_5(A, B, C, D, E) PARAMS_4(A, B, C, D), E e
#define PARAMS_6(A, B, C, D, E, F) PARAMS_4(A, B, C, D), E e, F f
#define PARAMS_7(A, B, C, D, E, F, G) PARAMS_6(A, B, C, D, E, F), G g
#define PARAMS_8(A, B, C, D, E, F, G, H) PARAMS_6(A, B, C, D, E, F), G g, H h
#define PARAMS_9(A, B, C, D, E, F, G, H, I) PARAMS_8(A, B, C, D, E, F, G, H), I i
#define PARAMS_10(A, B, C, D, E, F, G, H, I, J) PARAMS_8(A, B, C, D, E, F, G, H), I i, J j
#define PARAMS_11(A, B, C, D, E, F, G, H, I, J, K) PARAMS_10(A, B, C, D, E, F, G, H, I, J), K k
#define PARAMS_12(A, B, C, D, E, F, G, H, I, J, K, L) PARAMS_10(A, B, C, D, E, F, G, H, I, J), K k, L l
#define NAMES_1 a
#define NAMES_2 a, b
#define NAMES_3 NAMES_2, c
#define NAMES_4 NAMES_3, d
#define NAMES_5 NAMES_4, e
#define NAMES_6 NAMES_5, f
#define NAMES_7 NAMES_6, g
#define NAMES_8 NAMES_7, h
#define NAMES_9 NAMES_8, i
#define NAMES_10 NAMES_9, j
#define NAMES_11 NAMES_10, k
#define NAMES_12 NAMES_11, l
#define POINTERS_1 void* a
#define POINTERS_2 POINTERS_1, void* b
#define POINTERS_3 POINTERS_2, void* c
#define POINTERS_4 POINTERS_3, void* d
#define POINTERS_5 POINTERS_4, void* e
#define POINTERS_6 POINTERS_5, void* f
#define POINTERS_7 POINTERS_6, void* g
#define POINTERS_8 POINTERS_7, void* h
#define POINTERS_9 POINTERS_8, void* i
#define POINTERS_10 POINTERS_9, void* j
#define POINTERS_11 POINTERS_10, void* k
#define POINTERS_12 POINTERS_11, void* l

namespace paceline::inject {

// MPI_Init and MPI_Finalize do more than others: mpi_session.h.
PACELINE_EXPORT int MPI_Init(int* count, char*** arguments) {
  before_init();
  static std::atomic<void*> place;
  const int result = Wrapper<int(Ptr, Ptr)>::call<MpiId::Init>(place, "PMPI_Init", count, arguments);
  after_init();
  return result;
}
PACELINE_EXPORT int MPI_Init_thread(int* count, char*** arguments, int required, int* provided) {
  before_init();
  static std::atomic<void*> place;
  const int result = Wrapper<int(Ptr, Ptr, Int, Ptr)>::call<MpiId::Init_thread>(
      place, "PMPI_Init_thread", count, arguments, static_cast<Int>(required), provided);
  after_init();
  return result;
}
PACELINE_EXPORT int MPI_Finalize() {
  before_finalize();
  static std::atomic<void*> place;
  const int result = Wrapper<int()>::call<MpiId::Finalize>(place, "PMPI_Finalize");
  after_finalize();
  return result;
}
#define FORTRAN_SESSION(suffix)                                                                                      \
  PACELINE_EXPORT void mpi_init_##suffix(void* error) {                                                              \
    before_init();                                                                                                   \
    static std::atomic<void*> place;                                                                                 \
    Wrapper<int()>::fortran_call<MpiId::Init>(place, "pmpi_init_" #suffix, error);                                   \
    after_init();                                                                                                    \
  }                                                                                                                  \
  PACELINE_EXPORT void mpi_init_thread_##suffix(void* required, void* provided, void* error) {                       \
    before_init();                                                                                                   \
    static std::atomic<void*> place;                                                                                 \
    Wrapper<int(Int, Ptr)>::fortran_call<MpiId::Init_thread>(place, "pmpi_init_thread_" #suffix, required, provided, \
                                                             error);                                                 \
    after_init();                                                                                                    \
  }                                                                                                                  \
  PACELINE_EXPORT void mpi_finalize_##suffix(void* error) {                                                          \
    before_finalize();                                                                                               \
    static std::atomic<void*> place;                                                                                 \
    Wrapper<int()>::fortran_call<MpiId::Finalize>(place, "pmpi_finalize_" #suffix, error);                           \
    after_finalize();                                                                                                \
  }
FORTRAN_SESSION()
FORTRAN_SESSION(f08_)

// The standard's own switch for profiling tools: 0 turns recording off, anything else on.
PACELINE_EXPORT int MPI_Pcontrol(const int level, ...) {
  set_recording(level != 0);
  return 0;
}

#define WRAP_C(Name, parameters, types)                                                     \
  PACELINE_EXPORT int MPI_##Name(PARAMS_##parameters types) {                               \
    static std::atomic<void*> place;                                                        \
    return Wrapper<int types>::call<MpiId::Name>(place, "PMPI_" #Name, NAMES_##parameters); \
  }
#define WRAP_FORTRAN(Name, symbol, parameters, types)                                                 \
  PACELINE_EXPORT void mpi_##symbol(POINTERS_##parameters, void* error) {                             \
    static std::atomic<void*> place;                                                                  \
    Wrapper<int types>::fortran_call<MpiId::Name>(place, "pmpi_" #symbol, NAMES_##parameters, error); \
  }
#define WRAP(Name, name, parameters, types)      \
  WRAP_C(Name, parameters, types)                \
  WRAP_FORTRAN(Name, name##_, parameters, types) \
  WRAP_FORTRAN(Name, name##_f08_, parameters, types)

// Point-to-point.
WRAP(Send, send, 6, (Buf, Count, Type, Peer, Tag, Comm))
WRAP(Bsend, bsend, 6, (Buf, Count, Type, Peer, Tag, Comm))
WRAP(Ssend, ssend, 6, (Buf, Count, Type, Peer, Tag, Comm))
WRAP(Rsend, rsend, 6, (Buf, Count, Type, Peer, Tag, Comm))
WRAP(Recv, recv, 7, (Buf, Count, Type, Peer, Tag, Comm, Ptr))
WRAP(Sendrecv, sendrecv, 12, (Buf, Count, Type, Peer, Tag, Ptr, Int, Ptr, Int, Int, Comm, Ptr))
WRAP(Sendrecv_replace, sendrecv_replace, 9, (Buf, Count, Type, Peer, Tag, Int, Int, Comm, Ptr))
WRAP(Isend, isend, 7, (Buf, Count, Type, Peer, Tag, Comm, Ptr))
WRAP(Ibsend, ibsend, 7, (Buf, Count, Type, Peer, Tag, Comm, Ptr))
WRAP(Issend, issend, 7, (Buf, Count, Type, Peer, Tag, Comm, Ptr))
WRAP(Irsend, irsend, 7, (Buf, Count, Type, Peer, Tag, Comm, Ptr))
WRAP(Irecv, irecv, 7, (Buf, Count, Type, Peer, Tag, Comm, Ptr))
WRAP(Probe, probe, 4, (Peer, Tag, Comm, Ptr))
WRAP(Iprobe, iprobe, 5, (Peer, Tag, Comm, Ptr, Ptr))
WRAP(Mprobe, mprobe, 5, (Peer, Tag, Comm, Ptr, Ptr))
WRAP(Improbe, improbe, 6, (Peer, Tag, Comm, Ptr, Ptr, Ptr))
WRAP(Mrecv, mrecv, 5, (Buf, Count, Type, Ptr, Ptr))
WRAP(Imrecv, imrecv, 5, (Buf, Count, Type, Ptr, Ptr))
WRAP(Start, start, 1, (Ptr))
WRAP(Startall, startall, 2, (Int, Ptr))

// Waiting.
WRAP(Wait, wait, 2, (Ptr, Ptr))
WRAP(Waitall, waitall, 3, (Int, Ptr, Ptr))
WRAP(Waitany, waitany, 4, (Int, Ptr, Ptr, Ptr))
WRAP(Waitsome, waitsome, 5, (Int, Ptr, Ptr, Ptr, Ptr))
WRAP(Test, test, 3, (Ptr, Ptr, Ptr))
WRAP(Testall, testall, 4, (Int, Ptr, Ptr, Ptr))
WRAP(Testany, testany, 5, (Int, Ptr, Ptr, Ptr, Ptr))
WRAP(Testsome, testsome, 5, (Int, Ptr, Ptr, Ptr, Ptr))

// Collectives; the count that is significant on every rank is the one taken.
#define COLLECTIVE(Name, name, parameters, more, types, types_more) \
  WRAP(Name, name, parameters, types)                               \
  WRAP(I##name, i##name, more, types_more)
COLLECTIVE(Barrier, barrier, 1, 2, (Comm), (Comm, Ptr))
COLLECTIVE(Bcast, bcast, 5, 6, (Buf, Count, Type, Root, Comm), (Buf, Count, Type, Root, Comm, Ptr))
COLLECTIVE(Gather, gather, 8, 9, (Buf, Count, Type, Ptr, OtherCount, OtherType, Root, Comm),
           (Buf, Count, Type, Ptr, OtherCount, OtherType, Root, Comm, Ptr))
COLLECTIVE(Gatherv, gatherv, 9, 10, (Buf, Count, Type, Ptr, Ptr, Ptr, Ptr, Root, Comm),
           (Buf, Count, Type, Ptr, Ptr, Ptr, Ptr, Root, Comm, Ptr))
COLLECTIVE(Scatter, scatter, 8, 9, (Ptr, OtherCount, OtherType, Buf, Count, Type, Root, Comm),
           (Ptr, OtherCount, OtherType, Buf, Count, Type, Root, Comm, Ptr))
COLLECTIVE(Scatterv, scatterv, 9, 10, (Ptr, Ptr, Ptr, Ptr, Buf, Count, Type, Root, Comm),
           (Ptr, Ptr, Ptr, Ptr, Buf, Count, Type, Root, Comm, Ptr))
COLLECTIVE(Allgather, allgather, 7, 8, (Ptr, Int, Ptr, Ptr, Count, Type, Comm),
           (Ptr, Int, Ptr, Ptr, Count, Type, Comm, Ptr))
COLLECTIVE(Allgatherv, allgatherv, 8, 9, (Ptr, Int, Ptr, Ptr, Counts, Ptr, Type, Comm),
           (Ptr, Int, Ptr, Ptr, Counts, Ptr, Type, Comm, Ptr))
COLLECTIVE(Alltoall, alltoall, 7, 8, (Ptr, Int, Ptr, Ptr, Count, Type, Comm),
           (Ptr, Int, Ptr, Ptr, Count, Type, Comm, Ptr))
COLLECTIVE(Alltoallv, alltoallv, 9, 10, (Ptr, Ptr, Ptr, Ptr, Ptr, Counts, Ptr, Type, Comm),
           (Ptr, Ptr, Ptr, Ptr, Ptr, Counts, Ptr, Type, Comm, Ptr))
COLLECTIVE(Alltoallw, alltoallw, 9, 10, (Ptr, Ptr, Ptr, Ptr, Ptr, Ptr, Ptr, Ptr, Comm),
           (Ptr, Ptr, Ptr, Ptr, Ptr, Ptr, Ptr, Ptr, Comm, Ptr))
COLLECTIVE(Allreduce, allreduce, 6, 7, (Ptr, Ptr, Count, Type, Ptr, Comm), (Ptr, Ptr, Count, Type, Ptr, Comm, Ptr))
COLLECTIVE(Reduce, reduce, 7, 8, (Ptr, Ptr, Count, Type, Ptr, Root, Comm),
           (Ptr, Ptr, Count, Type, Ptr, Root, Comm, Ptr))
COLLECTIVE(Reduce_scatter, reduce_scatter, 6, 7, (Ptr, Ptr, Counts, Type, Ptr, Comm),
           (Ptr, Ptr, Counts, Type, Ptr, Comm, Ptr))
COLLECTIVE(Reduce_scatter_block, reduce_scatter_block, 6, 7, (Ptr, Ptr, Count, Type, Ptr, Comm),
           (Ptr, Ptr, Count, Type, Ptr, Comm, Ptr))
COLLECTIVE(Scan, scan, 6, 7, (Ptr, Ptr, Count, Type, Ptr, Comm), (Ptr, Ptr, Count, Type, Ptr, Comm, Ptr))
COLLECTIVE(Exscan, exscan, 6, 7, (Ptr, Ptr, Count, Type, Ptr, Comm), (Ptr, Ptr, Count, Type, Ptr, Comm, Ptr))
COLLECTIVE(Neighbor_allgather, neighbor_allgather, 7, 8, (Ptr, Int, Ptr, Ptr, Count, Type, Comm),
           (Ptr, Int, Ptr, Ptr, Count, Type, Comm, Ptr))
COLLECTIVE(Neighbor_alltoall, neighbor_alltoall, 7, 8, (Ptr, Int, Ptr, Ptr, Count, Type, Comm),
           (Ptr, Int, Ptr, Ptr, Count, Type, Comm, Ptr))

// Communicators.
WRAP(Comm_dup, comm_dup, 2, (Comm, NewComm))
WRAP(Comm_dup_with_info, comm_dup_with_info, 3, (Comm, Ptr, NewComm))
WRAP(Comm_idup, comm_idup, 3, (Comm, NewComm, Ptr))
WRAP(Comm_split, comm_split, 4, (Comm, Int, Int, NewComm))
WRAP(Comm_split_type, comm_split_type, 5, (Comm, Int, Int, Ptr, NewComm))
WRAP(Comm_create, comm_create, 3, (Comm, Ptr, NewComm))
WRAP(Comm_create_group, comm_create_group, 4, (Comm, Ptr, Tag, NewComm))
WRAP(Comm_free, comm_free, 1, (OldComm))
WRAP(Comm_disconnect, comm_disconnect, 1, (OldComm))
WRAP(Cart_create, cart_create, 6, (Comm, Int, Ptr, Ptr, Int, NewComm))
WRAP(Cart_sub, cart_sub, 3, (Comm, Ptr, NewComm))
WRAP(Graph_create, graph_create, 6, (Comm, Int, Ptr, Ptr, Int, NewComm))
WRAP(Dist_graph_create, dist_graph_create, 9, (Comm, Int, Ptr, Ptr, Ptr, Ptr, Ptr, Int, NewComm))
WRAP(Dist_graph_create_adjacent, dist_graph_create_adjacent, 10,
     (Comm, Int, Ptr, Ptr, Int, Ptr, Ptr, Ptr, Int, NewComm))
WRAP(Intercomm_create, intercomm_create, 6, (Comm, Int, Comm, Int, Tag, NewComm))
WRAP(Intercomm_merge, intercomm_merge, 3, (Comm, Int, NewComm))
WRAP(Abort, abort, 2, (Comm, Int))

// One-sided.
WRAP(Win_create, win_create, 6, (Ptr, Aint, Int, Ptr, Comm, Ptr))
WRAP(Win_allocate, win_allocate, 6, (Aint, Int, Ptr, Comm, Ptr, Ptr))
WRAP(Win_free, win_free, 1, (Ptr))
WRAP(Win_fence, win_fence, 2, (Int, Ptr))
WRAP(Win_lock, win_lock, 4, (Int, Int, Int, Ptr))
WRAP(Win_unlock, win_unlock, 2, (Int, Ptr))
WRAP(Win_lock_all, win_lock_all, 2, (Int, Ptr))
WRAP(Win_unlock_all, win_unlock_all, 1, (Ptr))
WRAP(Win_flush, win_flush, 2, (Int, Ptr))
WRAP(Win_flush_all, win_flush_all, 1, (Ptr))
WRAP(Put, put, 8, (Ptr, Int, Ptr, Int, Aint, Int, Ptr, Ptr))
WRAP(Get, get, 8, (Ptr, Int, Ptr, Int, Aint, Int, Ptr, Ptr))
WRAP(Accumulate, accumulate, 9, (Ptr, Int, Ptr, Int, Aint, Int, Ptr, Ptr, Ptr))

// Files; of C only, as Fortran's MPI_File_open has a hidden length of its file name.
WRAP_C(File_open, 5, (Comm, Ptr, Int, Ptr, Ptr))
WRAP_C(File_close, 1, (Ptr))
WRAP_C(File_read, 5, (Ptr, Ptr, Int, Ptr, Ptr))
WRAP_C(File_read_all, 5, (Ptr, Ptr, Int, Ptr, Ptr))
WRAP_C(File_read_at, 6, (Ptr, Aint, Ptr, Int, Ptr, Ptr))
WRAP_C(File_read_at_all, 6, (Ptr, Aint, Ptr, Int, Ptr, Ptr))
WRAP_C(File_write, 5, (Ptr, Ptr, Int, Ptr, Ptr))
WRAP_C(File_write_all, 5, (Ptr, Ptr, Int, Ptr, Ptr))
WRAP_C(File_write_at, 6, (Ptr, Aint, Ptr, Int, Ptr, Ptr))
WRAP_C(File_write_at_all, 6, (Ptr, Aint, Ptr, Int, Ptr, Ptr))

}  // namespace paceline::inject
