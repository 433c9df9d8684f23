/** All architectures: X(name of the variable model_arch_<...>). */
#ifndef MODEL_ARCH_LIST_H
#define MODEL_ARCH_LIST_H

/* clang-format off */
#define MODEL_ARCHITECTURES(X)                                                                     \
    X(llama) X(qwen2) X(qwen3) X(mistral3) X(qwen3moe) X(gemma3) X(gemma2) X(gpt_oss) X(phi3)      \
    X(glm4moe) X(qwen35) X(qwen35moe) X(qwen3next) X(gemma4) X(deepseek2) X(minimax_m2) X(llama4)  \
    X(olmo2) X(granite) X(granitemoe) X(smollm3) X(glm4) X(cohere2) X(command_r) X(qwen2moe)       \
    X(starcoder2) X(nemotron_h) X(nemotron_h_moe) X(qwen2vl) X(qwen3vl) X(qwen3vlmoe) X(mistral4)  \
    X(seed_oss) X(ernie4_5) X(ernie4_5_moe) X(hunyuan_dense) X(hunyuan_moe) X(hy_v3) X(exaone4)    \
    X(exaone_moe) X(dots1) X(bailingmoe2) X(arcee) X(olmoe) X(mellum) X(cohere2moe) X(phi2)        \
    X(stablelm) X(lfm2) X(lfm2moe) X(granitehybrid) X(falcon_h1) X(afmoe) X(laguna) X(mimo2)       \
    X(step35) X(smallthinker) X(apertus) X(deepseek32) X(glm_dsa) X(minimax_m3) X(kimi_linear)     \
    X(deepseek4) X(gemma3n) X(gemma) X(exaone) X(internlm2) X(deepseek) X(minicpm) X(deci)         \
    X(phimoe) X(muse_glimmer) X(spark2_5) X(maple) X(granite_swa) X(glm5next) X(glm5_next)         \
    X(bailingmoe3) X(qwen4exp) X(hy_v4) X(dots3note) X(kimi_k3)
/* clang-format on */

#endif
