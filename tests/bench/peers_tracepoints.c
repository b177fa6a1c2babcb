// The code that LTTng generates for the tracepoints.
#define TRACEPOINT_CREATE_PROBES
#include "peers_tracepoints.h"
