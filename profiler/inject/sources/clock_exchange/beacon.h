// How recorders find one another to compare clocks: each leaves its address as the name of an empty file in the output
// directory (".clock-…") before MPI_Init. MPI_Init ends only when all ranks have begun it, so after it the directory
// shows every rank that is recorded, and none that is not.
//
// Processes with the same host name, boot id and clock source share a clock: a domain. Its lowest rank is its leader.
// The leaders, by rank, are a binomial tree: leader i asks leader i & (i - 1). So the first one, which keeps the
// reference clock, answers log2 of the number of domains, and no clock is further from it than that.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>

namespace paceline::inject {

inline constexpr int most_addresses = 8;

struct Beacon {
  std::uint64_t job = 0;
  std::uint64_t domain = 0;
  int rank = -1;
  unsigned port = 0;
  in_addr_t addresses[most_addresses] = {};  // in the order of this machine's bytes
  int address_count = 0;
};

// This machine's IPv4 addresses, the loopback last.
void list_addresses(Beacon& beacon);

// The file's name, NUL-terminated; 160 bytes are enough for any.
void print_beacon(const Beacon& beacon, char* out, std::size_t capacity);
bool parse_beacon(const char* name, Beacon& beacon);

struct PlaceInTree {
  bool leads = false;    // lowest rank of its domain
  bool answers = false;  // others may ask it
  bool asks = false;     // `parent` says whom
  int ranks = 0;         // that were found
  Beacon parent;
};

// Reads the directory. Of more than 4096 domains the rest is left to UTC. Cost: beacons × domains comparisons.
PlaceInTree find_place(const Beacon& own, const char* directory);

}  // namespace paceline::inject
