// SPDX-License-Identifier: Apache-2.0
// What the dumps of a job say as a whole, by the names of torchcomms' analyzer
// (comms/analyzer/if/NCCLAnalyzerVerdict.thrift).
#pragma once

#include <string>
#include <vector>

#include "analysis/importers/flight_recorder/dump.h"

namespace paceline::analysis::flight_recorder {

// Of the analyzer's 29 types those that dumps alone can show, at least one: ALL_GOOD, JOB_COMM_DUMP_MISSING (a member
// of a group has no dump), JOB_CONTAINS_COLL_METADATA_MISMATCH (ranks enqueued different functions or types of data
// under one number),
// JOB_STUCK_IN_NCCL_RANK_NOT_JOIN (a rank never entered a collective in which others wait),
// JOB_STUCK_IN_NCCL_BASED_ON_PT (a rank still pends in one that a peer completed) and
// JOB_STUCK_IN_NCCL_UNKNOWN_BAD_RANKS (collectives pend, and no rank is at fault). `faults`: those of the dumps.
std::vector<std::string> verdicts_of(const std::vector<Dump>& dumps, const std::vector<Fault>& faults);

}  // namespace paceline::analysis::flight_recorder
