// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/buffer/session.h"

namespace paceline::inject {

Session session;

}  // namespace paceline::inject
