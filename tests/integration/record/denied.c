// SPDX-License-Identifier: Apache-2.0
// usage: denied EPERM|ENOSYS|KILL COMMAND…: runs the command without the system calls that Docker's profiles deny to a
// container: they fail with this error, or end the process. Ends with 77 if this machine does not permit such a filter.
#include <errno.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char names[] =
    "acct add_key bpf clock_adjtime clock_settime delete_module fanotify_init finit_module fsconfig fsmount fsopen "
    "fspick get_mempolicy init_module io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp "
    "kexec_file_load kexec_load keyctl lookup_dcookie mbind mount mount_setattr move_mount move_pages "
    "name_to_handle_at nfsservctl open_by_handle_at open_tree perf_event_open pivot_root process_vm_readv "
    "process_vm_writev ptrace quotactl reboot request_key set_mempolicy setns settimeofday swapoff swapon sysfs "
    "syslog umount2 unshare userfaultfd vhangup";

int main(int argc, char** argv) {
  const char* answer = argc > 2 ? argv[1] : "";
  const uint32_t action = strcmp(answer, "KILL") == 0 ? SCMP_ACT_KILL_PROCESS
                                                      : SCMP_ACT_ERRNO(strcmp(answer, "ENOSYS") == 0 ? ENOSYS : EPERM);
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  for (const char* name = strtok(names, " "); name != NULL; name = strtok(NULL, " ")) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number >= 0) seccomp_rule_add(filter, action, number, 0);
  }
  // New programs fall back from clone3 to clone, whose flags a filter can read.
  seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
  const int failed = seccomp_load(filter);
  if (failed != 0) return fprintf(stderr, "denied: no filter: %s\n", strerror(-failed)), 77;
  if (argc > 2) execvp(argv[2], argv + 2);
  return 127;
}
