/*
 * Options of llama-perplexity and of ik_llama.cpp's perplexity that mean nothing here.
 * docs/drop-in.md says of which versions, and lists them; tests/cli/peer-options.tsv is what it is
 * made of.
 */
#include "cli/options/common.h"

#define CACHE_TYPES                                                                                \
    "expected f32, f16 or bf16, of which the last two are not rounded to; -ctk and -ctv round "    \
    "some layers otherwise, and -ctk an indexer's keys: q8_0,layers 0-3:f16,indexer:q8_0"
#define NOT_ROUNDED                                                                                \
    "keys and values of the first and last layers are rounded as the others are: by -ctk and -ctv"
#define NOT_FETCHED "nothing is downloaded; "

const struct cli_option cli_foreign_options[] = {
    /* Ignored: placement of threads. */
    {"-C --cpu-mask -Cr --cpu-range --cpu-strict --prio --poll -Cb --cpu-mask-batch "
     "-Crb --cpu-range-batch --cpu-strict-batch --prio-batch --poll-batch --numa",
     CLI_IGNORED, "VALUE"},

    /* Ignored: how the computation is cut up, and where it and the weights are kept. */
    {"-ub --ubatch-size -np --parallel -dt --defrag-thold -lm --load-mode -lzm --lazy-mode "
     "-ot --override-tensor -ncmoe --n-cpu-moe -ncffn --n-cpu-ffn -sm --split-mode -ts "
     "--tensor-split -mg --main-gpu "
     "-fitt --fit-target -fitc --fit-ctx --rpc",
     CLI_IGNORED, "VALUE"},
    {"-fa --flash-attn -fit --fit --context-shift", CLI_IGNORED, "ON",
     .choices = "on off auto 1 0 -1 true false enabled disabled"},
    {"-kvu --kv-unified -no-kvu --no-kv-unified -kvo --kv-offload -nkvo --no-kv-offload "
     "--no-context-shift --swa-full --repack -nr --no-repack --no-host "
     "--op-offload --no-op-offload --mlock --mmap --no-mmap -dio --direct-io -ndio --no-direct-io "
     "--check-tensors --warmup --no-warmup -cmoe --cpu-moe",
     CLI_IGNORED},

    /* Ignored: the same, options of ik_llama.cpp, and of older versions of both. */
    {"-mea --max-extra-alloc -nrep --n-repetitions -a --alias -mla --mla-use -amb "
     "--attention-max-batch --max-gpu -gfm --gpu-fit-margin -cuda --cuda-params "
     "--prefetch-experts-threads --fit-margin -wgt --worst-graph-tokens -fdn --fused-delta-net "
     "-grt --graph-reduce-type -gap --graph-attn-precision -ld --logdir -op --offload-policy",
     CLI_IGNORED, "VALUE"},
    {"-dkvc --dump-kv-cache -no-fa --no-flash-attn -fidx --fused-indexer-topk --swa-compress "
     "-no-fmoe --no-fused-moe -no-fug --no-fused-up-gate -no-mmad --no-fused-mul-multiadd -rcache "
     "--rope-cache -gr --graph-reuse -no-gr --no-graph-reuse --defer-experts --prefetch-experts "
     "-rtr --run-time-repack -thp --transparent-huge-pages -vq --validate-quants -mqkv --merge-qkv "
     "-muge --merge-up-gate-experts -khad --k-cache-hadamard -vhad --v-cache-hadamard -smgs "
     "--split-mode-graph-scheduling -sas --scheduler-async -smf16 --split-mode-f16 -smf32 "
     "--split-mode-f32 --perplexity --all-logits -no-ooae --no-offload-only-active-experts -wb "
     "--warmup-batch --log-test --log-enable --log-new --log-append -fmoe --fused-moe "
     "--merge-up-gate-expsrts --memory-f32 -nommq --no-mul-mat-q",
     CLI_IGNORED},

    /* Ignored: logs. */
    {"-lv --verbosity --log-verbosity --log-file --log-colors -hft --hf-token", CLI_IGNORED,
     "VALUE"},
    {"--perf --no-perf -v --verbose --log-verbose --log-disable --log-prefix --no-log-prefix "
     "--log-timestamps --no-log-timestamps --log-jsonl --no-log-jsonl --offline",
     CLI_IGNORED},

    /* Ignored: generation, which assay does not do. */
    {"-n --predict --n-predict --keep -s --seed --samplers --sampler-seq --sampling-seq "
     "--temp --temperature --top-k --top-p --min-p --top-nsigma --top-n-sigma --xtc-probability "
     "--xtc-threshold --typical --typical-p --repeat-last-n --repeat-penalty --presence-penalty "
     "--frequency-penalty --dry-multiplier --dry-base --dry-allowed-length --dry-penalty-last-n "
     "--dry-sequence-breaker --adaptive-target --adaptive-decay --dynatemp-range --dynatemp-exp "
     "--mirostat --mirostat-lr --mirostat-ent -l --logit-bias --grammar --grammar-file "
     "-j --json-schema -jf --json-schema-file",
     CLI_IGNORED, "VALUE"},
    {"--tfs --cfg-negative-prompt --cfg-negative-prompt-file --cfg-scale --banned-string-file "
     "--banned-n --allowlist-unicode-rule --allowlist-pieces --allowlist-keyword "
     "--allowlist-keyword-delay --expiring-logit-bias-file",
     CLI_IGNORED, "VALUE"},
    {"--ignore-eos -bs --backend-sampling --adaptive-updt-w-cur --penalize-nl --no-penalize-nl",
     CLI_IGNORED},

    /* Refused: each would change what is computed or written. */
    {"-ctk-first --cache-type-k-first -ctk-last --cache-type-k-last -ictk --indexer-cache-type-k "
     "-ctv-first --cache-type-v-first -ctv-last --cache-type-v-last",
     CLI_REFUSED, "TYPE", CACHE_TYPES, .choices = "f32 f16 bf16", .note = NOT_ROUNDED},
    {"--lora --lora-scaled --lora-base --lora-init-without-apply", CLI_REFUSED, "FILE",
     "adapters are not implemented; merge it into the model first"},
    {"--control-vector --control-vector-scaled --control-vector-layer-range", CLI_REFUSED, "FILE",
     "control vectors are not implemented"},
    {"-ser --smart-expert-reduction", CLI_REFUSED, "N,X",
     "leaving out experts by their shares is not implemented (--experts-used N takes the N best); "
     "-1,0 leaves out none",
     .choices = "-1,0"},
    {"--attention", CLI_REFUSED, "NAME", "attention is causal here", .choices = "causal"},
    {"-ger --grouped-expert-routing -dsa --dsa -dsatk --dsa-top-k", CLI_REFUSED, "VALUE",
     "it is for architectures that are not implemented; leave it out"},

    /* Refused: names of models that would be fetched. */
    {"-hf -hfr --hf-repo", CLI_INSTEAD, "REPO",
     NOT_FETCHED "take the file from https://huggingface.co/REPO/tree/main (of several, that with "
                 "the name after the colon, or Q4_K_M), and name it with -m",
     .env = "LLAMA_ARG_HF_REPO"},
    {"-hff --hf-file", CLI_INSTEAD, "FILE",
     NOT_FETCHED "take the file from its repository, and name it with -m",
     .env = "LLAMA_ARG_HF_FILE"},
    {"-mu --model-url", CLI_INSTEAD, "URL",
     NOT_FETCHED "take the file from there (curl -LO URL), and name it with -m",
     .env = "LLAMA_ARG_MODEL_URL"},
    {"-dr --docker-repo", CLI_INSTEAD, "NAME",
     NOT_FETCHED "pull the model (docker model pull NAME), and name its GGUF file with -m; "
                 "ik_llama.cpp's -dr is --dry-run here",
     .env = "LLAMA_ARG_DOCKER_REPO"},

    /* Answered. */
    {"-cl --cache-list", CLI_ANSWER, NULL, "nothing is downloaded, so there is no such list"},
    {"--list-devices", CLI_ANSWER, NULL,
     "--device takes cpu, cuda and cuda:N; nvidia-smi -L lists the latter"},
    {"--completion-bash", CLI_ANSWER, NULL, "# there is no such script"},
    {"--license", CLI_ANSWER, NULL, "the file LICENSE has it"},
    {"--version", CLI_ANSWER, NULL, "assay " ASSAY_VERSION "; assay version says more"},
    {0},
};

const struct cli_option cli_other_programs_options[] = {
    /* Ignored: generation, chats, servers, speculation, images, embeddings, other programs. */
    {"-tm --threads-mtmd -td --threads-draft -tbd --threads-batch-draft --prompt-cache -cd "
     "--ctx-size-draft -gan --grp-attn-n -gaw --grp-attn-w --pooling --draft --draft-max --draft-n "
     "--draft-min --draft-n-min --draft-p-min --spec-ckpt-mode --recurrent-ckpt-mode -ns "
     "--sequences -ps --p-split -md --model-draft --spec-stage --spec-type --spec-ngram-size-n "
     "--spec-ngram-size-m --spec-ngram-min-hits --suffix-pattern-len --suffix-max-depth "
     "--suffix-corpus --mmproj --mmproj-url --mtmd-kq-type --image --audio --image-min-tokens "
     "--image-max-tokens --embd-normalize --embd-output-format --embd-separator -mtprot "
     "--mtp-requantize-output-tensor -ctkd --cache-type-k-draft -ctvd --cache-type-v-draft -ngld "
     "--gpu-layers-draft --n-gpu-layers-draft -draft --draft-params -devd --device-draft -r "
     "--reverse-prompt -lcs --lookup-cache-static -lcd --lookup-cache-dynamic -ptc "
     "--print-token-count --in-prefix --in-suffix --host --port --path --webui --api-key "
     "--api-key-file --ssl-key-file --ssl-cert-file -to --timeout --threads-http -spf "
     "--system-prompt-file --log-format --slot-save-path --reasoning-tokens --reasoning-budget "
     "--sql-save-file --sqlite-zstd-ext-file "
     "--chat-template-kwargs --reasoning-format -rea --reasoning --reasoning-budget-message -sps "
     "--slot-prompt-similarity -npp -ntg -npl --context-file --chunk-size --chunk-separator --junk "
     "-ctx-ckpt --ctx-checkpoints -ctx-ckpt-i --ctx-checkpoints-interval -ctx-ckpt-t "
     "--ctx-checkpoints-tolerance -ctx-ckpt-e --ctx-checkpoints-eviction -cram --cache-ram -crs "
     "--cache-ram-similarity -cram-n-min --cache-ram-n-min --pos -o --output --output-file "
     "--output-draft --draft-output --draft-output-file -ofreq --output-frequency --save-frequency "
     "--output-tensor-name --positive-file --negative-file --pca-batch --pca-iter --method "
     "--output-format --in-file -hfd -hfrd --hf-repo-draft -hfv -hfrv --hf-repo-v -hffv "
     "--hf-file-v -pa --p-accept --spec-draft-type-k --spec-draft-type-v",
     CLI_IGNORED, "VALUE"},
    {"--prompt-cache-all --prompt-cache-ro --spec-autotune --no-mmproj-offload -i --interactive "
     "-sp --special --embedding --embeddings -if --interactive-first -cnv --conversation --infill "
     "-mli --multiline-input --simple-io -cb --cont-batching -nocb --no-cont-batching -co --color "
     "-mtp --multi-token-prediction -no-mtp --no-multi-token-prediction --verbose-prompt "
     "--no-display-prompt --in-prefix-bos --spm-infill --send-done --webui-mcp-proxy "
     "--ui-mcp-proxy --no-slots --metrics --jinja --peg --skip-chat-parsing --no-prefill-assistant "
     "-ptcall --parallel-tool-calls -pps --process-output --no-ppl --minilog --chatml -cml "
     "--instruct -ins --random-prompt",
     CLI_IGNORED},
    {"--spec-replace", CLI_IGNORED, "FROM TO", .n_values = 2},

    {"--chunk --from-chunk", CLI_REFUSED, "N",
     "llama-perplexity takes it and does nothing with it; give --chunks N, which evaluates N "
     "windows, or --chunk-from N, which leaves "
     "out the first N"},
    {0},
};
