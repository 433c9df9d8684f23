// Writes the tensors that llama.cpp computes for a window of tokens into an .npz file, whole, for
// `assay trace --compare`. llama-eval-callback prints at most six values of each row.
//
//     llama-trace MODEL.gguf OUT.npz 1,15043,3186 [THREADS]
//
// It is built against llama.cpp (its public headers only), for example in its source folder:
//     c++ -O2 -std=c++17 -Iinclude -Iggml/include llama-trace.cpp -o llama-trace -Lbuild/bin
//         -lllama -lggml -lggml-base -Wl,-rpath,$PWD/build/bin
// A member's name is that of the graph's node and of its operation: Qcur-0.ROPE.npy. Of several
// nodes of one name and operation the last one is kept.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "ggml.h"
#include "llama.h"

using bytes = std::vector<uint8_t>;

static void put(bytes &out, uint64_t value, int n)
{
    for (int i = 0; i < n; i++)
        out.push_back(uint8_t(value >> 8 * i));
}

static void put(bytes &out, const std::string &text)
{
    out.insert(out.end(), text.begin(), text.end());
}

static float value_at(const uint8_t *p, ggml_type type)
{
    float f;
    int32_t i;
    int64_t l;
    switch (type) {
    case GGML_TYPE_F16: return ggml_fp16_to_fp32(*(const ggml_fp16_t *)p);
    case GGML_TYPE_BF16: return ggml_bf16_to_fp32(*(const ggml_bf16_t *)p);
    case GGML_TYPE_I32: memcpy(&i, p, 4); return float(i);
    case GGML_TYPE_I64: memcpy(&l, p, 8); return float(l);
    default: memcpy(&f, p, 4); return f;
    }
}

// A tensor as an .npy file, whatever its strides are.
static bytes npy_of(const ggml_tensor *t)
{
    bytes data(ggml_nbytes(t)), out;
    ggml_backend_tensor_get(t, data.data(), 0, data.size());
    std::string shape;
    for (int d = 3; d >= 0; d--)
        if (t->ne[d] > 1 || !shape.empty() || d == 0)
            shape += std::to_string(t->ne[d]) + ", ";
    std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
    head.append(63 - (10 + head.size()) % 64, ' ');
    head += '\n';
    put(out, "\x93NUMPY\x01");
    put(out, 0, 1);
    put(out, head.size(), 2);
    put(out, head);
    for (int64_t i3 = 0; i3 < t->ne[3]; i3++)
        for (int64_t i2 = 0; i2 < t->ne[2]; i2++)
            for (int64_t i1 = 0; i1 < t->ne[1]; i1++)
                for (int64_t i0 = 0; i0 < t->ne[0]; i0++) {
                    float f = value_at(data.data() + i0 * t->nb[0] + i1 * t->nb[1] +
                                           i2 * t->nb[2] + i3 * t->nb[3],
                                       t->type);
                    uint32_t bits;
                    memcpy(&bits, &f, 4);
                    put(out, bits, 4);
                }
    return out;
}

static std::vector<std::string> order;
static std::map<std::string, bytes> arrays;

// A node without a name is called after its weight.
static std::string name_of(const ggml_tensor *t)
{
    for (int i = 0; i < 2 && strncmp(t->name, "node_", 5) == 0; i++)
        if (t->src[i] && strncmp(t->src[i]->name, "blk.", 4) == 0)
            return t->src[i]->name;
    return t->name;
}

// "x (view)", "x (reshaped)" and such are x in another form; an unnamed node stays unnamed.
static bool is_wanted(const ggml_tensor *t, const std::string &name)
{
    bool moves = t->op == GGML_OP_VIEW || t->op == GGML_OP_RESHAPE || t->op == GGML_OP_PERMUTE ||
                 t->op == GGML_OP_TRANSPOSE || t->op == GGML_OP_NONE;
    bool formed = moves && name.find('(') != std::string::npos;
    return !formed && ggml_nelements(t) > 0 && !ggml_is_quantized(t->type) && !name.empty() &&
           name[0] != ' ' && name.compare(0, 5, "node_") != 0 && name.compare(0, 6, "cache_") != 0;
}

static bool on_node(ggml_tensor *t, bool ask, void *)
{
    std::string name = name_of(t);
    if (ask || !is_wanted(t, name))
        return true;
    name += std::string(".") + ggml_op_desc(t);
    if (!arrays.count(name))
        order.push_back(name);
    arrays[name] = npy_of(t);
    return true;
}

static uint32_t crc32_of(const bytes &data)
{
    uint32_t crc = ~0u;
    for (uint8_t b : data) {
        crc ^= b;
        for (int i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

// A zip without compression, of less than 4 GiB.
static bool write_npz(const char *path)
{
    bytes zip, directory;
    for (const std::string &name : order) {
        const bytes &data = arrays[name];
        std::string member = name + ".npy";
        bytes common;
        put(common, 20, 2); // version, flags, method, time, date, checksum, sizes, name, extra
        put(common, 0, 4);
        put(common, 0x210000, 4);
        put(common, crc32_of(data), 4);
        put(common, data.size(), 4);
        put(common, data.size(), 4);
        put(common, member.size(), 2);
        put(common, 0, 2);
        put(directory, 0x02014b50, 4);
        put(directory, 20, 2);
        directory.insert(directory.end(), common.begin(), common.end());
        put(directory, 0, 2 + 2 + 2 + 4);
        put(directory, zip.size(), 4);
        put(directory, member);
        put(zip, 0x04034b50, 4);
        zip.insert(zip.end(), common.begin(), common.end());
        put(zip, member);
        zip.insert(zip.end(), data.begin(), data.end());
    }
    size_t begin = zip.size();
    zip.insert(zip.end(), directory.begin(), directory.end());
    put(zip, 0x06054b50, 4);
    put(zip, 0, 4);
    put(zip, order.size(), 2);
    put(zip, order.size(), 2);
    put(zip, directory.size(), 4);
    put(zip, begin, 4);
    put(zip, 0, 2);
    FILE *file = fopen(path, "wb");
    bool ok = file && zip.size() >> 32 == 0 && fwrite(zip.data(), 1, zip.size(), file) == zip.size();
    return file && fclose(file) == 0 && ok;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: llama-trace MODEL.gguf OUT.npz ID,ID,... [THREADS]\n");
        return 2;
    }
    std::vector<llama_token> tokens;
    for (char *at = argv[3]; *at; at += *at == ',')
        tokens.push_back(llama_token(strtol(at, &at, 10)));
    llama_log_set([](ggml_log_level level, const char *text, void *) {
        if (level >= GGML_LOG_LEVEL_ERROR)
            fputs(text, stderr);
    }, nullptr);
    llama_backend_init();
    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = 0;
    llama_model *model = llama_model_load_from_file(argv[1], model_params);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = params.n_batch = params.n_ubatch = uint32_t(tokens.size());
    params.n_threads = params.n_threads_batch = argc > 4 ? atoi(argv[4]) : 2;
    params.cb_eval = on_node;
    llama_context *context = model ? llama_init_from_model(model, params) : nullptr;
    if (!context)
        return 1;
    llama_batch batch = llama_batch_init(int32_t(tokens.size()), 0, 1);
    batch.n_tokens = int32_t(tokens.size());
    for (size_t i = 0; i < tokens.size(); i++) {
        batch.token[i] = tokens[i];
        batch.pos[i] = llama_pos(i);
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    if (llama_decode(context, batch) != 0 || !write_npz(argv[2])) {
        fprintf(stderr, "llama-trace: no file was written\n");
        return 1;
    }
    return 0;
}
