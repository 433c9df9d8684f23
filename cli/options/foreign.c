/* llama-perplexity's options that mean nothing here, for the commands that stand in for it. */
#include "cli/options/common.h"

const struct cli_option cli_foreign_options[] = {
    /* Ignored: placement of threads. */
    {"-C --cpu-mask -Cr --cpu-range --cpu-strict --prio --poll -Cb --cpu-mask-batch "
     "-Crb --cpu-range-batch --cpu-strict-batch --prio-batch --poll-batch --numa",
     CLI_IGNORED, "VALUE"},

    /* Ignored: how the computation is cut up, and where it and the weights are kept. */
    {"-ub --ubatch-size -np --parallel -dt --defrag-thold -lm --load-mode -ot --override-tensor "
     "-ncmoe --n-cpu-moe -sm --split-mode -ts --tensor-split -mg --main-gpu -fit --fit "
     "-fitt --fit-target -fitc --fit-ctx --rpc",
     CLI_IGNORED, "VALUE"},
    {"-fa --flash-attn", CLI_IGNORED, "ON",
     .choices = "on off auto 1 0 -1 true false enabled disabled"},
    {"-kvu --kv-unified -no-kvu --no-kv-unified -kvo --kv-offload -nkvo --no-kv-offload "
     "--context-shift --no-context-shift --swa-full --repack -nr --no-repack --no-host "
     "--op-offload --no-op-offload --mlock --mmap --no-mmap -dio --direct-io -ndio --no-direct-io "
     "--check-tensors --warmup --no-warmup -cmoe --cpu-moe",
     CLI_IGNORED},

    /* Ignored: logs. */
    {"-lv --verbosity --log-verbosity --log-file --log-colors -hft --hf-token", CLI_IGNORED,
     "VALUE"},
    {"--perf --no-perf -v --verbose --log-verbose --log-disable --log-prefix --no-log-prefix "
     "--log-timestamps --no-log-timestamps --offline",
     CLI_IGNORED},

    /* Ignored: generation, of which there is none here. */
    {"-n --predict --n-predict --keep -s --seed --samplers --sampler-seq --sampling-seq "
     "--temp --temperature --top-k --top-p --min-p --top-nsigma --top-n-sigma --xtc-probability "
     "--xtc-threshold --typical --typical-p --repeat-last-n --repeat-penalty --presence-penalty "
     "--frequency-penalty --dry-multiplier --dry-base --dry-allowed-length --dry-penalty-last-n "
     "--dry-sequence-breaker --adaptive-target --adaptive-decay --dynatemp-range --dynatemp-exp "
     "--mirostat --mirostat-lr --mirostat-ent -l --logit-bias --grammar --grammar-file "
     "-j --json-schema -jf --json-schema-file",
     CLI_IGNORED, "VALUE"},
    {"--ignore-eos -bs --backend-sampling", CLI_IGNORED},

    /* Refused: each would change what is computed or written. */
    {"-ctk --cache-type-k", CLI_REFUSED, "TYPE",
     "keys are held in float32, a rounded cache is not implemented; leave the option out, or say "
     "f32",
     .choices = "f32", .env = "LLAMA_ARG_CACHE_TYPE_K"},
    {"-ctv --cache-type-v", CLI_REFUSED, "TYPE",
     "values are held in float32, a rounded cache is not implemented; leave the option out, or say "
     "f32",
     .choices = "f32", .env = "LLAMA_ARG_CACHE_TYPE_V"},
    {"--lora --lora-scaled", CLI_REFUSED, "FILE",
     "adapters are not implemented; merge it into the model first"},
    {"--control-vector --control-vector-scaled", CLI_REFUSED, "FILE",
     "control vectors are not implemented"},
    {"--control-vector-layer-range", CLI_REFUSED, "START END",
     "control vectors are not implemented", .n_values = 2},
    {"--in-file", CLI_REFUSED, "FILE",
     "llama-perplexity reads no text from it; name the text with -f"},
    {"-mu --model-url -dr --docker-repo -hf -hfr --hf-repo -hff --hf-file", CLI_REFUSED, "NAME",
     "nothing is downloaded; name a file with -m"},
    {"-cl --cache-list", CLI_REFUSED, NULL, "nothing is downloaded, so there is no such list"},
    {"--list-devices", CLI_REFUSED, NULL,
     "there is no such list; assay version tells what is used here"},
    {"--completion-bash", CLI_REFUSED, NULL, "there is no such script"},
    {"--version", CLI_REFUSED, NULL, "assay version prints it"},
    {0},
};
