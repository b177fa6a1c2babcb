// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/clock_exchange/beacon.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>

#include "profiler/inject/system/descriptor.h"

namespace paceline::inject {
namespace {

constexpr int most_domains = 4096, most_children = 12;

struct Leader {
  std::uint64_t domain;
  int rank;
};
Leader leaders[most_domains];  // static, because the program's stack may be small

// Calls visit(beacon) for each beacon of the job.
template <class Visit>
void each_beacon(const char* directory, std::uint64_t job, Visit visit) {
  DIR* list = opendir(directory);
  if (list == nullptr) return;
  while (const dirent* entry = readdir(list)) {
    Beacon beacon;
    if (parse_beacon(entry->d_name, beacon) && beacon.job == job) visit(beacon);
  }
  closedir(list);
}

int note_leader(int count, const Beacon& beacon) {
  for (int at = 0; at < count; ++at) {
    if (leaders[at].domain != beacon.domain) continue;
    if (beacon.rank < leaders[at].rank) leaders[at].rank = beacon.rank;
    return count;
  }
  if (count == most_domains) return count;
  leaders[count] = {beacon.domain, beacon.rank};
  return count + 1;
}

}  // namespace

void list_addresses(Beacon& beacon) {
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) == 0) {
    for (const ifaddrs* at = interfaces; at != nullptr; at = at->ifa_next) {
      if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
      if ((at->ifa_flags & IFF_UP) == 0 || (at->ifa_flags & IFF_LOOPBACK) != 0) continue;
      if (beacon.address_count == most_addresses - 1) break;
      beacon.addresses[beacon.address_count++] =
          ntohl(reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr);
    }
    freeifaddrs(interfaces);
  }
  beacon.addresses[beacon.address_count++] = INADDR_LOOPBACK;  // for containers without a network on one machine
}

void print_beacon(const Beacon& beacon, char* out, std::size_t capacity) {
  int length = snprintf(out, capacity, ".clock-%016" PRIx64 "-%016" PRIx64 "-%d-%u", beacon.job, beacon.domain,
                        beacon.rank, beacon.port);
  for (int address = 0; address < beacon.address_count; ++address) {
    length += snprintf(out + length, capacity - static_cast<std::size_t>(length), "-%08x", beacon.addresses[address]);
  }
}

bool parse_beacon(const char* name, Beacon& beacon) {
  int length = 0;
  if (sscanf(name, ".clock-%16" SCNx64 "-%16" SCNx64 "-%d-%u%n", &beacon.job, &beacon.domain, &beacon.rank,
             &beacon.port, &length) != 4) {
    return false;
  }
  for (const char* at = name + length; *at == '-' && beacon.address_count < most_addresses; at += 9) {
    if (sscanf(at, "-%8x", &beacon.addresses[beacon.address_count]) != 1) break;
    ++beacon.address_count;
    if (strlen(at) < 9) break;
  }
  return beacon.address_count > 0 && beacon.port > 0 && beacon.port < 65536;
}

PlaceInTree find_place(const Beacon& own, const char* directory) {
  PlaceInTree place;
  int count = note_leader(0, own);
  each_beacon(directory, own.job, [&](const Beacon& beacon) {
    count = note_leader(count, beacon);
    ++place.ranks;
  });
  if (leaders[0].rank != own.rank) return place;
  place.leads = true;
  place.answers = count > 1;
  std::sort(leaders, leaders + count,
            [](const Leader& a, const Leader& b) { return a.rank != b.rank ? a.rank < b.rank : a.domain < b.domain; });
  const auto index = static_cast<int>(
      std::find_if(leaders, leaders + count, [&](const Leader& it) { return it.domain == own.domain; }) - leaders);
  each_beacon(directory, own.job, [&](const Beacon& beacon) {
    for (int at = 0; at < count; ++at) {
      if (leaders[at].rank != beacon.rank || leaders[at].domain != beacon.domain || at == index) continue;
      if (index > 0 && at == (index & (index - 1))) place.parent = beacon;
      const bool asks_this = at > 0 && (at & (at - 1)) == index;
      if (asks_this && place.child_count < most_children) place.children[place.child_count++] = beacon;
    }
  });
  place.asks = place.parent.rank >= 0;
  return place;
}

bool any_beacon(const char* directory, std::uint64_t job) {
  bool any = false;
  each_beacon(directory, job, [&](const Beacon&) { any = true; });
  return any;
}

namespace {

bool has_address(const Beacon& beacon, in_addr_t address) {
  return std::find(beacon.addresses, beacon.addresses + beacon.address_count, address) !=
         beacon.addresses + beacon.address_count;
}

bool on_one_machine(const Beacon& a, const Beacon& b) {
  return std::is_permutation(a.addresses, a.addresses + a.address_count, b.addresses, b.addresses + b.address_count);
}

// The address of the interface through which this machine sends to the other address; 0 if there is no route.
in_addr_t address_towards(in_addr_t other) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);  // nothing is sent
  address.sin_addr.s_addr = htonl(other);
  socklen_t size = sizeof address;
  if (!socket.is_open() || connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  return ntohl(address.sin_addr.s_addr);
}

}  // namespace

int addresses_for(const Beacon& own, const PlaceInTree& place, in_addr_t (&addresses)[most_addresses]) {
  int count = 0;
  for (int child = 0; child < place.child_count; ++child) {
    const Beacon& asking = place.children[child];
    in_addr_t ways[most_addresses];
    int way_count = 0;
    // An address that both machines have, such as that of a container bridge, leads nowhere.
    for (int at = 0; at < asking.address_count; ++at) {
      const in_addr_t way = has_address(own, asking.addresses[at]) ? 0 : address_towards(asking.addresses[at]);
      if (way != 0) ways[way_count++] = way;
    }
    if (way_count == 0 || on_one_machine(own, asking)) ways[0] = INADDR_LOOPBACK, way_count = 1;
    const auto chosen = [&](in_addr_t way) {
      return std::find(addresses, addresses + count, way) != addresses + count;
    };
    if (!std::any_of(ways, ways + way_count, chosen) && count < most_addresses) addresses[count++] = ways[0];
  }
  return count;
}

}  // namespace paceline::inject
