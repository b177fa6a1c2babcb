// SPDX-License-Identifier: Apache-2.0
/* The tracepoints of LTTng-UST that stand for a push and a pop. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER paceline_peers
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_events.h"

#if !defined(PACELINE_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PACELINE_LTTNG_EVENTS_H
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(paceline_peers, begin, LTTNG_UST_TP_ARGS(const char*, name),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_string(name, name)))
LTTNG_UST_TRACEPOINT_EVENT(paceline_peers, end, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
#endif

#include <lttng/tracepoint-event.h>
