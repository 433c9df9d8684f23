/** Write a synthetic model (bench/synthetic.h). */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/synthetic.h"

static const char usage[] =
    "usage: make_model [--arch llama|qwen3|gemma3|qwen3moe] [--shape tiny|1b|8b] [--type NAME] "
    "[--vocab N]\n"
    "                  [--layers N] [--experts N] [--outliers] -o FILE\n"
    "Writes a synthetic model with random weights (default: llama, 1b, Q4_K).\n";

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"arch", required_argument, NULL, 'a'},   {"shape", required_argument, NULL, 's'},
        {"type", required_argument, NULL, 't'},   {"vocab", required_argument, NULL, 'v'},
        {"layers", required_argument, NULL, 'l'}, {"experts", required_argument, NULL, 'e'},
        {"outliers", no_argument, NULL, 'u'},     {NULL, 0, NULL, 0}};
    struct synthetic model = {.shape = "1b", .type = "Q4_K"};
    const char *path = NULL;
    bool bad = false;
    int option;
    while ((option = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
        if (option == 'o')
            path = optarg;
        else if (option == 'a')
            model.arch = optarg;
        else if (option == 's')
            model.shape = optarg;
        else if (option == 't')
            model.type = optarg;
        else if (option == 'v')
            model.n_vocab = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'l')
            model.n_layers = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'e')
            model.n_experts = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'u')
            model.outliers = true;
        else
            bad = true;
    }
    if (bad || !path || optind != argc) {
        fputs(usage, stderr);
        return 2;
    }
    struct status_why why = {""};
    enum status status = synthetic_write(&model, path, &why);
    if (status != STATUS_OK)
        fprintf(stderr, "make_model: %s\n", why.text);
    return status == STATUS_OK ? 0 : status == STATUS_USAGE ? 2 : 1;
}
