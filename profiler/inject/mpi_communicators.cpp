#include "profiler/inject/mpi_communicators.h"

#define XXH_INLINE_ALL
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include <string_view>

#include "profiler/inject/names.h"
#include "profiler/inject/recorder.h"

namespace paceline::inject {
namespace {

constexpr std::uint32_t places = 8192;
constexpr std::uint32_t most_communicators = 4096;
constexpr std::uint64_t world_identity = 0x9ace11e0'0000'0001;

// Open addressing by handle. A freed communicator leaves the mark `gone`, so that probes go on past it.
std::atomic<Communicator*> table[places];
Communicator gone{};
pthread_mutex_t changes = PTHREAD_MUTEX_INITIALIZER;
std::uint32_t live = 0;
std::uint32_t next_id = 0;

// How many communicators of the same parent, maker and members there were.
struct Occurrences {
  std::uint64_t key;
  std::uint32_t count;
};
constexpr std::uint32_t occurrence_places = 16384;
Occurrences occurrences[occurrence_places];
std::uint32_t occurrence_keys = 0;

std::uint32_t place_of(Comm handle) {
  const auto bits = reinterpret_cast<std::uintptr_t>(handle);
  return static_cast<std::uint32_t>((bits >> 4) * 0x9e3779b97f4a7c15 >> 51) % places;
}

std::uint64_t mix(std::uint64_t seed, const void* bytes, std::size_t size) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

std::uint32_t count_occurrence(std::uint64_t key) {
  std::uint32_t at = static_cast<std::uint32_t>(key % occurrence_places);
  while (occurrences[at].count != 0 && occurrences[at].key != key) at = (at + 1) % occurrence_places;
  if (occurrences[at].count == 0) {
    if (occurrence_keys == occurrence_places / 2) return 0;  // alike ones are then not told apart
    ++occurrence_keys;
  }
  occurrences[at].key = key;
  return occurrences[at].count++;
}

// Hash of the world ranks of a communicator's own group.
std::uint64_t hash_members(Comm comm, std::uint64_t seed) {
  Group group = nullptr, world = nullptr;
  int size = 0;
  if (mpi.comm_group(comm, &group) != 0) return seed;
  if (mpi.comm_group(mpi.world, &world) == 0 && mpi.group_size(group, &size) == 0 && size > 0) {
    auto* ranks = static_cast<int*>(malloc(2 * static_cast<std::size_t>(size) * sizeof(int)));
    if (ranks != nullptr) {
      int* in_world = ranks + size;
      for (int rank = 0; rank < size; ++rank) ranks[rank] = rank;
      if (mpi.group_translate_ranks(group, size, ranks, world, in_world) == 0) {
        seed = mix(seed, in_world, static_cast<std::size_t>(size) * sizeof(int));
      }
      free(ranks);
    }
  }
  if (world != nullptr) mpi.group_free(&world);
  mpi.group_free(&group);
  return seed;
}

Communicator* look_up(Comm handle) {
  for (std::uint32_t at = place_of(handle), probe = 0; probe < places; at = (at + 1) % places, ++probe) {
    Communicator* there = table[at].load(std::memory_order_acquire);
    if (there == nullptr) return nullptr;
    if (there != &gone && there->handle == handle) return there;
  }
  return nullptr;
}

// What the members of both sides of an inter-communicator agree on would need the remote group's ranks; its own group
// names each side, which suffices to match the calls of one side.
void add(Comm handle, std::uint64_t key, bool counted) {
  int size = 0, peers = 0, rank = 0, inter = 0;
  mpi.comm_size(handle, &size);
  mpi.comm_rank(handle, &rank);
  mpi.comm_test_inter(handle, &inter);
  peers = size;
  if (inter) mpi.comm_remote_size(handle, &peers);
  char name[256] = "";  // MPI_MAX_OBJECT_NAME is 64 in Open MPI
  int length = 0;
  mpi.comm_get_name(handle, name, &length);

  pthread_mutex_lock(&changes);
  Communicator* known = look_up(handle);
  Communicator* made = nullptr;
  if (known == nullptr && live < most_communicators) made = static_cast<Communicator*>(calloc(1, sizeof(Communicator)));
  if (made != nullptr) {
    std::uint64_t identity = key;
    if (counted) {
      const std::uint32_t occurrence = count_occurrence(key);
      identity = mix(key, &occurrence, sizeof occurrence);
    }
    made->handle = handle;
    made->id = ++next_id;
    made->size = static_cast<std::uint32_t>(size);
    made->peers = static_cast<std::uint32_t>(peers);
    made->rank = static_cast<std::uint32_t>(rank);
    made->identity = identity;
    snprintf(made->name, sizeof made->name, "%s", name);
    emit_surely(EventType::communicator, made->id | std::uint64_t{made->size} << 32,
                Slot{identity, made->rank | std::uint64_t{intern(std::string_view(name))} << 32});
    std::uint32_t at = place_of(handle);
    for (Communicator* there; (there = table[at].load(std::memory_order_relaxed)) != nullptr && there != &gone;) {
      at = (at + 1) % places;
    }
    table[at].store(made, std::memory_order_release);
    ++live;
  }
  pthread_mutex_unlock(&changes);
}

}  // namespace

void note_predefined_communicators() {
  add(mpi.world, world_identity, false);
  add(mpi.self, hash_members(mpi.self, world_identity + 1), false);
}

void note_communicator(Comm parent, Comm made, format::MpiId by, int tag) {
  if (made == nullptr || made == mpi.null_comm) return;
  const Communicator* from = parent != nullptr && parent != mpi.null_comm ? find_communicator(parent) : nullptr;
  const std::uint64_t origin[3] = {from != nullptr ? from->identity : 0, static_cast<std::uint64_t>(by),
                                   static_cast<std::uint64_t>(tag)};
  add(made, hash_members(made, mix(0, origin, sizeof origin)), true);
}

void forget_communicator(Comm handle) {
  pthread_mutex_lock(&changes);
  for (std::uint32_t at = place_of(handle), probe = 0; probe < places; at = (at + 1) % places, ++probe) {
    Communicator* there = table[at].load(std::memory_order_relaxed);
    if (there == nullptr) break;
    if (there == &gone || there->handle != handle) continue;
    table[at].store(&gone, std::memory_order_release);  // `there` stays: another thread may still hold it
    --live;
    break;
  }
  pthread_mutex_unlock(&changes);
}

Communicator* find_communicator(Comm handle) {
  if (Communicator* known = look_up(handle)) return known;
  if (handle == nullptr || handle == mpi.null_comm) return nullptr;
  add(handle, hash_members(handle, 0), true);
  return look_up(handle);
}

void communicator_name(std::uint32_t id, char* out, std::size_t size) {
  snprintf(out, size, "communicator %u", id);
  for (const std::atomic<Communicator*>& place : table) {
    const Communicator* there = place.load(std::memory_order_acquire);
    if (there == nullptr || there == &gone || there->id != id) continue;
    if (there->name[0] != '\0') snprintf(out, size, "%s", there->name);
    return;
  }
}

}  // namespace paceline::inject
