// SPDX-License-Identifier: Apache-2.0
// Through these pointers NVTX finds an injection that is linked into the program, not loaded.
int InitializeInjectionNvtx2(const void* (*export_table)(unsigned));
int (*InitializeInjectionNvtx2_fnptr)(const void* (*export_table)(unsigned)) = InitializeInjectionNvtx2;

struct nvtxExtModuleInfo_t;
int InitializeInjectionNvtxExtension(struct nvtxExtModuleInfo_t* module);
int (*InitializeInjectionNvtxExtension_fnptr)(struct nvtxExtModuleInfo_t* module) = InitializeInjectionNvtxExtension;
