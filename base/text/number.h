/** Floats in sentences: with all the digits that tell one from another. */
#ifndef BASE_TEXT_NUMBER_H
#define BASE_TEXT_NUMBER_H

/** Room for one number; lives in the caller's frame. */
struct base_number {
    char text[24];
};

/** Fill `number` with the fewest digits that are read back as `value`, and return its text. */
const char *base_float_text(struct base_number *number, float value);

#endif
