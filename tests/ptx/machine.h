/** Programs, global memory and what runs on them: a GPU, as far as a launch sees one. */
#ifndef TESTS_PTX_MACHINE_H
#define TESTS_PTX_MACHINE_H

#include "tests/ptx/block.h"

/** A kernel's warps, which keep their registers from launch to launch. */
struct ptx_residents {
    struct ptx_warp *warps;
    unsigned n_warps;
};

struct ptx_machine {
    struct ptx_program program;
    struct ptx_space space;
    struct ptx_residents *residents; /* of each kernel */
    struct ptx_shadow shared_shadow, local_shadow;
    uint8_t *shared, *local; /* local: for the kernel that has the most */
    size_t local_bytes;
    const struct ptx_kernel *last; /* whose shared memory the shadow is of */
    uint32_t tick;
    enum ptx_order order;        /* of threads and blocks */
    struct rng rng;              /* PTX_RANDOM */
    struct ptx_traffic *traffic; /* of each kernel, if that is to be counted; else NULL */
};

struct ptx_launch {
    size_t kernel; /* its number in the program */
    const void *params;
    size_t n_blocks, shared_bytes;
    unsigned n_threads;
    bool backwards;          /* blocks run from the last to the first */
    bool may_read_unwritten; /* global memory that nobody wrote */
};

/** Load these files; they must outlive the machine. */
void ptx_machine_open(struct ptx_machine *m, const char *const *files, size_t n_files,
                      enum ptx_order order);
void ptx_machine_close(struct ptx_machine *m);

/** The number of the kernel with this short name (report.h); the program's end if there is none. */
size_t ptx_machine_find(const struct ptx_machine *m, const char *name);
void ptx_machine_launch(struct ptx_machine *m, const struct ptx_launch *launch);

#endif
