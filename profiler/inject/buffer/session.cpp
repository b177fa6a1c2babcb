#include "profiler/inject/buffer/session.h"

namespace paceline::inject {

Session session;

}  // namespace paceline::inject
