/**
 * Backends whose products see rounded inputs: each input of a product with a weight becomes what an
 * engine makes of it (activations/rule.h), and the product is the backend's own, of these numbers.
 * Sums are not rounded beyond what the backend's precision does. Attention's queries are rounded by
 * the type that its keys were rounded to, where the product before was with a weight of such a
 * file.
 */
#ifndef ACTIVATIONS_ROUNDING_H
#define ACTIVATIONS_ROUNDING_H

#include "clients/activations/rule.h"

struct act_rounding;
struct kern_backend;

/**
 * From now on these backends round queries of, and products with weights of, the files that are
 * added; they may compute in threads of their own. They fail also with STATUS_UNSUPPORTED, where
 * the rule has nothing for a product, and with STATUS_MEMORY. Fails: STATUS_UNSUPPORTED (a backend
 * whose memory is not the host's), STATUS_MEMORY.
 */
enum status act_rounding_open(struct act_rounding **out, const struct act_rule *rule,
                              struct kern_backend *const *backends, size_t n_backends,
                              struct status_why *why);
/**
 * Products with weights of this file are rounded, with the scales that it has for inputs where the
 * rule takes them; those with all other weights are as they were. The file stays open as long as
 * it has products.   Not while a backend computes. Fails: STATUS_MEMORY, STATUS_FORMAT.
 */
enum status act_rounding_add(struct act_rounding *r, const struct gguf_file *file,
                             struct status_why *why);
/** The backends, which must still be open, are what they were. NULL is allowed. */
void act_rounding_close(struct act_rounding *r);

#endif
