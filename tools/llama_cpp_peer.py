"""llama.cpp as the other implementation: greedy choices and log-probabilities from its shared library.

Needs LLAMA_CPP=folder/with/libllama.so. Used by the scripts that make test fixtures, never by a test.
Parameter structs are passed as llama.cpp's own defaults made them, so their layout does not matter here.
"""
import ctypes
import os
import sys


class Blob(ctypes.Structure):
    """A struct whose inside is llama.cpp's business; larger than any of them."""
    _fields_ = [("bytes", ctypes.c_byte * 1024)]


class LlamaCpp:
    def __init__(self, model_path):
        folder = os.environ.get("LLAMA_CPP")
        if not folder:
            sys.exit("error: set LLAMA_CPP to the folder that holds llama.cpp's libllama.so")
        self.lib = lib = ctypes.CDLL(os.path.join(folder, "libllama.so"))
        quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
        self.keep = quiet(lambda *_: None)
        lib.llama_log_set(self.keep, None)
        for name in ("llama_model_default_params", "llama_context_default_params", "llama_batch_get_one"):
            getattr(lib, name).restype = Blob
        for name in ("llama_model_load_from_file", "llama_init_from_model", "llama_model_get_vocab",
                     "llama_get_memory"):
            getattr(lib, name).restype = ctypes.c_void_p
        lib.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
        lib.llama_backend_init()
        model = lib.llama_model_load_from_file(model_path.encode(), lib.llama_model_default_params())
        if not model:
            sys.exit(f"error: llama.cpp could not load {model_path}")
        self.context = ctypes.c_void_p(
            lib.llama_init_from_model(ctypes.c_void_p(model), lib.llama_context_default_params()))
        self.vocab = ctypes.c_void_p(lib.llama_model_get_vocab(ctypes.c_void_p(model)))
        self.vocab_size = lib.llama_vocab_n_tokens(self.vocab)

    def tokenize(self, text):
        """Ids of the text, control tokens parsed, special tokens added as the model asks."""
        data = text.encode()
        ids = (ctypes.c_int32 * (len(data) + 8))()
        count = self.lib.llama_tokenize(self.vocab, data, len(data), ids, len(ids), True, True)
        return list(ids[:count])

    def start(self):
        """Forgets everything fed so far."""
        self.lib.llama_memory_clear(ctypes.c_void_p(self.lib.llama_get_memory(self.context)), True)

    def feed(self, ids):
        """Logits after the last of these tokens, which follow those fed before."""
        tokens = (ctypes.c_int32 * len(ids))(*ids)
        if self.lib.llama_decode(self.context, self.lib.llama_batch_get_one(tokens, len(ids))) != 0:
            sys.exit("error: llama_decode failed")
        return self.lib.llama_get_logits_ith(self.context, -1)[:self.vocab_size]

    def is_end(self, token):
        return bool(self.lib.llama_vocab_is_eog(self.vocab, token))
