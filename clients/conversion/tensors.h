/** Which tensors of the file and of the folder belong together, and which of them differ. */
#ifndef CONVERSION_TENSORS_H
#define CONVERSION_TENSORS_H

#include "clients/conversion/compare.h"
#include "model/model.h"

/** Compare all tensors.   Fails: as conv_compare. */
enum status conv_compare_tensors(struct conv_result *out, const struct conv_options *options,
                                 const struct conv_work *work, const struct model_hparams *hparams,
                                 struct status_why *why);

#endif
