/** What the files of model/folder/ share, and what an architecture's `write` calls. */
#ifndef MODEL_FOLDER_STATE_H
#define MODEL_FOLDER_STATE_H

#include "base/json/read.h"
#include "gguf/layout.h"
#include "gguf/safetensors/folder.h"
#include "model/arch.h"

enum { MODEL_TARGET_BYTES = 64, MODEL_STORED_BYTES = 256 /* of names */ };

/** A tensor of GGUF and the stored ones that it is made of. */
struct model_target {
    char name[MODEL_TARGET_BYTES];
    unsigned change;                           /* of enum model_change */
    bool experts;                              /* a stack: one source for each of them */
    const struct safetensors_tensor **sources; /* [capacity]; NULL: not found so far */
    size_t n_sources, capacity;                /* 1 + the highest number that was found */
    /* As GGUF has it: */
    enum gguf_type type;
    uint32_t n_dims;
    uint64_t ne[4];
    bool made;                           /* values in memory; else, in bytes: */
    uint64_t offset, row_step, col_step; /* of the first element; as of struct gguf_view */
    uint64_t first_row;                  /* that element's, as stored, of codes */
    bool quantised;                      /* codes, whose scales lie in tensors beside them; */
    enum gguf_type codes;                /* their type, of rows that its blocks do not fill: */
    float *values;                       /* made, then, once the file is assembled */
};

/** Values that no tensor has as GGUF does. */
struct model_given {
    char name[MODEL_TARGET_BYTES];
    float *values;
    uint64_t n;
};

/** A shape that blocks of one scale have in some tensors. */
struct model_blocks {
    uint64_t rows, columns;
};

enum { MODEL_BLOCK_SHAPES = 8, MODEL_SCHEMES = 8, MODEL_SCHEMES_BYTES = 64 * MODEL_SCHEMES };

/** Who packed integers of few bits: it says how they lie (packed.c). */
enum model_packer { MODEL_NO_PACKER, MODEL_COMPRESSED, MODEL_GPTQ, MODEL_AWQ };

/** Integers that some weights are. */
struct model_scheme {
    unsigned bits;
    uint64_t group; /* columns that share a scale; 0: a whole row */
    bool symmetric; /* zero points are 2^(bits - 1) */
    bool ordered;   /* columns may belong to groups in any order */
};

/** What config.json says of packed integers. */
struct model_packing {
    enum model_packer packer;
    struct model_scheme schemes[MODEL_SCHEMES];
    size_t n_schemes;
    bool any;               /* some weights have a scheme that is not listed (member `dynamic`) */
    bool less_one;          /* GPTQ's zero points are stored less 1 */
    struct base_field kept; /* modules whose weights are no integers: a list, or nothing */
};

/** What a class of transformers gives members that config.json lacks (bench/class_defaults.py). */
struct model_folder_class {
    const char *names;    /* its model_type, and classes of models with it; NULL ends */
    const char *members;  /* a JSON object */
    const char *nullable; /* those of them that may be null, which is then a value */
};
extern const struct model_folder_class model_folder_classes[];

struct model_folder {
    const char *path;
    const struct model_arch *const *archs; /* that it may be of, and NULL */
    struct safetensors_folder files;
    struct base_json_reader json;           /* config.json, and what is wrong with it */
    struct base_field config, text;         /* its text_config, or itself */
    const char *class_name;                 /* the first of its `architectures` */
    const struct model_folder_class *class; /* NULL: transformers has none */
    cJSON *defaults;                        /* its members, or NULL */
    const struct model_arch *arch;
    bool compressed; /* latent attention is written with compressed keys */
    uint32_t n_layers, n_heads, n_kv_heads, head_size, n_embd, n_experts;
    bool latent;    /* attention has sizes of latent attention: */
    uint32_t n_rot; /* of a head's elements those that are rotated; else by the share of RoPE */
    bool kv_by_layer, ff_by_layer; /* keys have a value for each layer: */
    uint32_t kv_heads_of[MODEL_MAX_BLOCKS], n_ff_of[MODEL_MAX_BLOCKS];
    const struct model_folder_name *const *names; /* as the architecture's, or what `sizes` chose */
    struct gguf_layout *layout;
    struct model_target **targets; /* [target_names.n] */
    struct base_strtab target_names;
    size_t target_capacity;
    struct model_given *given; /* [n_given] */
    size_t n_given, given_capacity;
    struct model_blocks blocks[MODEL_BLOCK_SHAPES];
    size_t n_blocks;
    struct model_packing packing;
};

/** The heads of each layer, at first config.json's for all. */
struct model_folder_heads {
    uint32_t n; /* layers */
    uint32_t n_heads[MODEL_MAX_BLOCKS], n_kv_heads[MODEL_MAX_BLOCKS];
    uint32_t plain[MODEL_MAX_BLOCKS]; /* of latent attention: elements of a key that stay */
};

/* config.c */

/** Parse config.json, find the architecture, and refuse what is not read. */
enum status model_config_open(struct model_folder *f, struct status_why *why);
/* members.c */

/** The first failure of what reads config.json: `write` and all below it go on after one. */
enum status model_config_status(const struct model_folder *f, struct status_why *why);
/** Keep a failure: STATUS_UNSUPPORTED or STATUS_FORMAT, and printf's arguments. */
#define model_config_fail(f, ...) base_field_fail((f)->config, __VA_ARGS__)
/**
 * The first of these names that is there in the text model's configuration, or in the whole, else
 * that its class has; none: absent or null. names: separated by single blanks.
 */
struct base_field model_config_find(const struct model_folder *f, const char *names);
/** All members that the class has. */
struct base_field model_config_defaults(const struct model_folder *f);
/** Whether a value is what the class has, and not config.json's. */
bool model_config_of_class(const struct model_folder *f, struct base_field item);
/** What the class has of one of these names, whatever config.json says. */
struct base_field model_config_class(const struct model_folder *f, const char *names);
/** Whether config.json has one of these names, and the first of them that it has is null. */
bool model_config_null(const struct model_folder *f, const char *names);
/** A whole number below 2^32: of a member that must be there, of one that may be absent. */
uint32_t model_config_u32(const struct model_folder *f, const char *names);
uint32_t model_config_u32_or(const struct model_folder *f, const char *names, uint32_t absent);
/** A number that is finite in float32, of such members. */
double model_config_f32(const struct model_folder *f, const char *names);
double model_config_f32_or(const struct model_folder *f, const char *names, double absent);
/** Such a number below a value. */
double model_config_real(struct base_field from, const char *path);
/** A list of n whole numbers. */
void model_config_u32s(struct base_field from, const char *path, uint32_t *values, uint32_t n);
/** Whether element i of a member that is a list is this word. */
bool model_config_is(const struct model_folder *f, const char *name, uint32_t i, const char *kind);
/** Element i of a list, 0 where it is no number. */
double model_config_at(struct base_field list, uint32_t i);
/**
 * A list of names, one for each layer. kinds[MODEL_MAX_BLOCKS]: which word of `expected` each is.
 * Returns n_layers, or 0 where it is absent or wrong.
 */
uint32_t model_config_kinds(const struct model_folder *f, const char *name, const char *expected,
                            uint8_t *kinds);

/* agree.c */

/** Refuse a configuration that contradicts the tensors, once these have names. */
enum status model_folder_agree(const struct model_folder *f, struct status_why *why);

/* methods.c */

/** Refuse folders whose weights are quantised in a way that is not read; note shapes of blocks. */
void model_config_quantisation(struct model_folder *f);

/* schemes.c */

/** What an object says of packed integers: of GPTQ, of AWQ, of a group of compressed-tensors. */
void model_schemes_gptq(struct model_folder *f, struct base_field quantised);
void model_schemes_awq(struct model_folder *f, struct base_field quantised);
void model_schemes_group(struct model_folder *f, struct base_field weights);
/** All schemes that they said, in words. */
void model_schemes_describe(const struct model_packing *packing, char out[MODEL_SCHEMES_BYTES]);
/** Likewise, as a key, with all that numbers depend on. */
void model_schemes_write(struct model_folder *f);

/* keys.c, rope.c */

enum status model_folder_keys(struct model_folder *f, struct status_why *why);
void model_folder_heads(const struct model_folder *f, struct model_folder_heads *of);
void model_folder_rope(struct model_folder *f);
/** The object about RoPE, newer or older. */
struct base_field model_config_rope(const struct model_folder *f);
/** How queries grow with their position, of RoPE's member `llama_4_scaling_beta`. */
void model_folder_temperature(struct model_folder *f);
/** Refuse layer i unless it has positions where it slides, and only there. */
void model_folder_check_turns(struct model_folder *f, uint32_t i, bool slides, bool turns);
/** The function that makes shares of experts; absent: where no member says it. */
void model_write_gating(struct model_folder *f, const char *names, uint32_t absent);

/* write.c */

void model_write_u32(struct model_folder *f, const char *suffix, uint32_t value);
/** The nearest float32. */
void model_write_f32(struct model_folder *f, const char *suffix, double value);
void model_write_f32s(struct model_folder *f, const char *suffix, const float *values, uint64_t n);
/** One limit of SwiGLU for all layers: a member, or 10, under a key. */
void model_limit_write(struct model_folder *f, const char *suffix);
/** key: whole, without the architecture's name in front. */
void model_write_named_f32s(struct model_folder *f, const char *key, const float *values,
                            uint64_t n);
void model_write_u32s(struct model_folder *f, const char *suffix, const uint32_t *values,
                      uint64_t n);
/** values: n of 64 bits, at any address. */
void model_write_u64s(struct model_folder *f, const char *suffix, const void *values, uint64_t n);
void model_write_bool(struct model_folder *f, const char *suffix, bool value);
void model_write_bools(struct model_folder *f, const char *suffix, const uint8_t *values,
                       uint64_t n);
void model_write_string(struct model_folder *f, const char *suffix, const char *value);
/** A tensor of n float32 values, zero so far; the folder's. NULL: no memory. */
float *model_folder_give(struct model_folder *f, const char *name, uint64_t n);

/* names.c */

/** Find what each stored tensor becomes.   Fails: STATUS_FORMAT (one without a name in GGUF). */
enum status model_folder_names(struct model_folder *f, struct status_why *why);

/* quantised.c */

/** What a stored tensor is to the weights of a quantised folder. */
struct model_role {
    char name[MODEL_STORED_BYTES]; /* as a folder that is not quantised has it */
    bool aside;                    /* a scale of another tensor, or about activations */
    bool no_bias; /* a bias of zeros beside packed integers: left out where it is not usual */
};
/** Tell a tensor's role.   Fails: STATUS_FORMAT (a scale without a weight, a long name). */
enum status model_quantised_role(const struct model_folder *f,
                                 const struct safetensors_tensor *tensor, struct model_role *role,
                                 struct status_why *why);
/**
 * Codes of a quantised tensor: the target's type, and the shape of what they stand for. Factors of
 * whole matrices become a tensor X.scale. Whether it is quantised: t->quantised.
 * Fails: STATUS_FORMAT, STATUS_UNSUPPORTED (scales that are missing, of another type or shape).
 */
enum status model_quantised_shape(struct model_folder *f, struct model_target *t,
                                  struct safetensors_tensor *meant, struct status_why *why);
/** The scales of each matrix of a quantised target, in the file's memory. */
enum status model_quantised_scales(const struct model_folder *f, const struct model_target *t,
                                   struct gguf_file *file, const struct gguf_scales **out,
                                   struct status_why *why);

/* packed.c */

/** Whether a stored tensor holds packed integers. */
bool model_packed_is(const struct model_folder *f, const struct safetensors_tensor *tensor);
/** Tell a tensor's role, where it is one about packed integers: *is.   Fails: STATUS_FORMAT. */
enum status model_packed_role(const struct model_folder *f, const struct safetensors_tensor *tensor,
                              struct model_role *role, bool *is, struct status_why *why);
/** As model_quantised_shape, and model_quantised_scales, of a target of packed integers. */
enum status model_packed_shape(const struct model_folder *f, struct model_target *t,
                               struct safetensors_tensor *meant, struct status_why *why);
enum status model_packed_scales(const struct model_folder *f, const struct model_target *t,
                                struct gguf_file *file, struct gguf_scales *scales,
                                struct status_why *why);

/* sources.c */

/** Check what a target is made of.   Fails: STATUS_FORMAT, STATUS_UNSUPPORTED. */
enum status model_sources_check(const struct model_folder *f, const struct model_target *t,
                                struct status_why *why);

/* tensors.c */

/** The value of a stored tensor of one element; false: there is no such tensor. */
bool model_folder_number(const struct model_folder *f, const char *name, float *value);

/** Type and shape of every target; which are made in memory. Those that are keys are written. */
enum status model_targets_shape(struct model_folder *f, struct status_why *why);
/** Write the values of one that is made of codes, into its memory.   file: is assembled. */
enum status model_target_decode(const struct model_folder *f, const struct model_target *t,
                                struct gguf_file *file, struct status_why *why);
/** Append one that is neither made nor a key. */
enum status model_target_append(const struct model_folder *f, const struct model_target *t,
                                struct gguf_file *file, struct status_why *why);

/* made.c */

/** Heads whose rows are turned; where each layer has its own number, by the rows. */
uint32_t model_target_heads(const struct model_folder *f, const struct model_target *t);
/** The type of a tensor that is stored as numbers; false: of a type but F32, F16, BF16. */
bool model_plain_type(enum safetensors_type stored, enum gguf_type *type);
/** Element i of a tensor of I64 or I32. */
int64_t model_whole_number(const struct safetensors_tensor *s, size_t i);
/** Row i of heads of d rows, as stored: what is at 2j is stored at j, at 2j + 1 at j + d / 2. */
uint64_t model_turned_row(uint64_t i, uint64_t d);
/** Write the values of one that is made. */
void model_target_make(const struct model_folder *f, const struct model_target *t, float *to);

#endif
