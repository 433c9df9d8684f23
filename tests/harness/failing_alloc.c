#include "failing_alloc.h"

#include <errno.h>
#include <stdatomic.h>

/* The names are the linker's, of --wrap. */
void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n, size_t n_bytes);
void *__real_realloc(void *memory, size_t n_bytes);
void *__real_aligned_alloc(size_t alignment, size_t n_bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t n_bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t n_bytes);
void *__wrap_realloc(void *memory, size_t n_bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes);
int __wrap_posix_memalign(void **out, size_t alignment, size_t n_bytes);
char *__wrap_strdup(const char *text);

static atomic_bool armed, one_failed;
static atomic_size_t n_done;
static size_t n_good;
static bool all_later;

void failing_alloc_begin(size_t n, bool and_all_later)
{
    n_good = n;
    all_later = and_all_later;
    n_done = 0;
    one_failed = false;
    armed = true;
}

bool failing_alloc_end(void)
{
    armed = false;
    return one_failed;
}

static bool fails(void)
{
    if (!armed)
        return false;
    size_t before = atomic_fetch_add(&n_done, 1);
    if (before < n_good || (before > n_good && !all_later))
        return false;
    one_failed = true;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t n_bytes)
{
    return fails() ? NULL : __real_malloc(n_bytes);
}

void *__wrap_calloc(size_t n, size_t n_bytes)
{
    return fails() ? NULL : __real_calloc(n, n_bytes);
}

void *__wrap_realloc(void *memory, size_t n_bytes)
{
    return fails() ? NULL : __real_realloc(memory, n_bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, n_bytes);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t n_bytes)
{
    return fails() ? ENOMEM : __real_posix_memalign(out, alignment, n_bytes);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}
