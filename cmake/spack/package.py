# SPDX-License-Identifier: Apache-2.0
# A recipe for Spack: put this file into packages/paceline of a Spack repository. The authors have not run it yet.
from spack.package import depends_on, license, variant, version
from spack_repo.builtin.build_systems.cmake import CMakePackage


class Paceline(CMakePackage):
    """Performance analysis and profiling for data-parallel training."""

    git = "file:///path/to/a/clone/of/paceline"  # set this to your clone
    license("Apache-2.0")
    version("1.0.0", tag="v1.0.0")

    variant("viewer", default=False, description="Build the desktop viewer")
    variant("trainer", default=False, description="Build the reference trainer")
    # Spack has no package of it.
    variant("chart_js", default="none", values=lambda value: True, multi=False,
            description="The file chart.min.js of Chart.js 3, for the charts in HTML reports")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")  # man pages
    for library in ("cli11", "fmt@9:", "libarchive", "nlohmann-json", "nvtx", "otf2", "simdjson", "sqlite", "xxhash", "zlib-api",
                    "zstd"):
        depends_on(library)
    for library in "libjpeg-turbo", "libpng", "libwebp", "mpi", "onednn", "tomlplusplus":
        depends_on(library, when="+trainer")
    for library in "qt-base@6.4: +gui +widgets", "qt-svg@6.4:":
        depends_on(library, when="+viewer")

    def cmake_args(self):
        chart_js = self.spec.variants["chart_js"].value
        return [self.define("PACELINE_TESTS", "OFF"), self.define("PACELINE_CUDA", "OFF"), self.define("PACELINE_PYTHON", "OFF"),
                self.define_from_variant("PACELINE_VIEWER", "viewer"), self.define_from_variant("PACELINE_TRAINER", "trainer"),
                self.define("CHART_JS", "" if chart_js == "none" else chart_js)]
