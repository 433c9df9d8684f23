"""lm_eval that knows the model `assay`: python -m assay_gguf --model assay ..."""
import sys

try:
    from lm_eval.__main__ import cli_evaluate
except ImportError as error:
    sys.exit(f"assay_gguf: lm_eval cannot be imported ({error}): the extra assay-gguf[harness] has it")

from assay_gguf import harness

if __name__ == "__main__":
    harness.register()
    cli_evaluate()
