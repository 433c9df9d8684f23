/* Lines "architecture name operation" on standard input, the last possibly missing: those that no
 * place of a trace is called are written. For tests/cli/test_trace_transformers.py. */
#include <stdio.h>

#include "clients/trace/names.h"

int main(void)
{
    char line[256], arch[64], name[96], op[64];
    while (fgets(line, sizeof line, stdin)) {
        int n = sscanf(line, "%63s %95s %63s", arch, name, op);
        bool known = false;
        for (int place = 0; n >= 2 && place < MODEL_N_PLACES; place++)
            known |= trace_place_match((enum model_place)place, arch, name, n == 3 ? op : NULL);
        if (!known)
            fputs(line, stdout);
    }
    return 0;
}
