/** GGUF files that hold something else than a model. */
#ifndef GGUF_ABOUT_OTHER_H
#define GGUF_ABOUT_OTHER_H

/**
 * What a GGUF file is by its first keys, with an article, if that is no model: "an importance
 * matrix", "a LoRA adapter". NULL: a model, as far as these tell, or no GGUF file.
 */
const char *gguf_other(const char *path);

#endif
