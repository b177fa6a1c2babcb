// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/buffer/gate.h"

#include "profiler/inject/buffer/hot.h"

namespace paceline::inject {

Gate gate;
PACELINE_HOT std::atomic<FileState> file_state{FileState::unopened};

}  // namespace paceline::inject
