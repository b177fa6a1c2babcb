// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/recorder_lock.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <cstdint>

namespace paceline::format {
namespace {

struct flock first_byte(short type) noexcept {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return lock;
}

}  // namespace

bool is_on_local_file_system(int descriptor) noexcept {
  constexpr std::uint32_t xfs = 0x58465342, zfs = 0x2fc12fc1, bcachefs = 0xca451a4e, jfs = 0x3153464a;
  struct statfs status {};
  if (fstatfs(descriptor, &status) != 0) return false;
  switch (static_cast<std::uint32_t>(status.f_type)) {
    case EXT4_SUPER_MAGIC:  // and ext2, ext3
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case RAMFS_MAGIC:
    case TMPFS_MAGIC:
    case xfs:
    case zfs:
    case bcachefs:
    case jfs:
      return true;
    default:
      return false;
  }
}

void lock_as_recorder(int descriptor) noexcept {
  if (!is_on_local_file_system(descriptor)) return;
  struct flock lock = first_byte(F_WRLCK);
  fcntl(descriptor, F_SETLK, &lock);
}

bool is_locked_by_recorder(int descriptor) noexcept {
  struct flock lock = first_byte(F_RDLCK);
  return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}

}  // namespace paceline::format
