# SPDX-License-Identifier: Apache-2.0
# Runs inside the bare Debian of debian_root.sh.
set -euo pipefail
fail() { echo "in_root.sh: $*" >&2; exit 1; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_plm_rsh_agent=""
export OMPI_MCA_btl_vader_single_copy_mechanism=none
quietly() { "$@" >/tmp/log 2>&1 || fail "failed: $*: $(tail -20 /tmp/log)"; }
installed() { find / -xdev \( -path /proc -o -path /packages -o -path /samples -o -path /tmp \) -prune -o -iname '*paceline*' -print; }
begin() { SECONDS=0; }
nothing_stays() { [ -z "$(installed)" ] || fail "files stay behind after the removal of $1: $(installed)"; }

cd /tmp
quietly apt-get update
quietly apt-get install -y --no-install-recommends ca-certificates

# The wheel, in an environment of Debian's own Python.
if ls /packages/*.whl >/dev/null 2>&1; then
  quietly apt-get install -y --no-install-recommends python3-venv pipx
  begin
  quietly python3 -m venv /opt/python
  quietly /opt/python/bin/pip install --no-index /packages/*.whl
  echo "the wheel: installed in a new environment in $SECONDS s"
  /opt/python/bin/paceline --version
  # The root has neither MPI nor NVTX, so a script records itself.
  cat >part.py <<'PY'
import time, paceline
with paceline.Recorder("part", "--sample", "100"):
    end = time.monotonic() + 0.5
    while time.monotonic() < end: pass
PY
  quietly /opt/python/bin/python part.py
  quietly /opt/python/bin/paceline report part
  [[ $(/opt/python/bin/paceline query part 'SELECT file FROM frames') == */part.py* ]] ||
    fail "the recording has no stacks of the script"
  quietly /opt/python/bin/paceline info /packages/closed.pace
  /opt/python/bin/python -c '
import paceline
run = paceline.load("/packages/closed.pace")
assert len(run.slices) > 0 and run.report().runs[0].per_rank[0].wall_ns > 0
print(run)'
  quietly /opt/python/bin/pip uninstall -y paceline
  nothing_stays "the wheel"
  begin
  quietly pipx run --spec /packages/paceline-*.whl paceline report /packages/closed.pace
  echo "the wheel: pipx run made a report in $SECONDS s"
  rm -rf "${HOME:?}/.local"
  echo "the wheel: installed, used and removed"
fi
ls /packages/*.deb >/dev/null 2>&1 || exit 0

begin
quietly apt-get install -y --no-install-recommends /packages/paceline_*.deb /packages/paceline-viewer_*.deb /packages/paceline-trainer_*.deb
echo "the packages: installed in $SECONDS s"
paceline --version
documents=/usr/share/doc/paceline
for file in docs/tutorial.md docs/schemas/report.schema.json samples/quickstart.sh LICENSE copyright changelog.Debian.gz; do
  [ -s $documents/$file ] || fail "the package has no $documents/$file"
done
# What is compiled into a program is named in the package's licences.
for package in paceline paceline-viewer paceline-trainer; do
  for part in Chart.js CLI11 zstd; do
    ! dpkg -L $package | grep -E '^/usr/(bin|lib)/' | xargs grep -qaF -d skip $part || grep -qF $part /usr/share/doc/$package/copyright ||
      fail "the copyright of $package does not name $part"
  done
done
job=(paceline-train --synthetic --image-size 32 --width 0.125 --train-images 64 --test-images 4 --batch-size 4 --iterations 8 --threads 1)
begin
quietly mpirun --bind-to none -n 2 paceline record -o run2 -- "${job[@]}"
[[ $(paceline info run2) == *"1 of 2"* ]] || fail "paceline info does not show rank 1"
paceline report run2 >report.txt
grep -q MPI_Allreduce report.txt || fail "the report has no allreduce: $(cat report.txt)"
paceline view run2 --screenshot viewer.png 2>/dev/null
[ "$(head -c 4 viewer.png | tail -c 3)" = PNG ] || fail "the viewer drew no picture"
echo "the packages: a job recorded, reported and drawn in $SECONDS s"
# The user of the Dockerfile in docs/how-to/containers.md.
mkdir -m 777 nobody
quietly setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/tmp/nobody paceline record -o nobody/run -- "${job[@]}"
[[ $(paceline info nobody/run) == "nobody/run: "* ]] || fail "a user without rights recorded nothing"
quietly apt-get purge -y paceline paceline-viewer paceline-trainer
nothing_stays "the packages"
echo "the packages: installed, used and removed"

# The library, with what it needs to build the example.
quietly apt-get install -y --no-install-recommends /packages/libpaceline-dev_*.deb cmake make
quietly cmake -S /samples/library -B build
quietly cmake --build build
build/slowest_rank run2
quietly apt-get purge -y libpaceline-dev
nothing_stays "the library"
echo "the library: installed, used and removed"
