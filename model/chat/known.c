/*
 * Templates by name, for models whose files lack one: written from what their authors say of the
 * formats. A role that a format does not have is refused.
 */
#include "base/text/words.h"
#include "model/chat/chat.h"

/* Pieces that several have. */
#define REFUSE(role) "{{ raise_exception('this format has no role ' ~ " role " ~ ' here') }}"
#define ONLY(roles)  "{% if m.role not in [" roles "] %}" REFUSE("m.role") "{% endif %}"
#define EACH         "{% for m in messages %}"
#define ALL          ONLY("'system', 'user', 'assistant'")
#define END          "{% endfor %}"
#define PROMPT(text) "{% if add_generation_prompt %}{{ " text " }}{% endif %}"
/* The first message, where it is a system's, is `system`; `turns` are the others. */
#define TURNS                                                                                      \
    "{% set system = messages[0].content if messages[0].role == 'system' else '' %}"               \
    "{% set turns = messages[1:] if messages[0].role == 'system' else messages %}"                 \
    "{% for m in turns %}{% if m.role != ['user', 'assistant'][loop.index0 % 2] %}"                \
    "{{ raise_exception('expected turns of user and assistant, one after the other, after at '"    \
    " ~ 'most one of the system') }}{% endif %}"
#define NO_SYSTEM "{% if system %}" REFUSE("'system'") "{% endif %}"

static const char *const texts[] = {
    /* chatml: Qwen, Yi, Hermes, SmolLM */
    EACH "{{ '<|im_start|>' ~ m.role ~ '\\n' ~ m.content ~ '<|im_end|>\\n' }}" END PROMPT(
        "'<|im_start|>assistant\\n'"),
    /* command-r */
    "{{ bos_token }}" EACH ALL
    "{{ '<|START_OF_TURN_TOKEN|>' ~ {'system': '<|SYSTEM_TOKEN|>', 'user': '<|USER_TOKEN|>', "
    "'assistant': '<|CHATBOT_TOKEN|>'}[m.role] ~ m.content | trim ~ '<|END_OF_TURN_TOKEN|>' }}" END
        PROMPT("'<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>'"),
    /* deepseek-v2 */
    "{{ bos_token }}" EACH ALL
    "{{ {'system': '', 'user': 'User: ', 'assistant': 'Assistant: '}[m.role] ~ m.content ~ "
    "(eos_token if m.role == 'assistant' else '\\n\\n') }}" END PROMPT("'Assistant:'"),
    /* deepseek-v3, R1 */
    "{{ bos_token }}" EACH ALL
    "{{ {'system': '', 'user': '<｜User｜>', 'assistant': '<｜Assistant｜>'}[m.role] ~ m.content ~ "
    "('<｜end▁of▁sentence｜>' if m.role == 'assistant' else '') }}" END PROMPT("'<｜Assistant｜>'"),
    /* gemma, 1 to 3 */
    "{{ bos_token }}" TURNS
    "{{ '<start_of_turn>' ~ ('model' if m.role == 'assistant' else 'user') ~ '\\n' ~ "
    "(system ~ '\\n\\n' if system and loop.first else '') ~ m.content | trim ~ "
    "'<end_of_turn>\\n' }}" END PROMPT("'<start_of_turn>model\\n'"),
    /* granite, 3 */
    EACH ALL "{{ '<|start_of_role|>' ~ m.role ~ '<|end_of_role|>' ~ m.content ~ "
             "'<|end_of_text|>\\n' }}" END PROMPT("'<|start_of_role|>assistant<|end_of_role|>'"),
    /* llama2 */
    TURNS "{% if m.role == 'user' %}{{ bos_token ~ '[INST] ' ~ ('<<SYS>>\\n' ~ system ~ "
          "'\\n<</SYS>>\\n\\n' if system and loop.first else '') ~ m.content | trim ~ ' [/INST]' }}"
          "{% else %}{{ ' ' ~ m.content | trim ~ ' ' ~ eos_token }}{% endif %}" END,
    /* llama3, 3.0 to 3.3 without the date and the tools of the later ones */
    "{{ bos_token }}" EACH
    "{{ '<|start_header_id|>' ~ m.role ~ '<|end_header_id|>\\n\\n' ~ m.content | trim ~ "
    "'<|eot_id|>' }}" END PROMPT("'<|start_header_id|>assistant<|end_header_id|>\\n\\n'"),
    /* llama4 */
    "{{ bos_token }}" EACH
    "{{ '<|header_start|>' ~ m.role ~ '<|header_end|>\\n\\n' ~ m.content | trim ~ '<|eot|>' }}" END
        PROMPT("'<|header_start|>assistant<|header_end|>\\n\\n'"),
    /* mistral-v1: 7B 0.1 and 0.2, Mixtral */
    "{{ bos_token }}" TURNS NO_SYSTEM
    "{{ ' [INST] ' ~ m.content ~ ' [/INST]' if m.role == 'user' else "
    "' ' ~ m.content ~ eos_token }}" END,
    /* mistral-v3: 7B 0.3 */
    "{{ bos_token }}" TURNS NO_SYSTEM "{{ '[INST] ' ~ m.content ~ '[/INST]' if m.role == 'user' "
    "else ' ' ~ m.content ~ eos_token }}" END,
    /* mistral-v3-tekken: Nemo */
    "{{ bos_token }}" TURNS NO_SYSTEM
    "{{ '[INST]' ~ m.content ~ '[/INST]' if m.role == 'user' else m.content ~ eos_token }}" END,
    /* mistral-v7-tekken: Small 3 */
    "{{ bos_token }}" TURNS
    "{{ '[SYSTEM_PROMPT]' ~ system ~ '[/SYSTEM_PROMPT]' if system and loop.first else '' }}"
    "{{ '[INST]' ~ m.content ~ '[/INST]' if m.role == 'user' else m.content ~ eos_token }}" END,
    /* phi3 */
    EACH ALL
    "{{ '<|' ~ m.role ~ '|>\\n' ~ m.content ~ '<|end|>\\n' }}" END PROMPT("'<|assistant|>\\n'"),
    /* phi4 */
    EACH ALL "{{ '<|im_start|>' ~ m.role ~ '<|im_sep|>' ~ m.content ~ '<|im_end|>' }}" END PROMPT(
        "'<|im_start|>assistant<|im_sep|>'"),
    /* vicuna, 1.1 and later */
    TURNS "{% if loop.first %}{{ (system or 'A chat between a curious user and an artificial "
          "intelligence assistant. The assistant gives helpful, detailed, and polite answers to "
          "the user\\'s questions.') ~ ' ' }}{% endif %}"
          "{{ 'USER: ' ~ m.content if m.role == 'user' else ' ASSISTANT: ' ~ m.content ~ "
          "eos_token }}" END PROMPT("' ASSISTANT:'"),
    /* zephyr, TinyLlama's chats */
    EACH ALL "{{ '<|' ~ m.role ~ '|>\\n' ~ m.content ~ eos_token ~ '\\n' }}" END PROMPT(
        "'<|assistant|>\\n'"),
};

const char *model_chat_known(const char *name)
{
    int index = base_words_index(MODEL_CHAT_KNOWN, name);
    return index < 0 ? NULL : texts[index];
}
