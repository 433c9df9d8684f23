#include "cli/options/width.h"

#include <stdlib.h>
#include <sys/ioctl.h>

#include "base/arithmetic.h"

size_t cli_width(int descriptor)
{
    struct winsize window;
    const char *columns = getenv("COLUMNS");
    size_t width = columns ? strtoul(columns, NULL, 10) : 0; /* 0 where it is no number */
    if (!width && ioctl(descriptor, TIOCGWINSZ, &window) == 0)
        width = window.ws_col;
    if (!width)
        width = CLI_USUAL_WIDTH;
    return width < CLI_NARROWEST ? CLI_NARROWEST : base_min(width, CLI_WIDEST);
}
