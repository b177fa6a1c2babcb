// SPDX-License-Identifier: Apache-2.0
// What a Kineto file says about itself beside its events.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::analysis::kineto {

struct Header {
  // A process group of PyTorch, in which this rank may be a member.
  struct Group {
    std::string name, description;
    std::vector<int> ranks;
    std::uint32_t size = 0;  // 0 = not known
  };

  std::optional<int> rank, world_size;
  std::string backend;                  // "nccl", "gloo"
  std::optional<std::int64_t> base_ns;  // added to all times: ns since 1970
  std::vector<Group> groups;
  std::map<std::string, std::string> facts;  // for Rank::facts
  bool of_kineto = false;                    // it has a member that only Kineto writes
};

// Adds the members of the file's outermost object that stand in `text`, which begins behind the object's brace or
// behind one of its values. Stops behind the colon of "traceEvents", and returns that place; npos if the text ends
// first. What cannot be read is left out.
std::size_t read_members(std::string_view text, Header& header);

}  // namespace paceline::analysis::kineto
