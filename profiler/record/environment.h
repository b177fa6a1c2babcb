// What `paceline record` tells the recorder inside the program (libpaceline-inject.so), through the environment.
//
// The recorder must also work without any of these (a program started by hand with NVTX_INJECTION64_PATH set): each
// line says what it then takes.
#pragma once

namespace paceline::record {

// Absolute path of the directory for trace files; exists and is writable. Unset: "paceline-run" in the current
// directory, made if need be.
inline constexpr char env_output[] = "PACELINE_OUTPUT";

// File name in that directory, with the placeholders of file_name.h. Unset: default_pattern.
inline constexpr char env_pattern[] = "PACELINE_PATTERN";

// What --set described: lines KEY=VALUE, separated by '\n', in the order given; the last of equal keys counts. Goes
// into the header's JSON text as it is. Unset: nothing.
inline constexpr char env_set[] = "PACELINE_SET";

// The job's identity, the same in all of its ranks, another in every other job (launcher.h). Goes into the header.
// Unset: launcher.h finds it, or it is left out.
inline constexpr char env_job[] = "PACELINE_JOB";

// "1": a file of that name in the directory may be replaced. Else the recorder never overwrites: it appends "-2",
// "-3", … before the ending (a program that execs another keeps its pid, and with it the name).
inline constexpr char env_force[] = "PACELINE_FORCE";

// Size of the file's live area in bytes, rounded up to whole chunks (layout.h). Unset: the recorder's default.
inline constexpr char env_buffer_bytes[] = "PACELINE_BUFFER_BYTES";

// Variables of others that the launcher sets: the recorder's path is put in front of LD_PRELOAD, and NVTX loads it by
// the second one.
inline constexpr char env_preload[] = "LD_PRELOAD";
inline constexpr char env_nvtx[] = "NVTX_INJECTION64_PATH";

inline constexpr char recorder_library[] = "libpaceline-inject.so";
inline constexpr char default_output[] = "paceline-run";
inline constexpr char default_pattern[] = "%h-r%r-p%p.pace";

}  // namespace paceline::record
