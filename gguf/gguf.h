/** What clients use of gguf/: files, their keys and tensors, what they are. */
#ifndef GGUF_GGUF_H
#define GGUF_GGUF_H

#include "gguf/about/identity.h"
#include "gguf/about/other.h"
#include "gguf/about/quantisation.h"
#include "gguf/about/zeros.h"
#include "gguf/cursor.h"
#include "gguf/file.h"
#include "gguf/layout.h"
#include "gguf/meta.h"
#include "gguf/type.h"

#endif
