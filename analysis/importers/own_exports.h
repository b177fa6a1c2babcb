// SPDX-License-Identifier: Apache-2.0
// How readers know what Paceline itself exported, so that a trace that was exported comes back the same.
#pragma once

#include <array>
#include <string_view>

namespace paceline::analysis {

// The creator of an OTF2 archive that Paceline wrote. Its regions are described as "domain / category".
inline constexpr std::string_view otf2_creator = "paceline export";

// The descriptions of tracks in Perfetto's format, by TrackKind, and those of the states of a thread.
inline constexpr std::array<std::string_view, 6> perfetto_tracks{
    "Paceline: thread", "Paceline: MPI", "Paceline: stream", "Paceline: NCCL", "Paceline: copy", "Paceline: counter"};
inline constexpr std::string_view perfetto_exact_states = "Paceline: states",
                                  perfetto_state_shares = "Paceline: state shares";

}  // namespace paceline::analysis
