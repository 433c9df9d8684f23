#!/usr/bin/env python3
"""The pieces that another regular expression engine makes: tests/data/pretokenizer-*.tsv.

usage: pretokenizer_vectors.py [DATA_DIR]     needs the package `regex`

Writes pretokenizer-pieces.tsv (names, text in hex, lengths of its pieces) and
pretokenizer-digests.tsv (names, pieces and digest of 10,000 texts that test_pretokenizer makes
again). The expressions below are the published ones, as they are published, and not those of the
program. A list of names after "llama.cpp:" is with --llama-compat.
"""
import pathlib
import sys

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}", r"[^\s\p{L}\p{M}")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")
KIMI = r"[\p{Han}]+|" + O200K.replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]").replace("n/]", "n]")
DEEPSEEK_V3 = [
    r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
    r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
DEEPSEEK_LETTERS = (
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚ"
    "Ḁ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭ"
    "ℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+")
DEEPSEEK_ASIAN = "[一-龥\u0800-一가-\ud7ff]+"
DEEPSEEK_LLM = [r"[\r\n]", DEEPSEEK_LETTERS, "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+", r"\s+$",
                DEEPSEEK_ASIAN, r"\p{N}+"]
DEEPSEEK_CODER = [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", DEEPSEEK_ASIAN, r"\p{N}"]

BLANKS = "".join(r"\s{%d}(?!\S)|" % n for n in (512, 256, 128, 64, 32, 16, 8, 4)) + r"\s{1,2}(?!\S)|\s{1}"
BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
ONIGURUMA_WORD = r"[\d\p{L}\p{M}\p{Nl}\p{Pc}²³¹¼½¾Ⓐ-ⓩ🄰-🅉🅐-🅩🅰-🆉]"
AFMOE_SCRIPTS = (
    "(?:[\u4E00-\u9FFF\u3040-\u309F\u30A0-\u30FF\u3400-\u4DBF\uf900-\uFAFF\uFF65-\uFF9F\u2F00-\u2FDF]+|"
    "[\u0E00-\u0E7F]+|[\u0E80-\u0EFF]+|[\u1780-\u17FF]+|[\u1000-\u109F\uAA60-\uAA7F\uA9E0-\uA9FF]+|"
    "[\uAC00-\uD7AF\u1100-\u11FF]+)")

PUBLISHED = {
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],  # llama.cpp's own
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "gpt-2,olmo,phi-2,exaone4,a.x-4.0,gigachat,mellum,trillion,granite-docling,mpt,jais,jina-es,jina-de,"
    "jina-v1-en,jina-v2-es,jina-v2-de,jina-v2-code,roberta-bpe,modern-bert": [GPT2],
    "llama-bpe,llama3,llama-v3,falcon3,pixtral,smaug-bpe,dbrx,glm4,chatglm-bpe,falcon-h1,lfm2,midm-2.0,"
    "jina-v5-nano,glm5": [LLAMA3],
    "jais-2": [LLAMA3.replace(r"\s+(?!\S)|\s+", BLANKS)],
    "minicpm5": [r"\p{N}{1,3}", LLAMA3.replace("{1,3}", "+")],
    "qwen2,megrez,stablelm2,hunyuan,deepseek-r1-qwen,solar-open,kormo,f2llmv2,grok-2": [QWEN2],
    "ufakzeka": [QWEN2.partition(")|")[2]],
    "qwen35": [QWEN35],
    "smollm,starcoder,refact,command-r,mellum2,exaone,codeshell,minerva-7b": [r"\p{N}", GPT2],
    "gpt-4o,llama4,minimax-m2,kanana2,talkie": [O200K],
    "granite-embed-multi-97m": [O200K],
    "youtu": ["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+", O200K.replace("{1,3}", "")],
    "tekken": [TEKKEN],
    "kimi-k2": [KIMI],
    "deepseek-llm": DEEPSEEK_LLM,
    "deepseek-coder": DEEPSEEK_CODER,
    "deepseek-v3,hunyuan-dense,joyai-llm,hy_v4": DEEPSEEK_V3,
    "spark2_5": [*DEEPSEEK_V3[:2], DEEPSEEK_V3[2].replace(r"+[\r\n]*|\s*[\r\n]+|", r"+|[\r\n]|"), r"\p{N}"],
    "seed-coder": [QWEN2.replace(r"+[\r\n]*", "+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{N}\r\n]")],
    "bailingmoe2,bailingmoe,llada-moe": [
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
        r"\s*[\r\n]|\s+(?!\S)|\s+"],
    "exaone-moe": [
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|"
        r" ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "laguna": [r"[^\n]+|[\n]+", QWEN2],
    "sarvam-moe": [r"[^\n]+|[\n]+"],
    # \b as Oniguruma has it, in whose form these are published: what follows is not its \w.
    "tiny_aya,cohere2moe": [r"\d{1,3}(?=(?:\d{3})*(?!" + ONIGURUMA_WORD + "))", O200K],
    "afmoe": [r"\p{Nd}{1,510}(?=(?>\p{Nd}{510})*(?:\P{Nd}|$))|\G\p{Nd}{510}",
              r"\A\p{Nd}{1,2}(?=(?:\p{Nd}{3})+\Z)", r"\A\p{Nd}{3}|\G\p{Nd}{3}", AFMOE_SCRIPTS,
              DEEPSEEK_V3[2]],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "bloom,poro-chat,gpt3-finnish": [BLOOM],
    "viking": [BLOOM, r"\p{N}"],
    "chameleon": ["<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )",
                  r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2],
}

FOLDED, ASCII = "(?i:'s|'t|'re|'ve|'m|'ll|'d)", "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
BY_ASCII_CASE = {r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]": r"((?=[\p{L}])([^a-z]))",
                 r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]": r"((?=[\p{L}])([^A-Z]))"}
HAN = "㐀-\u4dbf一-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ebef\U0002f800-\U0002fa1f"
LLAMA_KIMI = (f"[{HAN}]+|" + r"[^\r\n\p{L}\p{N}]?((?=\p{L})[^" + HAN + "])+" + ASCII
              + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA_AFMOE_SCRIPTS = ("[一-\u9fff㐀-\u4dbf\u8c48-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f"
                       "\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+")


class LlamaThrees:
    """llama.cpp cuts each run of numbers by hand; the text before a run goes with its first piece."""

    def finditer(self, piece):
        import regex
        done = 0
        for run in regex.finditer(r"\p{N}+", piece):
            cuts = range(run.start() + (len(run.group()) % 3 or 3), run.end() + 1, 3)
            for cut in cuts:
                yield regex.compile(r"(?s).*").fullmatch(piece, done, cut)
                done = cut


def in_llama_cpp(names, expressions):
    """What llama.cpp has for these names; None where it has the published expressions."""
    if names == "kimi-k2":
        return [LLAMA_KIMI]
    if names in ("deepseek-llm", "deepseek-coder"):
        return expressions  # and white space that is not ASCII counts as U+000B
    if names == "afmoe":
        return [LlamaThrees(), LLAMA_AFMOE_SCRIPTS, expressions[-1]]
    if names in ("tiny_aya,cohere2moe", "youtu"):  # it has all classes of letters in one
        first = expressions[0] if names == "youtu" else LlamaThrees()
        for case in BY_ASCII_CASE:
            expressions = [e.replace(case, r"[\p{L}\p{M}]") for e in expressions]
        return [first, expressions[1].replace(FOLDED, ASCII)]
    if names == "superbpe":
        return [e.replace(r"\d", "[0-9]") for e in expressions]
    changed = [e.replace(FOLDED, ASCII) for e in expressions]
    changed = [e.replace("'(?i:[sdmt]|ll|ve|re)", ASCII) for e in changed]
    for case, ascii_case in BY_ASCII_CASE.items():
        if names == "granite-embed-multi-97m":
            ascii_case = ascii_case.replace(r"\p{L}", r"\p{L}\p{M}")
        changed = [e.replace(case, ascii_case) for e in changed]
    return None if changed == expressions else changed


def split(compiled, text):
    """Each expression in turn cuts the pieces of the one before."""
    pieces = [text]
    for expression in compiled:
        before, pieces = pieces, []
        for piece in before:
            done = 0
            for m in expression.finditer(piece):
                pieces += [piece[done:m.start()], m.group()]
                done = m.end()
            pieces.append(piece[done:])
        pieces = [p for p in pieces if p]
    return pieces


class Random:
    """As tests/harness/rng.c."""
    MASK = (1 << 64) - 1

    def __init__(self, seed, stream):
        self.state = (seed * 0x9E3779B97F4A7C15 ^ stream * 0xD1B54A32D192ED03) & self.MASK
        self.next()

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & self.MASK
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & self.MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & self.MASK
        return z ^ z >> 31

    def below(self, limit):
        return self.next() % limit


COMMON = ["a", "B", "the", "Word", "HTML", " ", " ", "  ", "\n", "\r\n", "\t", "1", "2024", "123456",
          "'", "'s", "'LL", "'Re", "'d", "n't", ".", ", ", "/", "()", "=>", "_", "é", "漢", "字", "あ"]
# One or more of each category and of each script that some expression tells apart.
OTHERS = (list("cZ0!\"#$%&*+-:;<?@[\\]^`{|}~\0\x0b\x0c\x1c\x7fªµº©€²½⁊£ßÉǅᾈʰˀー々〇〡⺀ſ\u212a\u2126"
               "жЖαΩώ\u1f7dͺ\u0378՚Աաאשابَّंकाि্ক\u0bc6กั\u0e33ກကាកᎠꭰႠაᲐ가힣ㄱ\ud7fbぁんアヶ龥鿿㐀豈"
               "ﬁﬃＡａ０！：～～。、「」・‘’‟“”…—‐‿⁀٣۴५Ⅷⅷⅰ①㊿፩\u0300\u0301\u0345\u20dd\ufe0f\u200b\u200d\u200e\u2060\ufeff\u180e"
               "\u0085\u00a0\u1680\u2000\u2009\u2028\u2029\u202f\u205f\u3000\u2007▁Ġ␀→∑≠⠿\ue000\ufffd"
               "😀👍🇩🏽𝐀𝒻𐐀𐐨𠀀𪜀𝟘𞤀𞥃\U000e0001\U0010ffff")
          + ["'ſ", "'S", "'t", "'ve", "ǅa", "漢々", "漢A", "〇1", "क्ष", "ก็", "e\u0301", "É\u0301x",
             "\u0301a", "👩\u200d👩", "iPhone", "McDONALD", "ÀÉé", "жЖж", "\r", "\n\n", "\n \n", " \n",
             "\t\t", "   x", "\u3000x", "x\u3000", "//", "/\n", "!\n", "$x", "#a", ".5", "1,000", "<|x|>"])
assert all(len(u.encode()) <= 16 for u in COMMON + OTHERS)
N_TEXTS, SEED = 10000, 20260811
SHOWN = ["a{0}b {0}7{0}{0}.{0}\n".format(u) for u in
         ("É", "漢々", "\u0301", "'ſ", "ǅ", "\u3000", "〇", "/\n", "iPhone", "\u180e", "12345", "  ", "1234Ⓐ")]


def texts(seed, n):
    """The first are each unit between letters, digits, spaces and itself; the rest are random."""
    units = COMMON + OTHERS
    made = ["a{0}b {0}7{0}{0}.{0}\n".format(u) for u in units][:n]
    r = Random(seed, 1)
    while len(made) < n:
        parts = []
        for _ in range(1 + r.below(24)):
            unit = COMMON[r.below(len(COMMON))] if r.below(2) else units[r.below(len(units))]
            parts.append(unit * (1 if r.below(4) else 1 + r.below(6)))
        made.append("".join(parts))
    return made


def digest(h, lengths):
    """FNV-1a of the lengths, each as one number, and of a 0 after them."""
    for n in lengths + [0]:
        h = (h ^ n) * 0x100000001B3 & Random.MASK
    return h


def main(folder):
    import regex
    rows = [(names, expressions, False) for names, expressions in PUBLISHED.items()]
    for names, expressions in PUBLISHED.items():
        changed = in_llama_cpp(names, expressions)
        if changed:
            rows.append(("llama.cpp:" + names, changed, True))
    to_vt = {ord(c): "\x0b" for c in map(chr, range(0x80, 0x3001)) if regex.match(r"\s", c)}
    made = texts(SEED, N_TEXTS)
    with open(folder / "pretokenizer-units.txt", "w") as f:
        f.write("".join(u.encode().hex() + "\n" for u in COMMON) + "-\n"
                + "".join(u.encode().hex() + "\n" for u in OTHERS))
    with open(folder / "pretokenizer-pieces.tsv", "w") as shown, \
            open(folder / "pretokenizer-digests.tsv", "w") as digests:
        for names, expressions, as_llama_cpp in rows:
            texts_of = [e for e in expressions if isinstance(e, str)]
            flags = regex.V1 if any("&&" in e for e in texts_of) else regex.V0
            compiled = [regex.compile(e, flags) if e in texts_of else e for e in expressions]

            def lengths(text):
                pieces = split(compiled, text.translate(to_vt) if as_llama_cpp else text)
                at, out = 0, []
                for piece in pieces:  # of the text as it was
                    out.append(len(text[at:at + len(piece)].encode()))
                    at += len(piece)
                return out
            for text in SHOWN:
                shown.write(f"{names}\t{text.encode().hex()}\t{','.join(map(str, lengths(text)))}\n")
            n_pieces, h = 0, 0xCBF29CE484222325
            for text in made:
                cut = lengths(text)
                n_pieces += len(cut)
                h = digest(h, cut)
            digests.write(f"{names}\t{n_pieces}\t{h:016x}\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1
         else pathlib.Path(__file__).parent.parent / "data")
