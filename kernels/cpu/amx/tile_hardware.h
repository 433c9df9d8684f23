/**
 * The tile instructions. They are written out: compilers' intrinsics for them differ, and gcc
 * 12's do not tell it what memory they read, so that it drops the stores before them. Tiles are
 * literal numbers, 0 to 7. tile_emulated.h has the same names; `tiles` is there for it.
 */
#ifndef KERNELS_CPU_AMX_TILE_HARDWARE_H
#define KERNELS_CPU_AMX_TILE_HARDWARE_H

#include <stddef.h>
#include <stdint.h>

enum { N_TILES = 8 };

/** What LDTILECFG reads. */
struct tiles {
    uint8_t palette, start_row, reserved[14];
    uint16_t line_bytes[16];
    uint8_t lines[16];
};

/** Make all tiles 16 lines of 64 bytes. */
static inline void tiles_open(struct tiles *tiles)
{
    *tiles = (struct tiles){.palette = 1};
    for (int i = 0; i < N_TILES; i++) {
        tiles->line_bytes[i] = 64;
        tiles->lines[i] = 16;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(*tiles) : "memory");
}

/** Give them back, so that the system need not save them. */
static inline void tiles_close(struct tiles *tiles)
{
    (void)tiles;
    __asm__ volatile("tilerelease" ::: "memory");
}

/** One instruction. */
#define TILE_DO(tiles, ...)                                                                        \
    do {                                                                                           \
        (void)(tiles);                                                                             \
        __asm__ volatile(__VA_ARGS__ : "memory");                                                  \
    } while (0)

/** t = 0 */
#define TILE_ZERO(tiles, t) TILE_DO(tiles, "tilezero %%tmm" #t::)

/** t = 16 lines of 64 bytes, `stride` bytes apart */
#define TILE_LOAD(tiles, t, from, stride)                                                          \
    TILE_DO(tiles, "tileloadd (%0,%1,1), %%tmm" #t::"r"(from), "r"((size_t)(stride)))

/** The reverse. */
#define TILE_STORE(tiles, t, to, stride)                                                           \
    TILE_DO(tiles, "tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(to), "r"((size_t)(stride)))

/** c += a b, a being weights and b activations */
#define TILE_MULTIPLY_ADD(tiles, c, a, b)                                                          \
    TILE_DO(tiles, "tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c::)

#endif
