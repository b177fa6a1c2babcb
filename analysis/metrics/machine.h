// The facts of machine and process that the recorder learned (Rank::facts), read.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

// "0-2,8" as 0, 1, 2, 8. Empty where the text is none; numbers from 65536 on are left out.
std::set<unsigned> numbers_of(std::string_view list);
std::string list_of(const std::set<unsigned>& numbers);

// The fact, or "" where it is not known.
const std::string& fact(const Rank& rank, const std::string& key);

// Ranks of one host that may run on the same CPUs, and on fewer of them than they are: they get in each other's way
// even with one thread each. Indices into trace.ranks.
struct CrowdedCpus {
  std::vector<std::size_t> ranks;
  std::set<unsigned> cpus;
  bool bound = false;  // the host has more CPUs than these
};
std::vector<CrowdedCpus> crowded_cpus(const Trace& trace);

// Everything in lines for people: hosts, then ranks, those that are alike together. Empty where nothing is known.
std::vector<std::string> machine_lines(const Trace& trace);

}  // namespace paceline::analysis
