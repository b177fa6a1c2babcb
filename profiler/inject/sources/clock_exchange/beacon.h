// SPDX-License-Identifier: Apache-2.0
// How recorders find each other to compare clocks. Before MPI_Init each leaves its address as the name of an empty file
// in the output directory (".clock-…"). MPI_Init ends only when all ranks have begun it, so after it the directory
// shows every recorded rank and no other.
//
// Processes with the same host name, boot id and clock source share a clock: they are a clock domain. The lowest rank
// of a domain is its leader. The leaders, by rank, form a binomial tree: leader i asks leader i & (i - 1). So the first
// leader, which keeps the reference clock, answers log2(number of domains) others, and no clock is more steps away from
// it.
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
  in_addr_t addresses[most_addresses] = {};  // in this machine's byte order
  int address_count = 0;
};

// Appends this machine's IPv4 addresses, the loopback last.
void list_addresses(Beacon& beacon);

// Writes the file's name, NUL-terminated. 160 bytes are enough for any name.
void print_beacon(const Beacon& beacon, char* out, std::size_t capacity);
bool parse_beacon(const char* name, Beacon& beacon);

struct PlaceInTree {
  bool leads = false;    // lowest rank of its domain
  bool answers = false;  // other leaders may ask it
  bool asks = false;     // it asks `parent`
  int ranks = 0;         // the number of ranks found
  Beacon parent;
  Beacon children[12];  // the leaders that ask this one: log2 of the number of domains
  int child_count = 0;
};

// True if a process of the job has its beacon in the directory.
bool any_beacon(const char* directory, std::uint64_t job);

// This machine's addresses at which the children can reach the parent, one for each network: the loopback if they are
// on this machine, else those of the interfaces towards them. Returns the number of addresses.
int addresses_for(const Beacon& own, const PlaceInTree& place, in_addr_t (&addresses)[most_addresses]);

// Reads the directory. Domains beyond the first 4096 are aligned by UTC only. Cost: beacons × domains comparisons.
PlaceInTree find_place(const Beacon& own, const char* directory);

}  // namespace paceline::inject
