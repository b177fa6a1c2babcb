// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/mpi/call.h"

#include <limits.h>
#include <string.h>

#include "profiler/inject/sources/mpi/callers.h"
#include "profiler/inject/sources/mpi/communicators.h"
#include "profiler/inject/sources/mpi/objects.h"
#include "profiler/inject/sources/mpi/requests.h"
#include "profiler/inject/sources/mpi/session.h"
#include "profiler/inject/sources/watch/hang.h"
#include "profiler/inject/system/say.h"

namespace paceline::inject {

thread_local constinit int nesting = 0;

namespace {

constexpr int mpi_error = 16;  // MPI_ERR_OTHER of Open MPI

std::uint64_t type_bytes(Handle type) {
  int size = 0;
  if (!mpi.is_type(type) || mpi.type_size(type, &size) != 0 || size < 0) return 0;
  return static_cast<std::uint64_t>(size);
}

std::uint64_t sum_of_blocks(const Arguments& call, MpiRole role, std::uint32_t blocks) {
  if (call.pointer<const void>(role) == nullptr) return 0;
  std::uint64_t sum = 0;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const std::int64_t given = call.count_in(role, block);
    if (given <= 0) continue;
    const std::uint64_t count = static_cast<std::uint64_t>(given);
    sum += call.has(MpiRole::types) ? count * type_bytes(call.type_in(MpiRole::types, block)) : count;
  }
  return call.has(MpiRole::types) || sum == 0 ? sum : sum * type_bytes(call.type(MpiRole::type));
}

// Arguments that MPI ignores may have any value and are not looked at.
std::uint64_t call_bytes(const Arguments& call, const Communicator* communicator) {
  std::uint32_t ranks = communicator != nullptr ? communicator->peers : 1;
  const std::uint32_t neighbors = communicator != nullptr ? communicator->neighbors : 1;
  if (call.has(MpiRole::peer) && call.integer(MpiRole::peer) == mpi.proc_null) return 0;
  bool other = call.has(MpiRole::buffer) && call.is_in_place(MpiRole::buffer);
  if (call.has(MpiRole::root) && communicator != nullptr && communicator->inter) {
    if (call.integer(MpiRole::root) == mpi.proc_null) return 0;
    other = call.integer(MpiRole::root) == mpi.root;
    if (!other) ranks = communicator->size;  // the root is on the other side and has blocks for this one
  }
  if (call.has(MpiRole::counts)) return sum_of_blocks(call, MpiRole::counts, ranks);
  if (call.has(MpiRole::group_counts))
    return sum_of_blocks(call, MpiRole::group_counts, communicator != nullptr ? communicator->size : 1);
  if (call.has(MpiRole::neighbor_counts)) return sum_of_blocks(call, MpiRole::neighbor_counts, neighbors);
  if (!call.has(MpiRole::type)) return 0;
  other = other && call.has(MpiRole::other_type);
  if (other && !call.has(MpiRole::other_count)) return 0;
  std::int64_t count = 1;  // of functions for a single element
  for (const MpiRole role : {MpiRole::count, MpiRole::block, MpiRole::neighbor_block}) {
    if (call.has(role)) count = call.count(role);
  }
  if (other) count = call.count(MpiRole::other_count);
  if (count <= 0) return 0;
  std::uint64_t bytes =
      static_cast<std::uint64_t>(count) * type_bytes(call.type(other ? MpiRole::other_type : MpiRole::type));
  if (call.has(MpiRole::block)) bytes *= ranks;
  if (call.has(MpiRole::neighbor_block)) bytes *= neighbors;
  if (call.has(MpiRole::partitions)) bytes *= static_cast<std::uint64_t>(call.wide(MpiRole::partitions));
  return bytes;
}

// The peer's rank, with special values that are the same for every library: -1 any source, -2 none.
int peer_of(const Arguments& call) {
  if (!call.has(MpiRole::peer)) return -1;
  const int peer = call.integer(MpiRole::peer);
  if (peer == mpi.any_source) return -1;
  return peer == mpi.proc_null ? -2 : peer;
}

int root_of(const Arguments& call, const Communicator& communicator) {
  if (!call.has(MpiRole::root)) return -1;
  const int root = call.integer(MpiRole::root);
  if (!communicator.inter) return root;
  if (root == mpi.root) return -3;
  return root == mpi.proc_null ? -2 : root;
}

// Captures the arguments of the call. Collectives are counted even while recording is paused, because the other ranks
// may be recording.
Began describe(const Arguments& call) {
  Began begun;
  const auto function = static_cast<std::uint16_t>(call.row.id);
  begun.set(events::MpiBegin{.function = function});
  const bool collective = call.row.kind == MpiKind::collective;
  const bool message = call.row.kind == MpiKind::point_to_point && (call.has(MpiRole::peer) || call.has(MpiRole::type));
  Communicator* communicator = nullptr;
  if ((collective || message) && call.has(MpiRole::comm)) communicator = find_communicator(call.comm(MpiRole::comm));
  if (collective && communicator != nullptr) {
    const std::uint32_t sequence = communicator->sequence.fetch_add(1, std::memory_order_relaxed);
    begun.set(events::MpiBeginColl{.function = function,
                                   .root = root_of(call, *communicator),
                                   .bytes = call_bytes(call, communicator),
                                   .communicator = communicator->id,
                                   .sequence = sequence});
  } else if (message) {
    begun.set(events::MpiBeginPeer{.function = function,
                                   .tag = call.integer(MpiRole::tag, -1),
                                   .bytes = call_bytes(call, communicator),
                                   .communicator = communicator != nullptr ? communicator->id : 0,
                                   .peer = peer_of(call)});
  } else if (call.has(MpiRole::window) || call.has(MpiRole::freed_window)) {
    begun.set(events::MpiBeginWindow{.function = function,
                                     .target = peer_of(call),
                                     .bytes = call_bytes(call, nullptr),
                                     .window = window_number(call)});
  } else if (call.has(MpiRole::file) || call.has(MpiRole::freed_file)) {
    begun.set(events::MpiBeginFile{.function = function,
                                   .file = file_number(call),
                                   .bytes = call_bytes(call, nullptr),
                                   .offset = call.wide(MpiRole::offset, -1)});
  } else if (call.row.id == MpiId::Start) {
    describe_start(call.key_in(MpiRole::request), begun);
  }
  return begun;
}

Began begin_call(const Arguments& call) {
  Began begun = describe(call);
  if (call.has(MpiRole::freed_comm)) forget_communicator(call.comm_in(MpiRole::freed_comm));
  if (call.has(MpiRole::freed_window) || call.has(MpiRole::freed_file)) forget_object(call);
  if (recording()) begun.recorded = emit_begin(begun);
  return begun;
}

void end_call(const Arguments& call) {
  if (call.has(MpiRole::new_comm)) {
    note_communicator(call.has(MpiRole::comm) ? call.comm(MpiRole::comm) : 0, call.comm_in(MpiRole::new_comm),
                      call.row.id, call.integer(MpiRole::tag));
  }
  if (call.row.id == MpiId::Comm_spawn || call.row.id == MpiId::Comm_spawn_multiple)
    note_spawned(call.comm_in(MpiRole::new_comm));
  if (call.has(MpiRole::new_window) || call.has(MpiRole::new_file)) note_object(call);
  if (call.row.id == MpiId::Comm_set_name) name_communicator(call.comm(MpiRole::comm), call.text(MpiRole::text));
}

// Words beyond the function's parameters do no harm, because the caller removes them again.
int pass_on(void* function, const MpiRow& row, const Word* w, bool fortran) {
  using Few = int (*)(Word, Word, Word, Word, Word, Word);
  using Many = int (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
  if (row.parameters + (fortran ? 3 : 0) <= 6) {
    return reinterpret_cast<Few>(function)(w[0], w[1], w[2], w[3], w[4], w[5]);
  }
  return reinterpret_cast<Many>(function)(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11],
                                          w[12], w[13], w[14], w[15]);
}

int call_in_full(void* function, const Arguments& call, RequestKeys keys) {
  Began begun;
  {
    const ReentrancyGuard guard;
    begun = begin_call(call);
    requests_before(call, begun, keys);
  }
  const int result = pass_on(function, call.row, call.words, call.fortran);
  const ReentrancyGuard guard;
  if (call.succeeded(result)) {
    end_call(call);
    requests_after(call, begun, keys);
  }
  if (begun.recorded) emit_mpi_end(function_low(call.row.id));
  return result;
}

// A function of its own, because it needs 4 KiB of stack.
__attribute__((noinline)) int call_with_many_requests(void* function, const Arguments& call) {
  Handle keys[most_request_keys];
  return call_in_full(function, call, {keys, most_request_keys});
}

// A library that was loaded before the recorder could hide functions that the MPI library lacks may call one of them
// (visibility.cpp). The form with int counts does the same if the counts fit and are not arrays.
void* find_with_int_counts(const char* symbol, const MpiRow& row) {
  if (!row.large) return nullptr;
  for (const MpiRole array : {MpiRole::counts, MpiRole::group_counts, MpiRole::neighbor_counts}) {
    if (row.has(array)) return nullptr;
  }
  if (row.kind == MpiKind::collective && row.has(MpiRole::buffer) && row.has(MpiRole::other_type) &&
      row.has(MpiRole::count) && !row.has(MpiRole::other_count)) {
    return nullptr;  // MPI_Gatherv_c and MPI_Scatterv_c, whose arrays have no role here
  }
  char name[64];
  const std::size_t length = strlen(symbol) - strlen("_c");
  if (length >= sizeof name) return nullptr;
  memcpy(name, symbol, length);
  name[length] = '\0';
  return find_in_mpi(name);
}

bool counts_fit(const MpiRow& row, const Word* words) {
  for (const MpiRole role : {MpiRole::count, MpiRole::block, MpiRole::neighbor_block, MpiRole::other_count}) {
    const int at = row.position(role);
    if (at >= 0 && static_cast<std::int64_t>(words[at]) > INT_MAX) return false;
  }
  return true;
}

void* find_real(RealFunction& real, const MpiRow& row) {
  void* function = find_in_mpi(real.symbol);
  if (function == nullptr) {
    function = find_with_int_counts(real.symbol, row);
    real.int_counts.store(function != nullptr, std::memory_order_relaxed);
  }
  if (function == nullptr) say("the program calls %s, which none of its MPI libraries has", real.symbol);
  real.found.store(function, std::memory_order_release);
  return function;
}

// Returns nullptr, after a line about it, if the call cannot be passed on.
void* function_for(RealFunction& real, const MpiRow& row, const Word* words) {
  void* function = real.found.load(std::memory_order_acquire);
  if (function == nullptr) function = find_real(real, row);
  if (real.int_counts.load(std::memory_order_relaxed) && !counts_fit(row, words)) {
    say("the program calls %s with a count above 2147483647, but its MPI library has only int counts", real.symbol);
    return nullptr;
  }
  return function;
}

bool is_recorded() { return !is_nested() && mpi_depth.load(std::memory_order_relaxed) != MpiDepth::nothing; }

// Only the times.
int call_in_brief(void* function, const Arguments& call, events::MpiBegin event) {
  bool begun = false;
  {
    const ReentrancyGuard guard;
    begun = recording() && emit(event);
  }
  const int result = pass_on(function, call.row, call.words, call.fortran);
  const ReentrancyGuard guard;
  if (begun) emit_mpi_end(function_low(call.row.id));
  return result;
}

int record_call(void* function, const Arguments& call) {
  const MpiRow& row = call.row;
  ++nesting;
  int result = 0;
  if (mpi_depth.load(std::memory_order_relaxed) == MpiDepth::times) {
    result = call_in_brief(function, call, {.function = static_cast<std::uint16_t>(row.id)});
  } else if (call.has(MpiRole::requests) && row.id != MpiId::Waitall && row.id != MpiId::Startall) {
    result = call_with_many_requests(function, call);
  } else {
    Handle one = 0;
    result = call_in_full(function, call, {&one, 1});
  }
  if (row.kind == MpiKind::collective) note_progress();
  --nesting;
  return result;
}

int record_call_of_tool(void* function, const Arguments& call) {
  ++nesting;
  const int result = call_in_brief(function, call, {.function = static_cast<std::uint16_t>(call.row.id), .by_tool = 1});
  --nesting;
  return result;
}

}  // namespace

int call_mpi(RealFunction& real, const MpiRow& row, const Word* words, bool fortran) {
  void* function = function_for(real, row, words);
  if (function == nullptr) return mpi_error;
  if (!is_recorded()) return pass_on(function, row, words, fortran);
  return record_call(function, {row, words, fortran});
}

int call_pmpi(RealFunction& real, const MpiRow& row, const Word* words, bool fortran, const void* site) {
  void* function = function_for(real, row, words);
  if (function == nullptr) return mpi_error;
  if (!is_recorded()) return pass_on(function, row, words, fortran);
  switch (find_caller(site, real.symbol, function, row.id)) {
    case MpiCaller::program:
      return record_call(function, {row, words, fortran});
    case MpiCaller::tool:
      return record_call_of_tool(function, {row, words, fortran});
    default:
      return pass_on(function, row, words, fortran);
  }
}

}  // namespace paceline::inject
