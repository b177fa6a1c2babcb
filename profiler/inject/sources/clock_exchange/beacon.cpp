#include "profiler/inject/sources/clock_exchange/beacon.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

namespace paceline::inject {
namespace {

constexpr int most_domains = 4096;

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
  int index = 0;  // leaders of lower rank
  for (int at = 1; at < count; ++at) index += leaders[at].rank < own.rank ? 1 : 0;
  if (index == 0) return place;

  // The parent is the leader with `parent` leaders of lower rank.
  const int parent = index & (index - 1);
  for (int at = 1; at < count; ++at) {
    int below = 0;
    for (int other = 0; other < count; ++other) below += leaders[other].rank < leaders[at].rank ? 1 : 0;
    if (below != parent) continue;
    each_beacon(directory, own.job, [&](const Beacon& beacon) {
      if (beacon.rank == leaders[at].rank && beacon.domain == leaders[at].domain) place.parent = beacon;
    });
  }
  place.asks = place.parent.rank >= 0;
  return place;
}

}  // namespace paceline::inject
