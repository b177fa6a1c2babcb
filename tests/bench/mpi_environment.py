# SPDX-License-Identifier: Apache-2.0
"""The environment for mpirun in a benchmark: as root, with more ranks than cores, and without spinning in waits."""
import os

MPI_ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1")
