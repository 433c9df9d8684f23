#include "base/text/number.h"

#include <stdio.h>
#include <stdlib.h>

const char *base_float_text(struct base_number *number, float value)
{
    enum { MAX_DIGITS = 9 }; /* that many tell all floats apart */
    for (int n = 1; n <= MAX_DIGITS; n++) {
        snprintf(number->text, sizeof number->text, "%.*g", n, (double)value);
        if (strtof(number->text, NULL) == value)
            break;
    }
    return number->text;
}
