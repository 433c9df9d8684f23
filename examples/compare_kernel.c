/* Compares a kernel of your own with the exact product: here a dot product of Q8_0 blocks with
 * eight partial sums. Build: cc compare_kernel.c $(pkg-config --cflags --libs assay) -lm */
#include <assay.h>
#include <math.h>
#include <stdio.h>

enum { ROWS = 64, COLS = 256, BLOCK = 34, ROW = COLS / 32 * BLOCK };

static float your_kernel(const unsigned char *row, const float *x)
{
    float sums[8] = {0}, y = 0;
    for (int i = 0; i < COLS; i++) {
        const unsigned char *block = row + i / 32 * BLOCK; /* a half, 32 signed bytes */
        int half = block[0] | block[1] << 8;
        float scale = ldexpf((float)(1024 + (half & 1023)), (half >> 10) - 25);
        sums[i % 8] += scale * (float)(signed char)block[2 + i % 32] * x[i];
    }
    for (int i = 0; i < 8; i++)
        y += sums[i];
    return y;
}

int main(void)
{
    static unsigned char w[ROWS * ROW];
    static float x[COLS], exact[ROWS];
    for (unsigned i = 0; i < sizeof w; i++) /* scales of about 1/16 */
        w[i] = i % BLOCK == 1 ? 0x2c : (unsigned char)(i * 2654435761u >> 24);
    for (int i = 0; i < COLS; i++)
        x[i] = sinf((float)i);

    struct assay_why why;
    struct assay_type type;
    struct assay_options options = ASSAY_OPTIONS;
    options.precision = ASSAY_EXACT;
    if (assay_type_find("Q8_0", &type, &why) != ASSAY_OK)
        return fprintf(stderr, "%s\n", why.text), 1;
    struct assay_matrix matrix = {w, sizeof w, ROWS, COLS, type.id, 0};
    if (assay_multiply(&options, &matrix, x, 1, exact, &why) != ASSAY_OK)
        return fprintf(stderr, "%s\n", why.text), 1;

    double worst = 0, squares = 0;
    for (int r = 0; r < ROWS; r++) {
        worst = fmax(worst, fabs((double)your_kernel(w + r * ROW, x) - (double)exact[r]));
        squares += (double)exact[r] * (double)exact[r] / ROWS;
    }
    printf("worst error: %.2e of the root mean square\n", worst / sqrt(squares));
    return worst > 1e-5 * sqrt(squares);
}
