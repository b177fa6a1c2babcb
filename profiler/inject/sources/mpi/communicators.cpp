// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/mpi/communicators.h"

#define XXH_INLINE_ALL
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include <string_view>

#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/buffer/names.h"

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

// The number of communicators with the same parent, creating function and members.
struct Occurrences {
  std::uint64_t key;
  std::uint32_t count;
};
constexpr std::uint32_t occurrence_places = 16384;
Occurrences occurrences[occurrence_places];
std::uint32_t occurrence_keys = 0;

std::uint32_t place_of(Handle handle) { return static_cast<std::uint32_t>(handle * 0x9e3779b97f4a7c15 >> 51) % places; }

std::uint64_t mix(std::uint64_t seed, const void* bytes, std::size_t size) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

std::uint32_t count_occurrence(std::uint64_t key) {
  std::uint32_t at = static_cast<std::uint32_t>(key % occurrence_places);
  while (occurrences[at].count != 0 && occurrences[at].key != key) at = (at + 1) % occurrence_places;
  if (occurrences[at].count == 0) {
    if (occurrence_keys == occurrence_places / 2) return 0;  // equal ones are not distinguished any more
    ++occurrence_keys;
  }
  occurrences[at].key = key;
  return occurrences[at].count++;
}

// Hash of the world ranks of one group of a communicator.
std::uint64_t hash_group(Handle comm, int (*group_of)(Handle, Handle*), std::uint64_t seed) {
  Handle group = 0, world = 0;
  int size = 0;
  if (group_of(comm, &group) != 0) return seed;
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
  if (world != 0) mpi.group_free(&world);
  mpi.group_free(&group);
  return seed;
}

bool is_inter(Handle comm) {
  int inter = 0;
  return mpi.comm_test_inter(comm, &inter) == 0 && inter != 0;
}

// A hash of all members. It is the same on both sides of an inter-communicator.
std::uint64_t hash_members(Handle comm, std::uint64_t seed) {
  const std::uint64_t own = hash_group(comm, mpi.comm_group, seed);
  return is_inter(comm) ? own + hash_group(comm, mpi.comm_remote_group, seed) : own;
}

std::uint32_t count_neighbors(Handle comm, int rank) {
  int topology = 0, in = 0, out = 0, weighted = 0;
  if (mpi.topo_test(comm, &topology) != 0) return 0;
  if (topology == mpi.cartesian && mpi.cartdim_get(comm, &out) == 0) return 2 * static_cast<std::uint32_t>(out);
  if (topology == mpi.graph) mpi.graph_neighbors_count(comm, rank, &out);
  if (topology == mpi.dist_graph) mpi.dist_graph_neighbors_count(comm, &in, &out, &weighted);
  return static_cast<std::uint32_t>(out);
}

Communicator* look_up(Handle handle) {
  for (std::uint32_t at = place_of(handle), probe = 0; probe < places; at = (at + 1) % places, ++probe) {
    Communicator* there = table[at].load(std::memory_order_acquire);
    if (there == nullptr) return nullptr;
    if (there != &gone && there->handle == handle) return there;
  }
  return nullptr;
}

std::uint64_t identity_of_next(std::uint64_t key) {
  const std::uint32_t occurrence = count_occurrence(key);
  return mix(key, &occurrence, sizeof occurrence);
}

void define(const Communicator& communicator, std::string_view name) {
  emit_surely(events::Communicator{.communicator = communicator.id,
                                   .size = communicator.size,
                                   .identity = communicator.identity,
                                   .rank = communicator.rank,
                                   .name = intern(name)});
}

// `counted`: several communicators may have this `key`. Otherwise it is the identity.
void add(Handle handle, std::uint64_t key, bool counted) {
  int size = 0, peers = 0, rank = 0;
  mpi.comm_size(handle, &size);
  mpi.comm_rank(handle, &rank);
  const bool inter = is_inter(handle);
  peers = size;
  if (inter) mpi.comm_remote_size(handle, &peers);
  const std::uint32_t neighbors = inter ? 0 : count_neighbors(handle, rank);
  char name[256] = "";  // MPI_MAX_OBJECT_NAME is 64 in Open MPI, 128 in MPICH
  int length = 0;
  mpi.comm_get_name(handle, name, &length);

  pthread_mutex_lock(&changes);
  Communicator* known = look_up(handle);
  Communicator* made = nullptr;
  if (known == nullptr && live < most_communicators) made = static_cast<Communicator*>(calloc(1, sizeof(Communicator)));
  if (made != nullptr) {
    made->handle = handle;
    made->id = ++next_id;
    made->size = static_cast<std::uint32_t>(size);
    made->peers = static_cast<std::uint32_t>(peers);
    made->rank = static_cast<std::uint32_t>(rank);
    made->neighbors = neighbors;
    made->inter = inter;
    made->identity = counted ? identity_of_next(key) : key;
    snprintf(made->name, sizeof made->name, "%.*s", static_cast<int>(sizeof made->name - 1), name);
    define(*made, name);
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

void note_communicator(Handle parent, Handle made, format::MpiId by, int tag) {
  if (!mpi.is_comm(made)) return;
  if (by == format::MpiId::Comm_connect) by = format::MpiId::Comm_accept;  // the two sides of one
  const Communicator* from = is_inter(made) ? nullptr : find_communicator(parent);
  const std::uint64_t origin[3] = {from != nullptr ? from->identity : 0, static_cast<std::uint64_t>(by),
                                   static_cast<std::uint64_t>(tag)};
  add(made, hash_members(made, mix(0, origin, sizeof origin)), true);
}

std::uint64_t identity_of_duplicate(Handle parent, format::MpiId by) {
  const Communicator* from = find_communicator(parent);
  const std::uint64_t origin[2] = {from != nullptr ? from->identity : 0, static_cast<std::uint64_t>(by)};
  pthread_mutex_lock(&changes);
  const std::uint64_t identity = identity_of_next(mix(1, origin, sizeof origin));
  pthread_mutex_unlock(&changes);
  return identity;
}

void note_duplicate(Handle made, std::uint64_t identity) {
  if (mpi.is_comm(made)) add(made, identity, false);
}

void name_communicator(Handle handle, std::string_view name) {
  Communicator* known = find_communicator(handle);
  if (known == nullptr) return;
  snprintf(known->name, sizeof known->name, "%.*s", static_cast<int>(name.size()), name.data());
  define(*known, name);
}

std::uint64_t identity_of_object(Communicator& communicator) {
  const std::uint64_t origin[2] = {communicator.identity, communicator.objects.fetch_add(1, std::memory_order_relaxed)};
  return mix(2, origin, sizeof origin);
}

void forget_communicator(Handle handle) {
  pthread_mutex_lock(&changes);
  for (std::uint32_t at = place_of(handle), probe = 0; probe < places; at = (at + 1) % places, ++probe) {
    Communicator* there = table[at].load(std::memory_order_relaxed);
    if (there == nullptr) break;
    if (there == &gone || there->handle != handle) continue;
    table[at].store(&gone,
                    std::memory_order_release);  // `there` stays allocated, because another thread may still use it
    --live;
    break;
  }
  pthread_mutex_unlock(&changes);
}

Communicator* find_communicator(Handle handle) {
  if (Communicator* known = look_up(handle)) return known;
  if (!mpi.is_comm(handle)) return nullptr;
  add(handle, hash_members(handle, 0), true);
  return look_up(handle);
}

void write_communicator_name(std::uint32_t id, char* out, std::size_t size) {
  for (const std::atomic<Communicator*>& place : table) {
    const Communicator* there = place.load(std::memory_order_acquire);
    if (there == nullptr || there == &gone || there->id != id) continue;
    if (there->name[0] != '\0') snprintf(out, size, "%s", there->name);
    return;
  }
}

}  // namespace paceline::inject
