#include "model/tokenizer/pretokenizer.h"

#include <string.h>

/*
 * The expressions as the authors of the models published them, except that
 * - `\s+$` is written so that a run of spaces is tried once, not once for each of its characters;
 * - kimi-k2 subtracts \p{Han} from letters and marks: here the complement lists what is left out
 *   instead, which PCRE2 has. [^\P{L}a-z] is "a letter, but not a-z".
 * Beside them is what llama.cpp has for some. It asks for case in ASCII only, leaves marks
 * out, cuts ranges around white space, and does not fold the long s (U+017F).
 * \s and \S are replaced when compiled, see pretokenizer.c.
 */
#define CONTRACTIONS       "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define ASCII_CONTRACTIONS "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define SPACE              "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LEAD               "[^\\r\\n\\p{L}\\p{N}]?"
#define SYMBOLS            " ?[^\\s\\p{L}\\p{N}]+"

static const char gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)";

/* Words, numbers of up to `numbers`, symbols. */
#define WORDS(numbers)                LEAD "\\p{L}+|" numbers "|" SYMBOLS "[\\r\\n]*|"
#define LLAMA3(contractions, numbers) contractions "|" WORDS(numbers) SPACE
#define QWEN35(contractions)                                                                       \
    contractions "|" LEAD "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACE

/* Words by case: capitals, then small letters; `end` may follow each. */
#define BY_CASE(upper, lower, end, numbers, symbols_end)                                           \
    LEAD upper "*" lower "+" end "|" LEAD upper "+" lower "*" end "|" numbers                      \
               "|" SYMBOLS symbols_end "*|" SPACE
#define UPPER             "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER             "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define NOT_HAN(left_out) "[^" left_out NO_WORD "\\p{sc:Han}]"
#define ASCII_UPPER       "[^\\P{L}a-z]"
#define ASCII_LOWER       "[^\\P{L}A-Z]"
#define NO_WORD           "\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}"

static const char llama3[] = LLAMA3(CONTRACTIONS, "\\p{N}{1,3}");
static const char llama3_ascii[] = LLAMA3(ASCII_CONTRACTIONS, "\\p{N}{1,3}");
static const char qwen2[] = LLAMA3(CONTRACTIONS, "\\p{N}");
static const char qwen2_ascii[] = LLAMA3(ASCII_CONTRACTIONS, "\\p{N}");
static const char minicpm5[] = LLAMA3(CONTRACTIONS, "\\p{N}+");
static const char minicpm5_ascii[] = LLAMA3(ASCII_CONTRACTIONS, "\\p{N}+");
static const char ufakzeka[] = WORDS("\\p{N}") SPACE;
static const char qwen35[] = QWEN35(CONTRACTIONS);
static const char qwen35_ascii[] = QWEN35(ASCII_CONTRACTIONS);

static const char gpt4o[] = BY_CASE(UPPER, LOWER, CONTRACTIONS "?", "\\p{N}{1,3}", "[\\r\\n/]");
static const char gpt4o_ascii[] =
    BY_CASE(ASCII_UPPER, ASCII_LOWER, ASCII_CONTRACTIONS "?", "\\p{N}{1,3}", "[\\r\\n/]");
static const char granite_embed[] =
    BY_CASE(UPPER, LOWER, CONTRACTIONS "?", "\\p{N}{1,3}", "[\\r\\n/]");
static const char granite_embed_ascii[] = BY_CASE(
    "[^a-z" NO_WORD "]", "[^A-Z" NO_WORD "]", ASCII_CONTRACTIONS "?", "\\p{N}{1,3}", "[\\r\\n/]");
static const char tekken[] = BY_CASE(UPPER, LOWER, "", "\\p{N}", "[\\r\\n/]");
static const char tekken_ascii[] = BY_CASE(ASCII_UPPER, ASCII_LOWER, "", "\\p{N}", "[\\r\\n/]");

static const char kimi_k2[] = "\\p{sc:Han}+|" BY_CASE(NOT_HAN("\\p{Ll}"), NOT_HAN("\\p{Lu}\\p{Lt}"),
                                                      CONTRACTIONS "?", "\\p{N}{1,3}", "[\\r\\n]");
/* llama.cpp: words whatever their case, and Han by block. */
#define HAN_BLOCKS                                                                                 \
    "\\x{3400}-\\x{4DBF}\\x{4E00}-\\x{9FFF}\\x{F900}-\\x{FAFF}\\x{20000}-\\x{2A6DF}"               \
    "\\x{2A700}-\\x{2EBEF}\\x{2F800}-\\x{2FA1F}"
static const char kimi_k2_blocks[] =
    "[" HAN_BLOCKS "]+|" LEAD "[^\\P{L}" HAN_BLOCKS "]+" ASCII_CONTRACTIONS "?|\\p{N}{1,3}|" SYMBOLS
    "[\\r\\n]*|" SPACE;

#define DEEPSEEK_V3                                                                                \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"                                       \
    "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+"
static const char deepseek_v3[] = DEEPSEEK_V3 "[\\r\\n]*|" SPACE;
static const char spark2_5[] = DEEPSEEK_V3 "|[\\r\\n]|\\s+(?!\\S)|\\s+";
static const char deepseek_v3_asian[] =
    "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+";

static const char deepseek_line_end[] = "[\\r\\n]";
static const char deepseek_trailing_space[] = "(?<!\\s)\\s++$";
static const char deepseek_letters[] =
    "\\s?[A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}"
    "\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}"
    "\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}"
    "\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}"
    "\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}"
    "\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}"
    "\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}"
    "\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}"
    "\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}"
    "\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}"
    "\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}"
    "\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}"
    "\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}"
    "\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}"
    "\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}"
    "\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}]+";
#define PUNCTUATION "!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}"
static const char deepseek_punctuation[] = "\\s?[" PUNCTUATION "\\x{3000}-\\x{3002}]+";
static const char deepseek_punctuation_cut[] = "\\s?[" PUNCTUATION "\\x{3001}\\x{3002}]+";
static const char deepseek_asian[] = "[\\x{800}-\\x{9FA5}\\x{AC00}-\\x{D7FF}]+";
static const char deepseek_asian_cut[] =
    "[\\x{800}-\\x{167F}\\x{1681}-\\x{1FFF}\\x{200B}-\\x{2027}\\x{202A}-\\x{202E}"
    "\\x{2030}-\\x{205E}\\x{2060}-\\x{2FFF}\\x{3001}-\\x{9FA5}\\x{AC00}-\\x{D7FF}]+";

#define SEED_CODER(contractions)                                                                   \
    contractions "|" LEAD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" SPACE
static const char seed_coder[] = SEED_CODER(CONTRACTIONS);
static const char seed_coder_ascii[] = SEED_CODER(ASCII_CONTRACTIONS);

/* One line end at a time; and words that single spaces join are one piece. */
#define LINE_SPACE "\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"
#define BAILING(contractions)                                                                      \
    contractions "|" LEAD "\\p{L}+|\\p{N}|" SYMBOLS "[\\r\\n]*|" LINE_SPACE
#define JOINED_WORDS "\\p{L}\\p{M}*+(?: ?\\p{L}\\p{M}*+)*+"
#define EXAONE_MOE(contractions)                                                                   \
    contractions "|" LEAD JOINED_WORDS "|\\p{N}|" SYMBOLS "[\\r\\n/]?|" LINE_SPACE
static const char bailing[] = BAILING(CONTRACTIONS);
static const char bailing_ascii[] = BAILING(ASCII_CONTRACTIONS);
static const char exaone_moe[] = EXAONE_MOE(CONTRACTIONS);
static const char exaone_moe_ascii[] = EXAONE_MOE(ASCII_CONTRACTIONS);
static const char lines[] = "[^\\n]+|[\\n]+";

/*
 * Digits in threes from the right: "12|345|678". The published expressions look ahead to the end
 * of the run from each of its digits. Here the whole run is matched once, and what the group has
 * matched is cut (pretokenizer.h). tiny_aya cuts a run only where \b follows it; the set is
 * Oniguruma's \w, less digits. llama.cpp cuts every run of numbers, and leaves what lies before
 * a run with its first piece.
 */
#define WORD                                                                                       \
    "\\p{L}\\p{M}\\p{Nl}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}\\x{24B6}-\\x{24E9}"            \
    "\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}"
static const char threes_in_words[] = "(?<!\\p{Nd})(\\p{Nd}++)(?![" WORD "])";
/* The same as matches: the first of a run, then those that follow right after another. */
static const char threes_in_words_matched[] =
    "(?<!\\p{Nd})\\p{Nd}{1,3}(?=(?:\\p{Nd}{3})*+(?![\\p{Nd}" WORD "]))|(?<=\\p{Nd})\\G\\p{Nd}{3}";
static const char threes[] = "(\\p{Nd}++)";
static const char threes_with_lead[] = "\\G\\P{N}*+(\\p{N}++)";

static const char tiny_aya[] = BY_CASE(UPPER, LOWER, CONTRACTIONS "?", "\\p{N}{1,3}", "[\\r\\n/]");
static const char tiny_aya_ascii[] =
    LEAD "[\\p{L}\\p{M}]+" ASCII_CONTRACTIONS "?|\\p{N}{1,3}|" SYMBOLS "[\\r\\n/]*|" SPACE;

/*
 * superbpe cuts numbers in this way and nothing else: where a multiple of three digits is left of
 * a run, which its expression looks for from each digit. Here a match is what lies between two
 * such places: after the first, three digits; up to the next, runs of one or two digits, other
 * characters, and what a longer run has too many, for which each run is looked at three times.
 */
#define UP_TO_THREES(digit, other)                                                                 \
    other "*+(?:" digit "{1,2}+(?!" digit ")" other "*+)*+"                                        \
          "(?:" digit "{0,2}?(?=(?:" digit "{3})++(?!" digit "))|\\z)"
#define SUPERBPE(digit, other)                                                                     \
    "\\A" UP_TO_THREES(digit, other) "(?!\\A)|" digit "{3}(?:(?=" digit                            \
                                     ")|" UP_TO_THREES(digit, other) ")"
static const char superbpe[] = SUPERBPE("\\p{Nd}", "\\P{Nd}");
static const char superbpe_ascii[] = SUPERBPE("[0-9]", "[^0-9]");

/*
 * Runs of blanks in powers of two. The published expression looks for a line end to the end of the
 * run from each of its pieces; a blank in front of a piece says that there is none.
 */
#define BLANKS(n) "\\s{" n "}(?!\\S)|"
#define JAIS2(contractions)                                                                        \
    contractions "|" WORDS("\\p{N}{1,3}") "(?:(?<!\\s)|(?<=[\\r\\n]))\\s*[\\r\\n]+|" BLANKS("512") \
        BLANKS("256") BLANKS("128") BLANKS("64") BLANKS("32") BLANKS("16") BLANKS("8") BLANKS("4") \
            BLANKS("1,2") "\\s"
static const char jais2[] = JAIS2(CONTRACTIONS);
static const char jais2_ascii[] = JAIS2(ASCII_CONTRACTIONS);

static const char youtu_scripts[] =
    "[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|"
    "[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}\\x{2018}\\x{2019}\\x{2014}\\x{FF1A}\\x{FF1B}\\x{FF0C}"
    "\\x{3001}-\\x{303F}\\x{FE30}-\\x{FE4F}]+|[\\x{3105}-\\x{312F}]+|"
    "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+";
static const char youtu[] = BY_CASE(UPPER, LOWER, CONTRACTIONS "?", "\\p{N}", "[\\r\\n/]");
static const char youtu_ascii[] =
    LEAD "[\\p{L}\\p{M}]+" ASCII_CONTRACTIONS "?|\\p{N}|" SYMBOLS "[\\r\\n/]*|" SPACE;

/* White space, opening and closing brackets, |, and ends of sentences and clauses. */
static const char bloom[] =
    " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+";

/* Runs of each script of East and South-East Asia; llama.cpp has one class with other limits. */
static const char afmoe_scripts[] =
    "[\\x{4E00}-\\x{9FFF}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}\\x{3400}-\\x{4DBF}"
    "\\x{F900}-\\x{FAFF}\\x{FF65}-\\x{FF9F}\\x{2F00}-\\x{2FDF}]+|[\\x{E00}-\\x{E7F}]+|"
    "[\\x{E80}-\\x{EFF}]+|[\\x{1780}-\\x{17FF}]+|"
    "[\\x{1000}-\\x{109F}\\x{AA60}-\\x{AA7F}\\x{A9E0}-\\x{A9FF}]+|"
    "[\\x{AC00}-\\x{D7AF}\\x{1100}-\\x{11FF}]+";
static const char afmoe_one_class[] =
    "[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{8C48}-\\x{FAFF}\\x{3040}-\\x{309F}"
    "\\x{30A0}-\\x{30FF}\\x{FF65}-\\x{FF9F}\\x{2F00}-\\x{2FDF}\\x{E40}-\\x{E7F}\\x{E80}-\\x{EFF}"
    "\\x{1780}-\\x{17FF}\\x{1000}-\\x{109F}\\x{AA60}-\\x{AA7F}\\x{A9E0}-\\x{A9FF}"
    "\\x{AC00}-\\x{D7AF}\\x{1100}-\\x{11FF}]+";

#define DIGITS "\\p{N}"
#define THREES "[0-9][0-9][0-9]"

enum {
    WHOLE = MODEL_PRE_WHOLE,
    BOS = MODEL_PRE_BOS,
    CHARACTERS = MODEL_PRE_CHARACTERS,
};

static const struct model_pretokenizer_row rows[] = {
    {"default", 0, {"[\\p{P}\\$\\+<=>\\^~\\|]+", gpt2, "\\p{N}+", THREES}},
    {"gpt-2", 0, {gpt2}},
    {"olmo", 0, {gpt2}},
    {"phi-2", 0, {gpt2}},
    {"exaone4", 0, {gpt2}},
    {"a.x-4.0", 0, {gpt2}},
    {"gigachat", 0, {gpt2}},
    {"mellum", 0, {gpt2}},
    {"trillion", 0, {gpt2}},
    {"granite-docling", 0, {gpt2}},
    {"mpt", 0, {gpt2}},
    {"jais", 0, {gpt2}},
    {"jina-es", 0, {gpt2}},
    {"jina-de", 0, {gpt2}},
    {"jina-v1-en", 0, {gpt2}},
    {"jina-v2-es", 0, {gpt2}},
    {"jina-v2-de", 0, {gpt2}},
    {"jina-v2-code", 0, {gpt2}},
    {"roberta-bpe", 0, {gpt2}},
    {"modern-bert", 0, {gpt2}},
    {"llama-bpe", WHOLE | BOS, {llama3}},
    {"llama3", WHOLE | BOS, {llama3}},
    {"llama-v3", WHOLE | BOS, {llama3}},
    {"falcon3", WHOLE | BOS, {llama3}},
    {"pixtral", WHOLE | BOS, {llama3}},
    {"falcon-h1", WHOLE | BOS, {llama3}},
    {"lfm2", WHOLE | BOS, {llama3}},
    {"midm-2.0", WHOLE | BOS, {llama3}},
    {"jina-v5-nano", WHOLE | BOS, {llama3}},
    {"glm4", WHOLE, {llama3}},
    {"glm5", WHOLE, {llama3}},
    {"smaug-bpe", 0, {llama3}},
    {"dbrx", 0, {llama3}},
    {"chatglm-bpe", 0, {llama3}},
    {"jais-2", 0, {jais2}},
    {"minicpm5", WHOLE, {"\\p{N}{1,3}", minicpm5}},
    {"qwen2", 0, {qwen2}},
    {"megrez", 0, {qwen2}},
    {"stablelm2", 0, {qwen2}},
    {"hunyuan", 0, {qwen2}},
    {"solar-open", 0, {qwen2}},
    {"kormo", 0, {qwen2}},
    {"f2llmv2", 0, {qwen2}},
    {"grok-2", 0, {qwen2}},
    {"deepseek-r1-qwen", BOS, {qwen2}},
    {"ufakzeka", 0, {ufakzeka}},
    {"qwen35", 0, {qwen35}},
    {"smollm", 0, {DIGITS, gpt2}},
    {"starcoder", 0, {DIGITS, gpt2}},
    {"refact", 0, {DIGITS, gpt2}},
    {"command-r", 0, {DIGITS, gpt2}},
    {"mellum2", 0, {DIGITS, gpt2}},
    {"exaone", 0, {DIGITS, gpt2}},
    {"codeshell", 0, {DIGITS, gpt2}},
    {"minerva-7b", 0, {DIGITS, gpt2}},
    {"gpt-4o", 0, {gpt4o}},
    {"llama4", 0, {gpt4o}},
    {"minimax-m2", 0, {gpt4o}},
    {"kanana2", 0, {gpt4o}},
    {"talkie", 0, {gpt4o}},
    {"granite-embed-multi-97m", WHOLE, {granite_embed}},
    {"tekken", WHOLE | BOS, {tekken}},
    {"youtu", WHOLE, {youtu_scripts, youtu}},
    {"kimi-k2", 0, {kimi_k2}},
    {"deepseek-llm",
     0,
     {deepseek_line_end, deepseek_letters, deepseek_punctuation, deepseek_trailing_space,
      deepseek_asian, "\\p{N}+"}},
    {"deepseek-coder",
     0,
     {deepseek_line_end, "\\s?\\p{L}+", "\\s?\\p{P}+", deepseek_asian, DIGITS}},
    {"deepseek-v3", 0, {"\\p{N}{1,3}", deepseek_v3_asian, deepseek_v3}},
    {"hunyuan-dense", 0, {"\\p{N}{1,3}", deepseek_v3_asian, deepseek_v3}},
    {"joyai-llm", 0, {"\\p{N}{1,3}", deepseek_v3_asian, deepseek_v3}},
    {"hy_v4", 0, {"\\p{N}{1,3}", deepseek_v3_asian, deepseek_v3}},
    {"spark2_5", 0, {"\\p{N}{1,3}", deepseek_v3_asian, spark2_5, DIGITS}},
    {"seed-coder", 0, {seed_coder}},
    {"bailingmoe2", 0, {bailing}},
    {"bailingmoe", 0, {bailing}},
    {"llada-moe", 0, {bailing}},
    {"exaone-moe", 0, {exaone_moe}},
    {"laguna", 0, {lines, qwen2}},
    {"sarvam-moe", CHARACTERS, {lines}},
    {"tiny_aya", 0, {threes_in_words, tiny_aya}},
    {"cohere2moe", 0, {threes_in_words, tiny_aya}},
    {"afmoe", 0, {threes, afmoe_scripts, deepseek_v3}},
    {"superbpe", 0, {"\\p{N}+", superbpe}},
    {"falcon", 0, {"[\\p{P}\\$\\+<=>\\^~\\|`]+", gpt2, THREES}},
    {"bloom", 0, {bloom}},
    {"poro-chat", 0, {bloom}},
    {"gpt3-finnish", 0, {bloom}},
    {"viking", 0, {bloom, DIGITS}},
    {"chameleon",
     BOS,
     {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", "[\\t\\n]|    |  ", DIGITS,
      "[\\p{P}!-/:-@\\[-`{-~]", gpt2}},
};

/* Where llama.cpp departs from the above. */
static const struct departure {
    const char *published, *llama_cpp;
} departures[] = {
    {llama3, llama3_ascii},
    {qwen2, qwen2_ascii},
    {minicpm5, minicpm5_ascii},
    {jais2, jais2_ascii},
    {qwen35, qwen35_ascii},
    {gpt4o, gpt4o_ascii},
    {granite_embed, granite_embed_ascii},
    {tekken, tekken_ascii},
    {youtu, youtu_ascii},
    {kimi_k2, kimi_k2_blocks},
    {seed_coder, seed_coder_ascii},
    {bailing, bailing_ascii},
    {exaone_moe, exaone_moe_ascii},
    {deepseek_punctuation, deepseek_punctuation_cut},
    {deepseek_asian, deepseek_asian_cut},
    {threes_in_words, threes_with_lead},
    {threes, threes_with_lead},
    {tiny_aya, tiny_aya_ascii},
    {superbpe, superbpe_ascii},
    {afmoe_scripts, afmoe_one_class},
};

const struct model_pretokenizer_row *model_pretokenizer_row_at(size_t i)
{
    return i < sizeof rows / sizeof *rows ? &rows[i] : NULL;
}

const char *model_pretokenizer_in_llama_cpp(const char *expression)
{
    for (size_t i = 0; i < sizeof departures / sizeof *departures; i++)
        if (departures[i].published == expression)
            return departures[i].llama_cpp;
    return expression;
}

const char *model_pretokenizer_in_linear_time(const char *published)
{
    return strcmp(published, "(?=(\\d{3})+(?!\\d))") == 0         ? superbpe
           : strcmp(published, "\\d{1,3}(?=(?:\\d{3})*\\b)") == 0 ? threes_in_words_matched
                                                                  : NULL;
}
