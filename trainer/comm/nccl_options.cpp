// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/nccl_options.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <utility>

#include "trainer/comm/nccl_algorithms.h"
#include "trainer/core/error.h"

namespace paceline::train::nccl {
namespace {

constexpr int most_ctas = 64;  // NCCL's MAXCHANNELS

// The text as one line, without blanks around it.
std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool blank = c == '\n' || c == '\r' || c == '\t' || c == ' ';
    if (!blank)
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

// code: an ncclResult_t.
const char* remedy(int code) {
  switch (code) {
    case 1:
      return "see nvidia-smi; NCCL_DEBUG=WARN prints which CUDA call failed";
    case 2:
      return "check the network and the limits for open files and shared memory (ulimit -n, /dev/shm)";
    case 4:
    case 5:
      return "NCCL_DEBUG=WARN prints more";
    case 6:
      return "see what the other ranks report, and check the network between the hosts";
    default:
      return "NCCL_DEBUG=INFO prints more";
  }
}

}  // namespace

Ctas parse_ctas(const std::string& text) {
  const auto refuse = [&] {
    return Error("‹nccl-ctas› " + text, fmt::format("expected numbers from 1 to {}", most_ctas),
                 "write the most, such as 8, or least and most, such as 4:8", Status::usage);
  };
  const auto number = [&](std::string_view part) {
    int value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || value < 1 || value > most_ctas) throw refuse();
    return value;
  };
  const std::string_view all = text;
  const std::size_t colon = all.find(':');
  if (colon == std::string_view::npos) return {0, number(all)};
  const Ctas ctas{number(all.substr(0, colon)), number(all.substr(colon + 1))};
  if (ctas.least > ctas.most) throw refuse();
  return ctas;
}

bool uses_nccl(const std::string& communicator) {
#define PACELINE_ROW(name, summary) #name,
  for (const char* name : {PACELINE_NCCL_ALGORITHMS(PACELINE_ROW)}) {
    if (communicator == name) return true;
  }
#undef PACELINE_ROW
  return false;
}

void check_placement(const std::string& communicator, const std::vector<Placement>& ranks) {
  std::map<std::pair<std::string, std::string>, std::size_t> rank_of;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const Placement& place = ranks[rank];
    if (place.device_uuid.empty()) {
      throw Error("communicator " + communicator, fmt::format("rank {} on {} has no GPU", rank, place.host),
                  "start one rank for each GPU", Status::usage);
    }
    const auto [other, alone] = rank_of.emplace(std::pair(place.host, place.device_uuid), rank);
    if (alone) continue;
    throw Error("communicator " + communicator,
                fmt::format("ranks {} and {} share one GPU of {}, which NCCL refuses", other->second, rank, place.host),
                "take ‹communicator› mpi, which goes through host memory, or start one rank for each GPU",
                Status::usage);
  }
}

std::string failure(const std::string& call, int code, const std::string& words, const std::string& message) {
  std::string line = fmt::format("NCCL: {}: {}", call, one_line(words));
  const std::string last = one_line(message);
  if (!last.empty()) line += fmt::format(" ({})", last);
  return line + ": " + remedy(code);
}

std::string timeout(const std::string& what, double seconds, const std::string& message) {
  const std::string last = one_line(message);
  return fmt::format(
      "NCCL: {} did not end within {:g} s{}: another rank is missing, or much slower: see what the other ranks "
      "report, or raise ‹comm-timeout›",
      what, seconds, last.empty() ? "" : fmt::format(" ({})", last));
}

}  // namespace paceline::train::nccl
