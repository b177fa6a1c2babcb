// SPDX-License-Identifier: Apache-2.0
// Events that describe the recorder's clock.
#pragma once

namespace paceline::inject {

// Records a clock pair now.
void record_clock_pair();

// Records the error between the clocks of this machine's CPUs, if `paceline record` has measured it.
void record_clock_error();

}  // namespace paceline::inject
