/*
 * Every allocation of what reads and writes files fails once, alone and with all that follow: the
 * status is STATUS_MEMORY, with a sentence, and no file is left behind. AddressSanitizer sees what
 * is not released.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eval/input/requests.h"
#include "eval/metrics/groups.h"
#include "eval/metrics/stop.h"
#include "eval/reference/compact_source.h"
#include "eval/reference/compact_writer.h"
#include "eval/reference/logits_source.h"
#include "eval/reference/logits_writer.h"
#include "eval/run/difference.h"
#include "eval/run/journal.h"
#include "eval/tasks/dataset.h"
#include "evaluation.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/failing_alloc.h"
#include "tests/harness/temp.h"

#define Q4 ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf"
enum { N_CTX = 32, N_WINDOWS = 2 };

static char folder[64], path[128], journal_path[128];
static struct evaluation prepared;

/** What is tried: it releases everything that it makes, whatever its outcome. */
typedef enum status (*attempt)(struct status_why *why);

static void clean_folder(size_t n)
{
    unlink(journal_path);
    if (rmdir(folder) != 0)
        fail_msg("allocation %zu: something is left in %s", n, folder);
    temp_make(folder);
    temp_path(path, folder, "recording");
    temp_path(journal_path, folder, "journal");
}

/**
 * n_spared: failures that it gets over, since what they are for is best effort: the forecast
 * of a scorer's memory.
 * Returns how many allocations there are.
 */
static size_t fail_each(attempt try, size_t n_spared)
{
    size_t n = 0, n_refused = 0;
    for (bool failed = true; failed; n++)
        for (int all_later = 0; all_later < 2; all_later++) {
            struct status_why why = {""};
            failing_alloc_begin(n, all_later);
            enum status status = try(&why);
            failed = failing_alloc_end();
            bool refused = status == STATUS_MEMORY && *why.text;
            if (refused ? !failed : status != STATUS_OK)
                fail_msg("allocation %zu: %s: %s", n, status_name(status), why.text);
            n_refused += refused && !all_later;
            clean_folder(n);
        }
    assert_int_equal(n_refused, n - 1 - n_spared);
    return n_refused;
}

static enum status parse_tasks(enum eval_choice_kind kind, const char *text, struct status_why *why)
{
    char bytes[256];
    size_t n = (size_t)snprintf(bytes, sizeof bytes, "%s", text);
    struct eval_dataset dataset;
    const struct eval_dataset_options options = {.kind = kind};
    enum status status = eval_dataset_json(&dataset, &options, bytes, n, why);
    if (status == STATUS_OK)
        eval_dataset_free(&dataset);
    return status;
}

static enum status parse_winogrande(struct status_why *why)
{
    return parse_tasks(EVAL_WINOGRANDE,
                       "{\"sentence\": \"a _ c\", \"option1\": \"b\", \"option2\": \"d\", "
                       "\"answer\": \"1\"}\n",
                       why);
}

static enum status parse_multiple_choice(struct status_why *why)
{
    return parse_tasks(EVAL_MULTIPLE_CHOICE,
                       "{\"question\": \"q\", \"choices\": [\"a\", \"b\"], \"answer\": 1}\n", why);
}

static enum status parse_requests(struct status_why *why)
{
    char bytes[] =
        "{\"context\": \"a\", \"continuation\": \"b\", \"id\": [1]}\n{\"text\": \"a\"}\n";
    struct eval_requests requests;
    enum status status = eval_requests_read(&requests, bytes, sizeof bytes - 1, why);
    if (status == STATUS_OK)
        eval_requests_free(&requests);
    return status;
}

/** From JSON over windows to figures. */
static enum status read_documents(struct status_why *why)
{
    char bytes[] = "[{\"text\": \"a b\", \"category\": \"c\", \"id\": 1}, {\"text\": \"\"},\n"
                   "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}]";
    static const char template[] = "{% for m in messages %}<|x|>{{ m.content }}{% endfor %}";
    const struct eval_document_rules rules = {.tokenizer = model_tokenizer(prepared.model),
                                              .chat_template = {template, sizeof template - 1},
                                              .mask = MODEL_CHAT_ALL};
    enum eval_json kind;
    const struct base_text text = {.sha256 = "0"};
    const struct eval_plan_options options = {.n_ctx = 3, .bos = 1};
    struct eval_documents d = {.rules = &rules};
    struct eval_plan plan = {0};
    struct eval_table table = {0};
    struct eval_groups groups = {0};
    struct eval_stop stop = {0};
    enum status status = eval_documents_begin_file(&d, "f", &text, why);
    if (!status)
        status = eval_documents_recognise(&kind, bytes, sizeof bytes - 1, why);
    if (!status)
        status = eval_documents_add_objects(&d, bytes, sizeof bytes - 1, why);
    if (!status)
        status = eval_documents_end(&d, why);
    if (!status)
        status = eval_plan_make_documents(&plan, &options, &d, why);
    if (!status)
        status = eval_table_make_for(&table, EVAL_N_COLUMNS, &plan, why);
    const struct eval_kld_tables tables = {&plan, &d.stream, NULL, &table};
    if (!status)
        status = eval_groups_make(&groups, &d, &tables, why);
    if (!status)
        status = eval_stop_make(&stop, 1, 1, why);
    eval_stop_free(&stop);
    eval_groups_free(&groups);
    eval_table_free(&table);
    eval_plan_free(&plan);
    eval_documents_free(&d);
    return status;
}

static enum status find_difference(struct status_why *why)
{
    struct eval_difference difference;
    return eval_difference_find(&difference, "{\"a\": [1, {}]}", "{\"a\": [1, {\"b\": 2}]}", why);
}

static enum status keep_journal(struct status_why *why)
{
    static const char settings[] = "{\"n_ctx\": 512}";
    double values[100] = {1};
    bool found = false;
    struct eval_journal *journal = NULL;
    enum status status = eval_journal_open(&journal, journal_path, settings, why);
    for (size_t n = 1; n <= 100 && status == STATUS_OK; n += 99)
        status = eval_journal_append(journal, values, n, why);
    eval_journal_close(journal);
    if (status == STATUS_OK)
        status = eval_journal_open(&journal, journal_path, settings, why);
    else
        return status;
    if (status == STATUS_OK)
        status = eval_journal_read(journal, values, 1, &found, why);
    eval_journal_close(journal);
    assert_true(found || status != STATUS_OK);
    return status;
}

static void what_is_read(void **state)
{
    (void)state;
    static const attempt attempts[] = {parse_winogrande, parse_multiple_choice, parse_requests,
                                       read_documents,   find_difference,       keep_journal};
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
        assert_true(fail_each(attempts[i], 0) > 2);
}

/** Run what is prepared, with a journal; its rows go to the sink. */
static enum status run_into(const struct eval_row_sink *sink, struct status_why *why)
{
    struct setup setup = {.sink = sink, .batch_tokens = N_CTX};
    enum status status =
        eval_journal_open(&setup.run.journal, journal_path, "{\"window\": 1}", why);
    if (status == STATUS_OK)
        status = evaluation_run(&prepared, &setup, why);
    eval_journal_close(setup.run.journal);
    memset(prepared.table.done, 0, N_WINDOWS * sizeof *prepared.table.done);
    return status;
}

static enum status record_logits(struct status_why *why)
{
    struct eval_logits_recording recording = {.path = path,
                                              .plan = &prepared.plan,
                                              .stream = &prepared.stream,
                                              .n_vocab = model_head(prepared.model)->n_rows,
                                              .journal = true};
    struct eval_writer *writer = NULL;
    enum status status = eval_logits_writer_open(&writer, &recording, why);
    if (status != STATUS_OK)
        return status;
    struct eval_row_sink sink = eval_writer_sink(writer);
    status = run_into(&sink, why);
    if (status != STATUS_OK) {
        eval_writer_close(writer, false);
        return status;
    }
    status = eval_writer_commit(writer, why);
    struct eval_logits_file file = {0};
    char id[BASE_HEX];
    if (status == STATUS_OK)
        status = eval_logits_open(&file, path, why);
    if (status == STATUS_OK)
        status = eval_logits_id(id, &file, why);
    eval_logits_close(&file);
    unlink(path);
    return status;
}

/** Everything that a comparison does with a compact base before the first product. */
static enum status use_compact(struct status_why *why)
{
    struct eval_compact_file file = {0};
    struct eval_compact_reading reading = {0};
    struct eval_row_source source;
    struct eval_stream stream = {0};
    char id[BASE_HEX];
    enum status status = eval_compact_open(&file, path, why);
    if (status == STATUS_OK)
        status = eval_compact_stream(&stream, &file, why);
    if (status == STATUS_OK)
        status = eval_compact_id(id, &file, why);
    if (status == STATUS_OK)
        status = eval_compact_check_vocab(&file, prepared.model, NULL, why);
    for (size_t w = 0; w < N_WINDOWS && status == STATUS_OK; w++)
        status = eval_compact_check_window(&file, w, why);
    if (status == STATUS_OK)
        status = eval_compact_source_open(&source, &reading, &file, 0, why);
    eval_compact_source_close(&reading);
    eval_stream_free(&stream);
    eval_compact_close(&file);
    return status;
}

static enum status record_compact(struct status_why *why)
{
    static const char id[BASE_HEX] =
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    struct eval_compact_recording recording = {.path = path,
                                               .model = prepared.model,
                                               .model_id = id,
                                               .plan = &prepared.plan,
                                               .stream = &prepared.stream,
                                               .kind = EVAL_COMPACT_F16,
                                               .description = "{}"};
    struct eval_writer *writer = NULL;
    enum status status = eval_compact_writer_open(&writer, &recording, why);
    if (status != STATUS_OK)
        return status;
    struct eval_row_sink sink = eval_writer_sink(writer);
    status = run_into(&sink, why);
    if (status != STATUS_OK) {
        eval_writer_close(writer, false);
        return status;
    }
    status = eval_writer_commit(writer, why);
    if (status == STATUS_OK)
        status = use_compact(why);
    unlink(path);
    return status;
}

static void what_is_recorded(void **state)
{
    (void)state;
    assert_true(fail_each(record_logits, 3) > 10);
    assert_true(fail_each(record_compact, 2) > 20);
}

static int prepare(void **state)
{
    (void)state;
    struct setup setup = {.model = Q4,
                          .text = ASSAY_SOURCE_DIR "/data/text.txt",
                          .plan = {.n_ctx = N_CTX, .max_windows = N_WINDOWS},
                          .cpu = {.isa_cap = KERN_ISA_COUNT - 1, .n_threads = 1}};
    evaluation_open(&prepared, &setup);
    temp_make(folder);
    temp_path(path, folder, "recording");
    temp_path(journal_path, folder, "journal");
    return 0;
}

static int release(void **state)
{
    (void)state;
    evaluation_close(&prepared);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read),
        cmocka_unit_test(what_is_recorded),
    };
    return cmocka_run_group_tests(tests, prepare, release);
}
