# SPDX-License-Identifier: Apache-2.0
# A Python program with PyPI's nvtx module. It knows nothing of Paceline.
import nvtx

for step in range(2000):
    with nvtx.annotate("step", color="green"):
        with nvtx.annotate("forward", domain="network", category="layers", payload=step):
            pass
        nvtx.push_range("backward", domain="network")
        nvtx.pop_range(domain="network")
nvtx.mark("end", domain="network")
range_id = nvtx.start_range("asynchronous")
nvtx.end_range(range_id)
