// NVTX finds an injection that is linked into the program, not loaded, by this pointer.
int InitializeInjectionNvtx2(const void* (*export_table)(unsigned));
int (*InitializeInjectionNvtx2_fnptr)(const void* (*export_table)(unsigned)) = InitializeInjectionNvtx2;
