/** How faithful products are. Everything else is float32 and double in any case. */
#ifndef KERNELS_PRECISION_H
#define KERNELS_PRECISION_H

enum kern_precision {
    /* One chain of float32 multiply-adds per output: the same bits anywhere. */
    KERN_PRECISION_EXACT,
    /* Nearly as faithful. Where there are tensor units: operands as sums of short floats, three
     * products. Else quantised weights as integers, activations rounded to 16 bits. */
    KERN_PRECISION_HIGH,
    /* Tensor units: operands rounded to one short float, one product. Else as HIGH, but
     * activations rounded to 8 bits. */
    KERN_PRECISION_FAST
};

#endif
