#include "profiler/inject/mpi_call.h"

namespace paceline::inject {

thread_local constinit int mpi_nesting = 0;

namespace {

// The blocks of all ranks together are the collective's vector.
bool counts_one_block(MpiId id) {
  switch (id) {
    case MpiId::Gather:
    case MpiId::Igather:
    case MpiId::Scatter:
    case MpiId::Iscatter:
    case MpiId::Allgather:
    case MpiId::Iallgather:
    case MpiId::Alltoall:
    case MpiId::Ialltoall:
    case MpiId::Reduce_scatter_block:
    case MpiId::Ireduce_scatter_block:
      return true;
    default:
      return false;
  }
}

// An argument that MPI ignores may be anything, and asking MPI about a handle that is none would end the program.
std::uint64_t type_bytes(Type type) {
  int size = 0;
  if (type == nullptr || type == mpi.null_type || mpi.type_size(type, &size) != 0 || size < 0) return 0;
  return static_cast<std::uint64_t>(size);
}

std::uint64_t call_bytes(MpiId id, const CallFacts& facts, const Communicator& communicator) {
  if (facts.counts != nullptr) {
    std::uint64_t sum = 0;
    for (std::uint32_t peer = 0; peer < communicator.peers; ++peer) {
      if (facts.counts[peer] > 0) sum += static_cast<std::uint64_t>(facts.counts[peer]);
    }
    return sum * type_bytes(facts.type);
  }
  const bool in_its_place = facts.buffer == in_place;
  const int count = in_its_place && facts.other_type != nullptr ? facts.other_count : facts.count;
  if (count <= 0) return 0;
  const Type type = in_its_place && facts.other_type != nullptr ? facts.other_type : facts.type;
  return static_cast<std::uint64_t>(count) * type_bytes(type) * (counts_one_block(id) ? communicator.peers : 1);
}

std::uint64_t wide(int value) { return std::uint64_t{static_cast<std::uint32_t>(value)}; }

}  // namespace

bool begin_call(MpiId id, MpiKind kind, const CallFacts& facts) {
  const bool collective = kind == MpiKind::collective;
  Communicator* communicator = nullptr;
  if ((collective || facts.has_peer) && facts.comm != nullptr) communicator = find_communicator(facts.comm);
  // Counted even while recording is switched off: the other ranks may be recording.
  std::uint32_t sequence = 0;
  if (collective && communicator != nullptr) {
    sequence = communicator->sequence.fetch_add(1, std::memory_order_relaxed);
  }
  if (!recording()) return false;
  if (communicator == nullptr) return emit(EventType::mpi_begin, function_low(id));
  const std::uint64_t bytes = call_bytes(id, facts, *communicator);
  if (collective) {
    return emit(EventType::mpi_begin_coll, function_low(id) | wide(facts.root) << 16,
                Slot{bytes, communicator->id | std::uint64_t{sequence} << 32});
  }
  return emit(EventType::mpi_begin_peer, function_low(id) | wide(facts.tag) << 16,
              Slot{bytes, communicator->id | wide(facts.peer) << 32});
}

}  // namespace paceline::inject
