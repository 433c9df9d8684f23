"""The model `assay` of EleutherAI's lm-evaluation-harness."""
import logging
import pathlib

from lm_eval.api import registry
from lm_eval.api.model import LM
from lm_eval.utils import simple_parse_args_string
from tqdm import tqdm

from assay_gguf.client import AssayError, Program, Server

log = logging.getLogger(__name__)


class AssayLM(LM):
    """model=FILE: runs of assay score. base_url=URL: a server, assay serve.

    Everything else is an option of assay score, or a member of the server's request: threads=4,
    ctx_size=2048, precision="exact", device="cuda:0", bos="never", batch_size=TOKENS, ...
    """

    def __init__(self, model=None, base_url=None, binary=None, **options):
        super().__init__()
        if (model is None) == (base_url is None) or (base_url and binary):
            raise AssayError("expected model=FILE or base_url=URL, and binary=FILE with model only")
        self.client = Server(base_url, **options) if base_url else Program(model, binary, **options)
        self._name = base_url or pathlib.Path(model).name
        self._about = {}
        self.client.score([{"text": ""}])  # what cannot work is said before the tasks are built

    @classmethod
    def create_from_arg_string(cls, arg_string, additional_config=None):
        return cls.create_from_arg_obj(simple_parse_args_string(arg_string), additional_config)

    @classmethod
    def create_from_arg_obj(cls, arg_dict, additional_config=None):
        """The harness always gives a device and a batch size (in sequences), asked for or not."""
        ignored = {name: value for name, value in (additional_config or {}).items() if value}
        log.info("assay decides itself, unless model_args say otherwise; ignored: %s", ignored)
        return cls(**arg_dict)

    def _score(self, kind, requests, lines, answer, disable_tqdm):
        left = iter(requests)
        with tqdm(total=len(requests), disable=disable_tqdm, desc=f"assay: {kind}") as bar:
            scores = self.client.score(
                lines,
                lambda score: self.cache_hook.add_partial(kind, next(left).args, answer(score)),
                lambda fraction: bar.update(int(fraction * len(requests)) - bar.n))
            bar.update(len(requests) - bar.n)
        self._about[kind] = self.client.about
        return [answer(score) for score in scores]

    def loglikelihood(self, requests, disable_tqdm=False):
        lines = [{"context": context, "continuation": continuation}
                 for context, continuation in (request.args for request in requests)]
        return self._score("loglikelihood", requests, lines,
                           lambda score: (score.logprob, score.is_greedy), disable_tqdm)

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        lines = [{"text": request.args[0]} for request in requests]
        return self._score("loglikelihood_rolling", requests, lines,
                           lambda score: score.logprob, disable_tqdm)

    def generate_until(self, requests, disable_tqdm=False):
        raise AssayError("assay scores texts, it does not write them: tasks of the type "
                         "generate_until cannot be run with it")

    def apply_chat_template(self, chat_history, add_generation_prompt=True):
        return self.client.apply_chat_template(chat_history, add_generation_prompt)

    def chat_template(self, chat_template=False):
        """The harness keeps it with the results. A name: there is one template, the model's own."""
        if chat_template and chat_template is not True:
            raise AssayError(f"--apply_chat_template {chat_template}: expected no name: the model's "
                             "own template is applied")
        return self.client.chat_template() if chat_template else ""

    @property
    def tokenizer_name(self):
        """The file's own; the name tells caches of requests apart."""
        return f"assay/{self._name}"

    def get_model_info(self):
        """For the harness's results: what determined the scores, by the kind of request."""
        return {"assay": self._about}


def register():
    """Make the harness know the name; newer ones find it by themselves."""
    if "assay" not in registry.MODEL_REGISTRY:
        registry.register_model("assay")(AssayLM)
