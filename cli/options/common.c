/*
 * Options that several commands share. llama-perplexity's keep its meaning and all of its
 * spellings, in three kinds: implemented; unable to change a number here, therefore
 * accepted and ignored; able to, and not implemented, therefore refused.
 */
#include "cli/options/common.h"

#include <string.h>

#include "base/file/folder.h"
#include "eval/input.h"

enum { ANY = INT32_MAX };

#define TEXT(member)    offsetof(struct cli_text_settings, member)
#define OUTPUT(member)  offsetof(struct cli_output_settings, member)
#define MACHINE(member) offsetof(struct cli_machine_settings, member)

void cli_evaluate_defaults(struct cli_evaluate_settings *settings)
{
    *settings = (struct cli_evaluate_settings){.machine.isa = CLI_ISA_AUTO};
    cli_model_defaults(&settings->load);
}

const char *cli_precision_name(int precision)
{
    static const char *const names[] = {
        [CLI_PRECISION_HIGH] = "high",
        [CLI_PRECISION_EXACT] = "exact",
        [CLI_PRECISION_FAST] = "fast",
    };
    return names[precision];
}

const struct cli_option cli_special_options[] = {
    {"--parse-special", CLI_ON, NULL,
     "take names of control tokens in the text as those tokens (default: as plain text)"},
    {0},
};

const struct cli_chat_settings cli_chat_defaults = {.mask = -1, .usual = MODEL_CHAT_ASSISTANT};

bool cli_text_given(const struct cli_text_settings *s)
{
    return s->text_file || s->binary_file || s->prompt || s->texts.n;
}

bool cli_text_is_lines(const char *path)
{
    size_t n = strlen(path), n_suffix = strlen(".jsonl");
    return n >= n_suffix && strcmp(path + n - n_suffix, ".jsonl") == 0;
}

/* Whether one -f is documents. */
static bool is_documents(const struct cli_text_settings *s, const char *path)
{
    return base_is_folder(path) || (cli_text_is_lines(path) && !s->force_text);
}

void cli_text_settle(struct cli_text_settings *s)
{
    if (s->texts.n == 1 && !is_documents(s, s->texts.items[0]))
        s->text_file = s->texts.items[0];
}

bool cli_text_documents(const struct cli_text_settings *s)
{
    return s->texts.n && !s->text_file;
}

enum status cli_chat_check(const struct cli_chat_settings *s, size_t n_conversations,
                           struct status_why *why)
{
    const char *given = s->chat_template  ? "--chat-template"
                        : s->mask >= 0    ? "--mask"
                        : s->skip_refused ? "--skip-refused"
                                          : NULL;
    return given && !n_conversations
               ? status_fail(why, STATUS_USAGE,
                             "%s is for conversations, and the text has none; expected JSON "
                             "objects with \"messages\" or another form of docs/chats.md, or leave "
                             "it out",
                             given)
               : STATUS_OK;
}

enum status cli_text_check_single(const struct cli_text_settings *s, const char *what,
                                  struct status_why *why)
{
    const char *path = cli_text_documents(s) ? s->texts.items[0] : s->texts.n ? NULL : s->text_file;
    if (s->texts.n > 1)
        return status_fail(why, STATUS_USAGE,
                           "-f: given %zu times; %s takes one text, assay perplexity and assay kld "
                           "with a model as base take several",
                           s->texts.n, what);
    if (path && is_documents(s, path))
        return status_fail(
            why, STATUS_USAGE,
            "-f: %s is %s, which is documents (docs/protocols.md); %s takes one text%s", path,
            base_is_folder(path) ? "a folder" : "a file of JSON lines", what,
            base_is_folder(path) ? "" : ": --force-text evaluates the lines as they stand");
    return cli_chat_check(&s->chat, 0, why);
}

enum status cli_text_check(const struct cli_text_settings *s, struct status_why *why)
{
    bool by_f = s->text_file || cli_text_documents(s);
    int n_texts = by_f + (s->binary_file != NULL) + (s->prompt != NULL);
    if (n_texts != 1)
        return status_fail(why, STATUS_USAGE,
                           "expected exactly one text, by -f, -bf or -p; found %d", n_texts);
    return STATUS_OK;
}

const struct cli_option cli_template_options[] = {
    {"--chat-template --chat-template-file", CLI_TEXT, "FILE",
     "render conversations not with the model's template but with the one in this file, with this "
     "text if it has a {, or with one of: " MODEL_CHAT_KNOWN,
     offsetof(struct cli_chat_settings, chat_template)},
    {0},
};

const struct cli_option cli_chat_options[] = {
    {"--mask", CLI_CHOICE, "WHOSE",
     "which tokens of conversations are scored (docs/chats.md): assistant, what the assistant says "
     "and the token that ends its turn (default); user, what the user says; or all",
     offsetof(struct cli_chat_settings, mask), .choices = CLI_MASKS},
    {.type = CLI_GROUP, .group = cli_template_options, .offset = 0},
    {"--skip-refused", CLI_ON, NULL,
     "leave out conversations that the template refuses; their number is in the result (default: "
     "name them, and end)",
     offsetof(struct cli_chat_settings, skip_refused)},
    {0},
};

const char *cli_mask_name(int mask)
{
    static const char *const names[] = {
        [MODEL_CHAT_ASSISTANT] = "assistant", [MODEL_CHAT_USER] = "user", [MODEL_CHAT_ALL] = "all"};
    return names[mask];
}

static const struct cli_option more_text_options[] = {
    {"-bf --binary-file", CLI_TEXT, "FILE", "the text, every byte of it, the last newline too",
     TEXT(binary_file)},
    {"--force-text", CLI_ON, NULL,
     "evaluate the bytes of -f as they stand, without notes, also where they seem to be JSON, "
     "UTF-16 (which becomes UTF-8 otherwise), UTF-32, or no text at all",
     TEXT(force_text)},
    {"--strict", CLI_ON, NULL,
     "refuse a text that a note would warn of: it has a byte-order mark, lines that end in CR and "
     "LF, or JSON without documents, it is a page of the web or tasks, or the vocabulary lacks "
     "control tokens of its chat template. And models with more tokens than those that they are "
     "compared with",
     TEXT(strict)},
    {"-p --prompt", CLI_TEXT, "TEXT", "the text itself", TEXT(prompt)},
    {.type = CLI_GROUP, .group = cli_special_options, .offset = TEXT(parse_special)},
    {"-e --escape", CLI_ON, NULL,
     "replace \\n, \\r, \\t, \\', \\\", \\\\ and \\xHH in the text by what they stand for",
     TEXT(escape)},
    {"--no-escape", CLI_OFF, NULL, "leave \\n, \\t and the like in the text as they are (default)",
     TEXT(escape)},
    {0},
};

const struct cli_option cli_text_options[] = {
    {"-f --file", CLI_TEXT, "FILE",
     "the text, without its last newline if it ends with one; - reads standard input",
     TEXT(text_file), .usual = true},
    {.type = CLI_GROUP, .group = more_text_options, .offset = 0},
    {0},
};

static const struct cli_option files_options[] = {
    {"-f --file", CLI_EACH, "FILE",
     "the text, without its last newline if it ends with one; - reads standard input. Texts are "
     "documents, which no window spans (docs/protocols.md), if -f is given several times or names "
     "a folder, or if the file has JSON objects (lines, or a list) with \"text\", \"messages\", "
     "\"ids\", \"conversations\", \"instruction\" or \"prompt\", and with \"category\" if wanted",
     TEXT(texts), .usual = true},
    {0},
};

const struct cli_option cli_texts_options[] = {
    {.type = CLI_GROUP, .group = files_options, .offset = 0},
    {.type = CLI_GROUP, .group = cli_chat_options, .offset = TEXT(chat)},
    {.type = CLI_GROUP, .group = more_text_options, .offset = 0},
    {0},
};

const struct cli_option cli_rows_options[] = {
    {.type = CLI_GROUP, .group = files_options, .offset = 0},
    {"--mask", CLI_CHOICE, "WHOSE",
     "which rows of conversations count (docs/chats.md): all (default); assistant, those that "
     "predict what the assistant says and the token that ends its turn; or user, those that "
     "predict what the user says",
     TEXT(chat.mask), .choices = CLI_MASKS},
    {.type = CLI_GROUP, .group = cli_template_options, .offset = TEXT(chat)},
    {.type = CLI_GROUP, .group = more_text_options, .offset = 0},
    {0},
};

const struct cli_option cli_json_options[] = {
    {"--json", CLI_TEXT, "FILE",
     "write the result, with every setting, as JSON; - is standard output, and the lines then go "
     "to standard error",
     .usual = true},
    {0},
};

const struct cli_option cli_force_options[] = {
    {"--force", CLI_ON, NULL,
     "replace an output file whatever it is; without --force, only a file of the same kind is "
     "replaced (docs/files.md)"},
    {0},
};

const struct cli_option cli_output_options[] = {
    {.type = CLI_GROUP, .group = cli_json_options, .offset = OUTPUT(json_file)},
    {"--hash-model", CLI_ON, NULL,
     "add the SHA-256 of the model's whole file to the result; the model's id covers only its "
     "header and the beginnings of its tensors",
     OUTPUT(hash_model)},
    {.type = CLI_GROUP, .group = cli_force_options, .offset = OUTPUT(force)},
    {"-q --quiet", CLI_QUIET, NULL, "nothing but errors on standard error", .usual = true},
    {0},
};

const struct cli_option cli_device_options[] = {
    {"-dev --device", CLI_TEXT, "NAME",
     "the device: cpu (default), cuda, cuda:N, or auto (CUDA if there is a device, else the CPU). "
     "A list (cuda:0,cuda:1) shares the work; each device has its own copy of the weights. Under "
     "mpirun each process takes one of the list, by its number on its machine",
     MACHINE(device), .env = "LLAMA_ARG_DEVICE", .usual = true},
    {"-ngl --gpu-layers --n-gpu-layers", CLI_TEXT, "N",
     "0 means --device cpu; any other number, auto or all means --device auto, with all layers "
     "(--device wins)",
     MACHINE(gpu_layers), .env = "LLAMA_ARG_N_GPU_LAYERS"},
    {"-t --threads", CLI_COUNT, "N",
     "threads, of each device that is a CPU (default: one for each processor)", MACHINE(n_threads),
     -ANY, ANY, .env = "LLAMA_ARG_THREADS", .usual = true},
    {"-tb --threads-batch", CLI_COUNT, "N", "the same as -t, which it overrides",
     MACHINE(n_threads_batch), -ANY, ANY},
    {"--isa", CLI_CHOICE, "NAME", "use no instruction set above this one: " CLI_ISAS_NAMED,
     MACHINE(isa), .choices = CLI_ISAS, .env = "ASSAY_ISA"},
    {"--gemm", CLI_CHOICE, "NAME",
     "own: matrix products with the same bits everywhere (default); openblas: OpenBLAS's, whose "
     "bits depend on its version, the threads and the batch",
     MACHINE(gemm), .choices = "own openblas"},
    {"--precision", CLI_CHOICE, "NAME",
     "how matrix products are computed; docs/precision.md says how exact each is. high (default; "
     "in assay check: exact): quantised weights are integers, activations have 16 bits, other "
     "weights are float32; with AMX three bfloat16 products. exact: float32, the same bits "
     "everywhere. fast: as high, with 8 bits, in attention 16; with AMX one bfloat16 product. With "
     "CUDA the three are three products of halves, float32, one product of halves",
     MACHINE(precision), .choices = "high exact fast", .env = "ASSAY_PRECISION"},
    {0},
};

const struct cli_option cli_process_options[] = {
    {.type = CLI_HEADING,
     .help = "Machine (only --device, -ngl, --gemm, --precision and, with AMX, --isa can change a "
             "result)"},
    {"-b --batch-size", CLI_COUNT, "N",
     "tokens evaluated together, in whole windows or sequences, one at least (default: as many "
     "as take about 15 seconds)",
     MACHINE(n_batch), 1, ANY, .env = "LLAMA_ARG_BATCH"},
    {.type = CLI_GROUP, .group = cli_device_options},
    {0},
};

const struct cli_option cli_machine_options[] = {
    {.type = CLI_GROUP, .group = cli_process_options},
    {"--mpi", CLI_CHOICE, "NAME",
     "auto: the processes that mpirun or srun started share the work, and the first one writes "
     "(default); off: each evaluates by itself",
     MACHINE(mpi), .choices = "auto off", .env = "ASSAY_MPI"},
    {"--mpi-wait", CLI_COUNT, "SECONDS",
     "how long these processes wait for one another at the start (default: 120)", MACHINE(mpi_wait),
     1, ANY, .env = "ASSAY_MPI_WAIT"},
    {"--split", CLI_TEXT, "WHAT",
     "layers: under mpirun or srun each process has a range of the layers, in memory of its own, "
     "and batches pass from one to the next; for models larger than a machine's memory. layers:N: "
     "in groups of N processes, which take batches in turn",
     MACHINE(split)},
    {0},
};

const struct cli_rule cli_shared_rules[] = {
    {"--context-bins", CLI_NEEDS, "--context-curve"}, {"--watch", CLI_NEEDS, "--watch-status"},
    {"--watch-status", CLI_NEEDS, "--watch"},         {"--watch --watch-script", CLI_ONE_OF},
    {"--cache-file", CLI_NEEDS, "--cache"},           {0},
};

#define EVALUATE(member) offsetof(struct cli_evaluate_settings, member)

const struct cli_option cli_evaluate_options[] = {
    {"--state", CLI_TEXT, "FILE",
     "keep a journal of what is finished; the same command goes on where a killed run stopped",
     EVALUATE(state_file), .usual = true},
    {"--dry-run", CLI_ON, NULL,
     "only say what the run would take of time, memory and disk: assay plan", EVALUATE(dry_run)},
    {.type = CLI_GROUP, .group = cli_output_options, .offset = EVALUATE(output)},

    {.type = CLI_GROUP, .group = cli_machine_options, .offset = EVALUATE(machine)},
    {0},
};
