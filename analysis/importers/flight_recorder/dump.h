// SPDX-License-Identifier: Apache-2.0
// One rank's dump of PyTorch's Flight Recorder (TORCH_FR_DUMP_TEMP_FILE, /tmp/nccl_trace_rank_N): the collectives and
// messages that the rank enqueued last, by process group. docs/analyse.md says what is read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/importers/flight_recorder/values.h"

namespace paceline::analysis::flight_recorder {

struct Group {
  std::string name = {}, description = {};
  std::vector<int> ranks = {};
  bool has_messages = false;  // sends and receives have numbers of their own

  std::string text() const;  // for people, and the same on all ranks: "EMBEDDING_GROUP (group 44)"
};

struct Call {
  std::string group = {};     // its name
  std::string library = {};   // "nccl", "gloo"
  std::string function = {};  // "all_reduce"
  std::int64_t number = 0;    // on its group
  bool is_message = false;
  std::optional<int> peer = {};  // of a message, its rank in the group
  std::string state = {};       // "scheduled", "started", "completed"; of gloo also "retired", because it has no others
  std::int64_t created_ns = 0;  // since 1970
  std::optional<std::int64_t> started_ns = {}, completed_ns = {};
  std::uint64_t bytes = 0;  // of the larger side; 0: not known
  std::string datatype = {};
  std::string frame = {};  // the innermost Python function: "loss at train.py:12"; "" where the dump has no stacks

  bool pends() const { return state != "completed" && state != "retired"; }
};

struct Dump {
  int rank = 0;
  std::string version = {}, nccl_version = {};
  std::map<std::string, Group> groups = {};            // by name; those that the rank is a member of
  std::vector<Call> calls = {};                        // in the order of the dump
  std::map<std::string, std::int64_t> completed = {};  // the last number that the rank reports as completed, by group
};

// Throws Error where the values are no dump.
Dump dump_of(const Value& value, int rank);

// Gives the groups without a list of ranks (gloo writes none under the name of the group) their members: the ranks that
// have calls of them, and in the default group all.
void add_members(std::vector<Dump>& dumps);

// Why a rank is at fault: what it never entered although its peers wait in it, or still pends in although a peer has
// completed it. Sends and receives do not count, because they involve two ranks only and may pend on purpose.
struct Fault {
  int rank = 0;
  std::string group = {}, function = {};
  std::int64_t number = 0;
  bool entered = false;
  std::vector<int> others = {};  // the ranks that pend in it, or have completed it
};

// At most one for each rank, the one that was created first; sorted by rank. Ranks without a dump are not judged. None
// where all that pends was completed by a peer: dumps of a job that goes on are of different moments, and a call
// retires a little after it has ended.
std::vector<Fault> find_faults(const std::vector<Dump>& dumps);

// "rank 9 never entered all_reduce #15118 of MODEL (group 64), in which ranks 8 and 10–15 wait"
std::string fault_text(const Fault& fault);

}  // namespace paceline::analysis::flight_recorder
