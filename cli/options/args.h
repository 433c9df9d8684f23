/**
 * Command-line options, driven by a list: one row says how an option is spelled, what it
 * sets, what help says of it and which environment variable stands in for it.
 *
 * A row's setting lives at an offset in the command's settings struct, which the caller
 * fills with defaults first. Order of precedence: command line, environment, what the
 * command reads before (`before`), default.
 */
#ifndef CLI_OPTIONS_ARGS_H
#define CLI_OPTIONS_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum cli_option_type {
    CLI_HEADING,  /* no option: `help` is a line above the rows that follow */
    CLI_GROUP,    /* no option: the rows of another list, whose settings live at `offset`. Its
                     own `help` is added to that of the first row: a command's default, say */
    CLI_ON,       /* bool: true */
    CLI_OFF,      /* bool: false */
    CLI_TEXT,     /* const char *: the argument as it stands */
    CLI_COUNT,    /* int64_t in [min, max] */
    CLI_COUNTS,   /* struct cli_counts: the same, or several with commas between */
    CLI_NUMBER,   /* double, finite */
    CLI_CHOICE,   /* int: index into `choices` */
    CLI_NAMED,    /* const void *: what `find` has of that name */
    CLI_KV,       /* struct cli_kv_list: types of caches, with commas between */
    CLI_LIST,     /* struct cli_list: comma-separated, may be given again; "a,b" quotes commas */
    CLI_EACH,     /* struct cli_list: the argument as it stands, may be given again */
    CLI_QUIET,    /* no setting: cli_args.quiet */
    CLI_OPERANDS, /* no option, struct cli_list: every argument that is none; not listed */
    CLI_IGNORED,  /* nothing: accepted, because it can change no number here. With `choices`
                     it takes a value only where the next argument is one of them, in any case. */
    CLI_REFUSED,  /* nothing: an error, because it could change a number; `help` says why.
                     A value that is one of `choices`, up to a comma, is what happens anyway:
                     accepted; any but the first with the note `note`. */
    CLI_INSTEAD,  /* as CLI_REFUSED; it stands for a required option, and its variable is an error
                     only where that is missing */
    CLI_ANSWER    /* nothing: `help` is printed, and nothing else is done */
};

struct cli_option {
    const char *names; /* every spelling, separated by single blanks */
    enum cli_option_type type;
    const char *value;   /* what help calls its argument; NULL: takes none */
    const char *help;    /* NULL: not listed */
    size_t offset;       /* of the setting, in the settings struct */
    int64_t min, max;    /* CLI_COUNT */
    const char *choices; /* words, separated by single blanks; see the types */
    const void *(*find)(const char *name, struct status_why *why); /* CLI_NAMED; NULL: fails */
    const char *env;                /* environment variable, or NULL */
    const char *note;               /* CLI_REFUSED, or NULL */
    bool required;                  /* an error where it is not given; of text and lists */
    bool usual;                     /* help lists it first */
    bool bare;                      /* of text and CLI_EACH: a model that stands without an option
                                       is its value */
    size_t n_values;                /* arguments taken, where that is not 1 for a `value` */
    const struct cli_option *group; /* CLI_GROUP: ends as a command's list does */
};

enum cli_relation {
    CLI_NEEDS,    /* any of the options goes with one of the others only */
    CLI_NOT_WITH, /* any of the options goes with none of the others */
    CLI_ONE_OF,   /* of the options one is given at most */
    CLI_ONLY      /* the options are of these modes, and would do nothing in others */
};

/**
 * How options go together. They are named by any spelling, with single blanks between, a choice
 * also as --name=word. Of options that a command does not have a rule says nothing.
 */
struct cli_rule {
    const char *options;
    enum cli_relation relation;
    const char *others; /* NULL with CLI_ONE_OF and CLI_ONLY */
    const char *why;    /* what a sentence ends with; of CLI_ONE_OF: what both say; or NULL */
    unsigned modes;     /* those that it is about, a bit for each; 0: all */
    bool always;        /* a value counts wherever it came from, a variable or a configuration */
};
/** Those of options that several commands share; ends with an empty row. */
extern const struct cli_rule cli_shared_rules[];

/** Whole numbers that CLI_COUNTS took, all of them in range. */
struct cli_counts {
    int64_t value;    /* the first */
    const char *more; /* the others, as they were given; NULL: there is none */
};
/** Those after the first; there must be one. */
struct cli_counts cli_counts_next(struct cli_counts counts);

/** Strings that CLI_LIST or CLI_EACH collected; cli_args_release() releases them. */
struct cli_list {
    char **items;
    size_t n;
};

struct cli_args;

enum { CLI_MAX_GIVEN = 96 };

/** The program that assay perplexity stands in for: names that begin so stand for it. */
#define CLI_PEER "llama-perplexity"

/** A command of the program. */
struct cli_command {
    const char *name;
    const char *usage;       /* what follows the name: "FILE [options]" */
    size_t n_operands;       /* how many it takes, all of them required */
    const char *summary;     /* one line */
    const char *description; /* below the usage line; may be "". An end of line is a blank,
                                two begin a paragraph */
    const char *examples;    /* a line with a command, one that says what it does, and so on */
    const struct cli_option *options; /* ends with a row whose names and help are NULL */
    const struct cli_rule *rules;     /* ends with an empty row; NULL: there are none */
    /* What a sentence calls each mode of a command that is several: "a folder"; ends with NULL. */
    const char *const *modes;
    int (*mode)(const void *settings); /* the index of the one that is meant; -1: that is missing */
    size_t settings_bytes;             /* of the struct that the list fills; 0: none */
    void (*defaults)(void *settings);  /* fills it beforehand; NULL: all zero */
    size_t evaluate;    /* where its struct cli_evaluate_settings lives; 0: it cannot be planned */
    bool takes_command; /* the first word that is no option of it begins another command */
    /* NULL, or what fills settings before the environment does; what adds notes at the end. */
    enum status (*before)(void *settings, struct cli_args *args, struct status_why *why);
    void (*after)(struct cli_args *args);
    enum status (*run)(const void *settings, const struct cli_args *args, struct status_why *why);
};

enum { CLI_GROUP_DEPTH = 4 };

/** A walk over a list and its groups. Zero-initialise but for `next`, the first row. */
struct cli_rows {
    const struct cli_option *next;
    const char *more; /* of the row returned last: what its group adds to the help; "" or text */
    size_t at;        /* where that row's setting lives, from the beginning of the settings */
    size_t base;      /* what offsets count from in the list of `next` */
    size_t depth;     /* in how many groups `next` is */
    struct {
        const struct cli_option *after; /* the row after the group */
        size_t base;
    } outer[CLI_GROUP_DEPTH];
};

/** The next row that is no group, or NULL at the end. */
const struct cli_option *cli_rows_next(struct cli_rows *rows);

/** What parsing found besides the settings. */
struct cli_args {
    const char *called; /* argv[0] without folders */
    bool help;          /* -h, --help: nothing else was looked at after it */
    const char *answer; /* the same: what is printed; NULL: no such option was there */
    bool quiet;
    const char *operands[2]; /* the first n_operands of the command */
    char **rest;             /* of a command that takes another one: its words */
    int n_rest;
    size_t n_bare; /* values of the row that is `bare` which came without its name */
    struct {       /* options of the command line that hold one value */
        const struct cli_option *option;
        const char *value;
    } given[CLI_MAX_GIVEN];
    size_t n_given;
    char ignored[2048]; /* options that were accepted and ignored, ", " between them */
    char notes[2048];   /* lines about values that were accepted */
};

/**
 * Read the command's `before`, the environment, then argv[1..], into `settings`.
 * In long options `_` counts as `-`; `--name=value` is `--name value`; `--` ends options.
 * The strings of CLI_TEXT and the operands point into argv or the environment.
 * Fails: STATUS_USAGE (unknown option: the nearest one is named; missing or malformed
 *        value; two values of an option that holds one; refused option; required option or operand
 *        that is missing; an argument that nothing takes: the option that it was probably meant
 *        for is named; options that do not go together: see struct cli_rule), STATUS_MEMORY.
 */
enum status cli_args_parse(const struct cli_command *command, int argc, char **argv, void *settings,
                           struct cli_args *args, struct status_why *why);

/** Release the lists that parsing made, also after a failure. */
void cli_args_release(const struct cli_command *command, void *settings);

/** Print the help of a command, made from its list, to standard output. */
void cli_args_help(const struct cli_command *command);

/* bare.c: arguments that stand without an option. */

/** Whether an argument is meant as a model: it names a GGUF file or a published folder, or ends as
 * names of GGUF files do. */
bool cli_bare_is_model(const char *argument);

/**
 * The option of a command that a file was probably meant for, by what the file is, or by its name
 * where it does not exist. NULL: nothing can be said.
 */
const char *cli_bare_option(const struct cli_command *command, const char *argument);

/* rules.c */

/**
 * Check the rules of a command, and those of options that several commands share. An option counts
 * that the command line has changed: what a variable set, or a value that was there anyway, does
 * not, unless the rule has `always`: then every value counts that is not the default. What an
 * option needs may come from anywhere: there every value counts that is not the default. before:
 * the settings before the command line was read. Fails: STATUS_USAGE.
 */
enum status cli_rules_check(const struct cli_command *command, const void *settings,
                            const void *before, const void *defaults, struct status_why *why);

/** The modes, a bit each, that have the option; 0: all of them. */
unsigned cli_rules_modes(const struct cli_command *command, const struct cli_option *row);

enum { CLI_RULE_BYTES = 1024 };
/** "Only with a recording or a folder", as it is shorter "Not with --url". */
const char *cli_rules_modes_named(char out[CLI_RULE_BYTES], const struct cli_command *command,
                                  unsigned modes);
/** The rule for readers of the help; NULL: it is of modes, or of options that are not here. */
const char *cli_rules_named(char out[CLI_RULE_BYTES], const struct cli_command *command,
                            const struct cli_rule *rule);

#endif
