// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/mpi/objects.h"

#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/buffer/names.h"
#include "profiler/inject/sources/mpi/communicators.h"
#include "profiler/inject/sources/mpi/handles.h"

namespace paceline::inject {
namespace {

constexpr unsigned window_bits = 9, file_bits = 8;
HandleTable::Place window_places[1u << window_bits];
HandleTable::Place file_places[1u << file_bits];
HandleTable windows{window_places, window_bits};
HandleTable files{file_places, file_bits};
std::atomic<std::uint32_t> last_number{0};

std::uint32_t number_of(const HandleTable& table, Handle key) {
  Remembered entry;
  return table.find(key, entry) ? static_cast<std::uint32_t>(entry.id) : 0;
}

}  // namespace

std::uint32_t window_number(const Arguments& call) {
  return number_of(windows, call.has(MpiRole::window) ? call.key(MpiRole::window) : call.key_in(MpiRole::freed_window));
}

std::uint32_t file_number(const Arguments& call) {
  return number_of(files,
                   call.has(MpiRole::file) ? call.key(MpiRole::file, true) : call.key_in(MpiRole::freed_file, 0, true));
}

void note_object(const Arguments& call) {
  Communicator* communicator = find_communicator(call.comm(MpiRole::comm));
  if (communicator == nullptr) return;
  const std::uint32_t number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t identity = identity_of_object(*communicator);
  if (call.has(MpiRole::new_window)) {
    windows.put(call.key_in(MpiRole::new_window), {number, {}}, false);
    const auto bytes = static_cast<std::uint64_t>(call.wide(MpiRole::size));
    emit_surely(
        events::MpiWindow{.window = number, .communicator = communicator->id, .identity = identity, .bytes = bytes});
  } else {
    files.put(call.key_in(MpiRole::new_file, 0, true), {number, {}}, false);
    const std::uint32_t path = intern(call.text(MpiRole::text));
    emit_surely(events::MpiFile{.file = number, .path = path, .identity = identity, .communicator = communicator->id});
  }
}

void forget_object(const Arguments& call) {
  Remembered forgotten;
  if (call.has(MpiRole::freed_window)) windows.take(call.key_in(MpiRole::freed_window), forgotten);
  if (call.has(MpiRole::freed_file)) files.take(call.key_in(MpiRole::freed_file, 0, true), forgotten);
}

}  // namespace paceline::inject
