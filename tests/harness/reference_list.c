#include "tests/harness/reference_list.h"

#include <string.h>
#include <unistd.h>

#include "tests/harness/require.h"

bool reference_list_open(struct reference_list *list, const char *folder)
{
    bool models = strncmp(folder, "models", 6) == 0;
    *list = (struct reference_list){0};
    snprintf(list->path, sizeof list->path, ASSAY_REFERENCE_DIR "/%s", folder);
    if (access(list->path, F_OK) != 0)
        return false;
    snprintf(list->folder, sizeof list->folder, "%s/", folder);
    list->rows = fopen(models ? ASSAY_SOURCE_DIR "/tests/golden/bits.tsv"
                              : ASSAY_SOURCE_DIR "/tests/data/reference-results.txt",
                       "r");
    require(list->rows);
    return true;
}

bool reference_list_next(struct reference_list *list)
{
    char row[256];
    size_t n_folder = strlen(list->folder);
    while (fgets(row, sizeof row, list->rows)) {
        row[strcspn(row, "\t\n")] = '\0';
        if (strncmp(row, list->folder, n_folder) != 0)
            continue;
        snprintf(list->path, sizeof list->path, ASSAY_REFERENCE_DIR "/%s", row);
        list->name = strrchr(list->path, '/') + 1;
        if (access(list->path, R_OK) != 0) {
            fprintf(stderr, "%s is named in a list of the tests, and is not there\n", list->path);
            require(false);
        }
        list->n++;
        return true;
    }
    fclose(list->rows);
    return false;
}
