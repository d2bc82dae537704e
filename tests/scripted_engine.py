"""An engine that says what a test wants, without a model."""

from r1lite.rollout import EngineError, RolloutEngine, check_prompts
from verifiers import Completion


class ScriptedEngine(RolloutEngine):
    """Answers each prompt with `script(prompt ids, seed, version)`, a text; as an engine with weights of its own."""

    shares_weights, runs_aside = False, True

    def __init__(self, tokenizer, script, *, context=1024, logprob=-0.5):
        self.tokenizer, self.script, self.context, self.logprob = tokenizer, script, context, logprob
        self.policy_version = 0
        self.slept = 0
        self.loaded = {}  # name -> weight, as given last
        self.closed = False

    def stream(self, prompts, seeds, sampling):
        check_prompts(prompts, sampling.max_tokens, self.context)
        for place, (prompt, row) in enumerate(zip(prompts, seeds, strict=True)):
            if self.closed:
                raise EngineError("the scripted engine is closed")
            yield place, [self._completion(prompt, seed, sampling) for seed in row]

    def _completion(self, prompt, seed, sampling):
        ids = [
            *self.tokenizer(self.script(prompt, seed, self.policy_version))["input_ids"],
            self.tokenizer.eos_token_id,
        ]
        reason = "stop" if len(ids) <= sampling.max_tokens else "length"
        ids = tuple(ids[: sampling.max_tokens])
        text = self.tokenizer.decode(ids, skip_special_tokens=True)
        return Completion(text, ids, (self.logprob,) * len(ids), reason, self.policy_version)

    def load_weights(self, weights, *, version):
        self.loaded = dict(weights)
        self.policy_version = version

    def sleep(self):
        self.slept += 1

    def close(self):
        self.closed = True
