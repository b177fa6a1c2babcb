// A range as a pair of LTTng's tracepoints: the begin with a name, the end without.
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER paceline_peers
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./peers_tracepoints.h"

#if !defined(PEERS_TRACEPOINTS_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define PEERS_TRACEPOINTS_H

// clang-format off
#include <lttng/tracepoint.h>

TRACEPOINT_EVENT(paceline_peers, push, TP_ARGS(const char*, name), TP_FIELDS(ctf_string(name, name)))
TRACEPOINT_EVENT(paceline_peers, pop, TP_ARGS(), TP_FIELDS())

#endif

#include <lttng/tracepoint-event.h>
