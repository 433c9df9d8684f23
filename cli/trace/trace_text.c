/* The lines of assay trace. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/trace/trace_command.h"

/* The axes as llama.cpp has them, the fastest first: what it keeps in one is flat. */
static void axes_of(const struct trace_tensor *t, uint64_t ne[3])
{
    bool flat = t->n_heads == 1 || t->place == MODEL_AT_Q_PROJECTED ||
                t->place == MODEL_AT_K_PROJECTED || t->place == MODEL_AT_V_PROJECTED ||
                t->place == MODEL_AT_ATTENTION || t->place == MODEL_AT_GATED;
    ne[0] = flat ? t->n_heads * t->size : t->size;
    ne[1] = flat ? t->n_rows : t->n_heads;
    ne[2] = flat ? 1 : t->n_rows;
}

/* Steps over what is not shown: the index after i, printing the sign for it. */
static size_t shown_next(size_t i, uint64_t n, const char *sign)
{
    if (++i == TRACE_PRINTED_ENDS && n > 2 * TRACE_PRINTED_ENDS) {
        fputs(sign, stdout);
        return (size_t)n - TRACE_PRINTED_ENDS;
    }
    return i;
}

static void print_row(const float *row, uint64_t n)
{
    fputs("            [", stdout);
    for (size_t i = 0; i < n;) {
        printf("%12.4f", (double)row[i]);
        if (i + 1 < n)
            fputs(", ", stdout);
        i = shown_next(i, n, "   ..., ");
    }
    puts("  ],");
}

void cli_trace_print_tensor(const struct trace_tensor *t)
{
    char name[TRACE_NAME_BYTES];
    uint64_t ne[3];
    struct base_string op = trace_place_op(t->place);
    axes_of(t, ne);
    printf(
        "assay_trace: %24s = (f32) %10.*s() = {%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", 1}\n    [\n",
        trace_tensor_name(name, t->place, t->layer), (int)op.n_bytes, op.data, ne[0], ne[1], ne[2]);
    for (size_t i = 0; i < ne[2]; i = shown_next(i, ne[2], "        ..., \n")) {
        puts("        [");
        for (size_t j = 0; j < ne[1]; j = shown_next(j, ne[1], "            ..., \n"))
            print_row(t->values + (i * ne[1] + j) * ne[0], ne[0]);
        puts("        ],");
    }
    struct trace_tensor_figures f = trace_tensor_figures(t, t->n_rows);
    printf("    ]\n    sum = %f\n    norm = %g, largest = %g, not finite = %zu\n", f.sum, f.norm,
           f.largest, f.n_nonfinite);
}

/* "positions 128 and up", "positions 3 to 9 (4 of 7)", "position 5" */
static int print_positions(char *out, size_t capacity, const struct trace_distance *d)
{
    if (d->n_rows_off == 0)
        return snprintf(out, capacity, "%s",
                        d->sum > fmax(d->rms, d->most)
                            ? "positions that are not printed, by the sum"
                            : "all positions");
    if (d->n_rows_off == d->n_rows_seen && d->n_rows_off > 1)
        return snprintf(out, capacity, "positions %zu and up", d->first_row);
    if (d->n_rows_off == 1)
        return snprintf(out, capacity, "position %zu", d->first_row);
    return snprintf(out, capacity, "positions %zu to %zu (%zu of %zu)", d->first_row, d->last_row,
                    d->n_rows_off, d->n_rows_seen);
}

const char *cli_trace_departure(char out[CLI_TRACE_SENTENCE], const struct trace_distance *d)
{
    const struct trace_tensor *t = d->tensor;
    char name[TRACE_NAME_BYTES + 16], positions[96], heads[64] = "";
    if (t->place == MODEL_AT_EXPERTS) {
        snprintf(out, CLI_TRACE_SENTENCE,
                 "%s, the chosen experts: %zu others from position %zu on, where no near tie "
                 "explains it",
                 trace_record_name(name, d->record), d->n_wrong_experts, d->first_row);
        return out;
    }
    print_positions(positions, sizeof positions, d);
    const char *what = t->place >= MODEL_AT_EXPERT_GATE && t->place <= MODEL_AT_EXPERT_OUT
                           ? "expert in slot"
                           : "head";
    if (t->n_heads > 1 && d->n_heads_off == 1)
        snprintf(heads, sizeof heads, ", %s %zu", what, d->first_head);
    else if (t->n_heads > 1 && d->n_heads_off > 1 && d->n_heads_off < t->n_heads)
        snprintf(heads, sizeof heads, ", %zu of %zu heads", d->n_heads_off, t->n_heads);
    double times = fmax(d->rms, d->most);
    snprintf(out, CLI_TRACE_SENTENCE, "%s%s%s, %s: %s%s; %.3g times the expected error",
             trace_record_name(name, d->record), *d->record->op ? " " : "", d->record->op,
             trace_place_meaning(t->place), positions, heads,
             isnan(d->sum) ? times : fmax(times, d->sum));
    return out;
}

static void print_distance(const struct trace_distance *d)
{
    char name[TRACE_NAME_BYTES + 16], where[64], label[TRACE_NAME_BYTES + 56];
    const struct trace_tensor *t = d->tensor;
    snprintf(label, sizeof label, "%s %s", trace_record_name(name, d->record), d->record->op);
    if (t->place == MODEL_AT_EXPERTS) {
        printf("%-36s %zu of %zu chosen experts are others%s\n", label, d->n_other_experts,
               d->n_values,
               d->departs           ? "  departs"
               : d->n_other_experts ? ", near ties"
                                    : "");
        return;
    }
    snprintf(where, sizeof where, t->n_heads > 1 ? "%zu/%zu" : "%zu", d->row, d->head);
    printf("%-36s %9.2e %9.3g %9.3g %12s ", label, d->error, d->rms, d->most, where);
    if (isnan(d->sum))
        printf("%9s", "-");
    else
        printf("%9.3g", d->sum);
    puts(d->departs ? "  departs" : "");
}

void cli_trace_print_distances(const struct trace *trace, const struct trace_distances *distances,
                               const struct cli_trace_alone *alone)
{
    char text[CLI_TRACE_SENTENCE];
    printf("%-36s %9s %9s %9s %12s %9s\n", "tensor", "expected", "distance", "largest", "at",
           "sum");
    for (size_t i = 0; i < distances->n; i++)
        print_distance(&distances->items[i]);
    printf(
        "\nCompared: %zu tensors, %zu tokens, %zu passes that round; %zu more are not in the file",
        distances->n, trace->n_tokens, trace->n_passes, alone->n);
    if (alone->n)
        printf(" (%s ...)", alone->first);
    if (distances->n_diverged)
        printf(
            "\nNearly tied experts: %zu position%s took others, and %s not compared from there on",
            distances->n_diverged, status_plural(distances->n_diverged),
            distances->n_diverged == 1 ? "is" : "are");
    if (distances->first_departure == distances->n)
        puts("\nNo departure");
    else
        printf("\nFirst departure: %s\n",
               cli_trace_departure(text, &distances->items[distances->first_departure]));
}
