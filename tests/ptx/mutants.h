/**
 * Changed kernels behind a test, each in a process of its own that ends with the scene.
 *
 * Before the first launch of a kernel in a scene the process forks: first to see which changes
 * matter there, then once for each of those. So a change costs what is left of one scene, and
 * nothing is read or run twice. mutate.py makes the changes.
 */
#ifndef TESTS_PTX_MUTANTS_H
#define TESTS_PTX_MUTANTS_H

#include "tests/ptx/machine.h"

/**
 * changes: a file with a line for each, `KERNEL <tab> LINE <tab> INSTRUCTION`: the short name of a
 * kernel (report.h), a line of its PTX, and what is there instead; nothing: the line is left out.
 * results: a file to which `NUMBER <tab> WHAT` is added for each: its number in `changes` and what
 * found it, or `survived` (`never different`: no lane ever compared what would show), or
 * `unreached`. NULL: there are no changes. m outlives them.
 */
void ptx_mutants_open(struct ptx_machine *m, const char *changes, const char *results);
/** A scene begins: what has a change in it ends, and nothing found it. */
void ptx_mutants_scene(void);
/** A kernel is about to be launched: try its changes, unless this scene has had it before. */
void ptx_mutants_launch(size_t kernel);
/** The program ends. */
void ptx_mutants_close(void);

#endif
