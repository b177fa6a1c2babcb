// SPDX-License-Identifier: Apache-2.0
// When the program itself uses CUPTI. CUPTI has one subscriber and one pair of callbacks, so the recorder lends them:
//   - its subscription, for good, when the program subscribes. It only serves the names of streams;
//   - the activity records from the program's cuptiActivityRegisterCallbacks until all kinds that the program enabled
//   are
//     disabled and its last buffers are flushed.
// PyTorch's profiler (Kineto) makes these calls in this order: subscribe, once; then for each profile register, enable
// …, disable …, flush with force.
#pragma once

#include <bitset>
#include <cstdint>

#include "profiler/inject/cupti_watcher.h"

namespace paceline::inject::cupti {

class Lending {
 public:
  // Whether the activity records must be handed over before this call of the program, because it begins to use them.
  bool begins_with(paceline_cupti_call call) const { return !lent_ && call == paceline_cupti_register_callbacks; }

  void begin() { lent_ = true, is_over_ = false; }

  // `argument`: the kind or the flag. Cost: a few instructions.
  void note(paceline_cupti_call call, std::uint32_t argument) {
    if (call == paceline_cupti_finalize) {  // ends whatever anybody enabled
      lent_ = is_over_ = true;
      enabled_.reset();
    }
    if (!lent_) return;
    if (call == paceline_cupti_register_callbacks || call == paceline_cupti_enable) is_over_ = false;
    if (argument < enabled_.size()) {
      if (call == paceline_cupti_enable) enabled_.set(argument);
      if (call == paceline_cupti_disable) enabled_.reset(argument);
    }
    constexpr std::uint32_t forced = 1;  // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
    if (call == paceline_cupti_flush && argument == forced && enabled_.none()) is_over_ = true;
  }

  bool is_lent() const { return lent_; }

  // Whether the recorder may take the records again: then call end().
  bool is_over() const { return lent_ && is_over_; }
  void end() { lent_ = false; }

 private:
  bool lent_ = false;
  bool is_over_ = false;
  std::bitset<256> enabled_;  // by the program
};

}  // namespace paceline::inject::cupti
