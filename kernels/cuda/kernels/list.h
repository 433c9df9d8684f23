/**
 * The list of kernels, a row each. Everything that must know all of them expands it: their numbers
 * (device/device.h), what a launch needs (device/kernels.c), their shells on a device
 * (device/kernels.cu) and on the host (tests/harness/run_kernel.c).
 *
 *     ROW(ID, name, args, n_threads, n_resident, shared_bytes, call)
 *
 *     ID            KERN_CUDA_<ID> is the kernel's number
 *     name          in messages
 *     args          the tag of its arguments' struct
 *     n_threads     of a block
 *     n_resident    blocks that a multiprocessor must hold at a time, which bounds the registers of
 *                   a thread; 0: the compiler decides. For attention as many as shared memory has
 *                   room for, by the device: 228 KiB, 164 KiB, 100 KiB
 *     shared_bytes  of a block; 0: none, or each launch says how many
 *     call          the work of one block: of `block`, with the arguments `a`, in memory `shared`
 *
 * Decoding is a program for each block format, so its shells are elsewhere (device/decode.cu). Its
 * row has a macro of its own; `type` in its call is the launch's.
 */
#ifndef KERNELS_CUDA_KERNELS_LIST_H
#define KERNELS_CUDA_KERNELS_LIST_H

/* By a multiprocessor's shared memory; what is compiled on the host does not matter. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 800
#define KERN_BY_SHARED(n_228, n_164, n_100) n_164
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1200)
#define KERN_BY_SHARED(n_228, n_164, n_100) n_100
#else
#define KERN_BY_SHARED(n_228, n_164, n_100) n_228
#endif

/* clang-format off */
#define KERN_CUDA_KERNELS(DECODE_ROW, ROW)                                                         \
    DECODE_ROW(DECODE, "decode", kern_decode_args, KERN_DECODE_THREADS, 0,                         \
        0, kern_decode_block(type, a, block, shared))                                              \
    ROW(NORM, "norm",    kern_norm_args, KERN_ROWS_THREADS, 0,                                     \
        sizeof(struct kern_norm_shared), kern_norm_block(a, block, shared))                        \
    ROW(SPARSIFY, "sparsify", kern_sparsify_args, KERN_ROWS_THREADS, 0,                            \
        sizeof(struct kern_norm_shared), kern_sparsify_block(a, block, shared))                    \
    ROW(STRETCH, "stretch", kern_stretch_args, KERN_ROWS_THREADS, 0,                               \
        sizeof(struct kern_norm_shared), kern_stretch_block(a, block, shared))                     \
    ROW(MATCH, "match", kern_match_args, KERN_ROWS_THREADS, 0,                                     \
        sizeof(struct kern_norm_shared), kern_match_block(a, block, shared))                       \
    ROW(ROPE, "rope", kern_rope_args, KERN_ROWS_THREADS, 0,                                        \
        0, kern_rope_block(a, block, shared))                                                      \
    ROW(GATE, "gate", kern_gate_args, KERN_ROWS_THREADS, 0,                                        \
        0, kern_gate_block(a, block, shared))                                                      \
    ROW(SCALE, "scale", kern_scale_args, KERN_ROWS_THREADS, 0,                                     \
        0, kern_scale_block(a, block, shared))                                                     \
    ROW(COPY_ROWS, "copy rows", kern_copy_args, KERN_ROWS_THREADS, 0,                              \
        0, kern_copy_block(a, block, shared))                                                      \
    ROW(ROUND, "round", kern_round_args, KERN_ROWS_THREADS, 0,                                     \
        sizeof(struct kern_round_shared), kern_round_block(a, block, shared))                      \
    ROW(CAP, "soft cap", kern_cap_args, KERN_ROWS_THREADS, 0,                                      \
        0, kern_cap_block(a, block, shared))                                                       \
    ROW(GATHER, "gather", kern_gather_args, KERN_GATHER_THREADS, 0,                                \
        0, kern_gather_block(a, block, shared))                                                    \
    ROW(SCATTER, "scatter", kern_scatter_args, KERN_GATHER_THREADS, 0,                             \
        0, kern_scatter_block(a, block, shared))                                                   \
    ROW(ROUTE, "route", kern_route_args, KERN_ROUTE_THREADS, 0,                                    \
        0, kern_route_block(a, block, shared))                                                     \
    ROW(MIX, "mix", kern_mix_args, KERN_ROWS_THREADS, 0,                                           \
        0, kern_mix_block(a, block, shared))                                                       \
    ROW(STREAM_WEIGHTS, "stream weights", kern_stream_weights_args, KERN_STREAMS_THREADS, 0,       \
        0, kern_stream_weights_block(a, block, shared))                                            \
    ROW(SOFTMAX, "softmax", kern_softmax_args, KERN_STREAMS_THREADS, 0,                            \
        0, kern_softmax_rows_block(a, block, shared))                                              \
    ROW(COMPRESS, "compress", kern_compress_args, KERN_ROWS_THREADS, 0,                            \
        0, kern_compress_block(a, block, shared))                                                  \
    ROW(SPLIT, "split", kern_split_args, KERN_SPLIT_THREADS, 0,                                    \
        sizeof(uint32_t), kern_split_block(a, block, shared))                                      \
    ROW(FINISH, "finish", kern_finish_args, KERN_FINISH_THREADS, 0,                                \
        0, kern_finish_block(a, block, shared))                                                    \
    ROW(POWERS, "powers", kern_powers_args, KERN_POWERS_THREADS, 0,                                \
        0, kern_powers_block(a, block, shared))                                                    \
    ROW(GATE_SPLIT, "gate split", kern_gate_split_args, KERN_GATE_SPLIT_THREADS, 0,                \
        0, kern_gate_split_block(a, block, shared))                                                \
    ROW(NORM_SPLIT, "norm split", kern_norm_split_args, KERN_ROWS_THREADS, 0,                      \
        0, kern_norm_split_block(a, block, shared))                                                \
    ROW(ROTATED, "finish rope", kern_rotated_args, KERN_ROTATED_THREADS, 0,                        \
        0, kern_rotated_block(a, block, shared))                                                   \
    ROW(EXACT, "exact", kern_exact_args, KERN_EXACT_THREADS, 2,                                    \
        sizeof(struct kern_exact_shared), kern_exact_block(a, block, shared))                      \
    ROW(PACK, "pack", kern_pack_args, KERN_PACK_THREADS, 0,                                        \
        0, kern_pack_block(a, block, shared))                                                      \
    ROW(INTEGERS_32, "integers", kern_integers_args, KERN_INTEGERS_THREADS, 1,                     \
        KERN_INTEGERS_SHARED(32, 0, 0), kern_integers_block(a, block, shared, 32, 0, 0))           \
    ROW(INTEGERS_32_MIN, "integers", kern_integers_args, KERN_INTEGERS_THREADS, 1,                 \
        KERN_INTEGERS_SHARED(32, 0, 1), kern_integers_block(a, block, shared, 32, 0, 1))           \
    ROW(INTEGERS_16, "integers", kern_integers_args, KERN_INTEGERS_THREADS, 1,                     \
        KERN_INTEGERS_SHARED(16, 0, 0), kern_integers_block(a, block, shared, 16, 0, 0))           \
    ROW(INTEGERS_WIDE_32, "integers", kern_integers_args, KERN_INTEGERS_THREADS, 1,                \
        KERN_INTEGERS_SHARED(32, 1, 0), kern_integers_block(a, block, shared, 32, 1, 0))           \
    ROW(INTEGERS_WIDE_32_MIN, "integers", kern_integers_args, KERN_INTEGERS_THREADS, 1,            \
        KERN_INTEGERS_SHARED(32, 1, 1), kern_integers_block(a, block, shared, 32, 1, 1))           \
    ROW(INTEGERS_WIDE_16, "integers", kern_integers_args, KERN_INTEGERS_THREADS, 1,                \
        KERN_INTEGERS_SHARED(16, 1, 0), kern_integers_block(a, block, shared, 16, 1, 0))           \
    ROW(INTEGERS_WIDE_16_MIN, "integers", kern_integers_args, KERN_INTEGERS_THREADS, 1,            \
        KERN_INTEGERS_SHARED(16, 1, 1), kern_integers_block(a, block, shared, 16, 1, 1))           \
    ROW(INTEGERS_LONG_32, "integers", kern_integers_args, KERN_INTEGERS_THREADS, 1,                \
        KERN_INTEGERS_SHARED(32, 2, 0), kern_integers_block(a, block, shared, 32, 2, 0))           \
    ROW(INTEGERS_LONG_32_MIN, "integers", kern_integers_args, KERN_INTEGERS_THREADS, 1,            \
        KERN_INTEGERS_SHARED(32, 2, 1), kern_integers_block(a, block, shared, 32, 2, 1))           \
    ROW(INTEGERS_LONG_16, "integers", kern_integers_args, KERN_INTEGERS_THREADS, 1,                \
        KERN_INTEGERS_SHARED(16, 2, 0), kern_integers_block(a, block, shared, 16, 2, 0))           \
    ROW(FILL, "fill", kern_fill_args, KERN_FILL_THREADS, 0,                                        \
        0, kern_fill_block(a, block, shared))                                                      \
    ROW(DIGEST, "digest", kern_digest_args, KERN_FILL_THREADS, 0,                                  \
        2 * sizeof(uint32_t), kern_digest_block(a, block, shared))                                 \
    ROW(ATTENTION, "attention", kern_attention_args, KERN_ATTENTION_THREADS, 0,                    \
        0, kern_attend_block(a, block, shared))                                                    \
    ROW(PARTS, "split of keys and values", kern_parts_args, KERN_FLASH_THREADS, 0,                 \
        0, kern_parts_block_of(a, block, shared))                                                  \
    ROW(FLASH2_64, "attention", kern_attention_args, KERN_FLASH_THREADS, 2,                        \
        0, kern_flash_attend(a, block, shared, 64, 2, 2))                                          \
    ROW(FLASH2_128, "attention", kern_attention_args, KERN_FLASH_THREADS, KERN_BY_SHARED(2, 1, 1), \
        0, kern_flash_attend(a, block, shared, 128, 2, 2))                                         \
    ROW(FLASH2_256, "attention", kern_attention_args, KERN_FLASH_THREADS, KERN_BY_SHARED(2, 1, 1), \
        0, kern_flash_attend(a, block, shared, 256, 2, 1))                                         \
    ROW(FLASH3_64, "attention", kern_attention_args, KERN_FLASH_THREADS, KERN_BY_SHARED(2, 2, 1),  \
        0, kern_flash_attend(a, block, shared, 64, 3, 2))                                          \
    ROW(FLASH3_128, "attention", kern_attention_args, KERN_FLASH_THREADS, 1,                       \
        0, kern_flash_attend(a, block, shared, 128, 3, 2))                                         \
    ROW(FLASH3_128_ONE, "attention", kern_attention_args, KERN_FLASH_THREADS,                      \
        KERN_BY_SHARED(2, 1, 1), 0, kern_flash_attend(a, block, shared, 128, 3, 1))                \
    ROW(FLASH3_256, "attention", kern_attention_args, KERN_FLASH_THREADS, 1,                       \
        0, kern_flash_attend(a, block, shared, 256, 3, 1))                                         \
    ROW(CHOOSE_SCORES, "choose", kern_choose_args, KERN_CHOOSE_THREADS, 0,                         \
        sizeof(struct kern_choose_shared), kern_choose_scores_block(a, block, shared))             \
    ROW(CHOOSE, "choose", kern_choose_args, KERN_CHOOSE_THREADS, 0,                                \
        sizeof(struct kern_choice_shared), kern_choose_block(a, block, shared))                    \
    ROW(CONVOLVE, "convolve", kern_convolve_args, KERN_CONVOLVE_THREADS, 0,                        \
        0, kern_convolve_block(a, block, shared))                                                  \
    ROW(TAPS, "convolve", kern_convolve_args, KERN_CONVOLVE_THREADS, 0,                            \
        0, kern_taps_block(a, block, shared))                                                      \
    ROW(RECUR, "recur", kern_recur_args, KERN_RECUR_THREADS, 0,                                    \
        0, kern_recur_family(a, block, shared, false))                                             \
    ROW(RECUR_STEPS, "recur", kern_recur_args, KERN_RECUR_THREADS, 0,                              \
        0, kern_recur_family(a, block, shared, true))                                              \
    ROW(FOLD, "fold", kern_fold_args, KERN_SCORE_THREADS, 0,                                       \
        sizeof(struct kern_fold_shared), kern_fold_block(a, block, shared))                        \
    ROW(PAIR, "pair", kern_pair_args, KERN_SCORE_THREADS, 0,                                       \
        sizeof(struct kern_pair_shared), kern_pair_block_of(a, block, shared))                     \
    ROW(JS, "js", kern_js_args, KERN_SCORE_THREADS, 0,                                             \
        sizeof(struct kern_js_shared), kern_js_block(a, block, shared))                            \
    ROW(TARGET, "target", kern_target_args, KERN_TARGET_THREADS, 0,                                \
        sizeof(struct kern_target_shared), kern_target_block(a, block, shared))                    \
    ROW(TAKE, "take", kern_take_args, KERN_TAKE_THREADS, 0,                                        \
        0, kern_take_block(a, block, shared))                                                      \
    ROW(CODES, "codes", kern_codes_args, KERN_CODES_THREADS, 0,                                    \
        sizeof(struct kern_codes_shared), kern_codes_block(a, block, shared))                      \
    ROW(LOWEST, "lowest", kern_lowest_args, KERN_LOWEST_THREADS, 0,                                \
        sizeof(struct kern_lowest_shared), kern_lowest_block(a, block, shared))
/* clang-format on */

#endif
