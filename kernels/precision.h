/** How faithful products are. Everything else is float32 and double in any case. */
#ifndef KERNELS_PRECISION_H
#define KERNELS_PRECISION_H

enum kern_precision {
    KERN_PRECISION_EXACT, /* one chain of float32 multiply-adds per output: the same bits anywhere
                           */
    KERN_PRECISION_HIGH, /* faithful to float32: operands as sums of short floats, three products */
    KERN_PRECISION_FAST  /* operands rounded to one short float, one product */
};

#endif
