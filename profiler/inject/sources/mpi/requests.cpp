// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/mpi/requests.h"

#include <algorithm>

#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/sources/mpi/communicators.h"
#include "profiler/inject/sources/mpi/handles.h"

namespace paceline::inject {
namespace {

constexpr unsigned request_bits = 13, persistent_bits = 10;
HandleTable::Place request_places[1u << request_bits];
HandleTable::Place persistent_places[1u << persistent_bits];
HandleTable requests{request_places, request_bits};
HandleTable persistent{persistent_places, persistent_bits};
std::atomic<std::uint64_t> last_number{0};

// Communicators that MPI_Comm_idup is creating. Their handles exist when the request is complete.
struct Duplicate {
  std::atomic<std::uint64_t> request{0};     // 0: free
  std::atomic<const void*> waiter{nullptr};  // the thread that completes the request
  const void* place = nullptr;
  bool fortran = false;
  std::uint64_t identity = 0;
};
Duplicate duplicates[16];
std::atomic<int> open_duplicates{0};

const void* this_thread() { return &writer; }

void remember_duplicate(const Arguments& call, std::uint64_t request) {
  const std::uint64_t identity = identity_of_duplicate(call.comm(MpiRole::comm), call.row.id);
  for (Duplicate& duplicate : duplicates) {
    std::uint64_t free = 0;
    if (!duplicate.request.compare_exchange_strong(free, ~std::uint64_t{0})) continue;
    duplicate.waiter.store(nullptr, std::memory_order_relaxed);
    duplicate.place = call.pointer<const void>(MpiRole::later_comm);
    duplicate.fortran = call.fortran;
    duplicate.identity = identity;
    open_duplicates.fetch_add(1, std::memory_order_relaxed);
    duplicate.request.store(request, std::memory_order_release);
    return;
  }
}

void claim_duplicate(std::uint64_t request) {
  for (Duplicate& duplicate : duplicates) {
    if (duplicate.request.load(std::memory_order_acquire) == request) duplicate.waiter.store(this_thread());
  }
}

void note_duplicates() {
  for (Duplicate& duplicate : duplicates) {
    if (duplicate.waiter.load() != this_thread()) continue;
    const Handle made =
        duplicate.fortran ? mpi.comm_of_fortran(*static_cast<const int*>(duplicate.place)) : mpi.load(duplicate.place);
    note_duplicate(made, duplicate.identity);
    duplicate.waiter.store(nullptr);
    open_duplicates.fetch_sub(1, std::memory_order_relaxed);
    duplicate.request.store(0, std::memory_order_release);
  }
}

// The handle that Open MPI gives to whatever is complete when the posting call ends (a small message, say).
Handle complete_key(const Arguments& call) {
  if (!call.fortran || mpi.complete_request == 0 || mpi.request_c2f == nullptr) return mpi.complete_request;
  static std::atomic<Handle> fortran{0};
  Handle key = fortran.load(std::memory_order_relaxed);
  if (key == 0) {
    key = mpi.key_of_fortran(mpi.request_c2f(mpi.complete_request));
    fortran.store(key, std::memory_order_relaxed);
  }
  return key;
}

void post(const Arguments& call, Handle key, const Began& begun) {
  const bool duplicate = call.has(MpiRole::later_comm);
  if (key == mpi.null_request || (!begun.recorded && !duplicate)) return;
  const std::uint64_t number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  if (duplicate) remember_duplicate(call, number);
  const bool complete = key == complete_key(call);
  Remembered entry{.id = number};
  if (begun.type == EventType::mpi_begin_coll) {
    entry.facts[0] = begun.low, entry.facts[1] = begun.extension.high, entry.facts[2] = begun.extension.low;
  }
  if (!complete && !requests.put(key, entry, true)) return;
  if (begun.recorded) emit(events::MpiPosted{.request = number});
  if (begun.recorded && complete) emit(events::MpiCompleted{.request = number});
  if (complete && duplicate) claim_duplicate(number);
}

void complete(Handle key, const Began& begun) {
  Remembered request;
  if (!requests.take(key, request)) return;
  if (begun.recorded) emit(events::MpiCompleted{.request = request.id});
  if (open_duplicates.load(std::memory_order_relaxed) != 0) claim_duplicate(request.id);
}

void remember_persistent(const Arguments& call, const Began& begun) {
  Remembered entry;
  entry.id = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  // The event's type replaces the function, which will be Start.
  entry.facts[0] = (begun.low & ~std::uint64_t{0xffff}) | static_cast<std::uint64_t>(begun.type);
  entry.facts[1] = begun.extension.high;
  entry.facts[2] = begun.extension.low;
  persistent.put(call.key_in(MpiRole::new_persistent), entry, false);
}

int request_count(const Arguments& call) { return std::max(call.integer(MpiRole::request_count), 0); }

// For tests and waits for some of many requests: the complete ones are known after the call.
void complete_those_told(const Arguments& call, const Began& begun, RequestKeys keys, int count) {
  const int first = call.fortran ? 1 : 0;  // Fortran counts from 1
  // MPI_Waitsome and MPI_Testsome of MPICH 4.0's mpi_f08 count from 0. So requests that are null now are complete;
  // persistent requests do not become null.
  const bool by_null = call.fortran && mpi.int_handles && (call.has(MpiRole::index) || call.has(MpiRole::index_count));
  const auto index = [&](int value) {
    if (value < first || value - first >= count) return;
    Remembered entry;
    const Handle key = keys.keys[value - first];
    if (!by_null || persistent.find(key, entry)) complete(key, begun);
  };
  if (call.has(MpiRole::flag) && *call.pointer<const int>(MpiRole::flag) == 0) return;
  for (int at = 0; by_null && at < count; ++at) {
    if (call.key_in(MpiRole::requests, at) == mpi.null_request) complete(keys.keys[at], begun);
  }
  if (call.has(MpiRole::index)) {
    index(*call.pointer<const int>(MpiRole::index));
  } else if (call.has(MpiRole::index_count)) {
    const int completed = *call.pointer<const int>(MpiRole::index_count);
    for (int at = 0; at < completed; ++at) index(call.pointer<const int>(MpiRole::indices)[at]);
  } else {
    for (int at = 0; at < count; ++at) complete(keys.keys[at], begun);
  }
}

bool completes_some(MpiId id) {
  return id == MpiId::Test || id == MpiId::Testall || id == MpiId::Testany || id == MpiId::Testsome ||
         id == MpiId::Waitany || id == MpiId::Waitsome;
}

// MPI_Startall is recorded as a call that contains an MPI_Start of each request.
void start_one_of_many(const Arguments& call, Handle request, const Began& begun) {
  Began start;
  start.low = function_low(MpiId::Start);
  describe_start(request, start);
  start.recorded = begun.recorded && emit_begin(start);
  post(call, request, start);
  if (start.recorded) emit_mpi_end(function_low(MpiId::Start));
}

}  // namespace

void describe_start(Handle request, Began& begun) {
  Remembered entry;
  if (!persistent.find(request, entry)) return;
  begun.type = static_cast<EventType>(entry.facts[0] & 0xffff);
  begun.low = (entry.facts[0] & ~std::uint64_t{0xffff}) | function_low(MpiId::Start);
  begun.extension = {entry.facts[1], entry.facts[2]};
}

bool find_posted_collective(Slot& head, Slot& extension) {
  Remembered entry;
  if (!requests.find_oldest(entry)) return false;
  head = {format::pack_high(0, EventType::mpi_begin_coll), entry.facts[0]};
  extension = {entry.facts[1], entry.facts[2]};
  return true;
}

void requests_before(const Arguments& call, const Began& begun, RequestKeys keys) {
  if (call.row.id == MpiId::Wait) {
    complete(call.key_in(MpiRole::request), begun);
  } else if (call.row.id == MpiId::Waitall) {
    for (int at = 0, count = request_count(call); at < count; ++at) complete(call.key_in(MpiRole::requests, at), begun);
  } else if (call.row.id == MpiId::Request_free) {
    Remembered forgotten;
    requests.take(call.key_in(MpiRole::request), forgotten);
    persistent.take(call.key_in(MpiRole::request), forgotten);
  } else if (call.row.id == MpiId::Test) {
    keys.keys[0] = call.key_in(MpiRole::request);
  } else if (completes_some(call.row.id)) {
    const int count = std::min(request_count(call), keys.capacity);
    for (int at = 0; at < count; ++at) keys.keys[at] = call.key_in(MpiRole::requests, at);
  }
}

void requests_after(const Arguments& call, const Began& begun, RequestKeys keys) {
  if (call.has(MpiRole::new_request)) {
    post(call, call.key_in(MpiRole::new_request), begun);
  } else if (call.has(MpiRole::new_persistent)) {
    remember_persistent(call, begun);
  } else if (call.row.id == MpiId::Start) {
    post(call, call.key_in(MpiRole::request), begun);
  } else if (call.row.id == MpiId::Startall) {
    for (int at = 0, count = request_count(call); at < count; ++at)
      start_one_of_many(call, call.key_in(MpiRole::requests, at), begun);
  } else if (completes_some(call.row.id)) {
    complete_those_told(call, begun, keys,
                        call.has(MpiRole::request_count) ? std::min(request_count(call), keys.capacity) : 1);
  }
  if (open_duplicates.load(std::memory_order_relaxed) != 0) note_duplicates();
}

}  // namespace paceline::inject
