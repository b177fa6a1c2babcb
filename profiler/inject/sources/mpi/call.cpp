#include "profiler/inject/sources/mpi/call.h"

#include <limits.h>
#include <string.h>

#include "profiler/inject/sources/mpi/communicators.h"
#include "profiler/inject/sources/mpi/objects.h"
#include "profiler/inject/sources/mpi/requests.h"
#include "profiler/inject/sources/mpi/session.h"
#include "profiler/inject/sources/watch/hang.h"
#include "profiler/inject/system/say.h"

namespace paceline::inject {

namespace {

constexpr int mpi_error = 16;  // MPI_ERR_OTHER of Open MPI

// A call is inside another: it passes through.
thread_local constinit int nesting __attribute__((tls_model("initial-exec"))) = 0;

std::uint64_t wide(int value) { return std::uint64_t{static_cast<std::uint32_t>(value)}; }

std::uint64_t type_bytes(Handle type) {
  int size = 0;
  if (!mpi.is_type(type) || mpi.type_size(type, &size) != 0 || size < 0) return 0;
  return static_cast<std::uint64_t>(size);
}

std::uint64_t sum_of_blocks(const Arguments& call, char letter, std::uint32_t blocks) {
  if (call.pointer<const void>(letter) == nullptr) return 0;
  std::uint64_t sum = 0;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const std::int64_t told = call.count_in(letter, block);
    if (told <= 0) continue;
    const std::uint64_t count = static_cast<std::uint64_t>(told);
    sum += call.has('T') ? count * type_bytes(call.type_in('T', block)) : count;
  }
  return call.has('T') || sum == 0 ? sum : sum * type_bytes(call.type('t'));
}

// Arguments that MPI ignores may be anything, and are not looked at.
std::uint64_t call_bytes(const Arguments& call, const Communicator* communicator) {
  std::uint32_t ranks = communicator != nullptr ? communicator->peers : 1;
  const std::uint32_t neighbors = communicator != nullptr ? communicator->neighbors : 1;
  if (call.has('p') && call.integer('p') == mpi.proc_null) return 0;
  bool other = call.has('b') && call.is_in_place('b');
  if (call.has('r') && communicator != nullptr && communicator->inter) {
    if (call.integer('r') == mpi.proc_null) return 0;
    other = call.integer('r') == mpi.root;
    if (!other) ranks = communicator->size;  // the root is on the other side, and has blocks for this one
  }
  if (call.has('N')) return sum_of_blocks(call, 'N', ranks);
  if (call.has('L')) return sum_of_blocks(call, 'L', communicator != nullptr ? communicator->size : 1);
  if (call.has('V')) return sum_of_blocks(call, 'V', neighbors);
  if (!call.has('t')) return 0;
  other = other && call.has('u');
  if (other && !call.has('m')) return 0;
  std::int64_t count = 1;  // of functions for a single element
  for (const char letter : {'n', 'k', 'j'}) {
    if (call.has(letter)) count = call.count(letter);
  }
  if (other) count = call.count('m');
  if (count <= 0) return 0;
  std::uint64_t bytes = static_cast<std::uint64_t>(count) * type_bytes(call.type(other ? 'u' : 't'));
  if (call.has('k')) bytes *= ranks;
  if (call.has('j')) bytes *= neighbors;
  if (call.has('l')) bytes *= static_cast<std::uint64_t>(call.wide('l'));
  return bytes;
}

// The same for every library.
int peer_of(const Arguments& call) {
  if (!call.has('p')) return -1;
  const int peer = call.integer('p');
  if (peer == mpi.any_source) return -1;
  return peer == mpi.proc_null ? -2 : peer;
}

int root_of(const Arguments& call, const Communicator& communicator) {
  if (!call.has('r')) return -1;
  const int root = call.integer('r');
  if (!communicator.inter) return root;
  if (root == mpi.root) return -3;
  return root == mpi.proc_null ? -2 : root;
}

// What is known of the call. Collectives are counted even while recording is switched off: the other ranks may be
// recording.
Began describe(const Arguments& call) {
  Began told;
  told.low = function_low(call.row.id);
  const bool collective = call.row.kind == MpiKind::collective;
  const bool message = call.row.kind == MpiKind::point_to_point && (call.has('p') || call.has('t'));
  Communicator* communicator = nullptr;
  if ((collective || message) && call.has('c')) communicator = find_communicator(call.comm('c'));
  if (collective && communicator != nullptr) {
    const std::uint32_t sequence = communicator->sequence.fetch_add(1, std::memory_order_relaxed);
    told.type = EventType::mpi_begin_coll;
    told.low |= wide(root_of(call, *communicator)) << 16;
    told.extension = {call_bytes(call, communicator), communicator->id | std::uint64_t{sequence} << 32};
  } else if (message) {
    told.type = EventType::mpi_begin_peer;
    told.low |= wide(call.has('g') ? call.integer('g') : -1) << 16;
    told.extension = {call_bytes(call, communicator),
                      (communicator != nullptr ? communicator->id : 0) | wide(peer_of(call)) << 32};
  } else if (call.has('w') || call.has('X')) {
    told.type = EventType::mpi_begin_window;
    told.low |= wide(call.has('p') ? peer_of(call) : -1) << 16;
    told.extension = {call_bytes(call, nullptr), window_number(call)};
  } else if (call.has('h') || call.has('J')) {
    told.type = EventType::mpi_begin_file;
    told.low |= std::uint64_t{file_number(call)} << 16;
    told.extension = {call_bytes(call, nullptr), static_cast<std::uint64_t>(call.has('d') ? call.wide('d') : -1)};
  } else if (call.row.id == MpiId::Start) {
    describe_start(call.key_in('e'), told);
  }
  return told;
}

Began begin_call(const Arguments& call) {
  Began told = describe(call);
  if (call.has('O')) forget_communicator(call.comm_in('O'));
  if (call.has('X') || call.has('J')) forget_object(call);
  if (recording()) told.recorded = emit_begin(told);
  return told;
}

void end_call(const Arguments& call) {
  if (call.has('C')) {
    note_communicator(call.has('c') ? call.comm('c') : 0, call.comm_in('C'), call.row.id,
                      call.has('g') ? call.integer('g') : 0);
  }
  if (call.row.id == MpiId::Comm_spawn || call.row.id == MpiId::Comm_spawn_multiple) note_spawned(call.comm_in('C'));
  if (call.has('W') || call.has('H')) note_object(call);
  if (call.row.id == MpiId::Comm_set_name) name_communicator(call.comm('c'), call.text('s'));
}

// Words beyond the function's parameters do no harm: the caller takes them away again.
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
  const Began told = begin_call(call);
  requests_before(call, told, keys);
  const int result = pass_on(function, call.row, call.words, call.fortran);
  if (call.succeeded(result)) {
    end_call(call);
    requests_after(call, told, keys);
  }
  if (told.recorded) emit_mpi_end(function_low(call.row.id));
  return result;
}

// Its own function, for its 4 KiB of the stack.
__attribute__((noinline)) int call_with_many_requests(void* function, const Arguments& call) {
  Handle keys[most_request_keys];
  return call_in_full(function, call, {keys, most_request_keys});
}

}  // namespace

Handle Arguments::type_in(char letter, std::uint32_t index) const {
  if (fortran) return mpi.type_of_fortran(pointer<const int>(letter)[index]);
  return mpi.int_handles ? pointer<const std::uint32_t>(letter)[index] : pointer<const Handle>(letter)[index];
}

Handle Arguments::key(char letter, bool file) const {
  if (fortran) return mpi.key_of_fortran(*pointer<const int>(letter), file);
  return file ? word(letter) : mpi.handle(word(letter));
}

Handle Arguments::key_in(char letter, int index, bool file) const {
  if (fortran) return mpi.key_of_fortran(pointer<const int>(letter)[index], file);
  return mpi.int_handles && !file ? pointer<const std::uint32_t>(letter)[index] : pointer<const Handle>(letter)[index];
}

std::string_view Arguments::text(char letter) const {
  const char* characters = pointer<const char>(letter);
  if (characters == nullptr) return {};
  if (!fortran) return {characters, strlen(characters)};
  // Its length is a hidden parameter after the error code; blanks fill it up.
  std::string_view filled(characters, static_cast<std::uint32_t>(words[row.parameters + 1]));
  return filled.substr(0, filled.find_last_not_of(' ') + 1);
}

namespace {

// A library that was loaded before the recorder could hide the functions that the MPI library lacks may call one of
// them (mpi_visibility.cpp). Its form with int counts does the same where the counts fit and are no arrays.
void* find_with_int_counts(const char* symbol, const MpiRow& row) {
  if (!row.large) return nullptr;
  for (const char array : {'N', 'L', 'V'}) {
    if (row.position(array) >= 0) return nullptr;
  }
  if (row.kind == MpiKind::collective && row.position('b') >= 0 && row.position('u') >= 0 && row.position('n') >= 0 &&
      row.position('m') < 0) {
    return nullptr;  // MPI_Gatherv_c and MPI_Scatterv_c, whose arrays nobody reads here
  }
  char name[64];
  const std::size_t length = strlen(symbol) - strlen("_c");
  if (length >= sizeof name) return nullptr;
  memcpy(name, symbol, length);
  name[length] = '\0';
  return find_in_mpi(name);
}

bool counts_fit(const MpiRow& row, const Word* words) {
  for (const char letter : {'n', 'k', 'j', 'm'}) {
    const int at = row.position(letter);
    if (at >= 0 && static_cast<std::int64_t>(words[at]) > INT_MAX) return false;
  }
  return true;
}

void* find_real(RealFunction& real, const MpiRow& row) {
  void* function = find_in_mpi(real.symbol);
  // Not all have a second name (MPICH's mpi_init_f08_): then the next of this name, which is not the wrapper.
  if (function == nullptr) function = find_in_mpi(real.symbol + 1);
  if (function == nullptr) {
    function = find_with_int_counts(real.symbol, row);
    real.int_counts.store(function != nullptr, std::memory_order_relaxed);
  }
  real.found.store(function, std::memory_order_release);
  return function;
}

}  // namespace

int call_mpi(RealFunction& real, const MpiRow& row, const Word* words, bool fortran) {
  void* function = real.found.load(std::memory_order_acquire);
  if (function == nullptr) {
    function = find_real(real, row);
    if (function == nullptr) {
      say("the program calls %s, which no MPI library that it loaded has", real.symbol);
      return mpi_error;
    }
  }
  if (real.int_counts.load(std::memory_order_relaxed) && !counts_fit(row, words)) {
    say("the program calls %s with a count above 2147483647, but its MPI library has only int counts", real.symbol);
    return mpi_error;
  }
  const MpiDepth depth = mpi_depth.load(std::memory_order_relaxed);
  if (depth == MpiDepth::nothing || nesting != 0) return pass_on(function, row, words, fortran);
  ++nesting;
  int result = 0;
  const Arguments call{row, words, fortran};
  if (depth == MpiDepth::times) {
    const bool begun = recording() && emit(EventType::mpi_begin, function_low(row.id));
    result = pass_on(function, row, words, fortran);
    if (begun) emit_mpi_end(function_low(row.id));
  } else if (call.has('E') && row.id != MpiId::Waitall && row.id != MpiId::Startall) {
    result = call_with_many_requests(function, call);
  } else {
    Handle one = 0;
    result = call_in_full(function, call, {&one, 1});
  }
  if (row.kind == MpiKind::collective) note_progress();
  --nesting;
  return result;
}

}  // namespace paceline::inject
