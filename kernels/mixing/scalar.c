/* The mean of rows by a softmax of each element: the scalar reference. */
#include <math.h>

#include "kernels/numerics/fmath.h"
#include "kernels/numerics/ops_scalar.h"

void kern_scalar_compress(float *y, const struct kern_terms *terms, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float most = -INFINITY, sum = 0.0f, mean = 0.0f;
        for (size_t j = 0; j < terms->n_terms; j++) {
            const float *z = kern_term(terms, terms->z, j);
            if (z)
                most = z[i] > most ? z[i] : most;
        }
        for (size_t j = 0; j < terms->n_terms; j++) {
            const float *u = kern_term(terms, terms->u, j), *z = kern_term(terms, terms->z, j);
            if (!u)
                continue;
            float e = z ? fmath_exp_f32(z[i] - most) : 1.0f;
            sum += e;
            mean = fmaf(e, u[i], mean);
        }
        y[i] = mean / sum;
    }
}
