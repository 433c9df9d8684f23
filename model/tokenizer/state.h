/** What a tokenizer is made of: for the files of model/tokenizer/ alone. */
#ifndef MODEL_TOKENIZER_STATE_H
#define MODEL_TOKENIZER_STATE_H

#include "model/tokenizer/bpe.h"
#include "model/tokenizer/declared/declared.h"
#include "model/tokenizer/special.h"
#include "model/tokenizer/spm.h"
#include "model/tokenizer/tokenizer.h"

struct model_tokenizer {
    struct model_vocab vocab;
    struct model_spm spm; /* one of these two merges; bpe.pre may cut for either */
    struct model_bpe bpe;
    struct model_special always, on_request; /* without and with parse_special */
    struct model_declared declared;          /* does the cutting instead, where there is one */
};

#endif
